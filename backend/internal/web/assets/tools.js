// The toolbar of the panel: zoom and screenshot. Other modules may add buttons to it.
import { get } from "./elements.js";
import { zooms } from "./panel.js";

export class Tools {
  /**
   * @param {HTMLElement} bar
   * @param {import("./panel.js").Panel} panel
   * @param {import("./seethrough.js").SeeThrough} sight
   * @param {string} session
   */
  constructor(bar, panel, sight, session) {
    this.bar = bar;
    this.panel = panel;
    this.sight = sight;
    this.session = session;
    this.level = get("zoom-level", HTMLOutputElement);
    get("zoom-out", HTMLButtonElement).addEventListener("click", () => this.step(-1));
    get("zoom-in", HTMLButtonElement).addEventListener("click", () => this.step(1));
    get("zoom-fit", HTMLButtonElement).addEventListener("click", () => panel.setZoom(0));
    get("screenshot", HTMLButtonElement).addEventListener("click", () => this.screenshot());
    bar.addEventListener("keydown", (e) => this.key(e));
    panel.watch(() => this.show());
    this.show();
  }

  show() {
    const { zoom, scale, model } = this.panel;
    get("panel-tools", HTMLSpanElement).hidden = !model?.panel;
    const text = zoom ? `${zoom}×` : `${Math.round(scale * 100)} %`;
    if (this.level.textContent !== text) this.level.textContent = text;
    get("screenshot", HTMLButtonElement).title = this.sight.isOn() ? "Save the panel in its scene as a PNG" : "Save the panel's pixels as a PNG";
    get("zoom-fit", HTMLButtonElement).ariaPressed = String(!zoom);
    get("zoom-out", HTMLButtonElement).ariaDisabled = this.next(-1) ? null : "true";
    get("zoom-in", HTMLButtonElement).ariaDisabled = this.next(1) ? null : "true";
  }

  /**
   * Returns the next whole multiple in a direction, or undefined.
   * @param {number} direction
   */
  next(direction) {
    const now = this.panel.zoom || this.panel.scale;
    return direction > 0 ? zooms.find((z) => z > now) : zooms.findLast((z) => z < now);
  }

  /** @param {number} direction */
  step(direction) {
    const zoom = this.next(direction);
    if (zoom) this.panel.setZoom(zoom);
  }

  /** Saves what is seen, without zoom and grid: the pixels of the panel, or their light in the scene. */
  screenshot() {
    const canvas = this.sight.isOn() ? this.sight.picturePanel() : this.panel.parts.canvas;
    canvas.toBlob((png) => png && this.save(png, "png"), "image/png");
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
