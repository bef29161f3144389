// The simulator page, which acts as the glasses. The device itself is Go code (device.js); this module connects it to
// the socket, this computer and the page. glasses/PROTOCOL.md describes the frames on the socket.
// Types are checked by `tsc --noEmit --checkJs` (tsconfig.json above).
import { Camera } from "./camera.js";
import { ClipBuffer } from "./clip.js";
import { Controls } from "./controls.js";
import { Device } from "./device.js";
import { get } from "./elements.js";
import { Host } from "./host.js";
import { Inbox } from "./inbox.js";
import { Live } from "./live.js";
import { Log } from "./log.js";
import { Media } from "./media.js";
import { Models } from "./models.js";
import { Moments } from "./moments.js";
import { Observer } from "./observer.js";
import { Panel } from "./panel.js";
import { forget, notice, page, remark, showConnection, showPeers, showSocket } from "./page.js";
import { Past } from "./past.js";
import { RealGlasses } from "./real.js";
import { SeeThrough } from "./seethrough.js";
import { Share } from "./share.js";
import { Tabs } from "./tabs.js";
import { Tools } from "./tools.js";
import { Travel } from "./travel.js";
import { View } from "./view.js";
import { Ears, Microphone, Speaker } from "./voice.js";

/** @typedef {import("./live.js").Frame} Frame */
/** @typedef {import("./device.js").Snapshot} Snapshot */
/** @typedef {import("./device.js").Model} Model */

const root = page("simulator");
/** @type {{session: string, project: string, live: string, model: Model, models: Model[], program: {wasm: string, loader: string, fonts: Record<string, string>} | null, picture: string}} */
const setup = JSON.parse(root.dataset.setup ?? "{}");
const store = `glasses ${setup.session}`;

const input = (/** @type {string} */ id) => get(id, HTMLInputElement);
const device = new Device({
  out: onOut, ask: (a) => speaksNow() && host.take(a), carry: (o) => real.carry(o),
  links: (list) => real.setLinks(list),
  panel: (p) => real.setPanel(p), redraw: () => view.redraw(), changed, handled: (keys) => active && moments.note(keys), refused: remark,
});
const real = new RealGlasses(`real ${setup.session}`, {
  name: (id) => setup.models.find((m) => m.id === id)?.name ?? id, identify: (id, name) => device.identify(id, name),
  event: (e) => device.event(e), leave: () => device.leave(), left: () => device.left(), changed: changeGlasses,
  usePanel: (stored) => device.setPanel(stored), checkPanel: () => device.checkPanel(),
  seePanel: (upright, border) => device.seePanel(upright, border), cancelCheck: () => device.cancelCheck(),
});
const control = (/** @type {string} */ type, /** @type {unknown} */ payload) => {
  forget();
  return active && !travel.isPast && device.control(type, payload);
};
const tabs = new Tabs(page("tabs"));
const panel = new Panel({
  lens: page("lens"), panel: page("panel"), canvas: get("canvas", HTMLCanvasElement), idle: page("idle"), none: page("no-panel"),
  help: page("panel-help"), lines: page("display"), focus: page("focus"),
}, (what) => control("sim.input", what));
const clips = new ClipBuffer(device, setup.models);
const tools = new Tools(page("tools"), { panel, seeThrough: new SeeThrough(panel), clips, device }, setup.session);
const controls = new Controls(control);
const models = new Models({ list: page("models"), empty: page("models-empty") }, setup.models, device, (id) => control("sim.device", { deviceModel: id }));
const camera = new Camera({
  video: get("camera-video", HTMLVideoElement), still: get("camera-still", HTMLCanvasElement), state: page("camera-state"), help: page("camera-help"),
  file: input("camera-file"), choose: page("camera-choose"), mark: page("senses-mark"), sources: /** @type {HTMLInputElement[]} */ ([...document.querySelectorAll("input[name=camera-source]")]),
});
const speaker = new Speaker(page("caption"), input("mute"));
const ears = new Ears(input("ears"), page("ears-note"), (said) => control("sim.transcript", said));
const host = new Host(camera, new Microphone(page("microphone-state")), speaker, ears, (ask, bytes, refusal) => device.answer(ask, bytes, refusal));
const media = new Media();
const log = new Log({
  list: page("log"), count: page("log-count"), search: input("search"), export: page("export"),
  filters: /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".filter")]),
}, setup.session, media);
const past = new Past(device);
const moments = new Moments(log, past);
const travel = new Travel(log, moments, showMoment);
const view = new View({ device, panel, models, controls, tools, travel, past }, setup, page("idle"));
new Share(setup, log, moments);
const observer = new Observer(device);
const inbox = new Inbox(device, (answer) => active && onOut(answer, JSON.stringify(answer)));
const live = new Live(setup.live, { frame: onFrame, binary: onBinary, state: onState });

