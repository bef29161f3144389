interface Waiting {
  resolve(answer: Answer): void;
  reject(why: GlassesError): void;
  bytes?: Uint8Array | undefined;
}

interface Answer {
  id: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  result: any;
  bytes?: Uint8Array | undefined;
}

/** A timer of after or every: its clock.sleep is in progress, or it waits for glasses. */
interface Timer {
  task: Task;
  period?: number | undefined; // ms
  id?: string; // of its clock.sleep
  asked: number; // its duration, in ms
  left: number; // ms to sleep after that
  due?: number | undefined; // when that sleep ends, on the session's clock
  running: boolean;
}

const longestSleep = 600_000; // ms of one clock.sleep
const maxQueue = 1000; // events not taken yet; the oldest are dropped first
const maxSeen = 500; // ids of received events

/** connect attaches to the session and resolves once it is welcomed. Errors: not_configured, simulator_refused,
 * transport_unavailable, refused, not_connected. */
export async function connect(settings: Settings): Promise<Glasses> {
  const glasses = new Glasses(target(settings), settings);
  await glasses.ready;
  return glasses;
}

/**
 * Glasses is one attached session. Take events either with `for await (const event of glasses.events())`, one after the
 * other, or with on(type, handler). Handlers and timers run also while the program waits for a command. Every command
 * rejects with a GlassesError when the glasses refuse it.
 */
export class Glasses {
  /** Settles with the first welcome. */
  readonly ready: Promise<void>;
  /** The glasses as the service describes them: panel, inputs, camera, ... */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  device: any = null;
  /** The state of the glasses when the app attached; an event reports each later change. undefined from an older
   * service. */
  initialState?: GlassesState;
  #link: Link;
  #waiting = new Map<string, Waiting>();
  #handlers = new Map<string, Set<Handler>>();
  #queue: GlassesEvent[] = [];
  #taker: { resolve(event: GlassesEvent | undefined): void; reject(why: GlassesError): void } | undefined;
  #seen = new Set<string>();
  #timers = new Map<string, Timer>(); // by the id of their clock.sleep
  #stalled = new Set<Timer>(); // until glasses are attached
  #ended?: GlassesError;
  // Barriers are answered when all work waits for the glasses: handlers and a loop over events() count as work, and
  // each command in progress or wait for the AI gateway cancels out one of them.
  #working = 0;
  #looping = false;
  #barriers: string[] = [];
  #checking = false;
  #calls = 0; // to the AI gateway, in progress
  #gatewayWaits = 0; // those of them that wait for the gateway
  //: if assistant
  #gateway?: Gateway;
  #user: () => string;
  #asking = new Set<AbortController>();
  #profileCalls = new Set<AbortController>(); // which stopAsking does not end
  #conversation: Conversation | undefined;
  #refusals = new Map<string, (code: string) => void>(); // by the id of a command that nothing waits for
  //: end

