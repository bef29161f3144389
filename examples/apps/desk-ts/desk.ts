// Desk, an example app: a list on the glasses, driven by touch and speech. Run it with Node 22.18 or newer:
//
//   SERVICE_GLASSES_URL=ws://... SERVICE_GLASSES_SECRET_FILE=... node desk.ts
//
// desk-py and desk-go are the same app in Python and Go: all three send the same frames in the same order.
import { connect, GlassesError, type DisplayNode, type Glasses, type GlassesEvent } from "./service/glasses.js";

const items = ["Mail", "Calendar", "Notes"];

class Desk {
  index = 0;
  status = "";
  hears = false; // transcription was started: it stands from then on
  glasses: Glasses;

  constructor(glasses: Glasses) {
    this.glasses = glasses;
  }

  async run(): Promise<void> {
    await this.attempt(() => this.glasses.announce(["next item", "go back", "take a photo"]));
    await this.listen();
    await this.draw();
    await this.speak("Desk is ready");
    for await (const event of this.glasses.events()) await this.handle(event);
  }

  async handle({ type, payload }: GlassesEvent): Promise<void> {
    if (type === "input") await this.input(payload.kind, payload.target ?? "");
    else if (type === "transcript" && payload.final) await this.heard(payload.text.toLowerCase());
    else if (type === "battery" && payload.level <= 15 && !payload.charging) await this.warn(payload.level);
    else if (type === "transcription") await this.tellHearing(payload.running, payload.reason, payload.part);
    else if (type === "permission" || type === "disabled" || type === "call") await this.listen();
    else if (type === "hinge" && payload.state === "open") await this.resume();
    else if (type === "wear" && payload.worn) await this.resume();
    else if (type === "link" && ["connected", "lossy"].includes(payload.state)) await this.resume();
    else if (type === "device") await this.resume();
  }

  async resume(): Promise<void> {
    await this.listen();
    await this.draw();
  }

  /** listen starts transcription unless it stands already. One that was refused is tried again when the state changes. */
  async listen(): Promise<void> {
    if (!this.hears) this.hears = (await this.attempt(() => this.glasses.startTranscription())) === "";
  }

  /** tellHearing tells the wearer that their word is not heard because they did not allow it. */
  async tellHearing(running: boolean, reason?: string, part?: string): Promise<void> {
    if (reason === "permission_denied" || reason === "disabled_by_user") {
      this.status = `Not allowed: ${part}`;
      await this.draw();
    } else if (running && this.status.startsWith("Not allowed: ")) {
      this.status = "";
      await this.draw();
    }
  }

  async input(kind: string, target: string): Promise<void> {
    if (kind === "capture") await this.photo();
    else if (kind === "back") await this.move(-1);
    else if (kind !== "tap" && kind !== "select") return;
    else if (target === "next") await this.move(1);
    else if (target === "back") await this.move(-1);
    else if (target === "photo") await this.photo();
    else if (target.startsWith("item-")) await this.open(Number(target.slice(5)));
  }

  async heard(text: string): Promise<void> {
    if (text.includes("next")) await this.move(1);
    else if (text.includes("back")) await this.move(-1);
    else if (text.includes("photo")) await this.photo();
  }

  async move(by: number): Promise<void> {
    this.index = (this.index + by + items.length) % items.length;
    this.status = "";
    await this.draw();
  }

  async open(index: number): Promise<void> {
    this.index = index;
    this.status = `Opened ${items[index]}`;
    await this.draw();
    await this.speak(items[index]);
  }

  async photo(): Promise<void> {
    this.status = "Taking a photo";
    await this.draw();
    const refused = await this.attempt(async () => {
      const photo = await this.glasses.photo(640);
      this.status = `Photo: ${photo.bytes.length} bytes`;
    });
    if (refused === "permission_denied") this.status = "The camera is not allowed";
    else if (refused) this.status = `No photo: ${refused}`;
    await this.draw();
    await this.attempt(() => this.glasses.sleep(1500));
    this.status = "";
    await this.draw();
  }

  async warn(level: number): Promise<void> {
    this.status = `Battery low: ${level} %`;
    await this.draw();
    await this.speak("The battery is low");
  }

  async speak(text: string): Promise<void> {
    await this.attempt(() => this.glasses.say(text));
  }

  /** draw shows the state. Folded glasses refuse it; they get it when they are opened. */
  async draw(): Promise<void> {
    const refused = await this.attempt(() => this.glasses.show(this.tree()));
    if (refused === "hinge_closed") this.status = "The glasses were folded";
  }

  /** attempt returns the code of what the glasses refused, or "". It reports it on stderr and in the event log. */
  async attempt(act: () => Promise<unknown>): Promise<string> {
    try {
      await act();
      return "";
    } catch (e) {
      if (!(e instanceof GlassesError) || e.code === "closed") throw e;
      console.error(`desk: refused: ${e.message} (${e.code})`);
      this.glasses.log("com.example.refused", { code: e.code, message: e.message });
      return e.code;
    }
  }

  tree(): DisplayNode {
    const button = (id: string, text: string): DisplayNode => ({ type: "button", id, text });
    const list = items.map((item, i): DisplayNode => button(`item-${i}`, i === this.index ? `> ${item}` : item));
    return {
      type: "column", gap: 8, padding: 16, children: [
        { type: "text", text: "Desk", style: "title" },
        { type: "list", gap: 4, grow: 1, overflow: "scroll", children: list },
        { type: "text", text: this.status, style: "caption", colour: "#ffd000" },
        { type: "row", gap: 8, children: [button("back", "Back"), button("next", "Next"), button("photo", "Photo")] },
      ],
    };
  }
}

try {
  await new Desk(await connect({ app: { name: "Desk", version: "1.0" } })).run();
  console.log("bye");
} catch (e) {
  if (!(e instanceof GlassesError)) throw e;
  if (e.code === "closed") {
    console.log("bye");
  } else {
    console.error(`desk: ${e.message} (${e.code})`);
    (globalThis as unknown as { process: { exitCode: number } }).process.exitCode = 1;
  }
}
