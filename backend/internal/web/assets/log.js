// The event log on the page: keeps, searches, filters and exports the rows. rows.js shows the visible rows, words.js
// describes them. A row is kept as the text that the service sent, and decoded when it is shown.
import { show } from "./media.js";
import { Rows } from "./rows.js";
import { indented, timeOf, words } from "./words.js";

/** @typedef {{seq: number, at: number, kind: string, chip: string, type: string, id: string, sender: string, payload: unknown}} Row */
/** @typedef {{seq: number, at: number, kind: string, chip: string, type: string, id: string, sender: string, json: string, took: number, of: string, moment: string}} Entry
 *   json is the row, took the ms from request to result (-1 if unknown), of the type of the request, moment the snapshot
 *   of the glasses after this row ("" if this page has none) */

const maxKept = 20_000; // rows for search and export; the service keeps more
const maxText = 64_000_000; // characters of all rows

export class Log {
  /**
   * @param {{list: HTMLElement, count: HTMLElement, search: HTMLInputElement, filters: HTMLElement[], export: HTMLElement}} parts
   * @param {string} session
   * @param {import("./media.js").Media} media
   */
  constructor(parts, session, media) {
    this.parts = parts;
    this.session = session;
    this.media = media;
    /** @type {Entry[]} */
    this.entries = [];
    /** @type {Entry[]} */
    this.found = this.entries; // matching rows; the same array if all match
    /** @type {Map<string, Entry>} */
    this.requests = new Map(); // by id
    this.last = 0;
    this.text = 0; // characters
    this.query = "";
    /** @type {string[]} */
    this.chips = [];
    this.choose = (/** @type {Entry} */ _) => {}; // called when the user chooses a row
    this.drawn = () => {}; // called when the list has changed
    this.rows = new Rows(parts.list, {
      row: (e) => line(e, media), details: (e) => details(e, media), choose: (e) => this.choose(e),
      drawn: () => {
        this.tell();
        this.drawn();
      },
    });
    for (const filter of parts.filters) {
      filter.addEventListener("click", () => {
        filter.ariaPressed = filter.ariaPressed === "true" ? "false" : "true";
        this.search();
      });
    }
    parts.search.addEventListener("input", () => this.search());
    parts.export.addEventListener("click", () => this.save());
  }

  /**
   * Adds a row; returns null if it exists already.
   * @param {Row} row
   * @param {string} json the row as JSON
   * @returns {Entry | null}
   */
  add(row, json) {
    if (row.seq <= this.last) return null;
    this.last = row.seq;
    const request = row.kind === "result" ? this.requests.get(row.id) : undefined;
    /** @type {Entry} */
    const entry = {
      seq: row.seq, at: row.at, kind: row.kind, chip: row.chip, type: row.type, id: row.id, sender: row.sender, json,
      took: request ? row.at - request.at : -1, of: request?.type ?? "", moment: "",
    };
    if (row.kind === "request") this.requests.set(row.id, entry);
    this.entries.push(entry);
    this.text += json.length;
    if (this.found !== this.entries && this.matches(entry)) this.found.push(entry);
    while (this.entries.length > maxKept || this.text > maxText) this.drop();
    this.parts.count.ariaLive = "off"; // otherwise a screen reader would announce every number
    this.rows.schedule();
    return entry;
  }

  /** Forgets the oldest row. */
  drop() {
    const oldest = this.entries.shift();
    if (!oldest) return;
    this.text -= oldest.json.length;
    this.requests.delete(oldest.id);
    if (this.found !== this.entries && this.found[0] !== oldest) return;
    if (this.found !== this.entries) this.found.shift();
    this.rows.shift();
  }

  /** @param {Entry} entry */
  matches(entry) {
    if (this.chips.length > 0 && !this.chips.includes(entry.chip)) return false;
    return !this.query || entry.json.toLowerCase().includes(this.query) || sentence(entry).toLowerCase().includes(this.query);
  }

  search() {
    this.query = this.parts.search.value.trim().toLowerCase();
    this.chips = this.parts.filters.filter((f) => f.ariaPressed === "true").map((f) => f.dataset.chip ?? "");
    this.found = this.query || this.chips.length > 0 ? this.entries.filter((entry) => this.matches(entry)) : this.entries;
    this.parts.count.ariaLive = "polite"; // announce the result of a filter or search
    this.rows.set(this.found);
    if (this.rows.chosenIndex() < 0) this.rows.toEnd();
  }

