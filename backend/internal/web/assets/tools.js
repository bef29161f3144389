// The toolbar of the panel: zoom, grid, screenshot, clip, and a step for a scenario. Other modules may add buttons.
import { get } from "./elements.js";
import { clipProblem } from "./clip.js";
import { remark } from "./page.js";
import { gridFrom, zooms } from "./panel.js";

const confirmed = 2_000; // ms for which a button confirms its action

const button = (/** @type {string} */ id) => get(id, HTMLButtonElement);

export class Tools {
  /**
   * @param {HTMLElement} bar
   * @param {{panel: import("./panel.js").Panel, seeThrough: import("./seethrough.js").SeeThrough, clips: import("./clip.js").ClipBuffer, device: import("./device.js").Device}} of
   * @param {string} session
   */
  constructor(bar, of, session) {
    this.bar = bar;
    this.of = of;
    this.session = session;
    this.clipProblem = "";
    this.isPast = false;
    this.moment = ""; // the snapshot that the page shows; "" for the live panel, and if it is not known
    this.level = get("zoom-level", HTMLOutputElement);
    button("zoom-out").addEventListener("click", () => this.step(-1));
    button("zoom-in").addEventListener("click", () => this.step(1));
    button("zoom-fit").addEventListener("click", () => of.panel.setZoom(0));
    button("grid").addEventListener("click", () => of.panel.zoom >= gridFrom && of.panel.setGrid(!of.panel.hasGrid));
    button("screenshot").addEventListener("click", () => this.screenshot());
    button("clip").addEventListener("click", () => this.clip());
    button("copy-step").addEventListener("click", () => this.copyStep());
    bar.addEventListener("keydown", (e) => this.key(e));
    of.panel.watch(() => this.show());
    void clipProblem().then((problem) => {
      this.clipProblem = problem;
      this.show();
    });
    this.show();
  }

  /**
   * Makes the tools act on a moment of the past, or on the live panel again.
   * @param {boolean} isPast
   * @param {string} snapshot "" if it is not known
   */
  setMoment(isPast, snapshot) {
    this.isPast = isPast;
    this.moment = snapshot;
    this.show();
  }

  /** Returns the reason why the page's view cannot be saved; "" if it can. */
  get unknown() {
    return this.isPast && !this.moment ? "What the panel showed at this moment is not known." : "";
  }

  /** Returns the reason why there is no clip; "" if there is one. */
  get noClip() {
    return this.clipProblem || (this.isPast ? "A clip has the last 30 seconds of the live panel. Go back to live first." : "");
  }

  show() {
    const { panel, seeThrough } = this.of;
    const { zoom, scale, model, hasGrid } = panel;
    get("panel-tools", HTMLSpanElement).hidden = !model?.panel;
    const text = zoom ? `${zoom}×` : `${Math.round(scale * 100)} %`;
    if (this.level.textContent !== text) this.level.textContent = text;
    button("zoom-fit").ariaPressed = String(!zoom);
    button("zoom-out").ariaDisabled = this.next(-1) ? null : "true";
    button("zoom-in").ariaDisabled = this.next(1) ? null : "true";
    button("grid").ariaDisabled = zoom >= gridFrom ? null : "true";
    button("grid").ariaPressed = String(zoom >= gridFrom && hasGrid);
    button("grid").title = zoom >= gridFrom ? "Separate the panel's pixels" : `Separate the panel's pixels, from ${gridFrom}× on`;
    button("screenshot").ariaDisabled = button("copy-step").ariaDisabled = this.unknown ? "true" : null;
    button("copy-step").title = this.unknown || `Copy what the wearer ${this.isPast ? "saw at this moment" : "sees"} as a step of a scenario`;
    button("screenshot").title = this.unknown || (seeThrough.isOn() ? "Save the panel in its scene as a PNG" : "Save the panel's pixels as a PNG");
    button("clip").ariaDisabled = this.noClip ? "true" : null;
    button("clip").title = this.noClip || "Save the panel's pixels of the last 30 seconds as a WebM";
  }

  /**
   * Returns the next whole multiple in a direction, or undefined.
   * @param {number} direction
   */
  next(direction) {
    const now = this.of.panel.zoom || this.of.panel.scale;
    return direction > 0 ? zooms.find((z) => z > now) : zooms.findLast((z) => z < now);
  }

  /** @param {number} direction */
  step(direction) {
    const zoom = this.next(direction);
    if (zoom) this.of.panel.setZoom(zoom);
  }

  /** Saves the view without zoom and grid: the pixels of the panel, or their light in the scene. */
  screenshot() {
    if (this.unknown) return remark(this.unknown);
    const { panel, seeThrough } = this.of;
    const canvas = seeThrough.isOn() ? seeThrough.renderAtFit() : panel.parts.canvas;
    canvas.toBlob((png) => png && this.save(png, "png"), "image/png");
  }

  async clip() {
    const clip = button("clip");
    if (this.noClip) remark(this.noClip);
    if (this.noClip || clip.ariaBusy === "true") return;
    clip.ariaBusy = "true";
    say(clip, "Saving");
    try {
      const file = await this.of.clips.clip();
      if (file) this.save(file, "webm");
      confirm(clip, file ? "Saved" : "Empty");
    } catch (e) {
      confirm(clip, "Failed");
      remark(`The browser could not make the clip: ${e instanceof Error ? e.message : e}`);
    }
    clip.ariaBusy = null;
  }

  async copyStep() {
    const { program, running } = this.of.device;
    if (this.unknown) return remark(this.unknown);
    const step = program && running ? program.step(this.moment) : "";
    if (!step) return;
    try {
      await navigator.clipboard.writeText(step);
      confirm(button("copy-step"), "Copied");
    } catch {
      remark(`The browser refuses the clipboard. Copy the step from here: ${step}`);
    }
  }

  /**
   * @param {Blob} file
   * @param {string} type the end of its name
   */
  save(file, type) {
    const a = document.createElement("a");
    a.href = URL.createObjectURL(file);
    a.download = `${this.session}-${new Date().toISOString().replace(/[:.]/g, "-")}.${type}`;
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
  }

  /**
   * Moves the focus between the tools.
   * @param {KeyboardEvent} e
   */
  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || !(e.target instanceof HTMLButtonElement)) return;
    const tools = [...this.bar.querySelectorAll("button")].filter((b) => !b.disabled && b.checkVisibility());
    const at = tools.indexOf(e.target);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: -1 }[e.key];
    if (at < 0 || to === undefined) return;
    e.preventDefault();
    tools.at(to % tools.length)?.focus();
  }
}

/**
 * Changes the text of a button, which keeps its width.
 * @param {HTMLButtonElement} b
 * @param {string} text
 */
function say(b, text) {
  const label = b.querySelector("[data-label]");
  if (!(label instanceof HTMLElement)) return;
  label.dataset.label ||= label.textContent ?? "";
  b.style.minWidth ||= `${b.getBoundingClientRect().width}px`;
  label.textContent = text;
}

/**
 * Briefly shows a button's result on the button.
 * @param {HTMLButtonElement} b
 * @param {string} text
 */
function confirm(b, text) {
  say(b, text);
  setTimeout(() => {
    const label = b.querySelector("[data-label]");
    if (label instanceof HTMLElement) label.textContent = label.dataset.label ?? "";
    b.style.minWidth = "";
  }, confirmed);
}
