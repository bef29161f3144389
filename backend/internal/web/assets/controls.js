// The controls with which the user changes the glasses: model, state, inputs, phrases.
import { get } from "./elements.js";
import { Faults } from "./faults.js";

/** @typedef {import("./device.js").Model} Model */
/** @typedef {import("./device.js").GlassesState} GlassesState */
/** @typedef {import("./panel.js").Input} Input */

const select = (/** @type {string} */ id) => get(id, HTMLSelectElement);
const input = (/** @type {string} */ id) => get(id, HTMLInputElement);

/** @type {[label: string, input: Input][]} */
const inputs = [
  ["Tap", { kind: "tap" }],
  ["Double tap", { kind: "doubleTap" }],
  ["Hold", { kind: "hold" }],
  ["Select", { kind: "select" }],
  ["Back", { kind: "back" }],
  ["Capture", { kind: "capture" }],
];
const directions = [["←", "left"], ["↑", "up"], ["↓", "down"], ["→", "right"]];
const sided = ["even_g1"]; // models with a touch bar on each temple

export class Controls {
  /**
   * @param {(type: string, payload: unknown) => boolean} control sends a control frame to the glasses
   */
  constructor(control) {
    this.control = control;
    /** @type {GlassesState | null} */
    this.state = null;
    this.phrases = "";
    this.isReal = false;
    this.faults = new Faults(control);
    this.bind();
  }

  bind() {
    select("device").addEventListener("change", (e) => this.control("sim.device", { deviceModel: value(e) }));
    for (const id of ["thermal", "link", "route"]) select(id).addEventListener("change", (e) => this.patch({ [id]: value(e) }));
    const battery = () => this.patch({ battery: { level: Number(input("battery").value), charging: input("charging").checked } });
    input("battery").addEventListener("change", battery);
    input("battery").addEventListener("input", () => level(Number(input("battery").value)));
    input("charging").addEventListener("change", battery);
    input("worn").addEventListener("change", () => this.patch({ worn: input("worn").checked }));
    input("call").addEventListener("change", () => this.patch({ call: input("call").checked }));
    input("folded").addEventListener("change", () => this.patch({ hinge: input("folded").checked ? "folded" : "open" }));
    for (const box of boxes("permission")) {
      box.addEventListener("change", () => this.patch({ permissions: { [box.dataset.permission ?? ""]: box.checked ? "granted" : "denied" } }));
    }
    for (const box of boxes("enabled")) {
      box.addEventListener("change", () => this.patch({ disabled: boxes("enabled").filter((b) => !b.checked).map((b) => b.dataset.enabled) }));
    }
    get("say", HTMLFormElement).addEventListener("submit", (e) => {
      e.preventDefault();
      const field = input("say-text");
      if (this.say(field.value.trim())) field.value = "";
    });
  }

  /** @param {unknown} change */
  patch(change) {
    this.control("sim.state", change);
    if (this.state) this.showState(this.state); // even if the glasses refused the change
  }

  /** @param {string} text */
  say(text) {
    return text !== "" && this.control("sim.transcript", { text, final: true, language: navigator.language, confidence: 100 });
  }

  /**
   * @param {boolean} on
   * @param {boolean} [isReal] whether the glasses are real, which only their wearer can change
   */
  setEnabled(on, isReal = this.isReal) {
    this.isReal = isReal;
    get("controls", HTMLFieldSetElement).disabled = !on || isReal;
    this.faults.setEnabled(on && !isReal);
    for (const group of ["inputs", "phrases", "say"]) {
      for (const b of document.querySelectorAll(`#${group} button, #${group} input`)) /** @type {HTMLButtonElement} */ (b).disabled = !on;
    }
    this.enabled = on;
  }

  /** @param {Model} model */
  setModel(model) {
    select("device").value = model.id;
    document.getElementById("model-name")?.replaceChildren(model.name);
    document.getElementById("model-facts")?.replaceChildren(facts(model));
    get("camera", HTMLDivElement).hidden = !model.camera;
    for (const row of document.querySelectorAll("tr[data-part]")) {
      const part = row instanceof HTMLElement ? row.dataset.part : "";
      /** @type {HTMLElement} */ (row).hidden = (part === "camera" && !model.camera) || (part === "microphone" && !model.microphone);
    }
    get("inputs", HTMLDivElement).replaceChildren(...this.buttons(model));
    this.setEnabled(!!this.enabled);
  }

