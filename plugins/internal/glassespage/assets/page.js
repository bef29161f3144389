// The page where the user connects glasses. It only carries bytes: the driver runs in the service, at the other end of
// the socket.
import { Bluetooth } from "./bluetooth.js";
import { PanelCheck } from "./panelcheck.js";

/** @typedef {import("./bluetooth.js").LinkSpec} LinkSpec */
/** @typedef {{code: string, message: string, fixHint: string}} Problem */
/** @typedef {{key: string, state: "choose"|"opening"|"up"|"down", name: string, battery: number, problem: Problem | null}} LinkState */
/** @typedef {{pair: string, links: LinkState[], canCheck: boolean, checked: boolean, check: import("./panelcheck.js").Step}} State */
/** @typedef {{type: string, link?: string, title?: string, steps?: string[], specs?: LinkSpec[], state?: State}} Message */

const closeTaken = 4408;
const closeBusy = 4409;
const firstWait = 250; // ms
const longestWait = 4_000;
const maxTries = 5; // to connect before the page shows that the service is gone

/** @type {LinkSpec[]} */
let specs = [];
/** @type {WebSocket | undefined} */
let socket;
/** Admits this browser. It is stored for this origin only, unlike a cookie, which every port of this machine gets. */
let secret = localStorage.getItem("secret") ?? "";
let wait = firstWait;
let tries = 0;
/** The names of the chosen peripherals, by key of the link.
 * @type {Map<string, string>} */
const chosen = new Map();

const bluetooth = new Bluetooth((e) => {
  if (e.kind === "notify" && e.data) {
    const message = new Uint8Array(1 + e.data.length);
    message[0] = specs.findIndex((s) => s.key === e.link);
    message.set(e.data, 1);
    pass(message);
  } else {
    tell({ type: e.kind, link: e.link, problem: e.problem });
  }
});

const panel = new PanelCheck(find("#panel-check", HTMLElement), {
  begin: () => tell({ type: "check" }), answer: (upright, border) => tell({ type: "seen", upright, border }),
  cancel: () => tell({ type: "cancel" }),
});

/** @param {string | Uint8Array<ArrayBuffer>} data */
function pass(data) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(data);
}

/** @param {{type: string, link?: string, name?: string, problem?: string, upright?: boolean, border?: boolean}} m */
function tell(m) {
  pass(JSON.stringify(m));
}

/**
 * @template {Element} T
 * @param {string} selector
 * @param {{new (): T}} type
 * @param {ParentNode} [within]
 * @returns {T}
 */
function find(selector, type, within = document) {
  const found = within.querySelector(selector);
  if (!(found instanceof type)) throw new Error(`the page has no ${selector}`);
  return found;
}

/**
 * Shows one of the page's views.
 * @param {"live"|"unsupported"|"used"|"busy"|"taken"|"gone"|"over"} name
 */
function view(name) {
  document.body.dataset.view = name;
  for (const section of document.querySelectorAll("main > [data-view]")) {
    if (section instanceof HTMLElement) section.hidden = section.dataset.view !== name;
  }
}

/** @param {boolean} [take] */
function connect(take) {
  const url = new URL("/links", location.href);
  url.protocol = "ws:";
  url.searchParams.set("tab", tabID());
  if (take) url.searchParams.set("take", "");
  const one = new WebSocket(url, ["glasses", secret]);
  one.binaryType = "arraybuffer";
  one.onmessage = (e) => receive(e.data);
  one.onclose = (e) => closed(one, e.code);
  socket = one;
}

/** Returns the id of this tab, which stays the same after a reload. */
function tabID() {
  const id = sessionStorage.getItem("tab") ?? crypto.randomUUID();
  sessionStorage.setItem("tab", id);
  return id;
}

/**
 * @param {WebSocket} one
 * @param {number} code
 */
function closed(one, code) {
  if (one !== socket) return;
  socket = undefined;
  if (document.body.dataset.view === "over") return;
  for (const s of specs) bluetooth.drop(s.key);
  if (code === closeTaken || code === closeBusy) {
    bluetooth.close();
    chosen.clear();
    return view(code === closeTaken ? "taken" : "busy");
  }
  if (++tries > maxTries) return view("gone");
  setTimeout(() => socket || connect(), wait);
  wait = Math.min(2 * wait, longestWait);
}

/** @param {string | ArrayBuffer} data */
function receive(data) {
  if (typeof data !== "string") {
    const bytes = new Uint8Array(data);
    const key = specs[bytes[0] ?? 0]?.key;
    if (key) bluetooth.write(key, bytes.slice(2), bytes[1] === 1);
    return;
  }
  /** @type {Message} */
  const m = JSON.parse(data);
  const key = m.link ?? "";
  switch (m.type) {
    case "setup":
      return begin(m);
    case "state":
      return m.state && show(m.state);
    case "open":
      return void bluetooth.open(key);
    case "drop":
      return bluetooth.drop(key);
    case "forget":
      chosen.delete(key);
      return bluetooth.forget(key);
    case "over":
      localStorage.removeItem("secret");
      bluetooth.close();
      return view("over");
  }
}

