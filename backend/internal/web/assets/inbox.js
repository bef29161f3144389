// Frames for the glasses wait here until the program is loaded. If it cannot run, they are refused.

/** @typedef {import("./live.js").Frame} Frame */

const maxWaiting = 100;
const maxChunks = 601; // one more than glasses buffer, so that playback stops as soon as it starts

export class Inbox {
  /**
   * @param {import("./device.js").Device} device
   * @param {(answer: Frame) => void} answer
   */
  constructor(device, answer) {
    this.device = device;
    this.answer = answer;
    /** @type {{f: Frame, data: string | Uint8Array}[]} */
    this.waiting = [];
    this.chunks = 0; // how many of them are chunks of sound
  }

  /**
   * @param {Frame} f
   * @param {string | Uint8Array} data
   * @param {boolean} isBroken whether the program will never run
   */
  take(f, data, isBroken) {
    if (this.device.running) this.device.handle(data, keyOf(f));
    else if (isBroken) this.refuse(f);
    else if (isChunk(f) ? this.chunks < maxChunks : this.waiting.length - this.chunks < maxWaiting) {
      this.waiting.push({ f, data });
      if (isChunk(f)) this.chunks++;
    }
  }

  /** Passes the waiting frames to the device, which is now running. */
  deliver() {
    for (const { f, data } of this.empty()) this.device.handle(data, keyOf(f));
  }

  refuseAll() {
    for (const { f } of this.empty()) this.refuse(f);
  }

  empty() {
    const now = this.waiting;
    this.waiting = [];
    this.chunks = 0;
    return now;
  }

  /** @param {Frame} f */
  refuse(f) {
    if (!f.id || isChunk(f)) return;
    const payload = { error: { code: "platform_error", message: "the simulator page's program does not run: see the page" } };
    this.answer({ v: 1, type: "result", id: f.id, at: Date.now(), payload });
  }
}

/** Reports whether a frame is sound of the app, which gets no result. @param {Frame} f */
const isChunk = (f) => f.type === "playback.chunk";

/** The key of the row of a frame from an app, "" for a frame without a row. @param {Frame} f */
const keyOf = (f) => (f.id && !f.type.startsWith("sim.") && !isChunk(f) ? `request ${f.id}` : "");
