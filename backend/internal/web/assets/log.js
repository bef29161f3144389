// The event log on the page: the newest rows are at the bottom, and the list follows them while it is
// scrolled to the end.

/** @typedef {{seq: number, at: number, kind: string, chip: string, type: string, id: string, sender: string, payload: unknown}} Row */

const maxShown = 500; // rows in the page at once
const maxKept = 20_000; // rows for search and export; the service keeps more

export class Log {
  /**
   * @param {{list: HTMLElement, count: HTMLElement, search: HTMLInputElement, filters: HTMLElement[], export: HTMLElement}} parts
   * @param {string} session
   */
  constructor(parts, session) {
    this.parts = parts;
    this.session = session;
    /** @type {{row: Row, text: string}[]} */
    this.rows = [];
    this.last = 0;
    this.found = 0;
    this.follow = true; // the list is scrolled to the end
    parts.list.addEventListener("scroll", () => (this.follow = parts.list.scrollTop + parts.list.clientHeight >= parts.list.scrollHeight - 24));
    new ResizeObserver(() => this.toEnd()).observe(parts.list);
    for (const filter of parts.filters) {
      filter.addEventListener("click", () => {
        filter.ariaPressed = filter.ariaPressed === "true" ? "false" : "true";
        this.redraw();
      });
    }
    parts.search.addEventListener("input", () => this.redraw());
    parts.export.addEventListener("click", () => this.save());
  }

  /**
   * Adds a row; returns false if it exists already.
   * @param {Row} row
   */
  add(row) {
    if (row.seq <= this.last) return false;
    this.last = row.seq;
    const entry = { row, text: JSON.stringify(row).toLowerCase() };
    this.rows.push(entry);
    if (this.rows.length > maxKept) this.rows.shift();
    if (this.matches(entry)) {
      const { list } = this.parts;
      this.found++;
      list.append(item(row));
      while (list.childElementCount > maxShown) list.firstElementChild?.remove();
      this.toEnd();
    }
    this.parts.count.ariaLive = "off"; // otherwise a screen reader would announce every number
    this.tell();
    return true;
  }

  /** @param {{row: Row, text: string}} entry */
  matches({ row, text }) {
    const chips = this.parts.filters.filter((f) => f.ariaPressed === "true").map((f) => f.dataset.chip);
    return (chips.length === 0 || chips.includes(row.chip)) && text.includes(this.parts.search.value.trim().toLowerCase());
  }

  redraw() {
    const found = this.rows.filter((entry) => this.matches(entry));
    this.found = found.length;
    const { list } = this.parts;
    list.replaceChildren(...found.slice(-maxShown).map(({ row }) => item(row)));
    this.follow = true;
    this.toEnd();
    this.parts.count.ariaLive = "polite"; // announce the result of a filter or search
    this.tell();
  }

  toEnd() {
    const { list } = this.parts;
    if (this.follow) list.scrollTop = list.scrollHeight;
  }

  tell() {
    const all = this.rows.length;
    const events = all === 1 ? "event" : "events";
    const shown = Math.min(this.found, maxShown);
    this.parts.count.textContent = shown === all ? `${all} ${events}` : `${shown} of ${all} ${events}`;
  }

  /** Saves the rows that match, as JSON lines. */
  save() {
    const lines = this.rows.filter((entry) => this.matches(entry)).map(({ row }) => `${JSON.stringify(row)}\n`);
    const a = document.createElement("a");
    a.href = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
    a.download = `${this.session}.jsonl`;
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
  }
}

/** @param {Row} row */
function item(row) {
  const at = new Date(row.at);
  const time = document.createElement("time");
  time.dateTime = at.toISOString();
  time.textContent = at.toLocaleTimeString([], { hour12: false }) + "." + String(at.getMilliseconds()).padStart(3, "0");
  const chip = part("tag", row.chip);
  chip.dataset.chip = row.chip;
  const summary = document.createElement("summary");
  summary.append(part("seq", String(row.seq)), time, chip, part("type", title(row)), part("short", short(row)));
  const details = document.createElement("details");
  details.append(summary);
  details.addEventListener("toggle", () => details.childElementCount === 1 && details.append(full(row)));
  const li = document.createElement("li");
  li.dataset.seq = String(row.seq);
  li.append(details);
  return li;
}

/** @param {Row} row */
function full(row) {
  const pre = document.createElement("pre");
  pre.tabIndex = 0; // focusable, because it scrolls
  pre.textContent = JSON.stringify(row, null, 2);
  return pre;
}

/** @param {Row} row */
function title(row) {
  return row.kind === "result" ? `result by ${row.sender}` : row.type;
}

/** @param {Row} row */
function short(row) {
  const text = JSON.stringify(row.payload);
  if (text === "{}") return "";
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
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