  /** Number of the session's rows that are not on this page: older rows that it did not receive or no longer keeps. */
  get missing() {
    return (this.entries[0]?.seq ?? 1) - 1;
  }

  tell() {
    if (this.rows.entries !== this.found) this.rows.set(this.found);
    const all = this.entries.length;
    const shown = this.found.length;
    const events = this.last === 1 ? "event" : "events";
    const kept = this.missing ? `the latest ${all} of ${this.last}` : String(all);
    const text = all === 0 ? "No events yet" : `${shown === all ? kept : `${shown} of ${kept}`} ${events}`.replace(/^the/, "The");
    const saves = this.missing ? `Save those of ${kept} rows that match. Older rows are not on this page.` : "Save the rows that match as JSON lines";
    if (this.parts.export.title !== saves) this.parts.export.title = saves;
    if (this.parts.count.textContent !== text) this.parts.count.textContent = text;
  }

  /** Saves the matching rows as JSON lines. */
  save() {
    download(new Blob(this.found.map(({ json }) => `${json}\n`), { type: "application/x-ndjson" }), `${this.session}.jsonl`);
  }
}

/**
 * @param {Blob} file
 * @param {string} name
 */
export function download(file, name) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(file);
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
}

/** @param {Entry} e */
export function wordsOf(e) {
  return words({ type: e.type, kind: e.kind, sender: e.sender, payload: JSON.parse(e.json).payload, took: e.took, of: e.of });
}

/** @param {Entry} e */
export function sentence(e) {
  const { title, code, text } = wordsOf(e);
  return `${title}: ${code} ${text}`;
}

/**
 * Returns the medium of a row, if this page has it: the picture of a result, or the sound that an app listened to.
 * @param {Entry} e
 * @param {import("./media.js").Media} media
 */
export function mediumOf(e, media) {
  return e.kind === "result" && e.of.startsWith("camera.") || e.type === "audio.start" ? media.get(e.id) : undefined;
}

/**
 * @param {Entry} e
 * @param {import("./media.js").Media} media
 */
function line(e, media) {
  const { title, code, text } = wordsOf(e);
  const time = document.createElement("time");
  time.dateTime = new Date(e.at).toISOString();
  time.textContent = timeOf(e.at);
  const chip = part("tag", e.chip);
  chip.dataset.chip = e.chip;
  const said = part("said", "");
  said.dir = "auto";
  said.append(part("type", code || text ? `${title}: ` : title));
  if (code) said.append(part("code", code), " ");
  said.append(part("short", text));
  const button = document.createElement("button");
  button.type = "button";
  button.className = code ? "row-line failed" : "row-line";
  button.append(part("seq", String(e.seq)), time, chip, said);
  const medium = mediumOf(e, media);
  if (!medium || medium.mime.startsWith("audio/")) return { line: button, dispose: () => {} };
  const { element, dispose } = show(medium);
  const image = element.querySelector("img");
  if (image) {
    image.className = "thumb";
    button.append(image);
  }
  return { line: button, dispose };
}

/**
 * @param {Entry} e
 * @param {import("./media.js").Media} media
 */
function details(e, media) {
  const box = document.createElement("div");
  box.className = "row-details";
  let dispose = () => {};
  const medium = mediumOf(e, media);
  if (medium) {
    const shown = show(medium);
    dispose = shown.dispose;
    box.append(shown.element);
  } else if (media.forgotten.has(e.id)) {
    box.append(part("muted", "Its picture or sound is no longer kept: this page keeps the latest 24 MB."));
  }
  const fold = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = "JSON";
  fold.append(summary);
  fold.addEventListener("toggle", () => fold.childElementCount === 1 && fold.append(full(e)));
  box.append(fold);
  return { box, dispose };
}

/** @param {Entry} e */
function full(e) {
  const pre = document.createElement("pre");
  pre.tabIndex = 0; // focusable, because it scrolls
  pre.textContent = indented(e.json);
  return pre;
}

/**
 * @param {string} name
 * @param {string} text
 */
function part(name, text) {
  const span = document.createElement("span");
  span.className = name;
  span.textContent = text;
  return span;
}
