// Frames for the glasses wait here until the program is loaded. If it cannot run, they are refused.

/** @typedef {import("./live.js").Frame} Frame */

const maxWaiting = 100;

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
  }

  /**
   * @param {Frame} f
   * @param {string | Uint8Array} data
   * @param {boolean} isBroken whether the program will never run
   */
  take(f, data, isBroken) {
    if (this.device.running) this.device.handle(data, keyOf(f));
    else if (isBroken) this.refuse(f);
    else if (this.waiting.length < maxWaiting) this.waiting.push({ f, data });
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
    return now;
  }

  /** @param {Frame} f */
  refuse(f) {
    if (!f.id) return;
    const payload = { error: { code: "platform_error", message: "the simulator page's program does not run: see the page" } };
    this.answer({ v: 1, type: "result", id: f.id, at: Date.now(), payload });
  }
}

/** The key of the row of a frame from an app, "" for a frame without a row. @param {Frame} f */
const keyOf = (f) => (f.id && !f.type.startsWith("sim.") && f.type !== "playback.chunk" ? `request ${f.id}` : "");
