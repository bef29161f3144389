// What the simulated camera sees: this computer's webcam once an app asks, a picture file, or the built-in test picture.
// If the user refuses the webcam, it is never replaced silently.
import { sleep } from "./timer.js";

/** @typedef {"webcam"|"file"|"test"} Source */

const idleAfter = 5_000; // ms after the last picture when the webcam is switched off
const maxBytes = 1_800_000; // of a photo or clip, because a binary frame has at most 2 MB
const qualities = [0.9, 0.75, 0.5, 0.3, 0.15];

/** The reason why a picture is missing, with an error code for the app. */
export class NoPicture extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** The reason why there is no webcam: refused, missing, or in use by another program. */
export class WebcamProblem extends Error {
  /** @param {"refused"|"missing"|"taken"} state */
  constructor(state) {
    super(state);
    this.state = state;
  }
}

/** Opens this computer's webcam, for which the browser asks the user, or throws WebcamProblem. */
export async function openWebcam() {
  if (!navigator.mediaDevices) throw new WebcamProblem("missing");
  try {
    return await navigator.mediaDevices.getUserMedia({ video: { width: { ideal: 1280 } }, audio: false });
  } catch (e) {
    const name = e instanceof DOMException ? e.name : "";
    const refused = name === "NotAllowedError" || name === "SecurityError";
    throw new WebcamProblem(refused ? "refused" : name === "NotFoundError" ? "missing" : "taken");
  }
}

export class Camera {
  /**
   * @param {{video: HTMLVideoElement, still: HTMLCanvasElement, state: HTMLElement, help: HTMLElement, file: HTMLInputElement, choose: HTMLElement, mark: HTMLElement, sources: HTMLInputElement[]}} parts
   */
  constructor(parts) {
    this.parts = parts;
    /** @type {Source} */
    this.source = "webcam";
    /** @type {ImageBitmap | null} */
    this.picture = null;
    /** @type {Promise<void> | null} */
    this.opening = null;
    /** @type {MediaStream | null} */
    this.stream = null;
    this.streaming = false;
    this.canvas = document.createElement("canvas");
    for (const radio of parts.sources) {
      if (radio.value === "webcam") radio.checked = true;
      radio.addEventListener("change", () => this.choose(/** @type {Source} */ (radio.value)));
    }
    parts.file.addEventListener("change", () => this.load());
    this.tell("off");
  }

  /** @param {Source} source */
  choose(source) {
    this.source = source;
    for (const radio of this.parts.sources) radio.checked = radio.value === source;
    if (source !== "webcam") this.close();
    if (source === "file" && !this.picture) this.tell("nofile");
    else if (source === "webcam") this.tell("off");
    else this.tell(source);
    this.preview();
  }

  async load() {
    const file = this.parts.file.files?.[0];
    if (!file) return;
    try {
      this.picture = await createImageBitmap(file);
      this.choose("file");
    } catch {
      this.tell("badfile");
    }
  }

  /** Begins a video stream: the webcam stays on until stop. */
  start() {
    this.streaming = true;
    this.ready().catch(() => {}); // the first frame reports the error to the app
  }

  stop() {
    this.streaming = false;
    this.rest();
  }

  /**
   * Returns a picture as a JPEG of at most the given width.
   * @param {number} width
   */
  async photo(width) {
    await this.ready();
    const bytes = await this.grab(width, maxBytes);
    this.rest();
    return bytes;
  }

  /**
   * Returns a clip: concatenated JPEGs.
   * @param {number} durationMs
   * @param {number} fps
   * @param {number} width
   */
  async clip(durationMs, fps, width) {
    await this.ready();
    const count = Math.max(1, Math.floor((durationMs * fps) / 1000));
    const began = performance.now();
    /** @type {Uint8Array<ArrayBuffer>[]} */
    const frames = [];
    for (let i = 0; i < count; i++) {
      const early = began + (i * 1000) / fps - performance.now();
      if (early > 0) await sleep(early);
      frames.push(await this.grab(width, maxBytes / count));
    }
    this.rest();
    return new Uint8Array(await new Blob(frames).arrayBuffer());
  }

  /** Prepares the source of pictures, or throws NoPicture. */
  async ready() {
    if (this.source === "test") return;
    if (this.source === "file") {
      if (!this.picture) throw new NoPicture("platform_error", "the simulator page waits for a picture file");
      return;
    }
    clearTimeout(this.idle);
    this.opening ??= this.open().finally(() => (this.opening = null));
    await this.opening;
  }

  async open() {
    if (this.stream?.active) return;
    this.tell("asking");
    try {
      this.stream = await openWebcam();
    } catch (e) {
      const state = e instanceof WebcamProblem ? e.state : "taken";
      this.tell(state);
      if (state === "refused") throw new NoPicture("permission_denied", "the user refused the camera in the browser");
      throw new NoPicture("platform_error", "this computer's camera is missing or in use; the simulator page offers other pictures");
    }
    if (this.source !== "webcam") {
      this.close(); // the user chose another source while the browser asked for permission
      return;
    }
    for (const track of this.stream.getTracks()) track.addEventListener("ended", () => this.lost());
    this.parts.video.srcObject = this.stream;
    await this.parts.video.play().catch(() => {}); // grab checks whether there is a picture
    this.tell("live");
    this.preview();
  }

