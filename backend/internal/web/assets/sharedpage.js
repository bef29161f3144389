"use strict";
// The script in a shared session (share.js): shows the panel of the row that the user chooses. Without it, the file
// shows the last panel and the whole log.
{
  const find = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
  /** @type {import("./share.js").SharedData} */
  const data = JSON.parse(find("data").textContent ?? "{}");
  const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".rows > li")]);
  const image = /** @type {HTMLImageElement} */ (find("panel"));
  const scrub = /** @type {HTMLInputElement} */ (find("scrub"));
  const search = /** @type {HTMLInputElement} */ (find("search"));
  const cautions = {
    exact: "", rebuilt: " Rebuilt from the log.", roughly: " The content is right; focus and scroll position may differ.",
    unknown: " What the panel showed is not known.",
  };

  /** @param {number} i */
  const show = (i) => {
    const moment = data.moments[i];
    const row = rows[i];
    if (!moment || !row) return;
    rows.forEach((r) => r.querySelector("button")?.removeAttribute("aria-current"));
    row.querySelector("button")?.setAttribute("aria-current", "true");
    const picture = data.pictures[moment.picture];
    image.hidden = !picture;
    find("none").hidden = !!picture;
    find("none").textContent = moment.picture === -2 ? "The picture of this moment is left out." : moment.certainty === "unknown" ? "Not known." : "No display.";
    if (picture) {
      image.src = picture.src;
      image.width = picture.width;
      image.height = picture.height;
      image.alt = moment.clear ? "The panel is clear" : `The panel: ${moment.lines.join(", ")}`;
    }
    const place = `${row.querySelector("time")?.textContent}, row ${row.querySelector(".seq")?.textContent}`;
    find("at").textContent = `${place}.${cautions[/** @type {"exact"} */ (moment.certainty)] ?? ""}`;
    scrub.value = String(i);
    scrub.setAttribute("aria-valuetext", place);
    showState(moment);
  };

  /** @param {import("./share.js").SharedMoment} m */
  const showState = (m) => {
    const s = data.states[m.state];
    const refused = s ? Object.keys(s.permissions).filter((part) => s.permissions[part] === "denied") : [];
    /** @type {[string, string][]} */
    const facts = s ? [
      ["Model", m.model], ["Battery", `${s.battery.level} %${s.battery.charging ? ", charging" : ""}`],
      ["Worn", s.worn ? "yes" : "no"], ["Hinge", s.hinge], ["Heat", s.thermal], ["Link", s.link], ["Sound goes to", s.route],
      ["In a call", s.call ? "yes" : "no"], ["Refused", refused.join(", ") || "nothing"],
      ["Switched off", s.disabled.join(", ") || "nothing"], ["Running", s.running.join(", ") || "nothing"],
    ] : [];
    find("state").replaceChildren(...facts.map(([name, value]) => {
      const box = document.createElement("div");
      const term = document.createElement("dt");
      const fact = document.createElement("dd");
      term.textContent = name;
      fact.textContent = value;
      box.append(term, fact);
      return box;
    }));
  };

  rows.forEach((row, i) => row.querySelector("button")?.addEventListener("click", () => show(i)));
  scrub.addEventListener("input", () => {
    show(Number(scrub.value));
    rows[Number(scrub.value)]?.scrollIntoView({ block: "nearest" });
  });
  search.addEventListener("input", () => {
    const query = search.value.trim().toLowerCase();
    let found = 0;
    for (const row of rows) {
      row.hidden = !!query && !(row.textContent ?? "").toLowerCase().includes(query);
      if (!row.hidden) found++;
    }
    find("found").textContent = query ? `${found} of ${rows.length} rows` : "";
  });
  find("scrubbing").hidden = find("finding").hidden = rows.length === 0;
  show(rows.length - 1);
}
