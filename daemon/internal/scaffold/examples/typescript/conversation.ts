// A voice assistant with two tools, which the wearer can interrupt. It shows what was heard and said. A tap begins a
// conversation, back ends it.
import { type AssistantTool, connect, GlassesError } from "./service/glasses.js";

const glasses = await connect({ app: { name: "Kitchen", version: "1.0" } });
const items: string[] = [];
let heard = "";

const tools: AssistantTool[] = [{
  name: "add_item",
  description: "Puts an item on the shopping list and returns the whole list.",
  parameters: { type: "object", properties: { item: { type: "string" } }, required: ["item"] },
  run({ item }) {
    items.push(String(item));
    return { items };
  },
}, {
  name: "start_timer",
  description: "Starts a kitchen timer of 1 to 180 minutes.",
  parameters: { type: "object", properties: { minutes: { type: "integer" } }, required: ["minutes"] },
  run({ minutes }) {
    const ms = Number(minutes) * 60_000;
    if (!(ms >= 60_000 && ms <= 180 * 60_000)) return { error: "minutes must be 1 to 180" };
    glasses.after(ms, () => draw("Timer", "Time is up."));
    return { started: true };
  },
}];

async function attempt<T>(command: Promise<T>): Promise<T | undefined> {
  try {
    return await command;
  } catch (e) {
    if (!(e instanceof GlassesError) || e.code === "closed") throw e;
    console.error(`refused (${e.code}): ${e.message} ${e.fixHint ?? ""}`); // folded, no gateway, no credit, ...
    return undefined;
  }
}

async function draw(caption: string, text: string): Promise<void> {
  heard = caption;
  await attempt(glasses.show({
    type: "column", padding: 16, gap: 8, children: [
      { type: "text", style: "caption", text: caption },
      { type: "column", grow: 1, overflow: "paginate", children: [{ type: "text", text }] },
    ],
  }));
}

async function talk(): Promise<void> {
  const off = glasses.on("input", ({ payload }) => {
    if (payload.kind === "back") glasses.stopConversing();
  });
  await draw("Kitchen", "I am listening.");
  const end = await attempt(glasses.converse({
    instructions: "You help in the kitchen. Answer in one or two short sentences.",
    tools,
    onHeard: (text) => draw(text, "…"),
    onSaid: (text) => draw(heard, text),
    onError: () => draw(heard, "I cannot answer that now."),
  }));
  off();
  await draw("Kitchen", end?.reason === "stopped" ? "Tap to talk." : "I cannot talk now. Tap to try again.");
}

await draw("Kitchen", "Tap to talk.");
for await (const { type, payload } of glasses.events()) {
  if (type === "input" && (payload.kind === "tap" || payload.kind === "select")) await talk();
}
