// An app for the tests: it reports in log frames what it saw.
import { type AssistantAnswer, type AssistantTool, connect, type Glasses, GlassesError } from "./service/glasses.js";

async function ask(glasses: Glasses, question: string): Promise<void> {
  const tools: AssistantTool[] = [
    {
      name: "weather", description: "Tells the weather.",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
      async run({ city }) {
        await glasses.sleep(500);
        return { celsius: 21, city };
      },
    },
    {
      name: "photo", description: "Takes a photo.",
      run: async () => `${(await glasses.photo(640)).bytes.length} bytes`,
    },
  ];
  glasses.on("battery", () => glasses.stopAsking());
  tell(glasses, await glasses.ask(question, {
    system: "Be brief.", tools, onText: (text) => glasses.log("com.example.text", { text }),
  }));
}

function tell(glasses: Glasses, { text, messages }: AssistantAnswer): void {
  glasses.log("com.example.answer", { text, roles: messages.map(({ role }) => role) });
}

try {
  const glasses = await connect({ app: { name: "probe", version: "1" } });
  await glasses.show({ type: "text", text: "ready" });
  for await (const event of glasses.events()) {
    if (event.type !== "input") continue;
    try {
      if (event.payload.target?.startsWith("ask ")) {
        await ask(glasses, event.payload.target.slice(4));
        continue;
      }
      switch (event.payload.target) {
        case "photo": {
          const photo = await glasses.photo(640);
          glasses.log("com.example.photo", { bytes: photo.bytes.length, first: photo.bytes[0], width: photo.width });
          break;
        }
        case "audio":
          await glasses.startAudio((chunk) => glasses.log("com.example.chunk", { bytes: chunk.bytes!.length }), 8000);
          break;
        case "timers": {
          glasses.on("battery", ({ payload }) => glasses.log("com.example.battery", { level: payload.level }));
          let turns = 0;
          const stop = glasses.every(1000, () => {
            glasses.log("com.example.turn", { turn: ++turns });
            if (turns === 2) stop();
          });
          glasses.after(300, () => glasses.log("com.example.once", {}));
          const cancel = glasses.after(50, () => glasses.log("com.example.cancelled", {}));
          cancel();
          cancel();
          break;
        }
        case "long":
          glasses.after(600_500, () => glasses.log("com.example.once", {}));
          break;
        case "busy":
          glasses.every(100, async () => {
            await glasses.sleep(1000);
            glasses.log("com.example.turn", {});
          });
          break;
        case "wait": {
          const next = await glasses.next(400);
          glasses.log("com.example.next", { target: next ? next.payload.target : "none" });
          break;
        }
        case "converse": {
          const { messages } = await glasses.ask("Hello");
          tell(glasses, await glasses.ask([...messages, { role: "user", content: "Bye" }]));
          break;
        }
        case "remember":
          tell(glasses, await glasses.ask("Hello", { remember: true }));
          break;
        case "memory":
          glasses.log("com.example.memory", { text: await glasses.memory() });
          break;
        case "forget":
          await glasses.forget();
          glasses.log("com.example.forgotten", {});
          break;
        case "talk": {
          glasses.on("battery", () => glasses.stopConversing());
          const { reason, mode } = await glasses.converse({
            instructions: "Be brief.",
            onHeard: (text) => glasses.log("com.example.heard", { text }),
            onSaid: (text) => glasses.log("com.example.said", { text }),
          });
          glasses.log("com.example.ended", { reason, mode });
          break;
        }
        case "connection":
          glasses.on("connection", ({ at, payload }) => glasses.log("com.example.connection", { at, ...payload }));
          break;
        case "never":
          glasses.every(0, () => {});
          break;
        case "not json": {
          const tree: Record<string, unknown> = { type: "text" };
          tree.text = tree;
          await glasses.show(tree as any);
          break;
        }
        case "state":
          glasses.log("com.example.state", { ...glasses.initialState });
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
      glasses.log("com.example.error", { code: e.code, message: e.message, part: e.part, by: e.by,
        fixHint: e.fixHint, retryAfterMs: e.fixHint && (e.retryAfterMs ?? 0) });
    }
  }
  console.log("closed");
} catch (e) {
  if (!(e instanceof GlassesError)) throw e;
  console.log(e.code);
}
