// Saves the session as one HTML file, which needs no server and no network: the panel at each row, the log, pictures and
// sound. Its size is limited; the file lists the parts that were left out. sharedpage.js is the script in the file.
import { get } from "./elements.js";
import { download, mediumOf } from "./log.js";
import { files } from "./media.js";
import { indented, timeOf, words } from "./words.js";

/** @typedef {import("./log.js").Entry} Entry */
/** @typedef {import("./moments.js").Moment} Moment */
/** @typedef {{picture: number, model: string, state: number, certainty: string, lines: string[], clear: boolean}} SharedMoment picture is -1 if there is none, -2 if it was left out; state is -1 if it is not known */
/** @typedef {{moments: SharedMoment[], pictures: SharedPicture[], states: import("./device.js").GlassesState[]}} SharedData */
/** @typedef {{src: string, width: number, height: number}} SharedPicture */

const maxRows = 5_000;
const atOnce = 100; // rows
const maxLog = 8_000_000; // characters
const maxPictures = 400;
const maxPixels = 16_000_000; // characters of the panel's pictures
const maxMedia = 16_000_000; // characters of pictures and sound

export class Share {
  /**
   * @param {{session: string, project: string, models: import("./device.js").Model[]}} about
   * @param {import("./log.js").Log} log
   * @param {import("./moments.js").Moments} moments
   */
  constructor(about, log, moments) {
    this.about = about;
    this.log = log;
    this.moments = moments;
    this.past = moments.past;
    this.button = get("share-save", HTMLButtonElement);
    this.button.addEventListener("click", () => this.save());
  }

  async save() {
    if (this.button.ariaDisabled) return;
    if (!this.moments.device.running) {
      this.tell("The file needs the simulator's program, which does not run. Reload this page and try again.");
      return;
    }
    this.button.ariaDisabled = "true";
    this.tell("The file is being prepared.");
    try {
      const html = await this.page();
      const file = new Blob([html], { type: "text/html" });
      download(file, `${this.about.session}.html`);
      this.tell(`Saved ${this.about.session}.html, ${(file.size / 1e6).toFixed(1)} MB.`);
    } catch (e) {
      this.tell(`The file could not be made: ${e instanceof Error ? e.message : e}. Try again.`);
    }
    this.button.ariaDisabled = null;
  }

  /** @param {string} text */
  tell(text) {
    get("share-state", HTMLElement).textContent = text;
  }

  async page() {
    const { reportUrl, sharedUrl, scriptUrl } = get("share", HTMLElement).dataset;
    const [report, own, code] = await Promise.all([reportUrl, sharedUrl, scriptUrl].map(load));
    const css = `${report}${own}`;
    const all = this.log.entries;
    const first = firstRow(all);
    const entries = all.slice(first);
    const missing = this.log.missing + first;
    const left = missing > 0 ? [`The ${missing} oldest of ${this.log.last} rows are left out.`] : [];
    const seen = this.moments.between(first, entries.length); // the moments must be read now, because the log continues
    const texts = await this.redact(entries);
    const { moments, pictures, states, undrawn } = await this.draw(seen);
    if (undrawn > 0) left.push(`Pictures of the panel are left out for ${undrawn} older moments.`);
    const media = await this.encodeMedia(entries);
    if (media.missing > 0) left.push(`${media.missing} older pictures or sounds of the app are left out.`);
    const rows = entries.map((e, i) => row(e, texts[i] ?? "", media.html.get(e) ?? ""));
    const policy = `default-src 'none'; img-src data:; media-src data:; style-src 'sha256-${this.past.digest(css)}'; script-src 'sha256-${this.past.digest(code ?? "")}'; base-uri 'none'; form-action 'none'`;
    return document_({ about: this.about, policy, css, code: code ?? "", left, rows, entries, data: { moments, pictures, states } });
  }

