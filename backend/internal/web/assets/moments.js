// The glasses at earlier moments: for each row of the event log, a snapshot of the device from when this page handled
// that row's frame. If there is none, for example from before the page was opened, the device is rebuilt from rows.

/** @typedef {import("./log.js").Entry} Entry */
/** @typedef {{certainty: "exact"|"rebuilt"|"roughly"|"unknown", snapshot: import("./device.js").Snapshot, text: string}} Moment */

const maxWaiting = 500; // frames whose rows have not arrived, and rows whose frames were not handled
const maxText = 40_000_000; // characters of all snapshots
const maxRebuilt = 3_000; // rows

export class Moments {
  /**
   * @param {import("./log.js").Log} log
   * @param {import("./past.js").Past} past
   */
  constructor(log, past) {
    this.log = log;
    this.past = past;
    this.device = past.device;
    /** @type {Map<string, string>} */
    this.handled = new Map();
    /** @type {Map<string, Entry>} */
    this.waiting = new Map();
    /** @type {{entry: Entry, size: number}[]} */
    this.changes = []; // rows whose snapshot differs from the previous row's
    this.newest = "";
    this.text = 0; // characters
  }

  /**
   * Records that the device has handled or sent frames.
   * @param {string[]} keys see keyOf
   */
  note(keys) {
    for (const key of keys) {
      const entry = this.waiting.get(key);
      if (entry) this.keep(entry, this.device.last);
      else this.handled.set(key, this.device.last);
      this.waiting.delete(key);
    }
    bound(this.handled);
  }

  /**
   * Records the snapshot of a new row.
   * @param {Entry} entry
   * @param {boolean} isOurs whether this page acted as the glasses when the row was written
   */
  add(entry, isOurs) {
    const key = keyOf(entry);
    const moment = key && this.handled.get(key);
    if (moment) this.keep(entry, moment);
    else if (this.device.running && isOurs) this.keep(entry, this.device.last);
    this.handled.delete(key);
    if (!moment && key) this.waiting.set(key, entry);
    bound(this.waiting);
  }

  /**
   * @param {Entry} entry
   * @param {string} text
   */
  keep(entry, text) {
    if (!text) return;
    entry.moment = text;
    if (text === this.newest) return;
    this.newest = text;
    this.changes.push({ entry, size: text.length });
    this.text += text.length;
    while (this.text > maxText) this.forget();
  }

  /** Forgets the oldest snapshot. */
  forget() {
    this.text -= this.changes.shift()?.size ?? 0;
    const oldest = this.changes[0]?.entry.seq ?? 0;
    const { entries } = this.log;
    for (let i = this.indexOf(oldest) - 1; i >= 0 && entries[i]?.moment; i--) entries[i].moment = "";
  }

  /** @param {number} seq */
  indexOf(seq) {
    return this.log.entries.findIndex((e) => e.seq >= seq);
  }

  /**
   * Returns the glasses after a row, or null if the program cannot determine them.
   * @param {Entry} entry
   * @returns {Moment | null}
   */
  at(entry) {
    return this.between(this.indexOf(entry.seq), 1)[0] ?? null;
  }

  /**
   * Returns the glasses after each of count rows.
   * @param {number} index of the first row
   * @param {number} count
   * @returns {(Moment | null)[]}
   */
  between(index, count) {
    const { entries } = this.log;
    const moments = [];
    for (let i = index; i < Math.min(index + count, entries.length); i++) {
      const text = entries[i]?.moment;
      if (text) {
        moments.push({ certainty: /** @type {const} */ ("exact"), snapshot: JSON.parse(text), text });
        continue;
      }
      let end = i;
      while (end + 1 < index + count && entries[end + 1] && !entries[end + 1]?.moment) end++;
      const rebuilt = this.rebuild(i, end);
      for (let n = i; n <= end; n++) moments.push(rebuilt[n - i] ?? null);
      i = end;
    }
    return moments;
  }

  /**
   * Rebuilds the glasses after rows that have no snapshot. It also uses rows before and after them: the command of a
   * result, the result of a command.
   * @param {number} from
   * @param {number} until
   */
  rebuild(from, until) {
    const { entries } = this.log;
    let first = from;
    while (first > 0 && !entries[first - 1]?.moment && from - first < maxRebuilt) first--;
    let end = until + 1;
    while (end < entries.length && !entries[end]?.moment && end - until < maxRebuilt) end++;
    const base = entries[first - 1]?.moment || "null";
    const next = entries[end]?.moment || this.device.last;
    if (!next) return [];
    const rows = entries.slice(first, end);
    const start = rows[0]?.seq ?? 0;
    const earlier = rows.map((e) => (e.kind === "result" ? this.log.requests.get(e.id) : undefined)).filter((e) => e && e.seq < start);
    const list = (/** @type {(Entry | undefined)[]} */ some) => `[${some.map((e) => e?.json).join(",")}]`;
    return this.past.rebuild(`{"base":${base},"isFirst":${first === 0 && start === 1},"next":${next},"earlier":${list(earlier)},"from":${entries[from]?.seq},"until":${entries[until]?.seq},"rows":${list(rows)}}`);
  }
}

/**
 * Identifies the row of a frame: a request that the device handled, or a result or event that it sent.
 * @param {{kind: string, id: string, sender: string}} row
 */
export function keyOf({ kind, id, sender }) {
  const isOurs = kind === "request" ? sender === "app" : sender === "glasses";
  return id && isOurs ? `${kind} ${id}` : "";
}

/** @param {Map<string, unknown>} map */
function bound(map) {
  for (const key of map.keys()) {
    if (map.size <= maxWaiting) return;
    map.delete(key);
  }
}
