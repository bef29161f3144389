// The event log as the page shows it: the newest rows below, followed while the person is at the end.

/** @typedef {{seq: number, at: number, kind: string, chip: string, type: string, id: string, sender: string, payload: unknown}} Row */

const maxRows = 500; // the log itself keeps everything; the page keeps what a person scrolls through

export class Log {
  /**
   * @param {HTMLElement} list
   * @param {HTMLElement} count
   */
  constructor(list, count) {
    this.list = list;
    this.count = count;
    this.last = 0;
    list.tabIndex = 0;
  }

  /**
   * Adds a row; false if it was there already.
   * @param {Row} row
   */
  add(row) {
    if (row.seq <= this.last) return false;
    this.last = row.seq;
    const atEnd = this.list.scrollTop + this.list.clientHeight >= this.list.scrollHeight - 24;
    this.list.append(item(row));
    while (this.list.childElementCount > maxRows) this.list.firstElementChild?.remove();
    if (atEnd) this.list.scrollTop = this.list.scrollHeight;
    this.count.textContent = `${row.seq} ${row.seq === 1 ? "event" : "events"}`;
    return true;
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
  const full = document.createElement("pre");
  full.textContent = JSON.stringify(row, null, 2);
  const details = document.createElement("details");
  details.append(summary, full);
  const li = document.createElement("li");
  li.dataset.seq = String(row.seq);
  li.append(details);
  return li;
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
