// Carries bytes between a driver (package driver) and glasses over Web Bluetooth. The caller decides which link to
// open, to write to and to drop, and receives events. Each link is one Bluetooth LE peripheral.

/**
 * A link, as in driver.LinkSpec.
 * @typedef {{key: string, namePrefix: string, service: string, write: string, notify: string}} LinkSpec
 */

/**
 * An event of a link, as in driver.Event. open is answered with up or down; down also follows the loss of an open link.
 * write is answered with written. problem is a code of package driver, or "".
 * @typedef {{kind: "up"|"down"|"notify"|"written", link: string, data?: Uint8Array<ArrayBuffer>, problem: string}} LinkEvent
 */

/**
 * A device that the user chose for a link.
 * @typedef {object} Link
 * @property {LinkSpec} spec
 * @property {BluetoothDevice} device
 * @property {object | null} opening identifies the current attempt to open it, or null
 * @property {BluetoothCharacteristic | null} input for writes; null unless the link is open
 * @property {BluetoothCharacteristic | null} output for notifications; null unless the link is open
 * @property {Promise<void>} writes ends with the last write
 * @property {() => void} stop removes the listeners
 */

/** @typedef {"choose"|"connect"|"services"|"subscribe"|"write"} Step */

const openTime = 20_000; // ms; some systems try to connect forever
const answerTime = 5_000; // ms

/**
 * The code for each DOMException, by the step that failed. Error texts differ between browsers and are not read.
 * @type {Record<Step, Record<string, string>>}
 */
const problems = {
  choose: { NotFoundError: "cancelled", AbortError: "cancelled", SecurityError: "no_permission",
    NotAllowedError: "no_permission", NotSupportedError: "no_web_bluetooth", InvalidStateError: "no_permission" },
  connect: { NetworkError: "not_in_range", NotFoundError: "not_in_range", AbortError: "timeout",
    SecurityError: "no_permission", NotSupportedError: "busy_elsewhere", InvalidStateError: "radio_off" },
  services: { NetworkError: "lost", NotFoundError: "services_missing", SecurityError: "services_missing" },
  subscribe: { NetworkError: "lost", NotSupportedError: "not_paired", SecurityError: "not_paired",
    InvalidStateError: "lost", NotAllowedError: "not_paired" },
  write: { NetworkError: "lost", InvalidStateError: "lost", InvalidModificationError: "small_mtu",
    NotSupportedError: "refused" },
};

/**
 * @param {Step} step
 * @param {unknown} e
 */
function problemOf(step, e) {
  const name = e instanceof DOMException ? e.name : "";
  return problems[step][name] ?? (step === "write" ? "refused" : "timeout");
}

/** The links that a page carries. */
export class Bluetooth {
  /** @param {(e: LinkEvent) => void} on */
  constructor(on) {
    this.on = on;
    /** @type {Map<string, Link>} */
    this.links = new Map();
    /** Whether the browser has stopped answering this page, see answers. */
    this.stuck = false;
  }

  /** Resolves to the problem that prevents this browser from reaching glasses at the moment, or to "". */
  static async problem() {
    if (!navigator.bluetooth) return "no_web_bluetooth";
    try {
      return await navigator.bluetooth.getAvailability() ? "" : "no_bluetooth";
    } catch {
      return "no_permission";
    }
  }

  /**
   * Resolves to whether the browser answers this page's calls within answerTime. Chromium for Linux drops them all,
   * without an error, once the services of a connection have disappeared during a write. Only a reload helps.
   */
  static async answers() {
    /** @type {Promise<boolean>} */
    const late = new Promise((resolve) => setTimeout(resolve, answerTime, false));
    return Promise.race([Bluetooth.problem().then(() => true), late]);
  }

