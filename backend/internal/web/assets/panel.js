// The glasses' panel: the renderer's pixels at a size that keeps them crisp, and the person's inputs by pointer
// and keyboard. Its content is also available as text.

/** @typedef {import("./device.js").Model} Model */
/** @typedef {{kind: string, x?: number, y?: number, direction?: string, side?: string}} Input */

/** @type {Record<string, string>} */
const arrows = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };

export class Panel {
  /**
   * @param {{panel: HTMLElement, canvas: HTMLCanvasElement, idle: HTMLElement, none: HTMLElement, help: HTMLElement, lines: HTMLElement, focus: HTMLElement}} parts
   * @param {(input: Input) => void} input
   */
  constructor(parts, input) {
    this.parts = parts;
    this.input = input;
    /** @type {Model | null} */
    this.model = null;
    this.live = false;
    this.text = "";
    parts.panel.addEventListener("click", (e) => this.tap(e));
    parts.panel.addEventListener("keydown", (e) => this.key(e));
    new ResizeObserver(() => this.fit()).observe(/** @type {HTMLElement} */ (parts.panel.parentElement));
    addEventListener("resize", () => this.fit());
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

  /**
   * Scales the panel to the available space: to whole device pixels if that fills it well, else smoothly.
   */
  fit() {
    const shape = this.model?.panel;
    if (!shape) return;
    const room = this.parts.panel.parentElement?.clientWidth ?? 0;
    const tall = Math.max(280, innerHeight * 0.78);
    const most = Math.min(room / shape.width, tall / shape.height, 2.5) * devicePixelRatio;
    const whole = Math.floor(most);
    const crisp = whole >= 1 && whole >= most * 0.7;
    const scale = (crisp ? whole : most) / devicePixelRatio;
    const { panel, canvas } = this.parts;
    canvas.dataset.crisp = crisp ? "yes" : "no";
    panel.style.width = `${shape.width * scale}px`;
    panel.style.height = `${shape.height * scale}px`;
  }

  /**
   * Shows pixels, and their content as text.
   * @param {{width: number, height: number, data: Uint8Array<ArrayBuffer>} | null} picture
   * @param {{lines: string[], focus: string}} reading
   * @param {boolean} clear
   */
  show(picture, reading, clear) {
    const { canvas, idle, lines, focus } = this.parts;
    if (picture) {
      const data = new ImageData(new Uint8ClampedArray(picture.data.buffer), picture.width, picture.height);
      canvas.getContext("2d")?.putImageData(data, 0, 0);
    }
    idle.hidden = !clear;
    const text = clear ? "The panel is clear." : reading.lines.join("\n");
    // Only changes are written, because screen readers announce each write.
    if (this.text !== text) lines.replaceChildren(...text.split("\n").map(paragraph));
    this.text = text;
    const at = reading.focus ? `Focus: ${reading.focus}` : "";
    if (focus.textContent !== at) focus.textContent = at;
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
  return `Click the panel to tap there. With the keyboard on it: ${keys.join(", ")}.`;
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
