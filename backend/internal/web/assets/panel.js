// The glasses' panel: the renderer's pixels at a size that keeps them crisp, and the user's inputs by pointer
// and keyboard. Its content is also available as text.

/** @typedef {import("./device.js").Model} Model */
/** @typedef {{kind: string, x?: number, y?: number, direction?: string, side?: string}} Input */

/** @type {Record<string, string>} */
const arrows = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };

/** Whole multiples that the user can choose. */
export const zooms = [1, 2, 3, 4, 5, 6, 8];
export const gridFrom = 4; // the zoom from which the pixels are separated by a grid

export class Panel {
  /**
   * @param {{lens: HTMLElement, panel: HTMLElement, canvas: HTMLCanvasElement, idle: HTMLElement, none: HTMLElement, help: HTMLElement, lines: HTMLElement, focus: HTMLElement}} parts
   * @param {(input: Input) => void} input
   */
  constructor(parts, input) {
    this.parts = parts;
    this.input = input;
    /** @type {Model | null} */
    this.model = null;
    this.live = false;
    this.text = "";
    this.zoom = 0; // a whole multiple; 0 fits the panel to the page
    this.hasGrid = true; // shown if the zoom has room for it
    this.scale = 1; // CSS pixels of one pixel of the panel
    /** @type {(() => void)[]} */
    this.watchers = [];
    parts.panel.addEventListener("click", (e) => this.tap(e));
    parts.panel.addEventListener("keydown", (e) => this.key(e));
    new ResizeObserver(() => this.fit()).observe(parts.lens);
    addEventListener("resize", () => this.fit());
  }

  /**
   * Calls a function after each change of pixels, size or model.
   * @param {() => void} watcher
   */
  watch(watcher) {
    this.watchers.push(watcher);
  }

  /** @param {boolean} live */
  setLive(live) {
    this.live = live;
    this.parts.panel.ariaDisabled = live ? null : "true";
  }

  /** @param {Model} model */
  setModel(model) {
    const { panel, canvas, none, help } = this.parts;
    this.model = model;
    const shape = model.panel;
    panel.hidden = help.hidden = !shape;
    none.hidden = !!shape;
    none.textContent = `${model.name} has no display. Apps reach the wearer by sound${model.inputs.length ? "; use the buttons below" : ""}.`;
    if (shape) {
      panel.dataset.shape = shape.shape;
      canvas.width = shape.width;
      canvas.height = shape.height;
      help.textContent = keyHelp(model);
    }
    this.fit();
  }

  /** @param {number} zoom a whole multiple; 0 fits the panel to the page */
  setZoom(zoom) {
    this.zoom = zoom;
    this.fit();
  }

  /** @param {boolean} on */
  setGrid(on) {
    this.hasGrid = on;
    this.fit();
  }

  /**
   * Scales the panel to the zoom, or to the available space. A pixel of the panel is a whole number of device pixels,
   * unless the panel has to be smaller than that.
   */
  fit() {
    const shape = this.model?.panel;
    if (shape) {
      const { lens, panel, canvas } = this.parts;
      const most = this.zoom || this.maxScale();
      const pixels = this.zoom ? Math.max(1, Math.round(most * devicePixelRatio)) : Math.floor(most * devicePixelRatio);
      this.scale = pixels >= 1 ? pixels / devicePixelRatio : most;
      canvas.dataset.crisp = pixels >= 1 ? "yes" : "no";
      panel.dataset.grid = this.hasGrid && this.zoom >= gridFrom ? "yes" : "no";
      panel.style.setProperty("--pixel", `${this.scale}px`);
      panel.style.width = `${shape.width * this.scale}px`;
      panel.style.height = `${shape.height * this.scale}px`;
      if (this.zoom) lens.tabIndex = 0; // it scrolls
      else lens.removeAttribute("tabindex");
    }
    this.watchers.forEach((watcher) => watcher());
  }

  /** Returns the scale at which the panel just fits into the available space. */
  maxScale() {
    const { lens, canvas } = this.parts;
    return Math.min(spaceOf(lens, "width") / canvas.width, spaceOf(lens, "height") / canvas.height);
  }

  /** Returns the scale of the panel at the zoom "Fit". */
  fitScale() {
    const most = this.maxScale();
    return Math.floor(most * devicePixelRatio) / devicePixelRatio || most;
  }

