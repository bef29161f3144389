// Pictures, clips and sound that this page has sent, for the event log. When the limit is reached, the oldest are
// dropped.

/** @typedef {{mime: string, parts: Uint8Array<ArrayBuffer>[], bytes: number, sampleRate: number}} Medium */

const most = 24_000_000; // bytes in total
const longestSound = 2_000_000; // bytes of one sound: a minute at 16000 Hz

export class Media {
  constructor() {
    /** @type {Map<string, Medium>} by the id of their command */
    this.kept = new Map();
    this.bytes = 0;
    this.listening = ""; // the id of the latest audio.start
    this.forgotten = new Set();
  }

  /** @param {string} id of an audio.start */
  listen(id) {
    this.listening = id;
  }

  /**
   * Keeps the body of a binary frame.
   * @param {import("./live.js").Frame} f
   * @param {Uint8Array<ArrayBuffer>} message the complete frame
   */
  take(f, message) {
    const id = f.type === "audio.chunk" ? this.listening : f.type === "media" ? f.id ?? "" : "";
    if (!id) return;
    const body = message.slice(2 + (message[0] ?? 0) * 256 + (message[1] ?? 0));
    const old = this.kept.get(id);
    if (old && (f.type === "media" || old.bytes + body.length > longestSound)) return;
    /** @type {Medium} */
    const medium = old ?? { mime: f.type === "media" ? f.payload.mime : "audio/wav", parts: [], bytes: 0, sampleRate: f.payload.sampleRate ?? 0 };
    medium.parts.push(body);
    medium.bytes += body.length;
    this.kept.set(id, medium);
    this.bytes += body.length;
    for (const [oldest, m] of this.kept) {
      if (this.bytes <= most || oldest === id) break;
      this.kept.delete(oldest);
      this.forgotten.add(oldest);
      this.bytes -= m.bytes;
    }
  }

  /** @param {string} id */
  get(id) {
    return this.kept.get(id);
  }
}

/**
 * Returns the files of a medium: one, or one for each picture of a clip.
 * @param {Medium} m
 * @returns {Blob[]}
 */
export function files(m) {
  if (m.mime === "audio/wav" && m.sampleRate) return [new Blob([wavHeader(m.bytes, m.sampleRate), ...m.parts], { type: m.mime })];
  const [bytes] = m.parts;
  if (m.mime !== "video/x-motion-jpeg" || !bytes) return [new Blob(m.parts, { type: m.mime })];
  /** @type {number[]} */
  const starts = [];
  for (let i = 0; i + 2 < bytes.length; i++) if (bytes[i] === 0xff && bytes[i + 1] === 0xd8 && bytes[i + 2] === 0xff) starts.push(i);
  return starts.map((start, i) => new Blob([bytes.subarray(start, starts[i + 1])], { type: "image/jpeg" }));
}

/**
 * Returns the header of a WAV file with 16-bit samples of one channel.
 * @param {number} bytes
 * @param {number} rate
 */
function wavHeader(bytes, rate) {
  const header = new DataView(new ArrayBuffer(44));
  const text = (/** @type {number} */ at, /** @type {string} */ s) => [...s].forEach((c, i) => header.setUint8(at + i, c.charCodeAt(0)));
  text(0, "RIFF");
  header.setUint32(4, 36 + bytes, true);
  text(8, "WAVEfmt ");
  header.setUint32(16, 16, true);
  header.setUint16(20, 1, true);
  header.setUint16(22, 1, true);
  header.setUint32(24, rate, true);
  header.setUint32(28, rate * 2, true);
  header.setUint16(32, 2, true);
  header.setUint16(34, 16, true);
  text(36, "data");
  header.setUint32(40, bytes, true);
  return header;
}

/**
 * Shows a medium: a picture, a clip with a control for its pictures, or a player. dispose frees its memory.
 * @param {Medium} m
 * @returns {{element: HTMLElement, dispose: () => void}}
 */
export function show(m) {
  const list = files(m);
  /** @type {string[]} */
  let urls = [];
  const dispose = () => {
    urls.forEach((url) => URL.revokeObjectURL(url));
    urls = [];
  };
  const urlOf = (/** @type {Blob} */ file) => {
    dispose();
    urls = [URL.createObjectURL(file)];
    return urls[0] ?? "";
  };
  const box = document.createElement("div");
  box.className = "medium";
  const [first] = list;
  if (!first) {
    box.textContent = "This clip has no picture.";
  } else if (first.type.startsWith("audio/")) {
    const player = document.createElement("audio");
    player.controls = true;
    player.src = urlOf(first);
    player.ariaLabel = "The sound";
    box.append(player);
  } else {
    const image = picture(urlOf(first));
    box.append(image);
    if (list.length > 1) box.append(frames(list.length, (i) => (image.src = urlOf(list[i] ?? first))));
  }
  return { element: box, dispose };
}

/** @param {string} url */
function picture(url) {
  const image = document.createElement("img");
  image.alt = "What the camera saw";
  image.src = url;
  return image;
}

/**
 * @param {number} count
 * @param {(i: number) => void} turn
 */
function frames(count, turn) {
  const label = document.createElement("label");
  const range = document.createElement("input");
  range.type = "range";
  range.min = "1";
  range.value = "1";
  range.max = String(count);
  const which = document.createElement("output");
  const tell = () => (which.textContent = `${range.value} of ${count}`);
  range.addEventListener("input", () => {
    turn(Number(range.value) - 1);
    tell();
  });
  tell();
  label.append("Picture ", range, which);
  return label;
}
