// The see-through view: the light of the panel is added to a scene, as on real glasses, where black is transparent.
// The panel's own canvas remains the only source of its pixels; this module adds them to the scene on a second canvas,
// which is behind the panel and fills the space around it.
import { openWebcam, WebcamProblem } from "./camera.js";
import { get } from "./elements.js";
import { paintScene, scenes } from "./scenes.js";

const store = "simulator see-through";
const pictureStore = "simulator scene picture";
const pictureWidth = 1600; // of the user's own picture in the store

/** @typedef {{on: boolean, scene: string, brightness: number, ambient: number}} Choice brightness and ambient in percent */

/** The meaning of the webcam's problems here. @type {Record<string, string>} */
const problems = {
  refused: "The browser refuses the camera to this page. Allow it in the address bar's site settings.",
  missing: "This computer has no camera.",
  taken: "The camera is in use elsewhere or stopped.",
};

export class SeeThrough {
  /** @param {import("./panel.js").Panel} panel */
  constructor(panel) {
    this.panel = panel;
    this.canvas = get("composite", HTMLCanvasElement);
    this.frame = get("view-frame", HTMLDivElement);
    this.select = get("scene", HTMLSelectElement);
    this.file = get("scene-file", HTMLInputElement);
    this.state = get("scene-state", HTMLParagraphElement);
    /** @type {Choice} */
    this.choice = { on: false, scene: "street", brightness: 100, ambient: 70, ...restored() };
    this.shown = "street"; // the visible scene, which differs from the choice while the chosen scene has no picture
    /** @type {{id: string, picture: HTMLCanvasElement} | null} */
    this.painted = null; // the last built-in scene
    /** @type {ImageBitmap | null} */
    this.own = null;
    this.webcam = document.createElement("video");
    this.webcam.muted = this.webcam.playsInline = true;
    this.opening = 0; // counts openings of the webcam, to detect one that completes late
    /** The scene as last drawn. @type {{canvas: HTMLCanvasElement, of: CanvasImageSource, ambient: number} | null} */
    this.fitted = null;
    this.drawing = 0;
    this.bind();
    if (this.choice.scene === "webcam") this.choice.scene = "street"; // only a click starts the webcam
    if (this.choice.scene === "file") void this.restorePicture();
    this.show();
  }

  bind() {
    for (const [id, on] of /** @type {[string, boolean][]} */ ([["view-opaque", false], ["view-through", true]])) {
      get(id, HTMLButtonElement).addEventListener("click", () => this.choose({ on }));
    }
    this.select.append(...Object.entries(scenes).map(([id, { name }]) => new Option(name, id)), new Option("Webcam", "webcam"), new Option("Your picture", "file"));
    this.select.addEventListener("change", () => this.choose({ scene: this.select.value }));
    this.file.addEventListener("change", () => this.load());
    for (const name of /** @type {const} */ (["brightness", "ambient"])) {
      get(name, HTMLInputElement).addEventListener("input", (e) => this.choose({ [name]: Number(/** @type {HTMLInputElement} */ (e.target).value) }));
    }
    this.panel.watch(() => this.follow());
    this.panel.parts.lens.addEventListener("scroll", () => this.redraw());
    addEventListener("pagehide", () => this.closeWebcam());
  }

  /** Reports whether the panel is see-through. */
  isOn() {
    return this.choice.on && !!this.panel.model?.panel;
  }

  /** @param {Partial<Choice>} change */
  choose(change) {
    Object.assign(this.choice, change);
    try {
      sessionStorage.setItem(store, JSON.stringify(this.choice));
    } catch {
      // Storage is full or forbidden, so a reload starts with the opaque view.
    }
    if (change.scene) this.tell("");
    if (change.on === false) this.closeWebcam();
    else if ((change.on || change.scene) && this.choice.on && this.choice.scene === "webcam") void this.startWebcam();
    this.show();
    if (change.on !== undefined) this.panel.fit();
  }

  /** Updates the view after a change of the panel. */
  follow() {
    if (this.isOn() === (this.frame.dataset.through === "yes")) this.redraw();
    else this.show();
  }

