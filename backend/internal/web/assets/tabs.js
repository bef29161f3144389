// The tabs of the simulator page. On a narrow page the event log is the second tab, because the row may not have space
// for all; otherwise it is always shown.
import { get } from "./elements.js";

const store = "simulator tab";

/** True where the log is beside the tabs. simulator.css has the same condition. */
const wide = matchMedia("(min-width: 58rem) and (min-height: 36rem)");

export class Tabs {
  /** @param {HTMLElement} list the element with role tablist */
  constructor(list) {
    this.list = list;
    this.tabs = tabsIn(list);
    this.wanted = remembered(); // the user's choice, which may be hidden at the moment
    for (const tab of this.tabs) tab.addEventListener("click", () => this.choose(nameOf(tab)));
    list.addEventListener("keydown", (e) => this.key(e));
    wide.addEventListener("change", () => this.arrange());
    this.arrange();
  }

  /** Makes the log a tab, or a separate region. */
  arrange() {
    const log = get("pane-log", HTMLElement);
    const tab = get("tab-log", HTMLButtonElement);
    tab.hidden = wide.matches;
    if (!wide.matches) this.tabs[0]?.after(tab);
    else this.list.append(tab);
    this.tabs = tabsIn(this.list);
    log.role = wide.matches ? null : "tabpanel";
    log.setAttribute("aria-labelledby", wide.matches ? "log-title" : "tab-log");
    this.update();
  }

  shown() {
    return this.tabs.filter((tab) => !tab.hidden);
  }

  /** @param {string} name */
  choose(name) {
    this.wanted = name;
    remember(name);
    this.update();
  }

  /**
   * Shows or hides a tab.
   * @param {string} name
   * @param {boolean} on
   */
  setShown(name, on) {
    const tab = get(`tab-${name}`, HTMLButtonElement);
    if (tab.hidden !== on) return;
    tab.hidden = !on;
    this.update();
  }

  /** Shows the wanted tab, or the first one if the wanted one is hidden. */
  update() {
    const chosen = this.shown().find((tab) => nameOf(tab) === this.wanted) ?? this.shown()[0];
    for (const tab of this.tabs) {
      const isChosen = tab === chosen;
      tab.ariaSelected = String(isChosen);
      tab.tabIndex = isChosen ? 0 : -1;
      get(`pane-${nameOf(tab)}`, HTMLElement).hidden = !isChosen && !(nameOf(tab) === "log" && wide.matches);
    }
    if (chosen) reveal(this.list, chosen);
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const tabs = this.shown();
    const at = tabs.findIndex((tab) => tab.ariaSelected === "true");
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: -1 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    const next = tabs.at(to % tabs.length);
    if (!next) return;
    this.choose(nameOf(next));
    next.focus();
  }
}

/** @param {HTMLElement} list */
function tabsIn(list) {
  return /** @type {HTMLButtonElement[]} */ ([...list.querySelectorAll("[role=tab]")]);
}

/** @param {HTMLElement} tab */
function nameOf(tab) {
  return tab.id.replace("tab-", "");
}

/**
 * Scrolls a row of tabs, but not the page, so that a tab is visible.
 * @param {HTMLElement} list
 * @param {HTMLElement} tab
 */
function reveal(list, tab) {
  const left = tab.offsetLeft;
  const right = left + tab.offsetWidth;
  if (left < list.scrollLeft) list.scrollLeft = left;
  else if (right > list.scrollLeft + list.clientWidth) list.scrollLeft = right - list.clientWidth;
}

function remembered() {
  try {
    return sessionStorage.getItem(store);
  } catch {
    return null;
  }
}

/** @param {string} name */
function remember(name) {
  try {
    sessionStorage.setItem(store, name);
  } catch {
    // Storage is full or forbidden, so a reload shows the first tab.
  }
}
