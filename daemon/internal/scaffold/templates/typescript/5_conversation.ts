
//: if assistant
/** What a Conversation needs of Glasses. */
interface ConversationHost {
  command(type: string, payload?: object): Promise<Answer>;
  /** Sends a command without waiting for its result; returns its id. refused gets the code if the glasses refuse it. */
  start(type: string, payload: object, refused: (code: string) => void): string;
  every(ms: number, task: Task): () => void;
  sendBytes(type: string, payload: object, bytes: Uint8Array): void;
  on(type: string, handler: Handler): () => void;
  ask(messages: AssistantMessage[], options: AssistantOptions): Promise<AssistantAnswer>;
  stopAsking(): void;
  use(call: AssistantToolCall, tools: AssistantTool[]): Promise<AssistantMessage>;
  work(task: Task): Promise<void>;
  gateway(): Gateway | undefined;
  /** The secret of the user to remember, or "". */
  user: string;
}

/** An answer that is being spoken, or waits for the one before it. */
interface Utterance {
  item: string;
  playback?: string; // the id of its playback.start
  waiting: Uint8Array[]; // sound that was not sent yet
  ahead: number; // ms that were sent and may not have been played
  stopPacing?: () => void;
  complete: boolean;
  ended: boolean; // playback.end was sent
}

const voiceRate = 16_000; // samples a second
const chunkBytes = voiceRate / 10 * 2; // 100 ms
// At most 30 s are sent ahead of what was played: ahead is too low by up to one period if the sound had a gap.
const maxAhead = 25_000;
const pacingPeriod = 5000;
const reopenAfter = 1000; // ms until a lost conversation is opened again
const maxAttempts = 30; // to open it without success
const mayFail = "may_fail"; // the id of events that may fail, because the answer may have ended
/** Reasons of close codes that another attempt would not change. */
const final: Record<number, string> = {
  4400: "refused", 4401: "closed", 4402: "no_credit", 4408: "session_limit", 4410: "closed",
};

/** Conversation is one call of converse. */
class Conversation {
  /** Whether the gateway was sent something that it may not have reacted to. */
  isBehind = false;
  /** Whether the gateway owes an answer. */
  isAnswering = false;
  #host: ConversationHost;
  #options: ConversationOptions;
  #socket?: WebSocket | undefined;
  #spoken: Utterance[] = [];
  #silenced = new Set<string>(); // items whose further sound is dropped
  #calls: AssistantToolCall[] = []; // of the response in progress
  #said = "";
  #updates: (() => void)[] = []; // what to do when the gateway answers each session.update
  #off: (() => void)[] = [];
  #over!: (reason: string) => void;
  #ended: Promise<string>;
  #isOver = false;
  #isText = false; // the mode is text
  #attempts = 0;

  constructor(host: ConversationHost, options: ConversationOptions) {
    this.#host = host;
    this.#options = options;
    this.#ended = new Promise((resolve) => (this.#over = resolve));
  }

