// Remembers the wearer, who is asked first and can have it deleted. A language model answers and, in a later session,
// knows what the wearer has told.
import { connect, GlassesError } from "./service/glasses.js";

const consent =
  "May I remember what you tell me, so that I know it the next time? You can have it deleted at any time.";
const glasses = await connect({ app: { name: "Companion", version: "1.0" } });

async function attempt<T>(command: Promise<T>): Promise<T | undefined> {
  try {
    return await command;
  } catch (e) {
    if (!(e instanceof GlassesError) || e.code === "closed") throw e;
    console.error(`refused (${e.code}): ${e.message} ${e.fixHint ?? ""}`); // folded, no gateway, no credit, ...
    return undefined;
  }
}

async function draw(text: string, ...buttons: string[]): Promise<void> {
  await attempt(glasses.show({
    type: "column", padding: 16, gap: 8, children: [
      { type: "text", text, grow: 1, overflow: "paginate" },
      ...buttons.map((text) => ({ type: "button", id: text.split(" ")[0]!, text })),
    ],
  }));
}

let remember = Boolean(await attempt(glasses.memory())); // a profile exists only if the wearer agreed
const change = (): string => remember ? "Forget me" : "Remember me"; // the wearer may decide otherwise at any time
await (remember ? draw("Welcome back.", "Forget me") : draw(consent, "Yes", "No"));
await attempt(glasses.startTranscription());
for await (const { type, payload } of glasses.events()) {
  if (type === "transcript" && payload.final) {
    const answer = await attempt(glasses.ask(payload.text, { system: "Answer in one short sentence.", remember }));
    await draw(answer?.text || "I cannot answer now.", change());
  } else if (type === "input" && payload.target === "Remember") {
    await draw(consent, "Yes", "No");
  } else if (type === "input" && payload.target) {
    if (payload.target === "Forget" && !await attempt(glasses.forget().then(() => true))) {
      await draw("It is not deleted.", "Forget me");
      continue;
    }
    remember = payload.target === "Yes";
    await draw(remember ? "Tell me about yourself." : "I remember nothing.", change());
  }
}