  /** Shows the choice. */
  show() {
    const on = this.isOn();
    const { scene, brightness, ambient } = this.choice;
    get("view-opaque", HTMLButtonElement).ariaPressed = String(!this.choice.on);
    get("view-through", HTMLButtonElement).ariaPressed = String(this.choice.on);
    this.frame.dataset.through = on ? "yes" : "no";
    get("see-through", HTMLDivElement).hidden = !on;
    get("scene-choose", HTMLLabelElement).hidden = scene !== "file";
    this.select.value = scene;
    for (const [name, value] of /** @type {[string, number][]} */ ([["brightness", brightness], ["ambient", ambient]])) {
      get(name, HTMLInputElement).value = String(value);
      get(`${name}-level`, HTMLOutputElement).textContent = `${value} %`;
    }
    if (scene !== "webcam") this.closeWebcam();
    else if (!on && this.webcam.srcObject) { // the model now has no display
      this.closeWebcam();
      this.choice.scene = this.builtIn();
    }
    if (scene === "file" && !this.own && !this.state.textContent) this.tell("Choose a picture.");
    this.redraw();
  }

  /** @param {string} text */
  tell(text) {
    if (this.state.textContent !== text) this.state.textContent = text; // screen readers announce each write
  }

  redraw() {
    if (this.isOn()) this.drawing ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.drawing = 0;
    if (!this.isOn()) return;
    const frame = this.frame.getBoundingClientRect();
    const size = { width: Math.floor(frame.width * devicePixelRatio), height: Math.floor(frame.height * devicePixelRatio) };
    const panel = this.panel.parts.panel.getBoundingClientRect();
    const at = (/** @type {number} */ css) => Math.round(css * devicePixelRatio);
    this.canvas.style.width = `${size.width / devicePixelRatio}px`;
    this.canvas.style.height = `${size.height / devicePixelRatio}px`;
    this.compose(this.canvas, size, { x: at(panel.left - frame.left), y: at(panel.top - frame.top), width: at(panel.width), height: at(panel.height) });
    if (this.shown === "webcam") this.redraw(); // its next frame
  }

  /**
   * Returns the panel in its scene as at the zoom "Fit", with whole pixels of the panel.
   * @returns {HTMLCanvasElement}
   */
  renderAtFit() {
    const { width, height } = this.panel.parts.canvas;
    const fit = this.panel.fitScale();
    const k = Math.max(1, Math.floor(fit * devicePixelRatio));
    const frame = this.frame.getBoundingClientRect();
    const size = { width: Math.floor((frame.width * k) / fit), height: Math.floor((frame.height * k) / fit) };
    const canvas = document.createElement("canvas");
    this.compose(canvas, size, { x: Math.round((size.width - width * k) / 2), y: Math.round((size.height - height * k) / 2), width: width * k, height: height * k });
    return canvas;
  }

