// Timers that are on time though the page is in the background.

const clock = new Worker("/assets/clock.js");
/** @type {Map<number, () => void>} */
const acts = new Map();
let last = 0;

clock.addEventListener("message", (e) => acts.get(e.data)?.());

/** One act that can be put off, brought forward or called off. */
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
