// The Go program's functions for earlier moments: it draws a snapshot, rebuilds glasses from rows, and prepares texts
// for a shared session.

/** @typedef {import("./device.js").Snapshot} Snapshot */

export class Past {
  /** @param {import("./device.js").Device} device */
  constructor(device) {
    this.device = device;
  }

  /**
   * Returns the view of glasses with a snapshot. fonts is set while fonts are missing, and resolves when drawing again
   * is worthwhile.
   * @param {string} snapshot
   */
  show(snapshot) {
    const shown = this.device.program && this.device.running ? this.device.program.show(snapshot) : null;
    if (!shown) return null;
    /** @type {string[] | null} */
    const names = JSON.parse(shown.wanted);
    return {
      picture: shown.picture, fonts: names?.length ? Promise.all(names.map((name) => this.device.fetchFont(name))) : null,
      /** @type {{lines: string[], focus: string}} */
      reading: JSON.parse(shown.reading),
    };
  }

  /**
   * Rebuilds the glasses after rows of the event log.
   * @param {string} request JSON, see backend/simulator/past.go
   * @returns {import("./moments.js").Moment[]}
   */
  rebuild(request) {
    const answer = this.device.program && this.device.running ? this.device.program.rebuild(request) : "";
    /** @type {{certainty: "exact"|"roughly"|"unknown", snapshot: Snapshot}[] | null} */
    const moments = JSON.parse(answer || "[]");
    return (moments ?? []).map(({ certainty, snapshot }) => ({
      certainty: certainty === "exact" ? "rebuilt" : certainty, snapshot, text: JSON.stringify(snapshot),
    }));
  }

  /**
   * Returns the SHA-256 of a text in base64.
   * @param {string} text
   */
  digest(text) {
    return this.device.program?.digest(text) ?? "";
  }

  /**
   * Replaces credentials in a text.
   * @param {string} text
   */
  redact(text) {
    return this.device.program?.redact(text) ?? "";
  }
}