  /** @param {Model} model */
  buttons(model) {
    const made = [];
    const sides = sided.includes(model.id) ? ["left", "right"] : [undefined];
    for (const [label, what] of inputs) {
      if (!model.inputs.includes(what.kind)) continue;
      for (const side of sides) made.push(button(side ? `${label} ${side}` : label, () => this.control("sim.input", { ...what, side })));
    }
    for (const [kind, name] of [["navigate", "Move"], ["swipe", "Swipe"]]) {
      if (!kind || !model.inputs.includes(kind)) continue;
      const group = document.createElement("span");
      group.className = "arrows";
      for (const [arrow, direction] of directions) {
        const b = button(arrow ?? "", () => this.control("sim.input", { kind, direction }));
        b.ariaLabel = b.title = `${name} ${direction}`;
        group.append(b);
      }
      made.push(group);
    }
    return made;
  }

  /** @param {GlassesState} s */
  showState(s) {
    this.state = s;
    input("battery").value = String(s.battery.level);
    level(s.battery.level);
    input("charging").checked = s.battery.charging;
    input("worn").checked = s.worn;
    input("folded").checked = s.hinge === "folded";
    input("call").checked = s.call;
    select("thermal").value = s.thermal;
    select("link").value = s.link;
    select("route").value = s.route;
    for (const box of boxes("permission")) box.checked = s.permissions[box.dataset.permission ?? ""] !== "denied";
    for (const box of boxes("enabled")) box.checked = !s.disabled.includes(box.dataset.enabled ?? "");
    const now = condition(s);
    const said = document.getElementById("condition");
    if (said && said.textContent !== now) said.textContent = now; // screen readers announce each write
    const listens = s.running.includes("transcription");
    document.getElementById("say-state")?.replaceChildren(listens ? "The app listens." : "The app does not listen: transcription is off.");
    this.showPhrases(s.phrases);
    this.faults.show(s.faults);
  }

  /** @param {string[]} phrases */
  showPhrases(phrases) {
    const same = JSON.stringify(phrases);
    if (same === this.phrases) return;
    this.phrases = same;
    get("phrases", HTMLDivElement).replaceChildren(...phrases.map((text) => button(text, () => this.say(text))));
    this.setEnabled(!!this.enabled);
  }
}

/**
 * Lists what keeps the wearer from seeing or hearing, as reported to the app.
 * @param {GlassesState} s
 */
function condition(s) {
  const now = [];
  if (s.link === "lost") now.push("Out of reach: apps get not_connected.");
  if (s.hinge === "folded") now.push("Folded: display, camera and sound answer hinge_closed.");
  if (s.thermal === "critical") now.push("Too hot: display and camera answer thermal_critical.");
  if (!s.worn) now.push("Not worn: display, speech and sounds answer paused.");
  if (s.call) now.push("In a call: speech, sounds and microphone answer busy.");
  return now.join(" ");
}

/** @param {number} percent */
function level(percent) {
  get("battery-level", HTMLOutputElement).textContent = `${percent} %`;
}

/** @param {"permission"|"enabled"} of */
function boxes(of) {
  return /** @type {HTMLInputElement[]} */ ([...document.querySelectorAll(`input[data-${of}]`)]);
}

/** @param {Event} e */
function value(e) {
  return /** @type {HTMLSelectElement} */ (e.target).value;
}

/**
 * @param {string} label
 * @param {() => void} act
 */
function button(label, act) {
  const b = document.createElement("button");
  b.type = "button";
  b.className = "quiet small";
  b.textContent = label;
  b.addEventListener("click", act);
  return b;
}

/**
 * Describes the model on one line, including facts that are neither documented nor measured.
 * @param {Model} m
 */
function facts(m) {
  const p = m.panel;
  const parts = [p ? `${p.width} × ${p.height}${p.shape === "round" ? " round" : ""}, ${p.colour}${p.bits ? ` ${p.bits} bit` : ""}` : "no display"];
  for (const [name, has] of /** @type {[string, unknown][]} */ ([["camera", m.camera], ["microphone", m.microphone], ["speaker", m.speaker], ["motion", m.motion]])) {
    if (has) parts.push(name);
  }
  const guessed = Object.keys(m.fidelity).filter((name) => m.fidelity[name] === "guessed");
  return parts.join(", ") + (guessed.length ? `. Guessed: ${guessed.join(", ")}.` : ".");
}
