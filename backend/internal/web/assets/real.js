// Real glasses in place of the simulated ones: the card with which the user connects and leaves them. The program
// decides what is sent to the glasses (device.js); bluetooth.js sends it.
import { Bluetooth } from "./bluetooth.js";
import { PanelCheck } from "./panelcheck.js";
import { page } from "./page.js";
import { Timer } from "./timer.js";

/** @typedef {import("./bluetooth.js").LinkSpec} LinkSpec */
/** @typedef {{deviceModel: string, links: LinkSpec[], steps: string[]}} Kind */
/** @typedef {{key: string, state: "up"|"opening"|"down", problem: string}} LinkState */
/** @typedef {{canCheck: boolean, checked: boolean, step: import("./panelcheck.js").Step, found: string}} PanelState */
/** @typedef {{row: HTMLElement, dot: HTMLElement, state: HTMLElement, choose: HTMLButtonElement}} Row */

const leaveTime = 2_000; // ms for clearing the panel, after which the glasses are disconnected anyway

/** @type {Record<string, string>} */
const linkNames = { left: "Left arm", right: "Right arm", main: "Glasses" };

export class RealGlasses {
  /**
   * @param {string} store the key under which a reloaded page finds out that real glasses were in use
   * @param {{name: (model: string) => string, identify: (model: string, name: string) => {pair: string, link: string}, event: (e: import("./bluetooth.js").LinkEvent) => void, leave: () => void, left: () => boolean, changed: () => void, usePanel: (stored: string) => void, checkPanel: () => void, seePanel: (isUpright: boolean, hasBorder: boolean) => void, cancelCheck: () => void}} on
   *   changed is called when real glasses are to take the place of the simulated ones, or the other way round
   */
  constructor(store, on) {
    this.store = store;
    this.on = on;
    /** @type {Kind[]} */
    this.kinds = [];
    /** @type {Record<string, string>} */
    this.texts = {}; // of problems, by code
    /** @type {Kind | undefined} */
    this.kind = undefined; // of the model of the session
    /** @type {"off"|"choosing"|"on"|"leaving"} */
    this.phase = "off";
    this.reloaded = false; // whether the glasses were in use before a reload
    this.enabled = false;
    this.problem = ""; // of this browser
    this.bluetooth = new Bluetooth((e) => this.happened(e));
    /** @type {Map<string, Row>} */
    this.rows = new Map();
    /** @type {Map<string, string>} */
    this.names = new Map(); // of the chosen peripherals, by link
    /** @type {Map<string, LinkState>} */
    this.links = new Map();
    /** @type {Map<string, {firmware?: string, batteryLevel?: number}>} */
    this.infos = new Map();
    /** @type {Set<string>} */
    this.waiting = new Set(); // links to be opened once they are chosen
    /** @type {PanelState} */
    this.panel = { canCheck: false, checked: false, step: "", found: "" };
    this.check = new PanelCheck(page("real-panel"), {
      begin: () => on.checkPanel(), answer: (upright, border) => on.seePanel(upright, border),
      cancel: () => on.cancelCheck(),
    });
    this.late = new Timer(() => this.end());
    page("real-begin").addEventListener("click", () => this.begin());
    page("real-end").addEventListener("click", () => this.leave());
  }

  /**
   * Sets the glasses that the program can reach, and its texts about problems, by code.
   * @param {Kind[]} kinds
   * @param {Record<string, string>} texts
   */
  async setKinds(kinds, texts) {
    this.kinds = kinds;
    this.texts = texts;
    this.problem = await Bluetooth.problem();
    this.show();
  }

  /** @param {string} model */
  setModel(model) {
    if (this.kind?.deviceModel === model) return;
    if (this.phase === "choosing") this.leave();
    this.kind = this.kinds.find((k) => k.deviceModel === model);
    this.makeRows();
    this.show();
  }

  /** @param {boolean} on */
  setEnabled(on) {
    this.enabled = on;
    this.show();
  }

  /**
   * Reports whether glasses of this model are in use. After a reload the page waits for them to be chosen again.
   * @param {string} model
   */
  uses(model) {
    if (this.phase === "off" && sessionStorage.getItem(this.store) === model && this.kinds.some((k) => k.deviceModel === model)) {
      this.setModel(model);
      this.phase = "on";
      this.reloaded = true;
      this.show();
    }
    if (this.phase === "on" && this.kind?.deviceModel !== model) this.leave();
    return this.phase === "on";
  }