/** Whether this page acts as the glasses. If several pages are open, the newest one does. */
let active = true;
/** @type {{deviceModel: Model, display: unknown, glasses: unknown, lastSeq: number} | null} */
let welcome = null;
let known = -1; // the last row whose effect is part of the welcome
/** @type {Set<string>} */
const asked = new Set(); // ids of control frames, whose results are not acknowledged
/** @type {{apps: {name: string, version?: string}[], pages: number}} */
let peers = { apps: [], pages: 0 };

const speaksNow = () => active && !observer.learning;

/**
 * @param {Frame} f
 * @param {string} text
 */
function onFrame(f, text) {
  switch (f.type) {
    case "welcome":
      welcome = f.payload;
      known = f.payload.lastSeq;
      if (f.payload.truncated) notice("Older rows are gone: the event log keeps the latest ones.");
      begin();
      return;
    case "row":
      if (!active && f.payload.seq > known) observer.learn(f.payload);
      addRow(f.payload, text);
      return;
    case "peers":
      peers = f.payload;
      showPeers(peers, active, lacks());
      return;
    case "role":
      setRole(f.payload.active);
      return;
    case "error":
      notice(`The service refused a frame of this page: ${f.payload.message}`);
      return;
    case "beat":
      if (device.real) device.tick(); // real glasses need their heartbeats even if the browser slows down timers
      return;
    case "ack":
      return;
  }
  if (f.type === "sim.camera") page("covered").hidden = true;
  take(f, text);
}

/**
 * @param {import("./log.js").Row} row
 * @param {string} text the frame
 */
function addRow(row, text) {
  const json = text.slice(text.indexOf('"payload":') + '"payload":'.length, -1);
  const entry = log.add(row, json.startsWith('{"seq":') ? json : JSON.stringify(row));
  if (!entry) return;
  live.seen(row.seq);
  moments.add(entry, active && row.seq > known);
}

/** @param {Uint8Array} data */
function onBinary(data) {
  const end = 2 + (data[0] ?? 0) * 256 + (data[1] ?? 0);
  /** @type {Frame} */
  const f = JSON.parse(new TextDecoder().decode(data.subarray(2, end)));
  if (f.type === "sim.camera") page("covered").hidden = device.real || data.length === end;
  take(f, data);
}

/**
 * Handles a frame for the glasses. A page that only observes follows the panel and sends no answers.
 * @param {Frame} f
 * @param {string | Uint8Array} data
 */
function take(f, data) {
  if (!active && !["display.show", "display.clear", "phrases.announce"].includes(f.type)) return;
  if (f.type.startsWith("sim.") && f.id) asked.add(f.id);
  if (f.type === "audio.start" && f.id) media.listen(f.id);
  inbox.take(f, data, broken !== "");
}

/** Why the program does not run. If the build lacks it, the page itself reports that. */
let broken = setup.program ? "" : "missing";

/**
 * Sends a frame of the glasses; streams and answers to agents are not acknowledged.
 * @param {Frame} f
 * @param {string} text
 * @param {Uint8Array<ArrayBuffer>} [body]
 */
function onOut(f, text, body) {
  if (!speaksNow()) return;
  if (f.type === "speech" || f.type === "playback" && f.payload.state !== "started") speaker.tell("");
  if (f.type === "device") page("covered").hidden = true;
  const id = f.id ?? "";
  if (body) media.take(f, body);
  if (body && f.type === "media") live.passMedia(id, body);
  else if (body || f.type === "motion") live.pass(body ?? text);
  else if (asked.delete(id)) live.pass(text);
  else live.keep(f, text);
}

