// The content of the page's panel: the device's picture, the picture of a chosen moment, or the service's picture until
// the program draws its own.

/** @typedef {import("./device.js").Snapshot} Snapshot */
/** @typedef {import("./device.js").Model} Model */

const clear = "The panel is clear.";

export class View {
  /**
   * @param {{device: import("./device.js").Device, panel: import("./panel.js").Panel, models: import("./models.js").Models,
   *   controls: import("./controls.js").Controls, tools: import("./tools.js").Tools, travel: import("./travel.js").Travel,
   *   past: import("./past.js").Past}} parts
   * @param {{model: Model, models: Model[], picture: string}} setup picture is the URL of the service's, "" if there is none
   * @param {HTMLElement} idle the text on a panel without content
   */
  constructor(parts, setup, idle) {
    this.parts = parts;
    this.setup = setup;
    this.idle = idle;
    /** The glasses of the live session. */
    this.model = setup.model;
    this.shownModel = setup.model;
    /** @type {Snapshot | null} the state of the device */
    this.snapshot = null;
    this.drawing = 0;
    this.showModel(setup.model);
  }

  /** @param {Model} m */
  showModel(m) {
    const { panel, controls, models } = this.parts;
    this.shownModel = m;
    panel.setModel(m);
    controls.setModel(m);
    models.setModel(m.id);
  }

  /** Shows the model and the controls of the chosen moment, or of the live session again. */
  showMoment() {
    const { travel, tools, models, controls } = this.parts;
    const of = travel.moment?.snapshot ?? this.snapshot;
    const then = this.setup.models.find((m) => m.id === travel.moment?.snapshot.deviceModel) ?? this.model;
    if (then !== this.shownModel) this.showModel(then);
    const known = travel.isKnown ? travel.moment?.text ?? "" : "";
    tools.setMoment(travel.isPast, known);
    models.setMoment(travel.isPast, known);
    if (of) controls.showState(of.state);
  }

  /**
   * Explains why the panel has no content.
   * @param {boolean} works whether the program runs or is loading
   */
  showIdle(works) {
    const { device, travel } = this.parts;
    const now = device.running ? "Clear" : works ? "Loading" : "Not running";
    this.idle.textContent = !travel.isPast ? now : travel.isKnown ? "Clear" : "Not known";
  }

  redraw() {
    this.parts.models.update();
    this.drawing ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    const { device, panel, travel } = this.parts;
    this.drawing = 0;
    if (travel.isPast) return this.drawPast();
    if (!device.running) return void this.drawAhead();
    panel.show(device.picture(), device.reading(), this.snapshot?.view.tree ? "" : clear);
    reach("first-picture");
    reach("live-panel");
  }

  drawPast() {
    const { panel, travel, past } = this.parts;
    const shown = travel.moment && past.show(travel.moment.text);
    shown?.fonts?.then(() => this.redraw());
    if (!shown) panel.erase();
    const content = travel.moment?.snapshot.view.tree ? "" : clear;
    panel.show(shown?.picture ?? null, shown?.reading ?? { lines: [], focus: "" }, travel.isKnown ? content : "What the panel showed is not known.");
  }

  /** Shows the service's picture of the panel until the program draws its own. */
  async drawAhead() {
    if (!this.setup.picture) return;
    const picture = new Image();
    picture.src = this.setup.picture;
    try {
      await picture.decode();
    } catch {
      return; // the session has just ended, or the network failed
    }
    if (this.parts.device.running || this.parts.travel.isPast) return;
    this.parts.panel.preview(picture);
    reach("first-picture");
  }
}

/**
 * Marks the time at which the page first reaches a point.
 * @param {string} point
 */
function reach(point) {
  if (performance.getEntriesByName(point).length === 0) performance.mark(point);
}