  /**
   * Lets the user choose the peripheral of a link in the browser's list. It replaces the previous choice and does not
   * open the link. It must be called in a click handler.
   * @param {LinkSpec} spec
   * @returns {Promise<{name: string, problem: string}>} the advertised name, or the problem if none was chosen
   */
  async choose(spec) {
    if (!navigator.bluetooth) return { name: "", problem: "no_web_bluetooth" };
    if (this.stuck) return { name: "", problem: "browser_stuck" };
    let device;
    try {
      device = await navigator.bluetooth.requestDevice({
        filters: [{ namePrefix: spec.namePrefix }], optionalServices: [spec.service],
      });
    } catch (e) {
      const problem = problemOf("choose", e);
      // The error for a list that cannot be shown has the same name as the error for a closed list.
      return { name: "", problem: problem === "cancelled" && await Bluetooth.problem() || problem };
    }
    this.forget(spec.key);
    const lost = () => this.end(spec.key, "lost");
    device.addEventListener("gattserverdisconnected", lost);
    this.links.set(spec.key, { spec, device, opening: null, input: null, output: null, writes: Promise.resolve(),
      stop: () => device.removeEventListener("gattserverdisconnected", lost) });
    return { name: device.name ?? "", problem: "" };
  }

  /**
   * Reports whether the user has chosen the peripheral of a link.
   * @param {string} key
   */
  has(key) {
    return this.links.has(key);
  }

  /**
   * Opens a link to the chosen peripheral. It needs no click, even after the link was lost.
   * @param {string} key
   */
  async open(key) {
    const link = this.links.get(key);
    if (!link) return this.on({ kind: "down", link: key, problem: "not_chosen" });
    if (link.input) return this.on({ kind: "up", link: key, problem: "" }); // the caller may have missed it
    if (link.opening) return;
    if (this.stuck) return this.on({ kind: "down", link: key, problem: "browser_stuck" });
    const attempt = {};
    link.opening = attempt;
    const timer = setTimeout(() => link.opening === attempt && this.end(key, "timeout"), openTime);
    void Bluetooth.answers().then((yes) => {
      if (yes || link.opening !== attempt) return;
      this.stuck = true;
      this.end(key, "browser_stuck");
    });
    /** @type {Step} */
    let step = "connect";
    try {
      const server = await link.device.gatt.connect();
      step = "services";
      const service = await server.getPrimaryService(link.spec.service);
      const input = await service.getCharacteristic(link.spec.write);
      const output = await service.getCharacteristic(link.spec.notify);
      step = "subscribe";
      await output.startNotifications();
      if (link.opening !== attempt) return;
      link.opening = null;
      link.input = input;
      link.output = output;
      output.oncharacteristicvaluechanged = () => {
        const value = output.value;
        if (link.output !== output || !value) return;
        const data = new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice();
        this.on({ kind: "notify", link: key, data, problem: "" });
      };
      this.on({ kind: "up", link: key, problem: "" });
    } catch (e) {
      if (link.opening === attempt) this.end(key, problemOf(step, e));
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Writes one value after all waiting ones.
   * @param {string} key
   * @param {Uint8Array<ArrayBuffer>} data
   * @param {boolean} withResponse
   */
  write(key, data, withResponse) {
    const link = this.links.get(key);
    const input = link?.input;
    if (!link || !input) return this.on({ kind: "written", link: key, problem: "lost" });
    link.writes = link.writes.then(async () => {
      let problem = "";
      try {
        await (withResponse ? input.writeValueWithResponse(data) : input.writeValueWithoutResponse(data));
      } catch (e) {
        problem = problemOf("write", e);
      }
      if (link.input === input) this.on({ kind: "written", link: key, problem });
    });
  }

  /**
   * Closes a link. It can be opened again.
   * @param {string} key
   */
  drop(key) {
    this.end(key, "");
  }

  /**
   * Closes a link and forgets its chosen peripheral.
   * @param {string} key
   */
  forget(key) {
    this.end(key, "");
    this.links.get(key)?.stop();
    this.links.delete(key);
  }

  /** Closes and forgets all links. */
  close() {
    for (const key of [...this.links.keys()]) this.forget(key);
  }

  /**
   * Ends a link that is open or being opened.
   * @param {string} key
   * @param {string} problem
   */
  end(key, problem) {
    const link = this.links.get(key);
    if (!link || !link.opening && !link.input) return;
    if (link.output) link.output.oncharacteristicvaluechanged = null;
    link.opening = link.input = link.output = null;
    link.device.gatt.disconnect();
    this.on({ kind: "down", link: key, problem });
  }
}