/** Starts the device once the program is loaded and the service has sent its welcome. */
function begin() {
  if (!device.program || !welcome || broken) return;
  const id = welcome.deviceModel.id;
  real.setModel(id);
  const isReal = real.uses(id);
  if (live.restarting && device.running) return; // the next welcome will include what is unsent
  if (isReal && !device.real) startReal(id, welcome);
  else if (!isReal && device.real) startSimulated(id, welcome);
  else if (!device.running) device.start(id, sessionStorage.getItem(store) ?? "", welcome.display, welcome.glasses);
  else if (!isReal && live.unacknowledged.size === 0 && !device.agrees(id, welcome.display, welcome.glasses)) {
    device.start(id, device.last, welcome.display, welcome.glasses);
  }
  observer.catchUp();
  inbox.deliver();
  ready();
}

/** Opens a new socket for the other glasses, so that the service sends them the apps' settings. */
function changeGlasses() {
  if (active && !live.isOver()) live.restart();
  else if (!active && device.running) observer.mirror();
}

/**
 * @param {string} id
 * @param {{display: unknown, glasses: unknown}} from
 */
function startReal(id, from) {
  host.stop();
  device.startReal(id, from.display, from.glasses);
  real.usePanel();
}

/**
 * @param {string} id
 * @param {{display: unknown, glasses: unknown}} from
 */
function startSimulated(id, from) {
  device.start(id, "", from.display, from.glasses);
  device.control("sim.state", { link: "connected" }); // the link of the real glasses is down
}

/** @param {boolean} now */
function setRole(now) {
  if (active && !now) {
    host.stop();
    asked.clear();
    active = false;
    if (device.real) real.leave();
    else if (device.running) observer.mirror();
  }
  active = now;
  showPeers(peers, active, lacks());
  ready();
}

/** @param {import("./live.js").State} state */
function onState(state) {
  showSocket(state);
  if (state === "up" && setup.program && broken) notice(broken);
  if (state !== "up") peers = { apps: [], pages: 0 };
  if (live.isOver()) {
    host.stop();
    real.leave();
  }
  ready();
}

/** Why the program does not act as the glasses; "" if it does. */
const lacks = () => (broken ? "broken" : device.running ? "" : "loading");

/** Enables the controls only while they reach an app. */
function ready() {
  const up = live.state === "up" && device.running;
  const on = up && active;
  const isUsable = on && !travel.isPast;
  view.showIdle(!broken);
  root.dataset.live = up ? "yes" : "no";
  showConnection(live.state, lacks());
  showPeers(peers, active, lacks());
  page("mirror").hidden = active || live.state !== "up"; // without a socket it is unknown which page is active
  panel.setLive(isUsable);
  controls.setEnabled(isUsable, device.real);
  models.setEnabled(isUsable && !device.real);
  real.setEnabled(on);
  page("senses").hidden = page("hears").hidden = device.real;
  tabs.setShown("senses", !device.real);
}

let saving = 0;

/**
 * @param {Snapshot} s
 * @param {Model} m
 */
function changed(s, m) {
  view.snapshot = s;
  clips.add(device.last);
  saving ||= setTimeout(save, 200);
  const isOther = m.id !== view.model.id;
  view.model = m;
  if (isOther) real.setModel(m.id);
  if (travel.isPast) return;
  if (isOther) view.showModel(m);
  controls.showState(s.state);
  view.redraw();
}

function showMoment() {
  forget();
  view.showMoment();
  ready();
  view.redraw();
}

/** Stores the state of the glasses, so that it survives a reload of the page. */
function save() {
  clearTimeout(saving);
  saving = 0;
  try {
    if (device.running && !device.real) sessionStorage.setItem(store, device.last);
  } catch {
    // Storage is full or forbidden, so a reload starts from the state that the service has.
  }
}

async function load() {
  if (!setup.program) return;
  try {
    await device.load(setup.program, () => fail("The simulator's program has stopped. Reload this page."));
    controls.faults.setWords(device.words());
    await real.setKinds(device.kinds(), device.problems());
    real.setModel(view.model.id);
    begin();
  } catch (e) {
    fail(`The simulator's program could not be loaded (${e instanceof Error ? e.message : e}). Reload this page, or try another browser.`);
  }
}

/** @param {string} why */
function fail(why) {
  broken = why;
  inbox.refuseAll();
  notice(why);
  ready();
}

page("model-open").addEventListener("click", () => {
  tabs.choose("glasses");
  get("device", HTMLSelectElement).focus();
});
page("take-over").addEventListener("click", () => location.reload());
addEventListener("pagehide", () => {
  save();
  if (device.real) device.leave(); // as far as the browser still allows it
});
real.setModel(setup.model.id);
ready();
live.start();
view.drawAhead();
await load();