  lost() {
    this.close();
    if (this.source === "webcam") this.tell("taken");
  }

  /** Switches the webcam off some time after its last use. */
  rest() {
    clearTimeout(this.idle);
    if (this.streaming) return;
    this.idle = setTimeout(() => {
      this.close();
      if (this.source === "webcam") this.tell("off");
      this.preview();
    }, idleAfter);
  }

  close() {
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.stream = null;
    this.parts.video.srcObject = null;
  }

  /**
   * @param {number} width
   * @param {number} limit bytes
   */
  async grab(width, limit) {
    if (this.source === "webcam" && !this.parts.video.videoWidth) throw new NoPicture("platform_error", "the camera gives no picture");
    for (;;) {
      this.draw(this.canvas, width);
      for (const quality of qualities) {
        const blob = await new Promise((/** @type {(b: Blob | null) => void} */ done) => this.canvas.toBlob(done, "image/jpeg", quality));
        if (!blob) throw new NoPicture("platform_error", "the browser could not encode the picture");
        if (blob.size <= limit || this.canvas.width <= 64) return new Uint8Array(await blob.arrayBuffer());
      }
      width = Math.floor(this.canvas.width / 2);
    }
  }

  /**
   * Draws the current picture of the camera, at most width pixels wide.
   * @param {HTMLCanvasElement} canvas
   * @param {number} width
   */
  draw(canvas, width) {
    const { video } = this.parts;
    const from = this.source === "webcam" ? video : this.source === "file" ? this.picture : null;
    const wide = from instanceof HTMLVideoElement ? from.videoWidth : (from?.width ?? 1280);
    const high = from instanceof HTMLVideoElement ? from.videoHeight : (from?.height ?? 960);
    canvas.width = Math.max(1, Math.min(width, wide));
    canvas.height = Math.max(1, Math.round((canvas.width * high) / Math.max(1, wide)));
    const c = canvas.getContext("2d");
    if (!c) return;
    if (from) c.drawImage(from, 0, 0, canvas.width, canvas.height);
    else testPicture(c, canvas.width, canvas.height);
  }

  /** Shows the user what an app would see. */
  preview() {
    const { video, still } = this.parts;
    this.parts.choose.hidden = this.source !== "file";
    video.hidden = !(this.source === "webcam" && this.stream);
    still.hidden = this.source === "webcam" || (this.source === "file" && !this.picture);
    if (!still.hidden) this.draw(still, 640);
  }

  /** @param {keyof typeof words} state */
  tell(state) {
    const [short, long] = words[state];
    this.parts.state.textContent = short;
    this.parts.state.dataset.state = state;
    this.parts.help.textContent = long;
    const { mark } = this.parts; // an active camera must be visible in every tab
    mark.hidden = state === "off";
    mark.dataset.state = state;
    mark.title = `Camera: ${short}`;
    mark.replaceChildren(hiddenText(`, camera: ${short}`));
    this.preview();
  }
}

/**
 * Returns text for screen readers only.
 * @param {string} text
 */
function hiddenText(text) {
  const span = document.createElement("span");
  span.className = "sr";
  span.textContent = text;
  return span;
}

/** @type {Record<string, [string, string]>} */
const words = {
  off: ["Off", "The webcam goes on when an app takes a picture; the browser asks you first."],
  asking: ["Waiting for you", "The browser asks whether this page may use the camera."],
  live: ["Live", "The app sees this."],
  refused: ["Refused", "The browser refuses the camera to this page. Allow it in the address bar's site settings, or choose a picture file or the test picture."],
  missing: ["No camera", "This computer has no camera. Choose a picture file or the test picture."],
  taken: ["Not available", "The camera is in use elsewhere or stopped. Close the other program, or choose a picture file or the test picture."],
  file: ["Picture file", "The app sees this picture."],
  nofile: ["No file yet", "Choose a picture file below; until then the camera fails."],
  badfile: ["Not a picture", "The browser cannot read this file as a picture. Choose a PNG or JPEG."],
  test: ["Test picture", "The app sees the built-in test picture."],
};

const bars = ["#e8e8e8", "#e8d33f", "#43c8d6", "#48b85c", "#c255b8", "#d34b42", "#3f5fd0"];

/**
 * Draws colour bars with a mark that moves over time, so that any two frames differ.
 * @param {CanvasRenderingContext2D} c
 * @param {number} w
 * @param {number} h
 */
function testPicture(c, w, h) {
  bars.forEach((colour, i) => {
    c.fillStyle = colour;
    c.fillRect(Math.floor((i * w) / bars.length), 0, Math.ceil(w / bars.length), h);
  });
  c.fillStyle = "#14181a";
  c.fillRect(0, h * 0.72, w, h * 0.28);
  c.fillStyle = "#ffffff";
  c.fillRect(((Date.now() / 2000) % 1) * w * 0.96, h * 0.72, w * 0.04, h * 0.04);
  c.font = `600 ${Math.round(h * 0.1)}px sans-serif`;
  c.textAlign = "center";
  c.textBaseline = "middle";
  c.fillText("Test picture", w / 2, h * 0.87);
}
