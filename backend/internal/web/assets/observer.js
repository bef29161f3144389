// A page that only observes follows the glasses of the active page from the rows of the event log.
import { lesson } from "./lessons.js";

/** @typedef {import("./device.js").Snapshot} Snapshot */

export class Observer {
  /** @param {import("./device.js").Device} device */
  constructor(device) {
    this.device = device;
    /** While the page applies the events of other glasses, its output is not sent. */
    this.learning = false;
    /** @type {{type: string, payload: any}[]} */
    this.lessons = [];
  }

  /**
   * Applies an event of another page's glasses.
   * @param {import("./log.js").Row} row
   */
  learn(row) {
    if (row.sender !== "glasses") return;
    const learned = lesson(row);
    if (learned) this.lessons.push(learned);
    if (this.device.running) this.catchUp();
  }

  /** Applies the events that arrived before the program was loaded. */
  catchUp() {
    const now = this.lessons;
    this.lessons = [];
    this.learning = true;
    for (const learned of now) this.device.control(learned.type, learned.payload);
    this.learning = false;
  }

  /** Follows the glasses of another page. Streams and captures end here, because the other page has its own. */
  mirror() {
    /** @type {Snapshot} */
    const s = JSON.parse(this.device.last);
    this.device.start(s.deviceModel, this.device.last, s.view.tree ? { tree: s.view.tree } : null);
  }
}
