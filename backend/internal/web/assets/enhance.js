// The dashboard and the start page work without script. This adds a button to copy each key and command, and shows times in the reader's zone.

/** @param {Element} source */
function textOf(source) {
  return source instanceof HTMLInputElement ? source.value : source.textContent ?? "";
}

/** @param {Element} source */
function select(source) {
  if (source instanceof HTMLInputElement) source.select();
  else getSelection()?.selectAllChildren(source);
}

/** @param {Element} source */
function addCopyButton(source) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet copy";
  button.textContent = "Copy";
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(textOf(source).trim());
      button.textContent = "Copied";
    } catch { // not allowed, or not a secure context
      select(source);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  const frame = document.createElement("div");
  frame.className = "copyable";
  source.replaceWith(frame);
  frame.append(source, button);
}

/** @param {HTMLTimeElement} time */
function localise(time) {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.getTime())) return;
  const local = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" }).format(at);
  if (time.title) { // the text is an age, and the title is the time in UTC
    time.title = `${local} (${time.title})`;
    return;
  }
  time.title = time.textContent ?? "";
  time.textContent = local;
}

for (const source of document.querySelectorAll("[data-copyable]")) {
  const focused = source === document.activeElement;
  addCopyButton(source);
  if (focused && source instanceof HTMLElement) source.focus(); // moving an element takes the focus away
}
for (const time of document.querySelectorAll("time[datetime]")) {
  if (time instanceof HTMLTimeElement) localise(time);
}
for (const here of document.querySelectorAll("nav a[aria-current]")) here.scrollIntoView({ block: "nearest", inline: "center" });
