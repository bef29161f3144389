// Raw sound and movement: handlers get each piece of a stream while the loop takes the other events.
import { connect } from "./service/glasses.js";

const glasses = await connect({ app: { name: "Meter", version: "1.0" } });
let loudest = 0;

await glasses.startAudio((chunk) => {
  const bytes = chunk.bytes!;
  const samples = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let i = 0; i + 1 < samples.byteLength; i += 2) loudest = Math.max(loudest, Math.abs(samples.getInt16(i, true)));
}, 16000);
await glasses.startMotion(({ payload }) => console.log(`up: ${payload.az} thousandths of g`), 5);

for await (const { type } of glasses.events()) {
  if (type !== "input") continue;
  await glasses.stopMotion();
  await glasses.stopAudio();
  console.log(`loudest sample: ${loudest}`);
}