  /** Use connect. */
  constructor(to: Target, settings: Settings) {
    //: if assistant
    this.#user = () => userOf(settings.app.name, settings.user);
    //: end
    let welcomed = () => {};
    let refused = (_: GlassesError) => {};
    this.ready = new Promise((resolve, reject) => {
      welcomed = resolve;
      refused = reject;
    });
    const receive = (frame: Frame, bytes?: Uint8Array) => {
      if (frame.type === "welcome") {
        this.device = frame.payload.deviceModel;
        this.initialState = frame.payload.glasses;
        //: if assistant
        this.#gateway = frame.payload.gateway;
        //: end
        welcomed();
        this.#emit({ type: "connection", id: "", at: frame.at, payload: { state: "online" } }, false);
        if (frame.payload.link !== "disconnected") this.#resume();
      } else {
        this.#receive(frame, bytes);
      }
    };
    this.#link = new Link(to, settings.app, receive, (why) => {
      refused(why);
      this.#end(why);
    });
  }

  /** The connection to the glasses: connected, lossy, lost, disconnected; offline while the service is unreachable;
   * closed. */
  get link(): string {
    return this.#link.state;
  }

  /** Ends the session for this app; pending calls are rejected with the code closed. */
  close(): void {
    this.#link.close(new GlassesError("closed", "the app closed the connection"));
  }

  //: if display
  /** Replaces the content of the panel. */
  async show(tree: DisplayNode): Promise<void> {
    await this.command("display.show", { tree });
  }

  async clear(): Promise<void> {
    await this.command("display.clear");
  }

  //: end
  //: if speech
  /** Speaks to the wearer. Resolves when the glasses begin, with the id that the speech event will name. */
  async say(text: string, language?: string): Promise<string> {
    return (await this.command("speech.say", { text, language })).id;
  }

  async stopSaying(): Promise<void> {
    await this.command("speech.stop");
  }

  //: end
  //: if sound
  async play(sound: "chime" | "success" | "error" | "tick"): Promise<void> {
    await this.command("sound.play", { sound });
  }

  //: end
  //: if phrases
  /** Announces the phrases that the app understands; replaces the previous list. It also works before glasses are
   * attached. */
  async announce(phrases: string[]): Promise<void> {
    await this.command("phrases.announce", { phrases });
  }

  //: end
  //: if transcription
  /** What the wearer says arrives as transcript events; handler is short for on("transcript"). It continues until
   * stopTranscription: transcription events say when something prevents it and when it resumes by itself. */
  async startTranscription(handler?: Handler, language?: string): Promise<void> {
    await this.#start("transcription.start", { language }, "transcript", handler);
  }

  async stopTranscription(): Promise<void> {
    await this.#stop("transcription.stop", "transcript");
  }

  //: end
  //: if microphone
  /** Sound arrives as audio.chunk events: bytes is 16-bit little-endian PCM, one channel, 100 ms. */
  async startAudio(handler: Handler, sampleRate?: 8000 | 16000): Promise<void> {
    await this.#start("audio.start", { sampleRate }, "audio.chunk", handler);
  }

  async stopAudio(): Promise<void> {
    await this.#stop("audio.stop", "audio.chunk");
  }

  //: end
  //: if camera
  /** Takes a photo, a JPEG. */
  async photo(width?: number): Promise<Media> {
    return media(await this.command("camera.photo", { width }));
  }

  /** Records a clip, Motion JPEG; resolves when it is complete. */
  async clip(durationMs: number, fps?: number, width?: number): Promise<Media> {
    return media(await this.command("camera.video", { durationMs, fps, width }));
  }

  /** Pictures arrive as video.frame events: bytes is a JPEG. */
  async startVideo(handler: Handler, fps?: number, width?: number): Promise<void> {
    await this.#start("video.start", { fps, width }, "video.frame", handler);
  }

  async stopVideo(): Promise<void> {
    await this.#stop("video.stop", "video.frame");
  }

  //: end
  //: if motion
  /** Movement arrives as motion events: thousandths of g and of a degree a second. */
  async startMotion(handler: Handler, hz?: number): Promise<void> {
    await this.#start("motion.start", { hz }, "motion", handler);
  }

  async stopMotion(): Promise<void> {
    await this.#stop("motion.stop", "motion");
  }

  //: end
  //: if assistant
  /**
   * Asks the model of the session's AI gateway. question is a text, or a conversation, which is a list like
   * AssistantAnswer.messages. When the model calls a tool, its run is called here, and the model answers again, up to
   * 8 times. Virtual time stands still while the gateway works. Errors have fixHint, and retryAfterMs if waiting
   * helps: no_gateway, cancelled, gateway_unreachable, gateway_timeout, answer_broken, bad_answer, too_many_rounds,
   * and the gateway's codes: no_credit, credit_reserved, credit_locked, cap_reached, request_too_large,
   * model_not_found, not_configured, provider_busy, ...
   */
  async ask(
    question: string | AssistantMessage[], { system, tools = [], remember = false, onText }: AssistantOptions = {},
  ): Promise<AssistantAnswer> {
    if (this.#ended) throw this.#ended;
    const user = remember ? this.#user() : "";
    const messages: AssistantMessage[] =
      typeof question === "string" ? [{ role: "user", content: question }] : [...question];
    const before: AssistantMessage[] = system ? [{ role: "system", content: system }] : [];
    const described = tools.map(({ name, description, parameters = { type: "object", properties: {} } }) => ({
      type: "function", function: { name, description, parameters },
    }));
    const stop = new AbortController();
    this.#asking.add(stop);
    try {
      for (let round = 0; round < maxRounds; round++) {
        const request = {
          model: "assistant", stream: true, messages: [...before, ...messages],
          tools: described.length ? described : undefined,
        };
        const message = await this.#callGateway(stop, (call) => call.message(JSON.stringify(request), user, onText));
        messages.push(message);
        if (!message.tool_calls) return { text: message.content, messages };
        for (const call of message.tool_calls) {
          messages.push(await this.#use(call, tools));
          stop.signal.throwIfAborted();
        }
      }
      throw assistantError("too_many_rounds", `the model still calls tools after ${maxRounds} answers`);
    } finally {
      this.#asking.delete(stop);
    }
  }

  /** Returns what the service remembers about the user; "" if that is nothing. */
  async memory(): Promise<string> {
    return this.#profile("GET");
  }

  /** Deletes what the service remembers about the user. */
  async forget(): Promise<void> {
    await this.#profile("DELETE");
  }

  async #profile(method: "GET" | "DELETE"): Promise<string> {
    const user = this.#user();
    const stop = new AbortController();
    this.#profileCalls.add(stop);
    try {
      return await this.#callGateway(stop, (call) => call.profile(method, user));
    } finally {
      this.#profileCalls.delete(stop);
    }
  }

  /** Ends every ask in progress: it rejects with the code cancelled. */
  stopAsking(): void {
    this.#stopAsking(assistantError("cancelled", "the app stopped asking"));
  }

  /**
   * Speaks with the wearer until stopConversing: the model hears the microphone and answers with sound, which stops when
   * the wearer speaks again. Its tools run here, as for ask. Without a realtime model it uses transcripts, ask and say
   * instead. Use neither startAudio nor startTranscription meanwhile. It continues by itself after a phone call, folded
   * glasses or a lost connection; after a lost connection the model has forgotten what was said. It fails like ask.
   */
  async converse(options: ConversationOptions = {}): Promise<ConversationEnd> {
    if (this.#ended) throw this.#ended;
    if (this.#conversation) throw assistantError("busy", "a conversation is running already");
    const conversation = new Conversation({
      command: (type, payload) => this.command(type, payload),
      start: (type, payload, refused) => {
        const id = this.#link.send(type, payload);
        this.#refusals.set(id, refused);
        return id;
      },
      sendBytes: (type, payload, bytes) => this.#link.sendBytes(type, payload, bytes),
      on: (type, handler) => this.on(type, handler),
      ask: (messages, given) => this.ask(messages, given),
      stopAsking: () => this.stopAsking(),
      use: (call, tools) => this.#use(call, tools),
      work: (task) => this.#work(task),
      every: (ms, task) => this.every(ms, task),
      gateway: () => this.#gateway,
      user: options.remember ? this.#user() : "",
    }, options);
    this.#conversation = conversation;
    const isWork = this.#working > this.#waiting.size + this.#gatewayWaits; // a handler or a loop called this
    try {
      return await (isWork ? this.#waitForGateway(conversation.run()) : conversation.run());
    } finally {
      this.#conversation = undefined;
      this.#check();
    }
  }

  /** Ends the conversation: converse returns with the reason stopped. */
  stopConversing(): void {
    this.#conversation?.end("stopped");
  }

  #stopAsking(why: GlassesError): void {
    for (const stop of this.#asking) stop.abort(why);
  }

  /** callGateway runs a call, which stop ends. A token that expires during the call is replaced once. */
  async #callGateway<T>(stop: AbortController, run: (call: AssistantCall) => Promise<T>): Promise<T> {
    if (this.#ended) throw this.#ended;
    // A virtual clock does not measure how long the gateway takes.
    const quietLimit = this.initialState?.clock === "virtual" ? undefined : quiet;
    for (let again = false; ; again = true) {
      const gateway = this.#gateway;
      if (!gateway) throw assistantError("no_gateway", "this session has no AI gateway");
      try {
        this.#calls++;
        return await run(new AssistantCall(gateway, stop, quietLimit, (work) => this.#waitForGateway(work)));
      } catch (e) {
        const isInvalidKey = e instanceof GlassesError && e.code === "invalid_key";
        if (again || !isInvalidKey || this.#gateway?.token === gateway.token) throw e;
      } finally {
        this.#calls--;
      }
    }
  }

  async #waitForGateway<T>(work: Promise<T>): Promise<T> {
    this.#gatewayWaits++;
    this.#check();
    try {
      return await work;
    } finally {
      this.#gatewayWaits--;
    }
  }

  /** use runs the tool of a call. Mistakes of the model and refusals by the glasses are reported to the model. */
  async #use(
    { id, function: { name, arguments: text } }: AssistantToolCall, tools: AssistantTool[],
  ): Promise<AssistantMessage> {
    const tool = tools.find((tool) => tool.name === name);
    let given: unknown;
    try {
      given = JSON.parse(text || "{}");
    } catch {
      // reported below
    }
    let result: unknown;
    if (!tool) result = { error: "there is no tool with this name" };
    else if (!given || typeof given !== "object" || Array.isArray(given)) {
      result = { error: "the arguments are not a JSON object" };
    } else {
      try {
        result = await tool.run(given);
      } catch (e) {
        if (!(e instanceof GlassesError) || e === this.#ended || e.code === "cancelled") throw e;
        result = { error: { code: e.code, message: e.message } };
      }
    }
    const content = typeof result === "string" ? result : JSON.stringify(result ?? null);
    return { role: "tool", tool_call_id: id, content };
  }

  //: end
  /** Waits on the session's clock, which may be virtual. Use it instead of setTimeout. */
  async sleep(ms: number): Promise<void> {
    await this.command("clock.sleep", { ms });
  }

  /** Calls task once, after ms on the session's clock. Returns a function that cancels it. */
  after(ms: number, task: Task): () => void {
    return this.#time(ms, 0, task);
  }

  /** Calls task every ms on the session's clock. A call that is due while task still runs is skipped. Returns a
   * function that cancels it. */
  every(ms: number, task: Task): () => void {
    return this.#time(ms, 1, task, ms);
  }

  /** Calls handler for each event of a type; its events no longer come out of events(). Returns a function that
   * stops it. Type "connection" has {state: online | offline}: whether the service is reachable. */
  on(type: string, handler: Handler): () => void {
    const list = this.#handlers.get(type) ?? new Set();
    this.#handlers.set(type, list.add(handler));
    return () => {
      list.delete(handler);
      if (list.size === 0 && this.#handlers.get(type) === list) this.#handlers.delete(type);
    };
  }

  /** The next event without a handler; undefined if none came within timeoutMs of the session's clock. Rejects with the
   * code closed at the end. */
  next(): Promise<GlassesEvent>;
  next(timeoutMs: number): Promise<GlassesEvent | undefined>;
  next(timeoutMs?: number): Promise<GlassesEvent | undefined> {
    this.#rest();
    const event = this.#queue.shift();
    if (event) return Promise.resolve(this.#hand(event));
    if (this.#ended) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      const taker = { resolve, reject };
      if (timeoutMs !== undefined) {
        const cancel = this.after(timeoutMs, () => {
          this.#taker = undefined;
          resolve(this.#hand(undefined));
        });
        taker.resolve = (event) => {
          cancel();
          resolve(event);
        };
      }
      this.#taker = taker;
    });
  }

  /** All events without a handler, one after the other, until the session is closed. */
  async *events(): AsyncGenerator<GlassesEvent, void> {
    try {
      for (;;) yield await this.next();
    } catch (e) {
      if (!(e instanceof GlassesError && e === this.#ended && e.code === "closed")) throw e;
    } finally {
      this.#rest();
    }
  }

  /** Makes virtual time wait for work that does not use the glasses, e.g. a fetch in the middle of the program. */
  async hold<T>(work: Promise<T>): Promise<T> {
    this.#working++;
    try {
      return await work;
    } finally {
      this.#done();
    }
  }

  /** Writes an event of the app to the session's log, e.g. log("com.example.score", {points: 3}). */
  log(type: string, payload: object): void {
    this.#link.send(type, payload);
  }

  /** Sends any command of the protocol; the methods above use it. */
  async command(type: string, payload: object = {}): Promise<Answer> {
    if (this.#ended) throw this.#ended;
    const id = this.#link.send(type, payload);
    const answer = new Promise<Answer>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.#check();
    return answer;
  }

  //: if transcription,microphone,camera,motion
  async #start(type: string, payload: object, event: string, handler?: Handler): Promise<void> {
    const off = handler && this.on(event, handler);
    try {
      await this.command(type, payload);
    } catch (e) {
      off?.();
      throw e;
    }
  }

  async #stop(type: string, event: string): Promise<void> {
    await this.command(type);
    this.#handlers.delete(event);
  }

  //: end
  #receive(frame: Frame, bytes?: Uint8Array): void {
    switch (frame.type) {
      case "result":
        this.#answer(frame);
        break;
      case "media": {
        const waiting = this.#waiting.get(frame.id);
        if (waiting) waiting.bytes = bytes;
        break;
      }
      case "barrier":
        this.#barriers.push(frame.id);
        this.#check();
        break;
      case "gateway.token": // not an event: it contains a secret
        //: if assistant
        this.#gateway = frame.payload;
        //: end
        break;
      case "connection":
        if (frame.payload.state === "offline") this.#barriers = []; // the service asks again
        this.#emit({ type: frame.type, id: "", at: frame.at, payload: frame.payload }, false);
        break;
      default:
        if (!bytes && this.#again(frame.id)) return;
        if (frame.type === "device") this.device = frame.payload.deviceModel;
        if (frame.type === "link" && frame.payload.state !== "disconnected") this.#resume();
        this.#emit({ type: frame.type, id: frame.id, at: frame.at, payload: frame.payload, bytes }, !bytes);
    }
  }

  #answer(frame: Frame): void {
    const timer = this.#timers.get(frame.id);
    if (timer) return this.#tick(timer, frame);
    //: if assistant
    const refused = this.#refusals.get(frame.id);
    if (this.#refusals.delete(frame.id) && frame.payload.error) refused!(frame.payload.error.code);
    //: end
    const waiting = this.#waiting.get(frame.id);
    if (!waiting) return; // a replay of a result that was already received
    this.#waiting.delete(frame.id);
    const error = frame.payload.error;
    if (error) waiting.reject(new GlassesError(error.code, error.message, error));
    else waiting.resolve({ id: frame.id, result: frame.payload, bytes: waiting.bytes });
  }

  #time(ms: number, least: number, task: Task, period?: number): () => void {
    if (!(Number.isInteger(ms) && ms >= least)) throw new GlassesError("bad_payload", `${ms} is not a whole number of ms from ${least}`);
    const timer: Timer = { task, period, asked: 0, left: ms, running: false };
    this.#sleep(timer);
    return () => this.#cancel(timer);
  }

  #sleep(timer: Timer): void {
    timer.asked = Math.min(timer.left, longestSleep);
    timer.id = this.#link.send("clock.sleep", { ms: timer.asked });
    timer.left -= timer.asked;
    this.#timers.set(timer.id, timer);
  }

  #cancel(timer: Timer): void {
    this.#stalled.delete(timer);
    if (timer.id && this.#timers.delete(timer.id) && !this.#ended) this.#link.send("clock.cancel", { id: timer.id });
  }

  #tick(timer: Timer, { id, at, payload: { error } }: Frame): void {
    this.#timers.delete(id);
    if (error?.code === "not_connected" || error?.code === "timeout") {
      timer.left += timer.asked; // it is not known how much of it has passed
      timer.due = undefined;
      if (error.code === "not_connected" && this.link === "disconnected") this.#stalled.add(timer);
      else this.#sleep(timer); // also if glasses were attached while the app was away
    } else if (error) {
      this.#work(() => {
        throw new GlassesError(error.code, error.message);
      });
    } else if (timer.left > 0) {
      this.#sleep(timer);
    } else {
      if (timer.period) this.#sleepAgain(timer, timer.period, at);
      if (!timer.running) this.#run(timer);
    }
  }

  /** sleepAgain sleeps until the next call is due; a late answer does not delay it. */
  #sleepAgain(timer: Timer, period: number, at: number): void {
    timer.left = timer.due === undefined ? period : Math.min(timer.due + period - at, period);
    if (timer.left <= 0) timer.left = period; // calls were missed
    timer.due = at + timer.left;
    this.#sleep(timer);
  }

  #run(timer: Timer): void {
    timer.running = true;
    this.#work(async () => {
      try {
        await timer.task();
      } finally {
        timer.running = false;
      }
    });
  }

  #resume(): void {
    const stalled = [...this.#stalled];
    this.#stalled.clear();
    for (const timer of stalled) this.#sleep(timer);
  }

  /** again reports whether an event was received before: after a restart the service may send one twice. */
  #again(id: string): boolean {
    if (!id) return false;
    if (this.#seen.has(id)) return true;
    this.#seen.add(id);
    if (this.#seen.size > maxSeen) for (const first of this.#seen) return this.#seen.delete(first) && false;
    return false;
  }

  #emit(event: GlassesEvent, queued: boolean): void {
    const handlers = this.#handlers.get(event.type);
    if (handlers?.size) {
      for (const handler of [...handlers]) this.#work(() => handler(event));
    } else if (queued && this.#taker) {
      const taker = this.#taker;
      this.#taker = undefined;
      taker.resolve(this.#hand(event));
    } else if (queued) {
      this.#queue.push(event);
      if (this.#queue.length > maxQueue) this.#queue.shift();
    }
  }

  /** work lets an error of a task end the program, like that of any promise that nobody awaits; the end of the session
   * is not an error. */
  async #work(task: Task): Promise<void> {
    this.#working++;
    try {
      await task();
    } catch (e) {
      if (e !== this.#ended || this.#ended?.code !== "closed") throw e;
    } finally {
      this.#done();
    }
  }

  #hand<T extends GlassesEvent | undefined>(event: T): T {
    this.#looping = true;
    this.#working++;
    return event;
  }

  #rest(): void {
    if (!this.#looping) return;
    this.#looping = false;
    this.#done();
  }

  #done(): void {
    this.#working--;
    this.#check();
  }

  /** check answers barriers one turn of the event loop later, if everything then waits for the glasses. */
  #check(): void {
    if (this.#barriers.length === 0 || this.#checking) return;
    this.#checking = true;
    turn(() => {
      this.#checking = false;
      if (this.#working > this.#waiting.size + this.#gatewayWaits) return; // the current work will check again
      let calls = this.#calls;
      //: if assistant
      const conversation = this.#conversation;
      if (conversation?.isBehind) {
        this.#work(() => conversation.catchUp()); // the gateway may still react to what it was sent
        return;
      }
      if (conversation?.isAnswering) calls++;
      //: end
      for (const id of this.#barriers.splice(0)) this.#link.passed(id, calls);
    });
  }

  #end(why: GlassesError): void {
    this.#ended = why;
    for (const waiting of this.#waiting.values()) waiting.reject(why);
    this.#waiting.clear();
    this.#timers.clear();
    this.#stalled.clear();
    this.#taker?.reject(why);
    this.#taker = undefined;
    //: if assistant
    this.#stopAsking(why);
    for (const stop of this.#profileCalls) stop.abort(why);
    this.#conversation?.end(why.code);
    //: end
  }
}

//: if camera
function media({ result, bytes }: Answer): Media {
  if (!bytes) throw new GlassesError("media_lost", "the connection broke while the picture was being sent; take it again");
  const { mime, sha256, width = 0, height = 0, durationMs = 0 } = result.media;
  return { bytes, mime, sha256, width, height, durationMs };
}

//: end
function turn(then: () => void): void {
  const immediate = (globalThis as { setImmediate?: (then: () => void) => void }).setImmediate;
  if (immediate) immediate(then);
  else setTimeout(then, 0);
}
