// The glasses' panel. It is laid out in panel pixels and scaled to the space there is, so that text stays crisp.

/** @typedef {{width: number, height: number, shape: string, colour: string, bits: number}} PanelModel */
/** @typedef {{id: string, name: string, panel: PanelModel | null}} Model */
/** @typedef {{type: string, text?: string, children?: Node[]}} Node */

const unsupported = { code: "unsupported", message: "this model has no display" };

export class Panel {
  /** @param {{button: HTMLElement, display: HTMLElement, none: HTMLElement, help: HTMLElement, note: HTMLElement, spoken: HTMLElement}} parts */
  constructor(parts) {
    this.parts = parts;
    /** @type {PanelModel | null} */
    this.model = null;
    /** @type {Node | null} */
    this.tree = null;
    this.live = false;
    /** @type {(x: number, y: number) => void} */
    this.onTap = () => {};
    parts.button.addEventListener("click", (e) => this.tap(e));
    new ResizeObserver(() => this.fit()).observe(/** @type {HTMLElement} */ (parts.button.parentElement));
  }

  /** @param {boolean} live */
  setLive(live) {
    this.live = live;
    this.parts.button.ariaDisabled = live ? null : "true";
    if (!this.tree) this.draw();
  }

  /** @param {Model} model */
  setModel(model) {
    const { button, display, none, help } = this.parts;
    this.model = model.panel;
    button.hidden = help.hidden = !model.panel;
    button.style.display = model.panel ? "" : "none";
    none.hidden = !!model.panel;
    if (model.panel) {
      button.dataset.shape = model.panel.shape;
      display.dataset.colour = model.panel.colour;
      display.style.width = `${model.panel.width}px`;
      display.style.height = `${model.panel.height}px`;
    }
    this.fit();
    this.draw();
  }

  /** Scales the panel to its place; small panels grow at most to one and a half of their pixels. */
  fit() {
    if (!this.model) return;
    const room = this.parts.button.parentElement?.clientWidth ?? 0;
    const tall = Math.max(220, innerHeight * 0.5);
    this.scale = Math.min(1.5, room / this.model.width, tall / this.model.height);
    this.parts.button.style.width = `${this.model.width * this.scale}px`;
    this.parts.button.style.height = `${this.model.height * this.scale}px`;
    this.parts.display.style.transform = `scale(${this.scale})`;
  }

  /**
   * Shows a tree, or clears the panel; the answer is an error for the app, or null.
   * @param {Node | null} tree
   */
  show(tree) {
    this.tree = tree;
    if (!this.model) return unsupported;
    this.draw();
    return null;
  }

  draw() {
    const { button, display, note, spoken } = this.parts;
    /** @type {Set<string>} */
    const unknown = new Set();
    display.replaceChildren();
    if (this.tree) display.append(this.node(this.tree, unknown));
    else display.append(line("idle", this.live ? "Clear" : ""));
    const text = this.tree ? display.innerText.trim() : "";
    button.ariaLabel = text ? `Panel shows: ${text}. Tap` : "Panel is clear. Tap";
    if (spoken.textContent !== text) spoken.textContent = text;
    note.hidden = unknown.size === 0;
    note.textContent = `Not drawn yet by this simulator: ${[...unknown].join(", ")}.`;
  }

  /**
   * @param {Node} n
   * @param {Set<string>} unknown
   * @returns {HTMLElement}
   */
  node(n, unknown) {
    if (n.type === "text") return line("text", n.text ?? "");
    if (n.type === "column") {
      const column = line("column", "");
      for (const child of n.children ?? []) column.append(this.node(child, unknown));
      return column;
    }
    unknown.add(n.type);
    return line("unknown", n.type);
  }

  /** @param {MouseEvent} e */
  tap(e) {
    if (!this.model || !this.live) return;
    const box = this.parts.button.getBoundingClientRect();
    // A click made by the keyboard has no place; it taps the centre.
    const key = e.detail === 0;
    const left = key ? box.width / 2 : e.clientX - box.left;
    const top = key ? box.height / 2 : e.clientY - box.top;
    const ring = line("tapped", "");
    ring.style.left = `${left}px`;
    ring.style.top = `${top}px`;
    ring.addEventListener("animationend", () => ring.remove());
    this.parts.button.append(ring);
    this.onTap(place(left, box.width, this.model.width), place(top, box.height, this.model.height));
  }
}

/**
 * A place on the screen in panel pixels.
 * @param {number} at
 * @param {number} size
 * @param {number} pixels
 */
function place(at, size, pixels) {
  return Math.min(pixels - 1, Math.max(0, Math.floor((at / size) * pixels)));
}

/**
 * @param {string} name
 * @param {string} text
 */
function line(name, text) {
  const span = document.createElement("span");
  span.className = name;
  span.textContent = text;
  return span;
}