  /**
   * Shows pixels, and their content as text.
   * @param {ImageData | null} picture
   * @param {{lines: string[], focus: string}} reading
   * @param {string} empty says why there is no content; "" if there is
   */
  show(picture, reading, empty) {
    const { canvas, idle, lines, focus } = this.parts;
    if (picture) canvas.getContext("2d")?.putImageData(picture, 0, 0);
    idle.hidden = !empty;
    const text = empty || reading.lines.join("\n");
    // Only changes are written, because screen readers announce each write.
    if (this.text !== text) lines.replaceChildren(...text.split("\n").map(paragraph));
    this.text = text;
    const at = reading.focus ? `Focus: ${reading.focus}` : "";
    if (focus.textContent !== at) focus.textContent = at;
    this.watchers.forEach((watcher) => watcher());
  }

  /** Removes the pixels, because the content of the panel is not known. */
  erase() {
    const { canvas } = this.parts;
    canvas.getContext("2d")?.clearRect(0, 0, canvas.width, canvas.height);
  }

  /**
   * Shows a picture of the panel for which there is no text.
   * @param {CanvasImageSource} picture
   */
  preview(picture) {
    this.parts.canvas.getContext("2d")?.drawImage(picture, 0, 0);
    this.parts.idle.hidden = true;
    this.watchers.forEach((watcher) => watcher());
  }

  /** @param {MouseEvent} e */
  tap(e) {
    const shape = this.model?.panel;
    if (!shape || !this.live) return;
    const box = this.parts.panel.getBoundingClientRect();
    const left = e.clientX - box.left;
    const top = e.clientY - box.top;
    const ring = document.createElement("span");
    ring.className = "tapped";
    ring.style.left = `${left}px`;
    ring.style.top = `${top}px`;
    ring.addEventListener("animationend", () => ring.remove());
    this.parts.panel.append(ring);
    this.input({ kind: "tap", x: place(left, box.width, shape.width), y: place(top, box.height, shape.height) });
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    if (!this.model || !this.live || e.ctrlKey || e.metaKey || e.altKey || e.repeat) return;
    const input = inputOf(this.model, e.key);
    if (!input) return;
    e.preventDefault();
    this.input(input);
  }
}

/**
 * Returns the input for a key on this model: tap if it has no select, swipe if it has no navigate.
 * @param {Model} model
 * @param {string} key
 * @returns {Input | null}
 */
function inputOf(model, key) {
  const has = (/** @type {string} */ kind) => model.inputs.includes(kind);
  const direction = arrows[key];
  if (direction && has("navigate")) return { kind: "navigate", direction };
  if (direction && has("swipe")) return { kind: "swipe", direction };
  if (key === "Enter" && has("select")) return { kind: "select" };
  if ((key === "Enter" || key === " ") && has("tap")) return { kind: "tap" };
  if (key === "Escape" && has("back")) return { kind: "back" };
  return null;
}

/** @param {Model} model */
function keyHelp(model) {
  const keys = [];
  const arrow = inputOf(model, "ArrowDown");
  if (arrow) keys.push(arrow.kind === "navigate" ? "arrows move the focus" : "arrows swipe");
  const enter = inputOf(model, "Enter");
  if (enter) keys.push(enter.kind === "select" ? "Enter selects" : "Enter taps");
  if (inputOf(model, "Escape")) keys.push("Escape goes back");
  if (enter?.kind === "select" && inputOf(model, " ")) keys.push("Space taps");
  return `Click the panel to tap there. Its keys: ${keys.join(", ")}.`;
}

/**
 * Returns the space inside the padding of the element around the panel, without scroll bars, which only a zoom needs. On a narrow page the element is as high as its
 * content, up to its maximum.
 * @param {HTMLElement} lens
 * @param {"width" | "height"} side
 */
function spaceOf(lens, side) {
  const style = getComputedStyle(lens);
  if (side === "width") return lens.offsetWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  const most = parseFloat(style.maxHeight);
  const height = Number.isNaN(most) ? lens.offsetHeight : most;
  return height - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
}

/**
 * Converts a position on the screen to panel pixels.
 * @param {number} at
 * @param {number} size
 * @param {number} pixels
 */
function place(at, size, pixels) {
  return Math.min(pixels - 1, Math.max(0, Math.floor((at / size) * pixels)));
}

/** @param {string} text */
function paragraph(text) {
  const p = document.createElement("p");
  p.textContent = text;
  return p;
}
