// Time travel: shows the glasses as they were after a row of the event log, while the session continues.
import { get } from "./elements.js";
import { mediumOf } from "./log.js";
import { show } from "./media.js";
import { timeOf } from "./words.js";

/** @typedef {import("./log.js").Entry} Entry */

/** Notes about moments that the page did not see itself.
 * @type {Record<string, string>} */
const cautions = {
  exact: "",
  rebuilt: " Rebuilt from the log, because this page did not see that moment. The panel is right; parts of the state may differ.",
  roughly: " This page did not see that moment. The content is right; focus, scroll position and parts of the state may differ.",
  unknown: " What the panel showed is not known: this page did not see that moment, and the rows that would tell are not on it.",
};

export class Travel {
  /**
   * @param {import("./log.js").Log} log
   * @param {import("./moments.js").Moments} moments
   * @param {() => void} changed called when another moment is to be shown
   */
  constructor(log, moments, changed) {
    this.log = log;
    this.moments = moments;
    this.changed = changed;
    /** @type {Entry | null} */
    this.entry = null; // the chosen row; null while the page shows the live session
    /** @type {import("./moments.js").Moment | null} */
    this.moment = null;
    this.scrubber = get("scrub", HTMLInputElement);
    this.disposeMedium = () => {};
    log.choose = (entry) => this.choose(entry);
    log.drawn = () => this.update();
    this.scrubber.addEventListener("input", () => {
      const entry = log.found[Number(this.scrubber.value)];
      if (entry) this.choose(entry);
    });
    for (const id of ["live", "past-live"]) get(id, HTMLButtonElement).addEventListener("click", () => this.live());
    get("pane-log", HTMLElement).addEventListener("keydown", (e) => {
      if (e.key !== "Escape" || !this.entry || e.target === log.parts.search) return;
      e.preventDefault();
      this.live();
    });
    this.update();
  }

  get isPast() {
    return this.entry !== null;
  }

  /** Whether the panel of the chosen moment is known. */
  get isKnown() {
    return !!this.moment && this.moment.certainty !== "unknown";
  }

  /** @param {Entry} entry */
  choose(entry) {
    if (entry === this.entry) return;
    this.entry = entry;
    this.moment = this.moments.at(entry);
    this.log.rows.choose(entry);
    this.showMedium(entry);
    this.changed();
    this.update();
  }

  live() {
    if (!this.entry) return;
    const returns = ["live", "past-live"].includes(document.activeElement?.id ?? ""); // the focused button disappears
    this.entry = this.moment = null;
    this.showMedium(null);
    this.log.rows.choose(null);
    this.log.rows.toEnd();
    this.changed();
    this.update();
    if (returns) get("panel", HTMLElement).focus();
  }

  /** Shows the latest picture or sound up to a row. */
  showMedium(/** @type {Entry | null} */ entry) {
    this.disposeMedium();
    this.disposeMedium = () => {};
    const place = get("past-medium", HTMLElement);
    place.replaceChildren();
    if (!entry || this.log.media.kept.size === 0) return;
    for (let i = this.moments.indexOf(entry.seq); i >= 0; i--) {
      const e = this.log.entries[i];
      const medium = e && mediumOf(e, this.log.media);
      if (!e || !medium) continue;
      const shown = show(medium);
      this.disposeMedium = shown.dispose;
      const caption = document.createElement("figcaption");
      caption.textContent = `${e.of || e.type}, ${timeOf(e.at)}`;
      place.append(shown.element, caption);
      return;
    }
  }

  /** Shows the position of the scrubber and what the page shows. */
  update() {
    const { found, last } = this.log;
    const { entry, scrubber } = this;
    const end = Math.max(0, found.length - 1);
    const at = entry ? Math.min(end, this.log.rows.indexOf(entry)) : end;
    scrubber.disabled = found.length === 0;
    if (scrubber.max !== String(end)) scrubber.max = String(end);
    if (scrubber.value !== String(at)) scrubber.value = String(at);
    const row = entry ? `Row ${entry.seq} of ${last}` : "";
    const latest = this.log.missing ? `the latest ${this.log.entries.length}` : "";
    set(scrubber, entry ? `${row}, ${timeOf(entry.at)}` : latest ? `Live, ${latest} of ${last} rows` : "Live");
    const caution = entry ? cautions[this.moment?.certainty ?? "unknown"] ?? "" : "";
    this.say("travel-text", !latest ? row : entry ? `${row}, ${latest} are here` : `Here: ${latest} of ${last} rows`);
    this.say("travel-said", entry ? `The past: ${timeOf(entry.at)}, row ${entry.seq} of ${last}.${caution}` : "");
    this.say("past-text", entry ? `${timeOf(entry.at)}, row ${entry.seq} of ${last}` : "");
    this.say("past-caution", caution.trim());
    get("past", HTMLElement).hidden = get("live", HTMLButtonElement).hidden = !entry;
    get("simulator", HTMLElement).dataset.past = entry ? "yes" : "no";
  }

  /**
   * @param {string} id
   * @param {string} text
   */
  say(id, text) {
    const element = get(id, HTMLElement);
    if (element.textContent !== text) element.textContent = text; // screen readers announce each write
  }
}

/**
 * @param {HTMLElement} element
 * @param {string} text
 */
function set(element, text) {
  if (element.getAttribute("aria-valuetext") !== text) element.setAttribute("aria-valuetext", text);
}
