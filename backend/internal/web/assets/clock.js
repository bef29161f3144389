// A worker that keeps time for the page: a page in the background gets its own timers late, and the glasses must not be.

/** @type {Map<number, ReturnType<typeof setTimeout>>} */
const timers = new Map();

addEventListener("message", (e) => {
  /** @type {{id: number, ms: number}} */
  const { id, ms } = e.data;
  clearTimeout(timers.get(id));
  timers.delete(id);
  if (ms < 0) return;
  timers.set(id, setTimeout(() => {
    timers.delete(id);
    postMessage(id);
  }, ms));
});