  /**
   * Returns the rows as JSON without credentials. The session continues between the parts.
   * @param {Entry[]} entries
   */
  async redact(entries) {
    const texts = [];
    for (let i = 0; i < entries.length; i += atOnce) {
      texts.push(...this.past.redact(entries.slice(i, i + atOnce).map((e) => e.json).join("\n")).split("\n"));
      await new Promise((done) => setTimeout(done));
    }
    return texts;
  }

  /**
   * Draws the panel of each moment, newest first, until there is no more space.
   * @param {(Moment | null)[]} list
   */
  async draw(list) {
    /** @type {SharedPicture[]} */
    const pictures = [];
    /** @type {Map<string, SharedMoment>} */
    const drawn = new Map(); // by the values that determine the picture
    /** @type {SharedMoment[]} */
    const moments = [];
    /** @type {Map<string, number>} */
    const states = new Map(); // indexes by their JSON
    let used = 0;
    let undrawn = 0;
    for (const m of [...list].reverse()) {
      const key = m && `${m.certainty} ${m.snapshot.deviceModel} ${m.snapshot.state.worn} ${m.snapshot.state.hinge} ${m.text.slice(m.text.indexOf('"view":'))}`;
      let known = key ? drawn.get(key) : undefined;
      if (m && key && !known) {
        const isFull = pictures.length >= maxPictures || used > maxPixels;
        known = isFull ? { ...nothing, picture: -2 } : await this.drawOne(m, pictures);
        used += pictures[known.picture]?.src.length ?? 0;
        drawn.set(key, known);
      }
      if (known?.picture === -2) undrawn++;
      const json = m ? JSON.stringify(m.snapshot.state) : "";
      if (m && !states.has(json)) states.set(json, states.size);
      const state = states.get(json) ?? -1;
      moments.push({ ...(known ?? nothing), state, model: this.nameOf(m), certainty: m?.certainty ?? "unknown" });
    }
    return { moments: moments.reverse(), pictures, states: [...states.keys()].map((json) => JSON.parse(this.past.redact(json))), undrawn };
  }

  /** @param {Moment | null} m */
  nameOf(m) {
    const id = m?.snapshot.deviceModel ?? "";
    return this.about.models.find((model) => model.id === id)?.name ?? id;
  }

  /**
   * @param {Moment} m
   * @param {SharedPicture[]} pictures
   * @returns {Promise<SharedMoment>}
   */
  async drawOne(m, pictures) {
    let shown = this.past.show(m.text);
    if (shown?.fonts) {
      await shown.fonts;
      shown = this.past.show(m.text);
    }
    const of = { ...nothing, lines: JSON.parse(this.past.redact(JSON.stringify(shown?.reading.lines ?? []))), clear: !m.snapshot.view.tree };
    if (!shown?.picture || m.certainty === "unknown") return of;
    const { width, height } = shown.picture;
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    canvas.getContext("2d")?.putImageData(shown.picture, 0, 0);
    const png = await new Promise((/** @type {(b: Blob | null) => void} */ done) => canvas.toBlob(done, "image/png"));
    if (!png) return of;
    pictures.push({ src: await dataURL(png), width, height });
    return { ...of, picture: pictures.length - 1 };
  }

  /** @param {Entry[]} entries */
  async encodeMedia(entries) {
    /** @type {Map<Entry, string>} */
    const html = new Map();
    let used = 0;
    let missing = 0;
    for (const e of [...entries].reverse()) {
      const medium = mediumOf(e, this.log.media);
      const list = medium ? files(medium) : [];
      const [file] = list;
      if (!file) continue;
      if (used + file.size * 1.4 > maxMedia) {
        missing++;
        continue;
      }
      const url = await dataURL(file);
      used += url.length;
      const more = list.length > 1 ? `<p class="muted">The first of ${list.length} pictures.</p>` : "";
      html.set(e, file.type.startsWith("audio/") ? `<audio controls src="${escape(url)}"></audio>` : `<img src="${escape(url)}" alt="What the camera saw">${more}`);
    }
    return { html, missing };
  }
}

/** @type {SharedMoment} */
const nothing = { picture: -1, model: "", state: -1, certainty: "unknown", lines: [], clear: false };