  begin() {
    this.phase = "choosing";
    this.say("");
    this.show();
    for (const { choose } of this.rows.values()) return choose.focus();
  }

  /**
   * Lets the user choose the peripheral of a link. Arms of different pairs are not mixed.
   * @param {LinkSpec} spec
   */
  async choose(spec) {
    this.say("");
    const { name, problem } = await this.bluetooth.choose(spec);
    if (problem) return this.say(this.texts[problem] ?? problem);
    const wrong = this.wrong(spec.key, name);
    if (wrong) {
      this.bluetooth.forget(spec.key);
      this.names.delete(spec.key);
      this.show();
      return this.say(wrong);
    }
    this.names.set(spec.key, name);
    if (this.waiting.delete(spec.key)) this.bluetooth.open(spec.key);
    const first = this.kind?.links.find((l) => !this.bluetooth.has(l.key));
    if (!first && this.phase === "on") this.usePanel();
    if (!first && this.phase === "choosing") this.use();
    this.show();
    if (first) this.rows.get(first.key)?.choose.focus();
  }

  /**
   * Returns the reason why a peripheral does not belong to this link, or "".
   * @param {string} key
   * @param {string} name
   */
  wrong(key, name) {
    const model = this.kind?.deviceModel ?? "";
    const { pair, link } = this.on.identify(model, name);
    if (!pair) return `“${name}” is not ${this.on.name(model)}. Choose another.`;
    if (link !== key) return `“${name}” is the ${label(link).toLowerCase()}. Choose the ${label(key).toLowerCase()}.`;
    for (const [other, chosen] of this.names) {
      if (other !== key && this.on.identify(model, chosen).pair !== pair) {
        return `“${name}” and “${chosen}” are arms of different pairs. Choose those with the same number.`;
      }
    }
    return "";
  }

  /** Replaces the simulated glasses with the chosen ones. */
  use() {
    this.phase = "on";
    this.reloaded = false;
    this.on.changed();
    sessionStorage.setItem(this.store, this.kind?.deviceModel ?? "");
  }

  /** Returns the name of the pair, or "" before its first peripheral is chosen. */
  pair() {
    const [chosen] = this.names.values();
    return chosen ? this.on.identify(this.kind?.deviceModel ?? "", chosen).pair : "";
  }

  /** Passes the panel settings that this browser stored for the chosen pair to the program. */
  usePanel() {
    this.on.usePanel(localStorage.getItem(`panel ${this.pair()}`) ?? "");
  }

  /** @param {PanelState} panel */
  setPanel(panel) {
    const isNew = panel.found !== "" && panel.found !== this.panel.found;
    if (isNew && this.pair()) localStorage.setItem(`panel ${this.pair()}`, panel.found);
    this.panel = panel;
    this.show();
  }

  /** Clears the panel and then returns to the simulated glasses. */
  leave() {
    if (this.phase === "choosing") {
      this.phase = "off";
      this.forget();
    }
    if (this.phase !== "on") return this.show();
    this.phase = "leaving";
    this.late.set(leaveTime);
    this.show();
    this.on.leave();
    this.settle();
  }

  /** Ends the use of the glasses once leaving them is complete or has timed out. */
  end() {
    if (this.phase !== "leaving") return;
    this.late.stop();
    this.forget();
    this.phase = "off";
    this.show();
    this.on.changed();
  }

  settle() {
    if (this.phase === "leaving" && this.on.left()) this.end();
  }

  forget() {
    sessionStorage.removeItem(this.store);
    this.bluetooth.close();
    this.reloaded = false;
    for (const map of [this.names, this.links, this.infos, this.waiting]) map.clear();
    this.say("");
  }

  /** @param {import("./bluetooth.js").LinkEvent} e */
  happened(e) {
    this.on.event(e);
    this.settle();
  }

