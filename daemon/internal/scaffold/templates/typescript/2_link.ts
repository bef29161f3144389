interface Frame {
  v: number;
  type: string;
  id: string;
  at: number;
  seq?: number;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  payload: any;
}

const maxFrame = 64 << 10; // bytes of a text frame
const maxUnacknowledged = 1000; // frames
const firstPause = 300, longestPause = 10_000; // ms between attempts
const patience = 10_000; // ms in which each attempt, and with repeats the first attach, must succeed

/** Link keeps one session attached: it reconnects with its cursor and resends unacknowledged frames. */
class Link {
  state = "offline";
  #socket?: WebSocket;
  #attached = false;
  #ended?: GlassesError;
  #prefix = Array.from(crypto.getRandomValues(new Uint8Array(8)), (b) => b.toString(36).padStart(2, "0")).join("").slice(0, 12);
  #count = 0;
  #cursor?: number;
  #at = 0; // the session's time of the newest frame
  #isVirtual = false; // whether its clock is virtual, and stands still while the app is away
  #unacknowledged = new Map<string, string>();
  #attempt = 0;
  #timer?: ReturnType<typeof setTimeout>;
  #began = Date.now();
  #target: Target;
  #app: Settings["app"];
  #receive: (frame: Frame, bytes?: Uint8Array) => void;
  #end: (why: GlassesError) => void;

  constructor(to: Target, app: Settings["app"], receive: (frame: Frame, bytes?: Uint8Array) => void, end: (why: GlassesError) => void) {
    this.#target = to;
    this.#app = app;
    this.#receive = receive;
    this.#end = end;
    this.#open();
  }

  /** send assigns an id to the frame, keeps the frame until it is acknowledged, and returns the id. */
  send(type: string, payload: object): string {
    if (this.#ended) throw this.#ended;
    const id = this.#id();
    const text = this.#encode(type, id, payload);
    if (new TextEncoder().encode(text).length > maxFrame) throw new GlassesError("bad_payload", `${type} would be longer than 64 KB`);
    if (this.#unacknowledged.size >= maxUnacknowledged) throw new GlassesError("busy", "too many frames wait for the service");
    this.#unacknowledged.set(id, text);
    if (this.#attached) this.#socket!.send(text);
    return id;
  }

  //: if assistant
  /** sendBytes sends a binary frame, which is not repeated if the connection is lost. */
  sendBytes(type: string, payload: object, bytes: Uint8Array): void {
    if (!this.#attached) return;
    const header = new TextEncoder().encode(this.#encode(type, this.#id(), payload));
    const data = new Uint8Array(2 + header.length + bytes.length);
    new DataView(data.buffer).setUint16(0, header.length);
    data.set(header, 2);
    data.set(bytes, 2 + header.length);
    this.#socket!.send(data);
  }

  //: end
  /** passed answers a barrier of the service. calls is the number of calls to the AI gateway in progress. */
  passed(id: string, calls: number): void {
    const frame = { v: 1, type: "barrier", id, at: Date.now(), payload: { calls } };
    if (this.#attached) this.#socket!.send(JSON.stringify(frame));
  }

  close(why: GlassesError): void {
    if (this.#ended) return;
    this.#ended = why;
    this.#attached = false;
    this.state = "closed";
    clearTimeout(this.#timer);
    this.#socket?.close(1000);
    this.#end(why);
  }

  #encode(type: string, id: string, payload: object): string {
    try {
      return JSON.stringify({ v: 1, type, id, at: Date.now(), payload });
    } catch {
      throw new GlassesError("bad_payload", `${type} cannot be encoded as JSON`);
    }
  }

  #id(): string {
    return `${this.#prefix}-${++this.#count}`;
  }

  #open(): void {
    const socket = new WebSocket(this.#target.url);
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      const hello = { secret: this.#target.secret, app: this.#app, barrier: true, gateway: true, since: this.#cursor };
      socket.send(JSON.stringify({ v: 1, type: "hello", id: this.#id(), at: Date.now(), payload: hello }));
    };
    socket.onmessage = (message) => this.#message(message.data);
    // A failed attempt is only an error in Node 20 and 22, and an error before a close elsewhere.
    const ended = (code: number, reason: string) => {
      clearTimeout(this.#timer);
      socket.onopen = socket.onmessage = socket.onclose = socket.onerror = null;
      socket.close();
      this.#lost(code, reason);
    };
    socket.onclose = (closed) => ended(closed.code, closed.reason);
    socket.onerror = () => ended(1006, "");
    this.#timer = setTimeout(() => ended(1006, ""), patience); // until the welcome
  }

  #lost(code: number, reason: string): void {
    if (this.#ended) return;
    const was = this.#attached;
    this.#attached = false;
    this.state = "offline";
    if (was) this.#receive({ v: 1, type: "connection", id: "", at: this.#now(), payload: { state: "offline" } });
    if (code === 4400 || code === 4401) return this.close(new GlassesError("refused", reason || "the service refused the app"));
    if (code === 4410) return this.close(new GlassesError("closed", reason || "the session is closed"));
    if (code === 1009) {
      for (const id of this.#unacknowledged.keys()) this.#refuse(id, { code: "bad_frame", message: "the frame was too big for the service" });
    }
    if (this.#cursor === undefined && Date.now() - this.#began > patience) {
      return this.close(new GlassesError("not_connected", "no session answers at the endpoint"));
    }
    this.#timer = setTimeout(() => this.#open(), Math.min(firstPause * 2 ** this.#attempt++, longestPause));
  }

  #message(data: string | ArrayBuffer): void {
    let frame: Frame;
    let bytes: Uint8Array | undefined;
    try {
      if (typeof data === "string") {
        frame = JSON.parse(data);
      } else {
        const header = new DataView(data).getUint16(0);
        frame = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 2, header)));
        bytes = new Uint8Array(data, 2 + header);
      }
    } catch {
      return; // not a frame: a newer service may send what this module does not know
    }
    this.#take(frame, bytes);
  }

  #now(): number {
    return this.#isVirtual ? this.#at : Date.now();
  }

  #take(frame: Frame, bytes?: Uint8Array): void {
    this.#at = Math.max(this.#at, frame.at ?? 0);
    if (frame.seq) this.#see(frame.seq);
    switch (frame.type) {
      case "welcome":
        this.#welcome(frame);
        break;
      case "ack":
        this.#unacknowledged.delete(frame.payload.id);
        return;
      case "cursor":
        this.#see(frame.payload.seq);
        return;
      case "error":
        this.#refuse(frame.id, frame.payload);
        return;
      case "link":
        this.state = frame.payload.state;
    }
    this.#receive(frame, bytes);
  }

  #welcome(frame: Frame): void {
    clearTimeout(this.#timer);
    this.state = frame.payload.link;
    this.#attempt = 0;
    this.#cursor ??= frame.payload.lastSeq;
    this.#isVirtual = frame.payload.glasses?.clock === "virtual";
    this.#attached = true;
    for (const text of this.#unacknowledged.values()) this.#socket!.send(text);
  }

  #refuse(id: string, error: { code: string; message: string }): void {
    if (this.#unacknowledged.delete(id)) this.#receive({ v: 1, type: "result", id, at: this.#now(), payload: { error } });
  }

  #see(seq: number): void {
    if (this.#cursor !== undefined && seq > this.#cursor) this.#cursor = seq;
  }
}

