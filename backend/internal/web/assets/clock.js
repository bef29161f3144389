// A worker that wakes the page: a page in the background gets its own timers late, and the glasses must not be.
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

addEventListener("message", (e) => {
  clearTimeout(timer);
  if (e.data >= 0) timer = setTimeout(() => postMessage(0), e.data);
});
