// Follows the state of the glasses, and shows its text again whenever they can show it.
import { connect, GlassesError, type GlassesEvent } from "./service/glasses.js";

const glasses = await connect({ app: { name: "State", version: "1.0" } });
let text = "All is well";

async function draw(): Promise<void> {
  try {
    await glasses.show({ type: "text", text });
  } catch (e) {
    if (!(e instanceof GlassesError) || e.code === "closed") throw e;
    console.error(`not shown (${e.code}): ${e.message}`); // folded, too hot, not worn, out of reach: an event says when that ends
  }
}

async function handle({ type, payload }: GlassesEvent): Promise<void> {
  if (type === "battery" && payload.level <= 15 && !payload.charging) text = `Battery: ${payload.level} %`;
  else if (type === "permission" && payload.state === "denied") text = `Not allowed: ${payload.part}`;
  else if (!["hinge", "wear", "thermal", "link", "device"].includes(type)) return;
  await draw();
}

await draw();
for await (const event of glasses.events()) await handle(event);