  /**
   * Draws min(255, scene × ambient light + panel × brightness) for each pixel and colour.
   * @param {HTMLCanvasElement} canvas
   * @param {{width: number, height: number}} size in pixels
   * @param {{x: number, y: number, width: number, height: number}} panel its place
   */
  compose(canvas, size, panel) {
    if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size);
    const c = canvas.getContext("2d", { alpha: false });
    if (!c || !size.width || !size.height) return;
    c.globalCompositeOperation = "copy";
    c.drawImage(this.scene(size), 0, 0);
    c.globalCompositeOperation = "lighter";
    const from = dimmed(this.panel.parts.canvas, this.choice.brightness);
    c.imageSmoothingEnabled = panel.width < from.width; // as for the panel's own canvas
    c.imageSmoothingQuality = "high";
    c.drawImage(from, panel.x, panel.y, panel.width, panel.height);
  }

  /**
   * Returns the shown scene in the ambient light, cropped to fill this size.
   * @param {{width: number, height: number}} size
   */
  scene(size) {
    const of = this.source();
    const { ambient } = this.choice;
    const now = this.fitted;
    if (now?.of === of && of !== this.webcam && now.ambient === ambient && now.canvas.width === size.width && now.canvas.height === size.height) return now.canvas;
    const canvas = Object.assign(document.createElement("canvas"), size);
    const wide = of instanceof HTMLVideoElement ? of.videoWidth : of.width;
    const high = of instanceof HTMLVideoElement ? of.videoHeight : of.height;
    const scale = Math.max(size.width / wide, size.height / high);
    const c = canvas.getContext("2d", { alpha: false, willReadFrequently: true });
    if (c) c.imageSmoothingQuality = "high";
    c?.drawImage(of, Math.round((size.width - wide * scale) / 2), Math.round((size.height - high * scale) / 2), Math.round(wide * scale), Math.round(high * scale));
    this.fitted = { canvas: dimmed(canvas, ambient), of, ambient };
    return this.fitted.canvas;
  }

  /** Returns the picture of the chosen scene, or of the last one that had a picture. */
  source() {
    const { scene } = this.choice;
    if (scene === "webcam" && this.webcam.videoWidth && this.webcam.srcObject) {
      this.shown = scene;
      return this.webcam;
    }
    if (scene === "file" && this.own) {
      this.shown = scene;
      return this.own;
    }
    const id = scene in scenes ? scene : this.builtIn();
    this.shown = id;
    if (this.painted?.id !== id) this.painted = { id, picture: paintScene(id) };
    return this.painted.picture;
  }

  /** Returns the built-in scene that is visible, or was visible last. */
  builtIn() {
    return this.painted?.id || "street";
  }

  async startWebcam() {
    if (this.webcam.srcObject) return;
    const opening = ++this.opening;
    this.tell("The browser asks whether this page may use the camera.");
    try {
      const stream = await openWebcam();
      if (opening !== this.opening) {
        stream.getTracks().forEach((track) => track.stop()); // the user has left the view meanwhile
        return;
      }
      for (const track of stream.getTracks()) track.addEventListener("ended", () => this.failWebcam("taken"));
      this.webcam.srcObject = stream;
      await this.webcam.play().catch(() => {});
      this.tell("");
      this.redraw();
    } catch (e) {
      if (opening === this.opening) this.failWebcam(e instanceof WebcamProblem ? e.state : "taken");
    }
  }

  /** @param {string} why */
  failWebcam(why) {
    this.closeWebcam();
    this.choose({ scene: this.builtIn() });
    this.tell(`${problems[why]} You see a built-in scene instead.`);
  }

  /** Switches the webcam off, so that its light goes off. */
  closeWebcam() {
    this.opening++;
    const stream = this.webcam.srcObject;
    if (stream instanceof MediaStream) stream.getTracks().forEach((track) => track.stop());
    this.webcam.srcObject = null;
  }

  async load() {
    const file = this.file.files?.[0];
    if (!file) return;
    try {
      this.own = await createImageBitmap(file);
    } catch {
      this.tell("The browser cannot read this file as a picture. Choose a PNG or JPEG.");
      return;
    }
    this.tell("");
    keepPicture(this.own);
    this.redraw();
  }

  /** Loads the picture that the user chose before a reload. */
  async restorePicture() {
    const image = new Image();
    try {
      image.src = sessionStorage.getItem(pictureStore) ?? "";
      await image.decode();
      this.own = await createImageBitmap(image);
      this.tell("");
    } catch {
      // It was not stored, so the user must choose it again.
    }
    this.show();
  }
}

/**
 * Returns a picture with every value multiplied and rounded. The blending of a canvas is less exact.
 * @param {HTMLCanvasElement} from
 * @param {number} percent
 */
function dimmed(from, percent) {
  const pixels = percent < 100 && from.getContext("2d")?.getImageData(0, 0, from.width, from.height);
  if (!pixels) return from;
  const levels = Uint8ClampedArray.from({ length: 256 }, (_, v) => Math.round((v * percent) / 100));
  const { data } = pixels;
  for (let i = 0; i < data.length; i += 4) {
    for (let k = i; k < i + 3; k++) data[k] = levels[data[k] ?? 0] ?? 0;
  }
  const canvas = Object.assign(document.createElement("canvas"), { width: from.width, height: from.height });
  canvas.getContext("2d")?.putImageData(pixels, 0, 0);
  return canvas;
}

/** @returns {Partial<Choice>} */
function restored() {
  try {
    /** @type {Partial<Choice>} */
    const choice = JSON.parse(sessionStorage.getItem(store) ?? "{}");
    const known = choice.scene && (choice.scene in scenes || ["webcam", "file"].includes(choice.scene));
    return known ? choice : {};
  } catch {
    return {};
  }
}

/** @param {ImageBitmap} picture */
function keepPicture(picture) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.min(pictureWidth, picture.width);
  canvas.height = Math.max(1, Math.round((canvas.width * picture.height) / picture.width));
  canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
  try {
    sessionStorage.setItem(pictureStore, canvas.toDataURL("image/jpeg", 0.85));
  } catch {
    // Storage is full or forbidden, so the user must choose the picture again after a reload.
  }
}