  /**
   * Carries out the program's output.
   * @param {{connect?: string, write?: string, data?: Uint8Array<ArrayBuffer>, response?: boolean, drop?: string, info?: string, note?: string}} o
   */
  carry(o) {
    if (o.write && o.data) return this.bluetooth.write(o.write, o.data, !!o.response);
    if (o.drop) return this.bluetooth.drop(o.drop);
    if (o.connect && this.bluetooth.has(o.connect)) return this.bluetooth.open(o.connect);
    if (o.connect) this.waiting.add(o.connect);
    if (o.note) console.info(`glasses: ${o.note}`);
    if (!o.info) return;
    const { link, ...info } = JSON.parse(o.info);
    this.infos.set(link, { ...this.infos.get(link), ...info });
    this.show();
  }

  /** @param {LinkState[]} links */
  setLinks(links) {
    for (const l of links) this.links.set(l.key, l);
    this.show();
  }

  makeRows() {
    this.rows.clear();
    for (const spec of this.kind?.links ?? []) {
      const row = document.createElement("li");
      row.className = "peer";
      const dot = document.createElement("span");
      dot.ariaHidden = "true";
      const state = document.createElement("span");
      state.className = "muted";
      const choose = document.createElement("button");
      choose.type = "button";
      choose.className = "small";
      choose.dataset.link = spec.key;
      choose.textContent = `Choose ${label(spec.key).toLowerCase()}`;
      choose.addEventListener("click", () => this.choose(spec));
      row.append(dot, label(spec.key), state, choose);
      this.rows.set(spec.key, { row, dot, state, choose });
    }
    page("real-links").replaceChildren(...[...this.rows.values()].map((r) => r.row));
  }

  show() {
    const off = this.phase === "off";
    const begin = /** @type {HTMLButtonElement} */ (page("real-begin"));
    const end = /** @type {HTMLButtonElement} */ (page("real-end"));
    begin.hidden = !off || !this.kind || this.problem === "no_web_bluetooth";
    begin.disabled = !this.enabled;
    end.hidden = off;
    end.disabled = this.phase === "leaving";
    end.textContent = this.phase === "choosing" ? "Cancel" : "Back to the simulator";
    page("real-links").hidden = off;
    const text = page("real-text");
    const now = this.text();
    if (text.textContent !== now) text.textContent = now; // screen readers announce each write
    for (const [key, row] of this.rows) this.showRow(key, row);
    const isUp = [...this.rows.keys()].every((key) => this.links.get(key)?.state === "up");
    const { canCheck, checked, step } = this.panel;
    const isShown = canCheck && this.phase === "on" && (isUp || step !== "");
    this.check.show({ name: this.pair(), canCheck: isShown, checked, step });
  }

  /**
   * @param {string} key
   * @param {Row} row
   */
  showRow(key, { dot, state, choose }) {
    const link = this.links.get(key);
    const level = this.infos.get(key)?.batteryLevel;
    dot.className = link?.state === "up" ? "dot on" : "dot";
    choose.hidden = this.phase === "leaving" || this.bluetooth.has(key) && link?.problem !== "not_in_range";
    const name = this.names.get(key) ?? "";
    if (link?.state === "up") state.textContent = `connected${level === undefined ? "" : `, ${level} %`}`;
    else if (!this.bluetooth.has(key)) state.textContent = "";
    else if (link?.problem) state.textContent = this.texts[link.problem] ?? link.problem;
    else state.textContent = link?.state === "opening" ? "connecting" : name;
  }

  text() {
    const name = this.on.name(this.kind?.deviceModel ?? "");
    switch (this.phase) {
      case "leaving":
        return "Clearing the panel.";
      case "choosing":
        return [...(this.kind?.steps ?? []), this.rows.size > 1 ? "Then choose each arm." : "Then choose the glasses."].join(" ");
      case "on":
        if (this.reloaded && this.names.size < this.rows.size) {
          return "The page was reloaded, so the browser has disconnected your glasses. Choose them again: apps wait for them.";
        }
        return `Apps use your own ${name}. The panel shown here is what is on them. Keep this page open.`;
    }
    if (!this.kind) {
      const names = this.kinds.map((k) => this.on.name(k.deviceModel));
      return names.length ? `To use your own glasses here, choose a model that a page can reach: ${names.join(", ")}.` : "";
    }
    return this.problem ? this.texts[this.problem] ?? "" : `Apps can use your own ${name} instead of the simulated ones, over Bluetooth.`;
  }

  /** @param {string} problem */
  say(problem) {
    page("real-problem").textContent = problem;
  }
}

/** @param {string} key */
function label(key) {
  return linkNames[key] ?? key;
}
