// The device: the glasses as Go code in WebAssembly. This module loads it, runs its timers and forwards its output.
import { Timer } from "./timer.js";

/** @typedef {import("./live.js").Frame} Frame */
/** @typedef {{width: number, height: number, shape: string, colour: string, bits: number, additive: boolean}} PanelModel */
/** @typedef {{id: string, name: string, panel: PanelModel | null, inputs: string[], camera: {width: number, height: number} | null, microphone: boolean, speaker: boolean, motion: boolean, fidelity: Record<string, string>}} Model */
/** @typedef {{command?: string, code?: string, latencyMs?: number, times?: number}} Fault */
/** @typedef {{battery: {level: number, charging: boolean}, worn: boolean, hinge: string, thermal: string, link: string, route: string, call: boolean, permissions: Record<string, string>, disabled: string[], running: string[], phrases: string[], faults: Fault[]}} GlassesState */
/** @typedef {{deviceModel: string, state: GlassesState, view: {tree: unknown, focus: number, scroll: number}}} Snapshot */
/** @typedef {{turn: number, id: number, kind: string, text?: string, language?: string, sound?: string, width?: number, fps?: number, sampleRate?: number, durationMs?: number, pcm?: Uint8Array<ArrayBuffer>}} Ask */
/** @typedef {{code: string, message: string}} Refusal */

/** @param {unknown} value */
const json = (value) => (value ? JSON.stringify(value) : "");

