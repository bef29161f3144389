// The visible part of a long list: only the rows near the viewport are in the page. All rows have the same height, except
// the chosen one, which is followed by its details.

/** @typedef {import("./log.js").Entry} Entry */

const beyond = 40; // rows above and below the visible ones

export class Rows {
  /**
   * @param {HTMLElement} list an element that scrolls
   * @param {{row: (e: Entry) => {line: HTMLElement, dispose: () => void}, details: (e: Entry) => {box: HTMLElement, dispose: () => void}, choose: (e: Entry) => void, drawn: () => void}} on
   */
  constructor(list, on) {
    this.list = list;
    this.on = on;
    /** @type {Entry[]} */
    this.entries = [];
    /** @type {Map<Entry, {li: HTMLElement, line: HTMLElement, dispose: (() => void)[], hasDetails: boolean}>} */
    this.made = new Map();
    /** @type {Entry | null} */
    this.chosen = null;
    /** @type {Entry | null} */
    this.current = null; // the row that the Tab key reaches
    this.follow = true; // the list is scrolled to the end
    this.height = 0; // of a row in px; 0 if unknown
    this.extra = 0; // height of the details
    this.pending = 0;
    this.reveals = false; // keep the chosen row visible while its details grow, for example because a picture loads
    for (const act of ["wheel", "pointerdown", "keydown"]) list.addEventListener(act, () => (this.reveals = false), { passive: true });
    list.addEventListener("scroll", () => {
      this.follow = list.scrollTop + list.clientHeight >= list.scrollHeight - 24;
      this.schedule();
    });
    list.addEventListener("keydown", (e) => this.key(e));
    this.sizes = new ResizeObserver(() => {
      this.height = 0;
      if (this.reveals && this.chosenIndex() >= 0) this.reveal(this.chosenIndex(), true);
      else this.schedule();
    });
    this.sizes.observe(list);
  }

  schedule() {
    this.pending ||= requestAnimationFrame(() => this.draw());
  }

  /** @param {Entry[]} entries in the order of their seq */
  set(entries) {
    this.entries = entries;
    this.schedule();
  }

  /** Marks a row as chosen, makes it visible and shows its details. */
  choose(/** @type {Entry | null} */ entry) {
    if (this.chosen) this.discard(this.chosen);
    this.chosen = entry;
    this.extra = 0;
    if (entry) this.current = entry;
    this.draw();
    this.reveals = !!entry;
    if (entry) this.reveal(this.indexOf(entry), true);
  }

  /** Records that the first row is no longer in the list, so that the rows in view stay in place. */
  shift() {
    if (!this.follow) this.list.scrollTop -= this.height;
  }

  toEnd() {
    this.follow = true;
    this.schedule();
  }

  /** @param {Entry} entry @returns its index, or the one where it would be */
  indexOf(entry) {
    let low = 0;
    let high = this.entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.entries[middle]?.seq ?? 0) < entry.seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Returns the index of the chosen row, or -1 if it is not in the list. */
  chosenIndex() {
    const i = this.chosen ? this.indexOf(this.chosen) : -1;
    return i >= 0 && this.entries[i] === this.chosen ? i : -1;
  }

  draw() {
    cancelAnimationFrame(this.pending);
    this.pending = 0;
    const { list } = this;
    if (list.clientHeight === 0) return this.on.drawn(); // hidden: nothing can be measured
    const chosen = this.chosenIndex();
    this.measure();
    list.style.setProperty("--content", `${this.entries.length * this.height + (chosen < 0 ? 0 : this.extra)}px`);
    if (this.follow) list.scrollTop = list.scrollHeight;
    const first = this.at(list.scrollTop, chosen) - beyond;
    const last = this.at(list.scrollTop + list.clientHeight, chosen) + beyond;
    this.place(this.wanted(first, last, chosen), chosen);
    this.on.drawn();
  }

  measure() {
    if (this.height === 0) {
      const line = this.made.values().next().value?.line ?? this.probe();
      this.height = line?.getBoundingClientRect().height ?? 0;
    }
    const details = this.chosen && this.made.get(this.chosen)?.li.children[1];
    if (details instanceof HTMLElement) this.extra = details.offsetHeight;
  }

  /** Adds the first row to measure it. */
  probe() {
    const entry = this.entries[0];
    return entry && this.list.appendChild(this.make(entry).li).querySelector("button");
  }

  /**
   * Returns the index of the row at a distance from the top of the list.
   * @param {number} y
   * @param {number} chosen
   */
  at(y, chosen) {
    const height = this.height || 1;
    const details = chosen < 0 ? Infinity : (chosen + 1) * height;
    if (y > details) y = Math.max(details - 1, y - this.extra);
    return Math.min(this.entries.length - 1, Math.max(0, Math.floor(y / height)));
  }

  /** @param {number} i @param {number} chosen */
  top(i, chosen) {
    return i * this.height + (chosen >= 0 && i > chosen ? this.extra : 0);
  }

