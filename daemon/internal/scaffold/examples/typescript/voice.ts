// Driven by voice: announces the phrases that it understands, listens, and answers aloud.
import { connect, GlassesError } from "./service/glasses.js";

const glasses = await connect({ app: { name: "Pages", version: "1.0" } });
let page = 1;

await glasses.announce(["next page", "previous page"]);
try {
  await glasses.startTranscription();
} catch (e) {
  if (!(e instanceof GlassesError)) throw e;
  console.error(`not listening: ${e.message}`); // permission_denied, unsupported, ...
}
for await (const { type, payload } of glasses.events()) {
  if (type !== "transcript" || !payload.final) continue;
  const heard = payload.text.toLowerCase();
  if (heard.includes("next page")) page++;
  else if (heard.includes("previous page")) page = Math.max(1, page - 1);
  else continue;
  await glasses.say(`Page ${page}`);
}