const newPrefix = () => `p${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;

const fontTimeout = 60_000; // ms, for up to 4 MB, after which a font counts as unavailable
const maxHeld = 100; // frames that wait for fonts

const streams = ["motion", "audio.chunk", "video.frame"]; // they do not change the state

export class Device {
  /**
   * @param {{out: (f: Frame, text: string, body?: Uint8Array<ArrayBuffer>) => void, ask: (a: Ask) => void, carry: (o: GlassesOut) => void, links: (list: import("./real.js").LinkState[]) => void, panel: (p: import("./real.js").PanelState) => void, redraw: () => void, changed: (s: Snapshot, m: Model) => void, handled: (keys: string[]) => void, refused: (message: string) => void}} on
   *   carry, links and panel are for real glasses; handled gets the keys (moments.js) of frames that were handled or sent
   */
  constructor(on) {
    this.on = on;
    /** @type {GlassesProgram | undefined} */
    this.program = undefined;
    this.running = false;
    this.real = false; // whether the glasses are real ones
    this.settling = false;
    this.linksNow = "";
    this.panelNow = "";
    this.last = "";
    this.turn = 0; // increased by start, so that responses to earlier glasses are ignored
    /** @type {Record<string, string>} */
    this.fonts = {}; // URLs by name
    /** @type {string[]} */
    this.keys = []; // of frames since the last snapshot
    /** @type {{data: string | Uint8Array, key: string}[] | undefined} */
    this.held = undefined; // frames that wait for fonts, in order; undefined if frames do not wait
    this.fetching = false; // fonts
    this.due = new Timer(() => this.tick());
  }

  /**
   * Loads the program. It fails if the browser has no WebAssembly or the network fails.
   * @param {{wasm: string, loader: string, fonts: Record<string, string>}} from
   * @param {() => void} ended called when the program has died
   */
  async load(from, ended) {
    const fetched = fetch(from.wasm);
    await import(from.loader);
    if (!window.Go) throw new Error("the loader is not what it should be");
    const go = new window.Go();
    const { instance } = await WebAssembly.instantiateStreaming(fetched, go.importObject);
    go.run(instance).finally(() => {
      this.running = false;
      ended();
    });
    this.program = window.glasses;
    this.fonts = from.fonts;
  }

  /** @returns {{commands: string[], codes: string[]}} */
  words() {
    return JSON.parse(this.program?.words() ?? '{"commands":[],"codes":[]}');
  }

  /** @returns {import("./real.js").Kind[]} the real glasses that a page can reach */
  kinds() {
    return JSON.parse(this.program?.kinds() ?? "[]");
  }

  /** @returns {Record<string, string>} why real glasses are not connected and what to do about it, by code */
  problems() {
    return JSON.parse(this.program?.problems() ?? "{}");
  }

  /**
   * Returns the pair and the link to which an advertised name belongs, or "".
   * @param {string} model
   * @param {string} name
   * @returns {{pair: string, link: string}}
   */
  identify(model, name) {
    return JSON.parse(this.program?.identify(model, name) ?? '{"pair":"","link":""}');
  }

  /**
   * Starts the glasses from the stored snapshot, the display and, if known, the state according to the service.
   * @param {string} model
   * @param {string} stored
   * @param {unknown} display
   * @param {unknown} [state]
   */
  start(model, stored, display, state) {
    if (!this.program) return;
    this.real = false;
    this.started(this.program.start(model, stored, json(display), json(state), newPrefix()));
  }

  /**
   * Starts real glasses, whose links are down at first.
   * @param {string} model
   * @param {unknown} display
   * @param {unknown} state
   */
  startReal(model, display, state) {
    if (!this.program) return;
    this.real = true;
    this.started(this.program.startReal(Date.now(), model, json(display), json(state), newPrefix()));
  }

  /** @param {string} problem */
  started(problem) {
    this.running = problem === "";
    this.linksNow = this.panelNow = "";
    this.last = "";
    this.turn++;
    this.held = undefined; // these frames were for the previous glasses
    this.fetching = false;
    if (problem) this.on.refused(problem);
    else this.settle();
  }

  /**
   * Reports whether the glasses have this model, display and state.
   * @param {string} model
   * @param {unknown} display
   * @param {unknown} state
   */
  agrees(model, display, state) {
    return !!this.program?.agrees(model, json(display), json(state));
  }

  /**
   * Passes a frame from the service to the glasses, once the page has the fonts for its texts. If too many frames wait,
   * they are passed on without the fonts.
   * @param {string | Uint8Array} data
   * @param {string} [key] of its row (moments.js)
   */
  handle(data, key = "") {
    if (!this.program || !this.running) return;
    if (!this.held && !this.fetching && typeof data === "string") this.fetchFonts(data);
    if (this.held && this.held.length < maxHeld) {
      this.held.push({ data, key });
      return;
    }
    const waited = [...(this.held ?? []), { data, key }];
    this.held = undefined;
    waited.forEach((one) => this.pass(one.data, one.key));
  }

  /**
   * @param {string | Uint8Array} data
   * @param {string} key
   */
  pass(data, key) {
    if (!this.program || !this.running) return;
    const problem = this.program.handle(Date.now(), data);
    if (problem) this.on.refused(problem);
    if (key) this.keys.push(key);
    this.settle();
  }

  /**
   * Sends a control frame on behalf of the user of the page; returns whether the glasses accepted it.
   * @param {string} type
   * @param {unknown} payload
   */
  control(type, payload) {
    if (!this.program || !this.running) return false;
    /** @type {Refusal | null} */
    const refusal = JSON.parse(this.program.control(Date.now(), type, JSON.stringify(payload)));
    if (refusal) this.on.refused(refusal.message);
    this.settle();
    return !refusal;
  }

  /**
   * @param {Ask} ask
   * @param {Uint8Array | null} bytes
   * @param {Refusal | null} refusal
   */
  answer(ask, bytes, refusal) {
    if (!this.program || !this.running || ask.turn !== this.turn) return;
    this.program.answer(Date.now(), ask.id, bytes, refusal);
    this.settle(false);
  }

  /**
   * Forwards an event of a link of real glasses.
   * @param {import("./bluetooth.js").LinkEvent} e
   */
  event(e) {
    if (!this.program || !this.running) return;
    this.program.event(Date.now(), e);
    this.settle(e.kind === "up" || e.kind === "down");
  }

  /**
   * Applies the settings that the page stored for the panel of real glasses.
   * @param {string} stored
   */
  setPanel(stored) {
    this.onReal((program, now) => program.setPanel(now, stored));
  }

  /** Shows the test picture on real glasses. */
  checkPanel() {
    this.onReal((program, now) => program.check(now));
  }

  /**
   * @param {boolean} isUpright
   * @param {boolean} hasBorder
   */
  seePanel(isUpright, hasBorder) {
    this.onReal((program, now) => program.seen(now, isUpright, hasBorder));
  }

  cancelCheck() {
    this.onReal((program, now) => program.cancel(now));
  }

  /** @param {(program: GlassesProgram, now: number) => void} f */
  onReal(f) {
    if (!this.program || !this.running || !this.real) return;
    f(this.program, Date.now());
    this.settle(false);
  }

  /** Begins to leave real glasses. left reports whether that is done. */
  leave() {
    if (!this.program || !this.running) return;
    this.program.leave(Date.now());
    this.settle();
  }

  left() {
    return !this.program || !this.running || this.program.left();
  }

  tick() {
    if (!this.program || !this.running) return;
    this.program.tick(Date.now());
    this.settle(false);
  }

  /**
   * Forwards the output of the last call, sets the timer for the next step, and reports a changed state.
   * @param {boolean} [look] check for a changed state even if there were only stream frames
   */
  settle(look = true) {
    const program = this.program;
    if (!program || !this.running) return;
    if (this.settling) return; // the running call forwards this output too
    this.settling = true;
    for (let outs = program.take(); outs.length > 0; outs = program.take()) {
      for (const o of outs) {
        if (o.ask) this.on.ask({ ...JSON.parse(o.ask), pcm: o.pcm, turn: this.turn });
        else if (!o.frame) this.on.carry(o);
        else look = this.passOn(o.frame, o.body) || look;
      }
    }
    this.settling = false;
    const next = program.next();
    if (next < 0) this.due.stop();
    else this.due.set(next - Date.now());
    if (this.real) this.showReal(program);
    const now = look ? program.snapshot() : this.last;
    const isChanged = now !== this.last;
    this.last = now;
    const keys = this.keys;
    this.keys = [];
    if (keys.length > 0) this.on.handled(keys);
    if (isChanged) this.on.changed(JSON.parse(now), JSON.parse(program.model()));
  }

  /**
   * Forwards a frame; returns whether it may have changed the state.
   * @param {string} frame
   * @param {Uint8Array<ArrayBuffer>} [body]
   */
  passOn(frame, body) {
    /** @type {Frame} */
    const f = JSON.parse(frame);
    this.on.out(f, frame, body);
    const isStream = streams.includes(f.type);
    if (f.id && !isStream) this.keys.push(`${f.type === "result" ? "result" : "event"} ${f.id}`);
    return !isStream;
  }

  /** @param {GlassesProgram} program */
  showReal(program) {
    const links = program.links();
    if (links !== this.linksNow) this.on.links(JSON.parse(links));
    this.linksNow = links;
    const panel = program.panel();
    if (panel !== this.panelNow) this.on.panel(JSON.parse(panel));
    this.panelNow = panel;
  }

  /** @returns {{lines: string[], focus: string}} */
  reading() {
    return this.program && this.running ? JSON.parse(this.program.reading()) : { lines: [], focus: "" };
  }

  /** Returns the panel's picture. If fonts are missing, it fetches them and requests another drawing. */
  picture() {
    if (!this.program || !this.running) return null;
    if (!this.fetching) this.fetchFonts("");
    return this.program.picture();
  }

  /**
   * Fetches the fonts for a frame's texts, or with "" for the current view, if there are any. Frames wait meanwhile.
   * @param {string} data
   */
  fetchFonts(data) {
    /** @type {string[] | null} */
    const names = JSON.parse(this.program?.wanted(data) ?? "null");
    if (!names?.length) return;
    const turn = this.turn;
    this.held = [];
    this.fetching = true;
    Promise.allSettled(names.map((name) => this.fetchFont(name))).then(() => {
      if (turn !== this.turn) return;
      const held = this.held;
      this.held = undefined;
      this.fetching = false;
      this.on.redraw();
      held?.forEach(({ data, key }) => this.handle(data, key));
    });
  }

  /** @param {string} name */
  async fetchFont(name) {
    /** @type {Uint8Array | null} */
    let ttf = null;
    try {
      const url = this.fonts[name];
      const file = url ? await fetch(url, { signal: AbortSignal.timeout(fontTimeout) }) : null;
      if (file?.ok) ttf = new Uint8Array(await file.arrayBuffer());
    } catch {
      // Offline or too slow.
    }
    const problem = this.running ? this.program?.font(name, ttf) : "";
    if (!ttf || problem) {
      this.on.refused(`The font ${name} could not be loaded, so characters are missing. Reload this page.`);
    }
  }
}
