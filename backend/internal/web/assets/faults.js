// Faults: the form that sets one, and the list of faults that still wait for a command.
import { get } from "./elements.js";

/** @typedef {import("./device.js").Fault} Fault */

export class Faults {
  /**
   * @param {(type: string, payload: unknown) => boolean} control sends a control frame to the glasses
   */
  constructor(control) {
    this.control = control;
    /** @type {Fault[]} */
    this.pending = [];
    this.enabled = false;
    get("faults", HTMLFormElement).addEventListener("submit", (e) => {
      e.preventDefault();
      this.set();
    });
    get("fault-clear", HTMLButtonElement).addEventListener("click", () => this.control("sim.fault", { clear: true }));
  }

  set() {
    this.control("sim.fault", {
      command: get("fault-command", HTMLSelectElement).value || undefined,
      code: get("fault-code", HTMLSelectElement).value || undefined,
      latencyMs: Number(get("fault-latency", HTMLInputElement).value) || undefined,
      times: Number(get("fault-times", HTMLInputElement).value) || undefined,
    });
  }

  /**
   * Clears one fault. The glasses can only clear all of them, so the others are set again in the same order.
   * @param {number} index
   */
  forget(index) {
    const rest = this.pending.filter((_, i) => i !== index);
    if (rest.length === 0) this.control("sim.fault", { clear: true });
    rest.forEach((fault, i) => this.control("sim.fault", i === 0 ? { ...fault, clear: true } : fault));
    const buttons = get("fault-list", HTMLUListElement).querySelectorAll("button");
    (buttons[Math.min(index, buttons.length - 1)] ?? get("fault-command", HTMLSelectElement)).focus();
  }

  /** @param {{commands: string[], codes: string[]}} words */
  setWords(words) {
    for (const command of words.commands) get("fault-command", HTMLSelectElement).add(new Option(command, command));
    for (const code of words.codes) get("fault-code", HTMLSelectElement).add(new Option(code, code));
  }

  /** @param {boolean} on */
  setEnabled(on) {
    this.enabled = on;
    get("fault-fields", HTMLFieldSetElement).disabled = !on;
    for (const b of get("fault-list", HTMLUListElement).querySelectorAll("button")) b.disabled = !on;
  }

  /** @param {Fault[]} faults */
  show(faults) {
    if (JSON.stringify(faults) === JSON.stringify(this.pending)) return; // the focus stays on a button of the list
    this.pending = faults;
    const count = get("fault-count", HTMLSpanElement);
    count.hidden = faults.length === 0;
    count.textContent = String(faults.length);
    count.title = `${faults.length} pending`;
    get("fault-none", HTMLParagraphElement).hidden = faults.length > 0;
    get("fault-list", HTMLUListElement).replaceChildren(...faults.map((f, i) => this.item(f, i)));
  }

  /**
   * @param {Fault} fault
   * @param {number} index
   */
  item(fault, index) {
    const li = document.createElement("li");
    const command = document.createElement("strong");
    command.textContent = fault.command || "every command";
    const what = [fault.code, fault.latencyMs ? `${fault.latencyMs} ms late` : ""].filter(Boolean).join(", ");
    const effect = document.createElement("span");
    effect.textContent = `${what}, ${fault.times === 1 ? "once more" : `${fault.times} times more`}`;
    const forget = document.createElement("button");
    forget.type = "button";
    forget.className = "link";
    forget.textContent = "Forget";
    forget.ariaLabel = `Forget the fault of ${command.textContent}`;
    forget.disabled = !this.enabled;
    forget.addEventListener("click", () => this.forget(index));
    li.append(command, effect, forget);
    return li;
  }
}
