// Takes a photo when the capture button is pressed, and says why if it cannot.
import { connect, GlassesError } from "./service/glasses.js";

const glasses = await connect({ app: { name: "Camera", version: "1.0" } });
let text = "Press the capture button";
const draw = () => glasses.show({ type: "text", text });

async function take(): Promise<string> {
  try {
    const photo = await glasses.photo(1280);
    return `${photo.width} x ${photo.height}, ${photo.bytes.length} bytes of ${photo.mime}`;
  } catch (e) {
    if (!(e instanceof GlassesError)) throw e;
    if (e.code === "permission_denied") return "The camera is not allowed";
    if (e.code === "busy" || e.code === "media_lost") return "Please try again";
    return `No photo: ${e.message}`;
  }
}

await draw();
for await (const { type, payload } of glasses.events()) {
  if (type === "input" && payload.kind === "capture") text = await take();
  else if (type !== "device" || !glasses.device.panel) continue; // another model's panel is clear
  await draw();
}