  /**
   * Returns the indexes of the rows to be in the page, in order, including the chosen and the focused one.
   * @param {number} first
   * @param {number} last
   * @param {number} chosen
   */
  wanted(first, last, chosen) {
    const wanted = [];
    for (let i = Math.max(0, first); i <= Math.min(last, this.entries.length - 1); i++) wanted.push(i);
    const focused = this.focused();
    for (const i of [chosen, focused ? this.indexOf(focused) : -1]) {
      if (i >= 0 && i < this.entries.length && !wanted.includes(i)) wanted.push(i);
    }
    return wanted.sort((a, b) => a - b);
  }

  focused() {
    const li = document.activeElement?.closest("li");
    if (!li || li.parentElement !== this.list) return null;
    for (const [entry, made] of this.made) if (made.li === li) return entry;
    return null;
  }

  /** @param {number[]} wanted @param {number} chosen */
  place(wanted, chosen) {
    const keep = new Set(wanted.map((i) => this.entries[i]));
    for (const entry of [...this.made.keys()]) if (!keep.has(entry)) this.discard(entry);
    const size = String(this.entries.length);
    let next = this.list.firstElementChild;
    const reachable = this.current && keep.has(this.current) ? this.current : this.entries[this.at(this.list.scrollTop, chosen)];
    for (const i of wanted) {
      const entry = this.entries[i];
      if (!entry) continue;
      const made = this.made.get(entry) ?? this.make(entry);
      if (made.li === next) next = next.nextElementSibling;
      else this.list.insertBefore(made.li, next);
      if (entry === this.chosen && !made.hasDetails) this.open(entry, made);
      made.li.style.top = `${this.top(i, chosen)}px`;
      set(made.li, "aria-setsize", size);
      set(made.li, "aria-posinset", String(i + 1));
      made.line.tabIndex = entry === reachable ? 0 : -1;
      if (entry === this.chosen) set(made.line, "aria-current", "true");
      else if (made.line.ariaCurrent) made.line.removeAttribute("aria-current");
    }
  }

  /** @param {Entry} entry */
  make(entry) {
    const { line, dispose } = this.on.row(entry);
    const li = document.createElement("li");
    li.dataset.seq = String(entry.seq);
    li.append(line);
    line.addEventListener("click", () => this.on.choose(entry));
    line.addEventListener("focus", () => (this.current = entry));
    const made = { li, line, dispose: [dispose], hasDetails: false };
    this.made.set(entry, made);
    return made;
  }

  /**
   * @param {Entry} entry
   * @param {{li: HTMLElement, dispose: (() => void)[], hasDetails: boolean}} made
   */
  open(entry, made) {
    const { box, dispose } = this.on.details(entry);
    made.li.append(box);
    made.dispose.push(dispose);
    made.hasDetails = true;
    this.sizes.observe(box);
    this.extra = box.offsetHeight;
    this.schedule();
  }

  /** Removes a row from the page; its focus moves to the row that replaces it. */
  discard(/** @type {Entry} */ entry) {
    const made = this.made.get(entry);
    if (!made) return;
    const hadFocus = made.li.contains(document.activeElement);
    for (const dispose of made.dispose) dispose();
    made.li.remove();
    this.made.delete(entry);
    if (!hadFocus || this.entries[this.indexOf(entry)] !== entry) return;
    const again = this.make(entry);
    const next = [...this.list.children].find((li) => li instanceof HTMLElement && Number(li.dataset.seq) > entry.seq);
    this.list.insertBefore(again.li, next ?? null); // in order, because a row that is moved loses the focus
    again.line.tabIndex = 0;
    again.line.focus({ preventScroll: true });
  }

  /**
   * Scrolls a row into view, with as much of its details as fits.
   * @param {number} i
   * @param {boolean} [withDetails]
   */
  reveal(i, withDetails = false) {
    const { list } = this;
    this.measure();
    const chosen = this.chosenIndex();
    const top = this.top(i, chosen);
    const height = Math.min(list.clientHeight, this.height + (withDetails ? this.extra : 0));
    if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
    if (top < list.scrollTop) list.scrollTop = top;
    this.follow = this.follow && i === this.entries.length - 1 && !withDetails;
    this.draw();
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || !(e.target instanceof HTMLElement) || !e.target.matches("li > button")) return;
    const now = this.current ? this.indexOf(this.current) : 0;
    const page = Math.max(1, Math.floor(this.list.clientHeight / (this.height || 1)) - 1);
    const end = this.entries.length - 1;
    const to = { ArrowUp: now - 1, ArrowDown: now + 1, Home: 0, End: end, PageUp: now - page, PageDown: now + page }[e.key];
    if (to === undefined || end < 0) return;
    e.preventDefault();
    this.focus(Math.min(end, Math.max(0, to)));
  }

  /** @param {number} i */
  focus(i) {
    const entry = this.entries[i];
    if (!entry) return;
    this.current = entry;
    this.follow = false;
    this.reveal(i);
    this.made.get(entry)?.line.focus({ preventScroll: true });
  }
}

/**
 * @param {HTMLElement} element
 * @param {string} name
 * @param {string} value
 */
function set(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}
