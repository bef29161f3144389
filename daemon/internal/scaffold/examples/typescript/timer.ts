// Counts down on the session's clock, which a test may run in virtual time. It draws once for each change, and sets
// the time of the next before it draws: late pictures do not slow it. A tap pauses and resumes it, back restarts it.
import { connect, GlassesError } from "./service/glasses.js";

const glasses = await connect({ app: { name: "Timer", version: "1.0" } });
const seconds = 5;
let left = seconds;
let stop: (() => void) | undefined; // while it runs

async function attempt(command: Promise<void>): Promise<void> {
  try {
    await command;
  } catch (e) {
    if (!(e instanceof GlassesError) || e.code === "closed") throw e;
    console.error(`refused (${e.code}): ${e.message}`); // folded, not worn, no speaker, ...: the timer continues
  }
}

function draw(): Promise<void> {
  const hint = left === 0 ? "Done" : stop ? "Tap to pause" : "Paused";
  return attempt(glasses.show({
    type: "column", align: "center", padding: 16, children: [
      { type: "text", style: "large", text: String(left) },
      { type: "text", text: hint },
    ],
  }));
}

async function tick(): Promise<void> {
  const done = --left === 0;
  stop = done ? undefined : glasses.after(1000, tick);
  await draw();
  if (done) await attempt(glasses.play("success"));
}

function pause(): void {
  stop?.();
  stop = undefined;
}

function start(): void {
  pause();
  if (left === 0) left = seconds;
  stop = glasses.after(1000, tick);
}

start();
await draw();
for await (const { type, payload } of glasses.events()) {
  if (type === "input" && payload.kind === "back") {
    left = seconds;
    start();
  } else if (type === "input" && (payload.kind === "tap" || payload.kind === "select")) {
    if (stop) pause();
    else start();
  } else if (!["hinge", "wear", "thermal", "link", "device"].includes(type)) {
    continue;
  }
  await draw();
}
