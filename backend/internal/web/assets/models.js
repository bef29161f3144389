// The tab "Models": the content of the panel as each model with a display shows it, drawn by the same program, and the
// parts that do not fit there. A click on a model switches to it.

/** @typedef {import("./device.js").Model} Model */
/** @typedef {{kind: string, path: string, id?: string, text?: string, missing?: string}} Finding */
/** @typedef {{pages: number, findings: Finding[], colours: string[]}} Fit what the Go program says, see views.go */
/** @typedef {{model: Model, item: HTMLElement, pick: HTMLButtonElement, canvas: HTMLCanvasElement, verdict: HTMLElement, facts: HTMLElement, findings: HTMLElement}} Card */

const interval = 400; // ms from the end of a round of pictures to the next one
const maxFindings = 4; // per model; further ones are only counted

/** @type {Record<string, string>} */
const kinds = {
  clipped: "Clipped",
  cut: "Cut off",
  broken_word: "Broken word",
  unreachable: "Out of reach",
  unknown_icon: "No icon is called",
  missing_glyph: "No font has",
};

export class Models {
  /**
   * @param {{list: HTMLElement, empty: HTMLElement}} parts
   * @param {Model[]} models
   * @param {import("./device.js").Device} device
   * @param {(id: string) => void} choose
   */
  constructor(parts, models, device, choose) {
    this.parts = parts;
    this.device = device;
    this.visible = false;
    this.stale = true; // the panel has changed since the last round
    this.running = false;
    this.isPast = false;
    this.moment = ""; // the snapshot that the page shows; "" for the live panel, and if it is not known
    this.cards = models.filter((m) => m.panel).map((m) => card(m, choose));
    parts.list.append(...this.cards.map((c) => c.item));
    new IntersectionObserver((entries) => {
      this.visible = entries.some((e) => e.isIntersecting);
      if (this.visible) this.run();
    }).observe(parts.list);
  }

  /** @param {boolean} on */
  setEnabled(on) {
    for (const c of this.cards) c.pick.disabled = !on;
  }

  /** @param {string} id */
  setModel(id) {
    for (const c of this.cards) c.pick.ariaPressed = String(c.model.id === id);
  }

  /**
   * Shows a moment of the past, or the live panel again.
   * @param {boolean} isPast
   * @param {string} snapshot "" if it is not known
   */
  setMoment(isPast, snapshot) {
    this.isPast = isPast;
    this.moment = snapshot;
    const { empty } = this.parts;
    empty.dataset.live ||= empty.textContent ?? "";
    if (!isPast) empty.textContent = empty.dataset.live;
    else empty.textContent = snapshot ? "Nothing was on the panel at this moment." : "What the panel showed at this moment is not known.";
    this.update();
  }

  /** Draws the panels soon, if the tab is visible. */
  update() {
    this.stale = true;
    if (this.visible) this.run();
  }

  /** Draws rounds of pictures while the panel changes: one model in each frame, with a pause after each round. */
  async run() {
    if (this.running) return;
    this.running = true;
    while (this.visible && this.stale) {
      this.stale = false;
      for (const c of this.cards) {
        await new Promise(requestAnimationFrame);
        this.draw(c);
      }
      await new Promise((done) => setTimeout(done, interval));
    }
    this.running = false;
  }

  /** @param {Card} c */
  draw(c) {
    const { program, running } = this.device;
    const isKnown = this.moment || !this.isPast;
    const seen = program && running && isKnown ? program.preview(c.model.id, this.moment) : null;
    this.parts.empty.hidden = !!seen;
    if (!seen) {
      c.canvas.getContext("2d")?.clearRect(0, 0, c.canvas.width, c.canvas.height);
      c.verdict.hidden = true;
      c.facts.textContent = "";
      c.findings.replaceChildren();
      return;
    }
    c.canvas.getContext("2d")?.putImageData(seen.picture, 0, 0);
    /** @type {Fit} */
    const fit = JSON.parse(seen.fit);
    const problems = fit.findings.length;
    c.verdict.hidden = false;
    c.verdict.dataset.fits = problems ? "no" : "yes";
    c.verdict.textContent = problems ? `${problems} ${problems === 1 ? "problem" : "problems"}` : "Fits";
    c.facts.textContent = facts(c.model, fit);
    c.findings.replaceChildren(...fit.findings.slice(0, maxFindings).map(finding));
    if (problems > maxFindings) c.findings.append(item(`and ${problems - maxFindings} more`));
  }
}

/**
 * @param {Model} model
 * @param {(id: string) => void} choose
 * @returns {Card}
 */
function card(model, choose) {
  const canvas = document.createElement("canvas");
  canvas.width = model.panel?.width ?? 0;
  canvas.height = model.panel?.height ?? 0;
  canvas.ariaHidden = "true";
  canvas.dataset.shape = model.panel?.shape;
  const pick = document.createElement("button");
  pick.type = "button";
  pick.className = "model-pick";
  pick.title = `Put on ${model.name}`;
  pick.append(element("span", "model-panel", canvas), element("span", "model-name", model.name),
    element("span", "model-size", `${canvas.width} × ${canvas.height}${model.panel?.shape === "round" ? ", round" : ""}`));
  pick.addEventListener("click", () => choose(model.id));
  const verdict = element("span", "badge", "");
  const facts = element("span", "muted", "");
  const findings = element("ul", "model-findings");
  findings.ariaLabel = `What does not fit ${model.name}`;
  const card = element("li", "model", pick, element("p", "model-fit", verdict, facts), findings);
  card.dataset.model = model.id;
  return { model, item: card, pick, canvas, verdict, facts, findings };
}

/**
 * Describes harmless differences on this model.
 * @param {Model} model
 * @param {Fit} fit
 */
function facts(model, fit) {
  const parts = [];
  if (fit.pages > 1) parts.push(`${fit.pages} pages`);
  const lost = fit.colours.length;
  if (lost) parts.push(`${lost === 1 ? "1 colour" : `${lost} colours`} ${model.panel?.colour === "green" ? "shown in green" : "changed"}`);
  return parts.join(", ");
}

/** @param {Finding} f */
function finding(f) {
  const what = document.createElement("b");
  what.textContent = kinds[f.kind] ?? f.kind;
  const li = item("");
  li.title = f.path;
  li.append(what, ` ${(f.kind === "missing_glyph" && f.missing) || f.text || f.id || f.path}`);
  return li;
}

/** @param {string} text */
function item(text) {
  const li = document.createElement("li");
  li.textContent = text;
  return li;
}

/**
 * @param {string} name
 * @param {string} className
 * @param {(string | HTMLElement)[]} content
 */
function element(name, className, ...content) {
  const e = document.createElement(name);
  e.className = className;
  e.append(...content);
  return e;
}
