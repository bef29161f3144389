// Answers what the wearer asks. A language model answers and calls the app's tool; the answer is shown and spoken;
// back stops it.
import { type AssistantTool, connect, GlassesError } from "./service/glasses.js";

const glasses = await connect({ app: { name: "Shopping", version: "1.0" } });
const items: string[] = [];
const tools: AssistantTool[] = [{
  name: "add_item",
  description: "Puts an item on the shopping list and returns the whole list.",
  parameters: { type: "object", properties: { item: { type: "string" } }, required: ["item"] },
  run({ item }) {
    items.push(String(item));
    return { items };
  },
}];

async function attempt<T>(command: Promise<T>): Promise<T | undefined> {
  try {
    return await command;
  } catch (e) {
    if (!(e instanceof GlassesError) || e.code === "closed") throw e;
    console.error(`refused (${e.code}): ${e.message} ${e.fixHint ?? ""}`); // folded, no speaker, no credit, ...
    return undefined;
  }
}

async function draw(question: string, answer: string): Promise<void> {
  await attempt(glasses.show({
    type: "column", padding: 16, gap: 8, children: [
      { type: "text", style: "caption", text: question },
      { type: "column", grow: 1, overflow: "paginate", children: [{ type: "text", text: answer }] },
    ],
  }));
}

glasses.on("input", ({ payload }) => {
  if (payload.kind === "back") glasses.stopAsking();
});
await draw("Shopping", "Ask me.");
await attempt(glasses.startTranscription());
for await (const { type, payload } of glasses.events()) {
  if (type !== "transcript" || !payload.final) continue;
  const question = payload.text;
  await draw(question, "…");
  const system = "Answer in one short sentence, which is spoken.";
  const answer = await attempt(glasses.ask(question, { system, tools }));
  const text = answer?.text || "I cannot answer now.";
  await draw(question, text);
  await attempt(glasses.say(text.slice(0, 2000)));
}
