// Clips of the panel's last 30 seconds. The buffer keeps the snapshots that the page has anyway, and draws them only if
// the user asks for a clip. Keeping it therefore costs almost nothing, and making a clip is faster than playing it.
import { webm } from "./webm.js";

const span = 30_000; // ms
const closest = 100; // ms between two kept snapshots, each of up to 64 KB
const scale = 2; // pixels of the clip per pixel of the panel, because video halves the resolution of colours
const batch = 5; // pictures after which the page may do other work

/** @param {{width: number, height: number}} size */
const config = (size) => ({ codec: "vp8", width: size.width, height: size.height, bitrate: 4_000_000 });

/** Returns the reason why this browser cannot make clips; "" if it can. */
export async function clipProblem() {
  if (!isSecureContext) return "Clips need a page with https, or on localhost.";
  try {
    const answer = await VideoEncoder.isConfigSupported(config({ width: 640, height: 480 }));
    if (answer.supported) return "";
  } catch {
    // The browser has no encoder at all.
  }
  return "This browser cannot make WebM clips.";
}

export class ClipBuffer {
  /**
   * @param {import("./device.js").Device} device
   * @param {import("./device.js").Model[]} models
   */
  constructor(device, models) {
    this.device = device;
    this.models = models;
    /** @type {{at: number, snapshot: string}[]} */
    this.kept = [];
  }

  /** @param {string} snapshot of the glasses from now on */
  add(snapshot) {
    const at = performance.now();
    const last = this.kept.at(-1);
    if (last && at - last.at < closest) last.snapshot = snapshot;
    else this.kept.push({ at, snapshot });
    this.forget(at - span);
  }

  /**
   * Drops snapshots that were replaced before a time.
   * @param {number} before
   */
  forget(before) {
    const first = this.kept.findLastIndex((m) => m.at <= before);
    if (first > 0) this.kept.splice(0, first);
  }

  /**
   * Returns a WebM of the last 30 seconds, or of the time since the page was opened if that is shorter. It has a picture
   * for each change, and a last one at the end.
   * @returns {Promise<Blob | null>} null if the glasses had no panel
   */
  async clip() {
    const end = performance.now();
    this.forget(end - span);
    const kept = [...this.kept];
    const begin = Math.max(end - span, kept[0]?.at ?? end);
    const canvas = this.canvas(kept);
    const c = canvas.getContext("2d", { alpha: false });
    if (!c || !canvas.width) return null;
    /** @type {EncodedVideoChunk[]} */
    const chunks = [];
    /** @type {DOMException | null} */
    let problem = null;
    const encoder = new VideoEncoder({ output: (chunk) => chunks.push(chunk), error: (e) => (problem = e) });
    encoder.configure(config(canvas));
    const times = [...kept.map((m) => Math.max(0, m.at - begin)), end - begin];
    for (const [n, ms] of times.entries()) {
      if (kept[n]) this.draw(c, kept[n].snapshot);
      if (problem) throw problem;
      const frame = new VideoFrame(canvas, { timestamp: Math.round(ms * 1000) });
      encoder.encode(frame, { keyFrame: n === 0 });
      frame.close();
      if (n % batch === 0) await new Promise((done) => setTimeout(done));
    }
    await encoder.flush();
    encoder.close();
    return new Blob([webm(chunks, canvas, end - begin)], { type: "video/webm" });
  }

  /**
   * Returns a canvas for the largest panel among the kept snapshots.
   * @param {{snapshot: string}[]} kept
   */
  canvas(kept) {
    const canvas = Object.assign(document.createElement("canvas"), { width: 0, height: 0 });
    for (const id of new Set(kept.map((m) => JSON.parse(m.snapshot).deviceModel))) {
      const panel = this.models.find((m) => m.id === id)?.panel;
      canvas.width = Math.max(canvas.width, scale * (panel?.width ?? 0));
      canvas.height = Math.max(canvas.height, scale * (panel?.height ?? 0));
    }
    return canvas;
  }

  /**
   * Draws a snapshot in the middle.
   * @param {CanvasRenderingContext2D} c
   * @param {string} snapshot
   */
  draw(c, snapshot) {
    c.clearRect(0, 0, c.canvas.width, c.canvas.height);
    const picture = this.device.program?.show(snapshot)?.picture;
    if (!picture) return;
    const { width, height } = picture;
    const pixels = Object.assign(document.createElement("canvas"), { width, height });
    pixels.getContext("2d")?.putImageData(picture, 0, 0);
    c.imageSmoothingEnabled = false;
    c.drawImage(pixels, (c.canvas.width - scale * width) / 2, (c.canvas.height - scale * height) / 2, scale * width, scale * height);
  }
}
