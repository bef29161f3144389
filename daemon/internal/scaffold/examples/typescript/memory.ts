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

let shown: [string, ...string[]] = [""];
async function draw(text: string, ...buttons: string[]): Promise<void> {
  shown = [text, ...buttons];
  await attempt(glasses.show({
    type: "column", padding: 4, gap: 4, children: [
      { type: "column", grow: 1, overflow: "paginate", children: [{ type: "text", text }] },
      {
        type: "row", gap: 8,
        children: buttons.map((text) => ({ type: "button", id: text.split(" ")[0]!, text })),
      },
    ],
  }));
}

let remember = Boolean(await attempt(glasses.memory())); // a profile exists only if the wearer agreed
const change = (): string => remember ? "Forget me" : "Remember me"; // the wearer may decide otherwise at any time
async function choose(target: string): Promise<void> {
  if (target === "Remember") return draw(consent, "Yes", "No");
  if (target === "Forget" && !await attempt(glasses.forget().then(() => true))) {
    return draw("It is not deleted.", "Forget me");
  }
  remember = target === "Yes";
  await draw(remember ? "Tell me about yourself." : "I remember nothing.", change());
}

async function hear(said: string): Promise<void> {
  // Some glasses can select only the first button, so the wearer may also say yes or no.
  const word = shown[0] === consent ? /^(yes|no)\b/i.exec(said)?.[1]?.toLowerCase() : undefined;
  if (word) return choose(word === "yes" ? "Yes" : "No");
  const answer = await attempt(glasses.ask(said, { system: "Answer in one short sentence.", remember }));
  await draw(answer?.text || "I cannot answer now.", change());
}

await (remember ? draw("Welcome back.", "Forget me") : draw(consent, "Yes", "No"));
await attempt(glasses.startTranscription());
for await (const { type, payload } of glasses.events()) {
  if (type === "transcript" && payload.final) await hear(payload.text);
  else if (type === "input" && payload.target) await choose(payload.target);
  else if (type === "device") { // other glasses begin with a clear display
    await draw(...shown);
    await attempt(glasses.startTranscription());
  }
}
