// Shows a text and counts taps until the session is closed.
import { connect } from "./service/glasses.js";

const glasses = await connect({ app: { name: "Hello", version: "1.0" } });
let taps = 0;

const draw = () => glasses.show({
  type: "column", gap: 8, padding: 16, children: [
    { type: "text", text: "Hello, glasses", style: "title" },
    { type: "text", text: taps === 0 ? "Tap me" : `Taps: ${taps}` },
  ],
});

await draw();
for await (const event of glasses.events()) {
  if (event.type === "input" && event.payload.kind === "tap") {
    taps++;
    await draw();
  } else if (event.type === "device" && glasses.device.panel) await draw(); // another model, whose panel is clear
}