/**
 * Returns the index of the first row that fits into the file.
 * @param {Entry[]} entries
 */
function firstRow(entries) {
  let size = 0;
  let i = entries.length;
  while (i > 0 && entries.length - i < maxRows && size <= maxLog) size += entries[--i]?.json.length ?? 0;
  return size > maxLog ? i + 1 : i;
}

/** @param {string | undefined} url */
async function load(url) {
  const answer = await fetch(url ?? "");
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer.text();
}

/**
 * @param {Blob} file
 * @returns {Promise<string>}
 */
function dataURL(file) {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result));
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(file);
  });
}

/** @param {string} text */
const escape = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

/**
 * Returns a row of the log as HTML.
 * @param {Entry} e
 * @param {string} json without credentials
 * @param {string} medium HTML
 */
function row(e, json, medium) {
  const content = JSON.parse(json);
  const { title, code, text } = words({ type: e.type, kind: e.kind, sender: e.sender, payload: content.payload, took: e.took, of: e.of });
  const time = timeOf(e.at);
  const said = `<b>${escape(title)}${code || text ? ":" : ""}</b> ${code ? `<span class="code">${escape(code)}</span> ` : ""}<span class="text">${escape(text)}</span>`;
  return `<li id="row-${e.seq}"${code ? ' class="failed"' : ""}><button type="button"><span class="seq">${e.seq}</span> <time datetime="${new Date(e.at).toISOString()}">${time}</time> <span class="chip" data-chip="${escape(e.chip)}">${escape(e.chip)}</span> <span class="said" dir="auto">${said}</span></button>
<details><summary>JSON<span class="sr"> of row ${e.seq}</span></summary><pre tabindex="0">${escape(indented(json))}</pre></details>${medium ? `<div class="medium">${medium}</div>` : ""}</li>`;
}

/** @param {{about: {session: string, project: string}, policy: string, css: string, code: string, left: string[], rows: string[], entries: Entry[], data: SharedData}} p */
function document_(p) {
  const title = escape(`Session of ${p.about.project}`);
  const [first, last] = [p.entries[0], p.entries.at(-1)];
  const span = first && last ? `${new Date(first.at).toLocaleString()} to ${timeOf(last.at)}, ${p.rows.length} ${p.rows.length === 1 ? "row" : "rows"}` : "no rows";
  const picture = p.data.pictures[p.data.moments.at(-1)?.picture ?? -1];
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${p.policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${p.css}</style>
</head>
<body>
<header>
<h1>${title}</h1>
<p class="muted">${escape(span)}. Saved ${escape(new Date().toLocaleString())} from session <code>${escape(p.about.session)}</code>.</p>
${p.left.length ? `<p class="note">${escape(p.left.join(" "))}</p>` : ""}
</header>
<main>
<section id="stage" aria-labelledby="panel-title">
<h2 id="panel-title">Panel</h2>
<figure><div class="lens"><img id="panel" alt="The panel"${picture ? ` src="${escape(picture.src)}" width="${picture.width}" height="${picture.height}"` : " hidden"}><p id="none" class="muted"${picture ? " hidden" : ""}>No picture.</p></div>
<figcaption><span id="at" role="status">The panel at the end of the log.</span></figcaption></figure>
<p id="scrubbing" hidden><label for="scrub">Moment</label> <input id="scrub" type="range" min="0" max="${Math.max(0, p.rows.length - 1)}" value="${Math.max(0, p.rows.length - 1)}"></p>
<dl id="state"></dl>
</section>
<section id="events" aria-labelledby="log-title">
<h2 id="log-title">Event log</h2>
<p id="finding" hidden><label for="search">Search</label> <input id="search" type="search" autocomplete="off"> <span id="found" class="muted" role="status"></span></p>
<ol class="rows">
${p.rows.join("\n")}
</ol>
</section>
</main>
<script type="application/json" id="data">${JSON.stringify(p.data).replaceAll("<", "\\u003c")}</script>
<script>${p.code}</script>
</body>
</html>
`;
}