  /** run holds the conversation until end. */
  async run(): Promise<ConversationEnd> {
    let isRealtime = false as boolean;
    await this.#host.work(async () => { // virtual time waits
      isRealtime = await this.#hasRealtime();
      if (isRealtime) this.#open();
    });
    const mode = isRealtime ? "realtime" : "text";
    const listen = () => (mode === "realtime" ? this.#host.command("audio.start", { sampleRate: voiceRate })
      : this.#host.command("transcription.start", {})).then(() => {}, () => {}); // a later state may allow it
    this.#off.push(this.#host.on("audio.chunk", (chunk) => this.#hear(chunk)));
    this.#off.push(this.#host.on("playback", ({ payload }) => this.#played(payload)));
    this.#off.push(this.#host.on("link", ({ payload }) => {
      if (payload.state === "disconnected") this.#lose();
    }));
    this.#isText = mode === "text";
    if (this.#isText) this.#listenForText();
    for (const type of ["hinge", "call", "link", "permission", "disabled", "device", "connection"]) {
      this.#off.push(this.#host.on(type, listen));
    }
    await this.#host.work(listen);
    const reason = await this.#ended;
    for (const off of this.#off) off();
    this.#socket?.close(1000);
    await this.#host.command(mode === "realtime" ? "audio.stop" : "transcription.stop").catch(() => {});
    this.#spoken[0]?.stopPacing?.();
    if (this.#spoken[0]?.playback) await this.#host.command("playback.flush").catch(() => {});
    return { reason, mode };
  }

  end(reason: string): void {
    this.#isOver = true;
    this.#over(reason);
    this.#forget();
    if (this.#isText) this.#host.stopAsking();
  }

  /** catchUp waits until the gateway has handled everything that it was sent. */
  async catchUp(): Promise<void> {
    if (this.#socket?.readyState !== WebSocket.OPEN) {
      this.isBehind = false;
      return;
    }
    const answered = new Promise<void>((resolve) => this.#update({}, resolve));
    this.isBehind = false;
    await answered;
  }

  #update(session: object, then: () => void): void {
    this.#updates.push(then);
    this.#send({ type: "session.update", event_id: "update", session: { type: "realtime", ...session } });
  }

  async #hasRealtime(): Promise<boolean> {
    const gateway = this.#host.gateway();
    if (!gateway) throw assistantError("no_gateway", "this session has no AI gateway");
    try {
      const { status } = await fetch(`${gateway.url}/realtime?model=assistant`, {
        headers: { Authorization: `Bearer ${gateway.token}` },
        redirect: "error", credentials: "omit", cache: "no-store",
      });
      return status === 426; // it asks for a WebSocket
    } catch {
      throw assistantError("gateway_unreachable", "the AI gateway cannot be reached");
    }
  }

  #open(): void {
    const gateway = this.#host.gateway();
    if (this.#isOver || !gateway) return this.end("no_gateway");
    if (++this.#attempts > maxAttempts) return this.end("gateway_unreachable");
    this.isAnswering = true; // virtual time waits for the first session.updated
    const socket = new WebSocket(`${gateway.url.replace(/^http/, "ws")}/realtime?model=assistant&rate=${voiceRate}`,
      ["realtime", `openai-insecure-api-key.${gateway.token}`,
        ...(this.#host.user ? [`service-memory.wearer-agreed.${this.#host.user}`] : [])]);
    this.#socket = socket;
    socket.onopen = () => this.#configure();
    socket.onmessage = ({ data }) => void this.#host.work(() => this.#take(JSON.parse(data)));
    const lost = (code: number) => {
      socket.onclose = socket.onerror = socket.onmessage = null;
      this.#socket = undefined;
      this.#forget();
      if (this.#isOver) return;
      if (final[code]) this.end(final[code]);
      else setTimeout(() => !this.#isOver && this.#open(), reopenAfter);
    };
    socket.onclose = ({ code }) => lost(code);
    socket.onerror = () => lost(1006);
  }

  /** forget drops what belongs to a connection that was lost. */
  #forget(): void {
    this.isAnswering = this.isBehind = false;
    this.#calls = [];
    for (const then of this.#updates.splice(0)) then();
    this.#silenced.clear();
    for (const u of this.#spoken) {
      u.item = ""; // the next connection does not know it
      if (!u.complete) this.#complete(u);
    }
  }

  #send(event: object): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    this.#socket.send(JSON.stringify(event));
    this.isBehind = true;
  }

  #configure(): void {
    const { instructions, tools = [] } = this.#options;
    this.#update({
      instructions,
      tools: tools.map(({ name, description, parameters = { type: "object", properties: {} } }) => ({
        type: "function", name, description, parameters,
      })),
    }, () => (this.isAnswering = false));
    this.#update({ audio: { input: { transcription: {} } } }, () => {}); // by itself: a gateway may refuse it
  }

  #hear({ bytes, payload }: GlassesEvent): void {
    if (!bytes) return;
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    this.#send({ type: "input_audio_buffer.append", audio: btoa(text), transcript: payload.transcript });
  }

  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  async #take(event: any): Promise<void> {
    switch (event.type) {
      case "session.updated":
        this.#attempts = 0;
        this.#updates.shift()?.();
        break;
      case "input_audio_buffer.speech_started":
        await this.#interrupt();
        break;
      case "conversation.item.input_audio_transcription.completed":
        await this.#options.onHeard?.(event.transcript);
        break;
      case "response.created":
        this.isAnswering = true;
        this.#said = "";
        break;
      case "response.output_audio_transcript.delta":
        this.#said += event.delta;
        await this.#options.onSaid?.(this.#said);
        break;
      case "response.output_audio.delta":
        this.#speak(event.item_id, Uint8Array.from(atob(event.delta), (c) => c.charCodeAt(0)));
        break;
      case "response.output_audio.done": {
        const spoken = this.#spoken.find(({ item }) => item === event.item_id);
        if (spoken) this.#complete(spoken);
        break;
      }
      case "response.function_call_arguments.done":
        this.#calls.push({
          id: event.call_id, type: "function", function: { name: event.name, arguments: event.arguments },
        });
        break;
      case "response.done":
        await this.#respond(event.response);
        break;
      case "error":
        await this.#refused(event.error);
    }
  }

  async #refused({ event_id: id, code, message }: any): Promise<void> { // eslint-disable-line
    if (id === "update") {
      this.#attempts = 0;
      this.#updates.shift()?.();
    } else if (id !== mayFail && code !== "conversation_already_has_active_response") {
      this.isAnswering = false;
      await this.#fail(assistantError(code, message));
    }
  }

  /** respond runs the tools that a response called, and asks for the next response. */
  async #respond({ status, status_details: details }: any): Promise<void> { // eslint-disable-line
    this.isAnswering = false;
    const calls = this.#calls.splice(0);
    if (status === "failed") {
      await this.#fail(assistantError(details?.error?.code ?? "provider_error", "the model failed to answer"));
    }
    if (status !== "completed" || calls.length === 0) return;
    const socket = this.#socket; // another one does not know the calls
    for (const call of calls) {
      const { content } = await this.#host.use(call, this.#options.tools ?? []);
      const item = { type: "function_call_output", call_id: call.id, output: content };
      if (this.#socket === socket) this.#send({ type: "conversation.item.create", item });
    }
    if (this.#socket === socket) this.#send({ type: "response.create" });
  }

  async #fail(error: GlassesError): Promise<void> {
    if (this.#options.onError) await this.#options.onError(error);
    else console.error(`no answer (${error.code}): ${error.message} ${error.fixHint ?? ""}`);
  }

  #speak(item: string, sound: Uint8Array): void {
    if (this.#silenced.has(item)) return; // the rest of what was stopped or refused
    let spoken = this.#spoken.find((u) => u.item === item);
    if (!spoken) this.#spoken.push(spoken = { item, waiting: [], ahead: 0, complete: false, ended: false });
    for (let at = 0; at < sound.length; at += chunkBytes) spoken.waiting.push(sound.subarray(at, at + chunkBytes));
    this.#play();
  }

  /** play sends the sound of the first answer; the others wait until it was played. */
  #play(): void {
    const spoken = this.#spoken[0];
    if (!spoken || this.#isOver) return;
    const refused = (code: string) => this.#refuse(spoken, code);
    spoken.playback ??= this.#host.start("playback.start", { sampleRate: voiceRate }, refused);
    spoken.stopPacing ??= this.#host.every(pacingPeriod, () => {
      spoken.ahead = Math.max(0, spoken.ahead - pacingPeriod);
      if (spoken === this.#spoken[0]) this.#play();
    });
    while (spoken.ahead < maxAhead) {
      const chunk = spoken.waiting.shift();
      if (!chunk) break;
      this.#host.sendBytes("playback.chunk", { playback: spoken.playback }, chunk);
      spoken.ahead += chunk.length * 1000 / (2 * voiceRate);
    }
    if (spoken.complete && spoken.waiting.length === 0) this.#finish(spoken);
  }

  #complete(spoken: Utterance): void {
    spoken.complete = true;
    if (spoken === this.#spoken[0] && spoken.playback) this.#play();
  }

  #finish(spoken: Utterance): void {
    if (spoken.ended || this.#isOver) return;
    spoken.ended = true;
    spoken.stopPacing?.();
    this.#host.start("playback.end", {}, () => {});
  }

  /** refuse drops an answer that the glasses did not begin to play. Without a speaker, the app may show the words. */
  #refuse(spoken: Utterance, code: string): void {
    if (code !== "unsupported") return this.#stop(spoken, 0);
    this.#silenced.add(spoken.item);
    this.#next(spoken);
  }

  /** stop drops the rest of an answer and tells the model how much of it was heard, if that is known. */
  #stop(spoken: Utterance, playedMs?: number): void {
    if (this.#spoken[0] !== spoken) return;
    // Without this, the model would go on with the answer.
    if (!spoken.complete) this.#send({ type: "response.cancel", event_id: mayFail });
    this.#silenced.add(spoken.item);
    if (playedMs !== undefined) this.#cut(spoken, playedMs);
    this.#next(spoken);
  }

  /** lose drops the answer that glasses were playing when they were detached, for which no event arrives. */
  #lose(): void {
    const spoken = this.#spoken[0];
    if (spoken?.playback) this.#stop(spoken);
  }

  /** next goes on after an answer that was played or dropped. */
  #next(spoken: Utterance): void {
    if (this.#spoken[0] !== spoken) return;
    this.#spoken.shift();
    spoken.stopPacing?.();
    this.#play();
  }

  /** played goes on with the next answer once one was played or the glasses stopped it. */
  async #played({ id, state, playedMs, reason }: { id: string; state: string; playedMs: number; reason?: string }): Promise<void> {
    const spoken = this.#spoken[0];
    if (state === "started" || !spoken || spoken.playback !== id) return;
    if (state === "stopped" && reason) this.#stop(spoken, playedMs);
    else this.#next(spoken);
  }

  /** interrupt stops the sound and tells the model how much of it was heard. */
  async #interrupt(): Promise<void> {
    const [spoken, ...others] = this.#spoken.splice(0);
    if (!spoken?.playback) return;
    spoken.stopPacing?.();
    for (const { item } of [spoken, ...others]) this.#silenced.add(item);
    const heard = await this.#host.command("playback.flush").then(({ result }) => result.playedMs as number, () => 0);
    this.#cut(spoken, heard);
    for (const other of others) this.#cut(other, 0);
  }

  /** cut truncates an answer to what was heard, or deletes it if that is nothing. */
  #cut({ item }: Utterance, playedMs: number): void {
    if (!item) return;
    const at = { event_id: mayFail, item_id: item };
    if (playedMs === 0) this.#send({ type: "conversation.item.delete", ...at });
    else this.#send({ type: "conversation.item.truncate", ...at, content_index: 0, audio_end_ms: playedMs });
  }

  /** listenForText answers transcripts with ask and say. */
  #listenForText(): void {
    const { instructions, tools, remember = false, onHeard, onSaid } = this.#options;
    const messages: AssistantMessage[] = [];
    let latest = 0; // number of transcripts
    this.#off.push(this.#host.on("transcript", async ({ payload: { text, final: isFinal } }) => {
      const number = ++latest;
      this.#host.stopAsking();
      await this.#host.command("speech.stop").catch(() => {});
      if (!isFinal) return;
      await onHeard?.(text);
      if (number !== latest || this.#isOver) return; // the wearer has spoken again
      try {
        const answer = await this.#host.ask([...messages, { role: "user", content: text }],
          { ...(instructions && { system: instructions }), ...(tools && { tools }), remember, ...(onSaid && { onText: onSaid }) });
        messages.splice(0, messages.length, ...answer.messages);
        if (this.#isOver) return;
        await this.#host.command("speech.say", { text: answer.text.slice(0, 2000) }).catch(() => {});
      } catch (e) {
        if (!(e instanceof GlassesError)) throw e;
        if (this.#isOver || e.code === "closed") return;
        if (e.code !== "cancelled") await this.#fail(e);
        if (["no_credit", "cap_reached", "credit_locked", "invalid_key"].includes(e.code)) this.end(e.code);
      }
    }));
  }
}
//: end
