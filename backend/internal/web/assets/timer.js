// Timers that are on time even if the page is in the background.

const clock = new Worker("/assets/clock.js");
/** @type {Map<number, () => void>} */
const acts = new Map();
let last = 0;

clock.addEventListener("message", (e) => acts.get(e.data)?.());

/** A scheduled action that can be moved or cancelled. */
export class Timer {
  /** @param {() => void} act */
  constructor(act) {
    this.id = ++last;
    acts.set(this.id, act);
  }

  /** @param {number} ms */
  set(ms) {
    clock.postMessage({ id: this.id, ms: Math.max(0, ms) });
  }

  stop() {
    clock.postMessage({ id: this.id, ms: -1 });
  }
}

/** @param {number} ms */
export function sleep(ms) {
  return new Promise((/** @type {(v: void) => void} */ done) => {
    const timer = new Timer(() => {
      acts.delete(timer.id);
      done();
    });
    timer.set(ms);
  });
}
