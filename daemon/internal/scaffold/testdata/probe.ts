// An app for the tests: it tells by log frames what it saw.
import { connect, GlassesError } from "./service/glasses.ts";

try {
  const glasses = await connect({ app: { name: "probe", version: "1" } });
  await glasses.show({ type: "text", text: "ready" });
  for await (const event of glasses.events()) {
    if (event.type !== "input") continue;
    try {
      switch (event.payload.target) {
        case "photo": {
          const photo = await glasses.photo(640);
          glasses.log("com.example.photo", { bytes: photo.bytes.length, first: photo.bytes[0], width: photo.width });
          break;
        }
        case "audio":
          await glasses.startAudio((chunk) => glasses.log("com.example.chunk", { bytes: chunk.bytes!.length }), 8000);
          break;
        case "sleep":
          await glasses.sleep(2000);
          await glasses.say("Grüße");
          break;
        default:
          await glasses.show({ type: "text", text: String(event.payload.target) });
      }
    } catch (e) {
      if (!(e instanceof GlassesError)) throw e;
      glasses.log("com.example.error", { code: e.code, message: e.message });
    }
  }
  console.log("closed");
} catch (e) {
  if (!(e instanceof GlassesError)) throw e;
  console.log(e.code);
}
