// The simple parts of the simulator page: the state of its socket, the connected apps and pages, and notices.

/**
 * @param {string} id
 * @returns {HTMLElement}
 */
export function page(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
}

/** @type {Record<import("./live.js").State, string>} */
const words = {
  down: "Connecting",
  up: "Connected",
  quiet: "Not responding",
  lost: "Not connected, trying again",
  over: "Session closed",
  out: "Signed out",
};

/**
 * Shows whether the page is connected and whether its program acts as the glasses.
 * @param {import("./live.js").State} state
 * @param {"" | "loading" | "broken"} lacks what the program is instead
 */
export function showConnection(state, lacks) {
  const chip = page("socket");
  const text = state !== "up" || !lacks ? words[state] : lacks === "loading" ? "Loading" : "Not running";
  if (chip.textContent !== text) chip.textContent = text; // screen readers announce each write
  chip.dataset.lacks = state === "up" ? lacks : "";
}

/** @param {import("./live.js").State} state */
export function showSocket(state) {
  page("socket").dataset.state = state === "lost" || state === "quiet" ? "down" : state;
  if (state === "up") page("notice").hidden = true;
  if (state === "out") notice("You are signed out. Reload this page to sign in again.");
  if (state === "over") {
    page("state").textContent = "closed";
    notice("This session is closed. Ask your agent for a new one.");
  }
}

/**
 * Shows why an action of the user was not performed, until the next action.
 * @param {string} text
 */
export function remark(text) {
  notice(text);
  page("notice").dataset.passes = "yes";
}

export function forget() {
  const box = page("notice");
  if (box.dataset.passes === "yes") box.hidden = true;
}

/** @param {string} text */
export function notice(text) {
  const box = page("notice");
  box.dataset.passes = "no";
  const sentence = text.charAt(0).toUpperCase() + text.slice(1);
  box.textContent = /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
  box.hidden = false;
}

/**
 * @param {{apps: {name: string, version?: string}[], pages: number}} peers
 * @param {boolean} active whether this page acts as the glasses
 * @param {"" | "loading" | "broken"} lacks what the program is instead of playing them
 */
export function showPeers(peers, active, lacks) {
  const list = page("peers");
  list.replaceChildren();
  for (const app of peers.apps) list.append(peer(app.name, app.version ? `version ${app.version}` : "app", true));
  if (peers.apps.length === 0) list.append(peer("No app", "", false));
  const up = peers.pages > 0;
  const others = peers.pages > 1 ? `${peers.pages - 1} more ${peers.pages === 2 ? "page is" : "pages are"} open` : "";
  if (up && active && lacks) list.append(peer("Glasses: this page", lacks === "loading" ? "loading" : "not running", false));
  else list.append(up ? peer(active ? "Glasses: this page" : "Glasses: another page", others, true) : peer("Glasses", "not connected", false));
  const waits = up && peers.apps.length === 0;
  page("attach").hidden = !waits;
  page("simulator").dataset.waiting = waits ? "yes" : "no";
  const text = waits ? "Waiting for the app" : "";
  if (page("waiting").textContent !== text) page("waiting").textContent = text; // screen readers announce each write
}

/**
 * @param {string} name
 * @param {string} detail
 * @param {boolean} on
 */
function peer(name, detail, on) {
  const li = document.createElement("li");
  li.className = "peer";
  const dot = document.createElement("span");
  dot.className = on ? "dot on" : "dot";
  dot.ariaHidden = "true";
  const more = document.createElement("span");
  more.className = "muted";
  more.textContent = detail;
  li.append(dot, name, more);
  return li;
}

for (const button of document.querySelectorAll("button[data-copy]")) {
  if (button instanceof HTMLButtonElement) button.addEventListener("click", () => copy(button));
}

/**
 * Copies the text of the element that a button names.
 * @param {HTMLButtonElement} button
 */
async function copy(button) {
  const from = page(button.dataset.copy ?? "");
  try {
    await navigator.clipboard.writeText(from.textContent ?? "");
    button.textContent = "Copied";
  } catch {
    getSelection()?.selectAllChildren(from);
    button.textContent = "Selected";
  }
}

const start = page("start");
if (/Windows/.test(navigator.userAgent)) {
  start.textContent = `servicectl session env ${start.dataset.session} | Out-String | Invoke-Expression`;
}

const expires = page("expires");
if (expires instanceof HTMLTimeElement) {
  const at = new Date(expires.dateTime);
  expires.textContent = `${at.toLocaleString([], { dateStyle: "medium", timeStyle: "short" })}, local time`;
  expires.title = at.toUTCString().replace("GMT", "UTC");
}
