// The page's socket: it attaches again by itself, with its cursor, and sends again what was not acknowledged.

/** @typedef {{v: number, type: string, id?: string, at: number, seq?: number, payload: any}} Frame */
/** @typedef {"down"|"up"|"lost"|"over"|"out"} State */

const silence = 20_000; // ms without a frame (a beat comes every 8 s) after which the socket counts as dead
const firstWait = 400; // ms
const longestWait = 8_000; // ms
const maxUnacknowledged = 200;

export class Live {
  /**
   * @param {string} path
   * @param {{frame: (f: Frame) => void, state: (s: State, reason?: string) => void}} on
   */
  constructor(path, on) {
    this.path = path;
    this.on = on;
    this.cursor = -1; // the last row seen
    this.wait = firstWait;
    this.over = false;
    this.prefix = crypto.getRandomValues(new Uint32Array(2)).join("-");
    this.count = 0;
    /** @type {Map<string, string>} */
    this.unacknowledged = new Map();
    /** @type {WebSocket | undefined} */
    this.socket = undefined;
    this.heard = 0;
  }

  start() {
    this.connect();
    setInterval(() => this.watch(), 2_000);
    addEventListener("offline", () => this.socket?.close());
    addEventListener("online", () => this.retryNow());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.retryNow());
  }

  /** @param {number} seq */
  seen(seq) {
    this.cursor = Math.max(this.cursor, seq);
  }

  /**
   * @param {string} type
   * @param {unknown} payload
   */
  send(type, payload) {
    this.post(type, `p${this.prefix}-${++this.count}`, payload, "event");
  }

  /**
   * @param {string} id
   * @param {{code: string, message: string} | null} error
   */
  result(id, error) {
    this.post("result", id, error ? { error } : { ok: true }, "result");
  }

  /**
   * @param {string} type
   * @param {string} id
   * @param {unknown} payload
   * @param {string} kind
   */
  post(type, id, payload, kind) {
    const frame = JSON.stringify({ v: 1, type, id, at: Date.now(), payload });
    this.unacknowledged.set(`${kind} ${id}`, frame);
    if (this.unacknowledged.size > maxUnacknowledged) {
      for (const oldest of this.unacknowledged.keys()) {
        this.unacknowledged.delete(oldest);
        break;
      }
    }
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(frame);
  }

  connect() {
    const url = new URL(this.path, location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    if (this.cursor >= 0) url.searchParams.set("since", String(this.cursor));
    const socket = new WebSocket(url);
    this.socket = socket;
    this.heard = Date.now();
    socket.onmessage = (e) => this.take(socket, e.data);
    socket.onclose = (e) => this.closed(socket, e);
  }

  /**
   * @param {WebSocket} socket
   * @param {string} data
   */
  take(socket, data) {
    if (socket !== this.socket) return;
    this.heard = Date.now();
    /** @type {Frame} */
    const f = JSON.parse(data);
    if (f.type === "welcome") {
      this.wait = firstWait;
      this.on.state("up");
      for (const frame of this.unacknowledged.values()) socket.send(frame);
    }
    if (f.type === "ack") this.unacknowledged.delete(`${f.payload.kind} ${f.payload.id}`);
    // A refused frame would be refused again.
    if (f.type === "error" && f.id) for (const kind of ["event", "result"]) this.unacknowledged.delete(`${kind} ${f.id}`);
    this.on.frame(f);
  }

  /**
   * @param {WebSocket} socket
   * @param {CloseEvent} e
   */
  closed(socket, e) {
    if (socket !== this.socket || this.over) return;
    this.socket = undefined;
    if (e.code === 4410 || e.code === 4401) {
      this.over = true;
      this.on.state(e.code === 4410 ? "over" : "out");
      return;
    }
    this.on.state("lost");
    const pause = this.wait * (0.7 + Math.random() * 0.6);
    this.wait = Math.min(this.wait * 2, longestWait);
    this.timer = setTimeout(() => this.connect(), pause);
  }

  /** A socket can die without a word; the page must not look alive then. */
  watch() {
    const socket = this.socket;
    if (!socket || Date.now() - this.heard < silence) return;
    socket.onclose = null;
    socket.close();
    this.closed(socket, new CloseEvent("close", { code: 1006 }));
  }

  retryNow() {
    if (this.over || this.socket) return;
    clearTimeout(this.timer);
    this.connect();
  }
}