/** @param {Message} m */
function begin(m) {
  tries = 0;
  wait = firstWait;
  specs = m.specs ?? [];
  document.title = `Connect ${m.title}`;
  for (const e of document.querySelectorAll("[data-title]")) e.textContent = m.title ?? "";
  document.body.dataset.links = String(specs.length);
  const steps = find("#steps", HTMLElement);
  steps.replaceChildren(...(m.steps ?? []).map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
  const list = find("#links", HTMLElement);
  if (list.childElementCount !== specs.length) list.replaceChildren(...specs.map(card));
  view("live");
  for (const [link, name] of chosen) tell({ type: "chosen", link, name });
  void Bluetooth.problem().then((problem) => problem && tell({ type: "problem", problem }));
}

/**
 * Returns the name of a link for users.
 * @param {string} key
 */
function nameOf(key) {
  return specs.length > 1 ? `${key} arm` : "glasses";
}

/** @param {LinkSpec} spec */
function card(spec) {
  const template = find("#card", HTMLTemplateElement);
  const one = find(".link", HTMLElement, /** @type {DocumentFragment} */ (template.content.cloneNode(true)));
  one.dataset.key = spec.key;
  const name = nameOf(spec.key);
  find("h3", HTMLElement, one).textContent = name.charAt(0).toUpperCase() + name.slice(1);
  const button = find("button", HTMLButtonElement, one);
  button.onclick = () => void choose(spec, button);
  return one;
}

/**
 * @param {LinkSpec} spec
 * @param {HTMLButtonElement} button
 */
async function choose(spec, button) {
  button.disabled = true;
  const { name, problem } = await bluetooth.choose(spec);
  button.disabled = false;
  if (problem) return tell({ type: "problem", link: spec.key, problem });
  chosen.set(spec.key, name);
  tell({ type: "chosen", link: spec.key, name });
}

const words = { choose: "not connected", opening: "connecting …", up: "connected", down: "connecting again soon" };

/** @param {State} state */
function show(state) {
  const next = state.links.find((l) => l.state === "choose");
  for (const l of state.links) {
    const one = find(`[data-key="${l.key}"]`, HTMLElement);
    const waits = l.state !== "up" && l.name !== "" && next !== undefined;
    one.dataset.state = l.state;
    one.classList.toggle("next", l === next);
    find(".state", HTMLElement, one).textContent = waits ? `chosen, connects after the ${nameOf(next.key)}`
      : words[l.state];
    find(".name", HTMLElement, one).textContent = l.name;
    find(".battery", HTMLElement, one).textContent = l.battery > 0 ? `battery ${l.battery} %` : "";
    const button = find("button", HTMLButtonElement, one);
    button.textContent = l.name ? "Choose again" : `Connect ${nameOf(l.key)}`;
    button.classList.toggle("quiet", l.name !== "");
    button.hidden = l.state === "up";
    const note = find(".note", HTMLElement, one);
    note.hidden = !l.problem;
    find(".message", HTMLElement, note).textContent = l.problem ? sentence(l.problem.message) : "";
    find(".hint", HTMLElement, note).textContent = l.problem?.fixHint ?? "";
  }
  const isUp = state.links.every((l) => l.state === "up");
  document.body.classList.toggle("connected", isUp);
  find("#done", HTMLElement).hidden = !isUp;
  find("#ready", HTMLElement).hidden = isUp;
  find("#panel", HTMLElement).hidden = !state.canCheck || !isUp && !state.check;
  panel.show({ name: state.pair, canCheck: state.canCheck, checked: state.checked, step: state.check });
  for (const e of document.querySelectorAll("[data-pair]")) if (state.pair) e.textContent = state.pair;
}

/** @param {string} text */
function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

async function start() {
  find("#take", HTMLButtonElement).onclick = () => connect(true);
  find("#back", HTMLButtonElement).onclick = () => connect(true);
  if (!navigator.bluetooth) { // the address can still be used in another browser
    find("#address", HTMLInputElement).value = location.href;
    find("#copy", HTMLButtonElement).onclick = () => void navigator.clipboard.writeText(location.href);
    return view("unsupported");
  }
  const token = location.hash.slice(1);
  history.replaceState(null, "", "/");
  try {
    const answer = await fetch("/admit", { method: "POST", body: JSON.stringify({ token, secret }) });
    if (!answer.ok) return view("used");
    ({ secret } = await answer.json());
    localStorage.setItem("secret", secret);
  } catch {
    return view("gone");
  }
  connect();
}

addEventListener("hashchange", () => location.reload()); // the user opened the next address in this tab
void start();
