// A worker with timers for the page: browsers delay the timers of pages in the
// background, and the glasses must be on time.

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
