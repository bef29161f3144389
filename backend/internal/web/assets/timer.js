// Timers that are on time even if the page is in the background, where browsers delay a page's timers, but not those
// of a worker. A visible page uses its own timers, because a worker's messages would fill the memory.

/** @type {Worker | undefined} */
let clock; // created when the page is first in the background
/** @type {Map<number, Timer>} */
const pending = new Map();
let last = 0;

document.addEventListener("visibilitychange", () => {
  if (document.hidden) for (const timer of pending.values()) timer.start();
});

/** @param {number} id @param {number} ms until it is due, or -1 to cancel it */
function tellClock(id, ms) {
  if (!clock) {
    clock = new Worker("/assets/clock.js");
    clock.addEventListener("message", (e) => pending.get(e.data)?.fire());
  }
  clock.postMessage({ id, ms });
}

/** A scheduled action that can be moved or cancelled. */
export class Timer {
  /** @param {() => void} act */
  constructor(act) {
    this.id = ++last;
    this.act = act;
    this.at = 0; // ms since the page was opened
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timeout = undefined;
    this.isInClock = false;
  }

  /** @param {number} ms */
  set(ms) {
    this.stop();
    this.at = performance.now() + Math.max(0, ms);
    pending.set(this.id, this);
    this.start();
  }

  start() {
    const ms = Math.max(0, this.at - performance.now());
    clearTimeout(this.timeout);
    this.isInClock = document.hidden;
    if (this.isInClock) tellClock(this.id, ms);
    else this.timeout = setTimeout(() => this.fire(), ms);
  }

  fire() {
    pending.delete(this.id);
    this.act();
  }

  stop() {
    clearTimeout(this.timeout);
    if (pending.delete(this.id) && this.isInClock) tellClock(this.id, -1);
  }
}

/** @param {number} ms */
export function sleep(ms) {
  return new Promise((/** @type {(v: void) => void} */ done) => new Timer(done).set(ms));
}
