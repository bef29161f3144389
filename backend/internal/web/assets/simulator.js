// The simulator page: it plays the glasses. Types are checked by `tsc --noEmit --checkJs` (tsconfig.json above).
// What goes over the socket is told in proto/glasses/PROTOCOL.md.
import { Live } from "./live.js";
import { Panel } from "./panel.js";
import { Log } from "./log.js";

/**
 * @param {string} id
 * @returns {HTMLElement}
 */
function el(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
}

const root = el("simulator");
/** @type {{session: string, live: string, model: import("./panel.js").Model}} */
const setup = JSON.parse(root.dataset.setup ?? "{}");
const panel = new Panel({ button: el("panel"), display: el("display"), none: el("no-panel"), help: el("panel-help"), note: el("panel-note"), spoken: el("panel-text") });
const log = new Log(el("log"), el("log-count"));
const live = new Live(setup.live, { frame: onFrame, state: onState });

/** @param {import("./panel.js").Model} model */
function setModel(model) {
  panel.setModel(model);
  el("model-name").textContent = model.name;
  const p = model.panel;
  el("model-facts").textContent = p ? `${model.id}, ${p.width} × ${p.height}` : `${model.id}, no display`;
}

/** @param {import("./live.js").Frame} f */
function onFrame(f) {
  switch (f.type) {
    case "welcome":
      setModel(f.payload.deviceModel);
      panel.show(f.payload.display?.tree ?? null);
      return;
    case "device":
      setModel(f.payload.deviceModel);
      return;
    case "row":
      if (log.add(f.payload)) live.seen(f.payload.seq);
      return;
    case "peers":
      showPeers(f.payload);
      return;
    case "display.show":
      live.result(f.id ?? "", panel.show(f.payload.tree));
      return;
    case "display.clear":
      live.result(f.id ?? "", panel.show(null));
      return;
    case "error":
      notice(`The service refused a frame of this page: ${f.payload.message}`);
      return;
  }
}

const words = {
  down: "Connecting",
  up: "Live",
  lost: "Not connected, trying again",
  over: "Session closed",
  out: "Signed out",
};

/**
 * @param {keyof typeof words} state
 * @param {string} [reason]
 */
function onState(state, reason) {
  const chip = el("socket");
  chip.textContent = words[state];
  chip.dataset.state = state === "lost" ? "down" : state;
  root.dataset.live = state === "up" ? "yes" : "no";
  panel.setLive(state === "up");
  if (state === "up") {
    el("notice").hidden = true;
    return;
  }
  showPeers({ apps: [], pages: 0 });
  if (state === "out") notice("You are signed out. Reload this page to sign in again.");
  if (state === "over") {
    el("state").textContent = "closed";
    notice(reason || "This session is closed. Ask your agent for a new one.");
  }
}

/** @param {string} text */
function notice(text) {
  const box = el("notice");
  box.textContent = text;
  box.hidden = false;
}

/** @param {{apps: {name: string, version?: string}[], pages: number}} peers */
function showPeers(peers) {
  const list = el("peers");
  list.replaceChildren();
  for (const app of peers.apps) list.append(peer(app.name, app.version ? `version ${app.version}` : "app", true));
  if (peers.apps.length === 0) list.append(peer("No app", "", false));
  const up = peers.pages > 0;
  list.append(peer(peers.pages > 1 ? `Glasses: this page and ${peers.pages - 1} more` : "Glasses: this page", up ? "" : "not connected", up));
  el("attach").hidden = peers.apps.length > 0 || !up;
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

el("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(el("endpoint").textContent ?? "");
    el("copy").textContent = "Copied";
  } catch {
    getSelection()?.selectAllChildren(el("endpoint"));
    el("copy").textContent = "Selected";
  }
});

const expires = el("expires");
if (expires instanceof HTMLTimeElement) {
  expires.textContent = new Date(expires.dateTime).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}
/** @type {(x: number, y: number) => void} */
const tapped = (x, y) => live.send("input", { kind: "tap", x, y });
panel.onTap = tapped;
setModel(setup.model);
live.start();
