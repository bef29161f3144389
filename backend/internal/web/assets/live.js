// The page's socket. It reconnects by itself with its cursor, and resends frames that were not acknowledged.

/** @typedef {{v: number, type: string, id?: string, at: number, seq?: number, payload: any}} Frame */
/** @typedef {"down"|"up"|"quiet"|"lost"|"over"|"out"} State */

const quietAfter = 2_200; // ms without any frame, including heartbeats, after which the page is no longer shown as live
const deadAfter = 6_000; // ms without a frame after which the page reconnects
const firstWait = 400; // ms
const longestWait = 8_000; // ms
const maxUnacknowledged = 200;

export class Live {
  /**
   * @param {string} path
   * @param {{frame: (f: Frame, text: string) => void, binary: (data: Uint8Array) => void, state: (s: State) => void}} on
   */
  constructor(path, on) {
    this.path = path;
    this.on = on;
    this.cursor = -1; // the last row seen
    this.wait = firstWait;
    /** @type {State} */
    this.state = "down";
    /** Frames that were not acknowledged, with the media that precedes them.
     * @type {Map<string, {text: string, media?: Uint8Array<ArrayBuffer>}>} */
    this.unacknowledged = new Map();
    /** @type {Map<string, Uint8Array<ArrayBuffer>>} */
    this.media = new Map();
    /** @type {WebSocket | undefined} */
    this.socket = undefined;
    this.heard = 0;
    this.restarting = false;
  }

  start() {
    this.connect();
    setInterval(() => this.watch(), 500);
    addEventListener("offline", () => this.fail());
    addEventListener("online", () => this.retryNow());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState !== "visible") return;
      this.watch();
      this.retryNow();
    });
  }

  /** @param {number} seq */
  seen(seq) {
    this.cursor = Math.max(this.cursor, seq);
  }

  /**
   * Sends a frame and keeps it until it is acknowledged.
   * @param {Frame} f
   * @param {string} text the encoded frame
   */
  keep(f, text) {
    const id = f.id ?? "";
    const entry = { text, media: this.media.get(id) };
    this.media.delete(id);
    this.unacknowledged.set(`${f.type === "result" ? "result" : "event"} ${id}`, entry);
    if (this.unacknowledged.size > maxUnacknowledged) {
      for (const oldest of this.unacknowledged.keys()) {
        this.unacknowledged.delete(oldest);
        break;
      }
    }
    if (this.isOpen()) this.socket?.send(text);
  }

  /**
   * Sends data that is not acknowledged: streams, and answers to agents.
   * @param {string | Uint8Array<ArrayBuffer>} data
   */
  pass(data) {
    if (this.isOpen()) this.socket?.send(data);
  }

  /**
   * Sends the media of a result, which must be passed to keep right afterwards.
   * @param {string} id
   * @param {Uint8Array<ArrayBuffer>} data
   */
  passMedia(id, data) {
    this.media.set(id, data);
    this.pass(data);
  }

  /**
   * Opens a new socket, which attaches as other glasses, once the service has received all frames from the old one.
   */
  restart() {
    this.restarting = true;
    this.restartNow();
  }

  restartNow() {
    if (!this.restarting || !this.isOpen() || this.unacknowledged.size > 0) return;
    const socket = this.socket;
    this.restarting = false;
    this.connect();
    socket?.close();
  }

  isOpen() {
    return this.socket?.readyState === WebSocket.OPEN && this.welcomed;
  }

  connect() {
    const url = new URL(this.path, location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    if (this.cursor >= 0) url.searchParams.set("since", String(this.cursor));
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    this.welcomed = false;
    this.heard = Date.now();
    socket.onmessage = (e) => this.take(socket, e.data);
    socket.onclose = (e) => this.closed(socket, e.code);
  }

  /**
   * @param {WebSocket} socket
   * @param {string | ArrayBuffer} data
   */
  take(socket, data) {
    if (socket !== this.socket) return;
    this.heard = Date.now();
    if (this.state === "quiet") this.tell("up");
    if (typeof data !== "string") {
      this.on.binary(new Uint8Array(data));
      return;
    }
    /** @type {Frame} */
    const f = JSON.parse(data);
    if (f.type === "ack") this.unacknowledged.delete(`${f.payload.kind} ${f.payload.id}`);
    // A refused frame would be refused again.
    if (f.type === "error" && f.id) for (const kind of ["event", "result"]) this.unacknowledged.delete(`${kind} ${f.id}`);
    if (f.type === "welcome" && this.unacknowledged.size === 0) this.restarting = false;
    this.on.frame(f, data);
    if (this.restarting) this.restartNow();
    if (f.type !== "welcome") return;
    this.wait = firstWait;
    this.welcomed = true;
    for (const { text, media } of this.unacknowledged.values()) {
      if (media) socket.send(media);
      socket.send(text);
    }
    this.tell("up");
  }

  /**
   * @param {WebSocket} socket
   * @param {number} code
   */
  closed(socket, code) {
    if (socket !== this.socket || this.isOver()) return;
    this.socket = undefined;
    if (code === 4410 || code === 4401) {
      this.tell(code === 4410 ? "over" : "out");
      return;
    }
    this.tell("lost");
    const pause = this.wait * (0.7 + Math.random() * 0.6);
    this.wait = Math.min(this.wait * 2, longestWait);
    this.timer = setTimeout(() => this.connect(), pause);
  }

  isOver() {
    return this.state === "over" || this.state === "out";
  }

  /** @param {State} state */
  tell(state) {
    this.state = state;
    this.on.state(state);
  }

  /** A socket can die silently; the page must then not be shown as live. */
  watch() {
    if (!this.socket) return;
    const silent = Date.now() - this.heard;
    if (silent > deadAfter) this.fail();
    else if (silent > quietAfter && this.state === "up") this.tell("quiet");
  }

  /** Abandons the socket without waiting for its close event, which never arrives on a dead network. */
  fail() {
    const socket = this.socket;
    if (!socket) return;
    socket.onclose = null;
    socket.close();
    this.closed(socket, 1006);
  }

  retryNow() {
    if (this.isOver() || this.socket) return;
    clearTimeout(this.timer);
    this.connect();
  }
}
