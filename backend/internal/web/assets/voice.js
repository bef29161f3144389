// Sound in both directions: speech and sounds of the glasses, the microphone, and recognised speech of the wearer.
import { sleep } from "./timer.js";

const chunkMs = 100;
const longestSuspension = 1000; // ms that sound waits until the browser allows it
const longestWait = 400; // ms that a chunk waits for the microphone before it is filled with silence

/** Speaks and plays sounds; speech is also shown as text. */
export class Speaker {
  /**
   * @param {HTMLElement} caption
   * @param {HTMLInputElement} mute
   */
  constructor(caption, mute) {
    this.caption = caption;
    this.mute = mute;
    mute.addEventListener("change", () => {
      if (!mute.checked) return;
      globalThis.speechSynthesis?.cancel();
      this.silence();
    });
    /** @type {AudioContext | undefined} */
    this.context = undefined;
    /** @type {Set<AudioBufferSourceNode>} sound of the app that is playing or scheduled */
    this.sources = new Set();
    this.soundEnd = 0; // when the scheduled sound ends, on the context's clock
    this.turn = 0; // increased by silence, so that earlier sound that still waits is dropped
  }

  /**
   * @param {string} text
   * @param {string} language
   */
  say(text, language) {
    this.tell(text);
    if (this.mute.checked || !globalThis.speechSynthesis) return;
    const said = new SpeechSynthesisUtterance(text);
    if (language) said.lang = language;
    said.onerror = (e) => e.error === "not-allowed" && this.tell(`${text} (no sound before you click on this page)`);
    speechSynthesis.speak(said);
  }

  hush() {
    globalThis.speechSynthesis?.cancel();
    this.tell("");
  }

  /** @param {string} sound */
  play(sound) {
    this.tell(`♪ ${sound}`);
    if (this.mute.checked) return;
    this.context ??= new AudioContext();
    this.context.resume().catch(() => {}); // browsers allow no sound before the user's first action
    let at = this.context.currentTime;
    for (const [hertz, seconds] of tunes[sound] ?? []) {
      tone(this.context, hertz, at, seconds);
      at += seconds;
    }
  }

  /**
   * Plays 16-bit sound of the app, after the sound that is already playing.
   * @param {Uint8Array<ArrayBuffer>} pcm
   * @param {number} rate
   */
  sound(pcm, rate) {
    this.context ??= new AudioContext();
    const context = this.context;
    const isAllowed = navigator.userActivation?.hasBeenActive || context.state === "running";
    this.tell(isAllowed ? "♪ the app's sound" : "♪ the app's sound (no sound before you click on this page)");
    if (this.mute.checked) return;
    const turn = this.turn;
    const since = performance.now();
    context.resume().then(() => { // it waits until the browser allows sound
      if (turn !== this.turn || (!isAllowed && performance.now() - since > longestSuspension)) return;
      const samples = new DataView(pcm.buffer, pcm.byteOffset, pcm.byteLength);
      const buffer = new AudioBuffer({ length: pcm.byteLength / 2, sampleRate: rate });
      const channel = buffer.getChannelData(0);
      for (let i = 0; i < channel.length; i++) channel[i] = samples.getInt16(2 * i, true) / 32768;
      const source = new AudioBufferSourceNode(context, { buffer });
      source.onended = () => this.sources.delete(source);
      this.sources.add(source);
      source.connect(context.destination);
      const at = Math.max(this.soundEnd, context.currentTime);
      source.start(at);
      this.soundEnd = at + buffer.duration;
    }).catch(() => {});
  }

  /** Discards the sound of the app that was not played. */
  silence() {
    this.turn++;
    this.soundEnd = 0;
    for (const source of this.sources) source.stop();
    this.sources.clear();
  }

  /** @param {string} text */
  tell(text) {
    this.caption.textContent = text || "Nothing is being said.";
    this.caption.dataset.on = text ? "yes" : "no";
  }
}

/** Notes of each sound: hertz and seconds.
 * @type {Record<string, [number, number][]>} */
const tunes = {
  chime: [[880, 0.18], [1320, 0.3]],
  success: [[660, 0.12], [880, 0.12], [1320, 0.25]],
  error: [[330, 0.2], [220, 0.35]],
  tick: [[1800, 0.03]],
};

/**
 * @param {AudioContext} context
 * @param {number} hertz
 * @param {number} at
 * @param {number} seconds
 */
function tone(context, hertz, at, seconds) {
  const source = new OscillatorNode(context, { frequency: hertz, type: "triangle" });
  const gain = new GainNode(context, { gain: 0 });
  gain.gain.setValueAtTime(0.16, at);
  gain.gain.exponentialRampToValueAtTime(0.001, at + seconds);
  source.connect(gain).connect(context.destination);
  source.start(at);
  source.stop(at + seconds);
}

/** The microphone as 16-bit samples, while an app listens. */
export class Microphone {
  /** @param {HTMLElement} state */
  constructor(state) {
    this.state = state;
    /** @type {Int16Array[]} */
    this.heard = [];
    this.samples = 0;
    this.turn = 0; // increased by open and close, so that earlier requests are ignored
    /** @type {(() => void)[]} */
    this.close = [];
    this.tell("off");
  }

  /** @param {number} rate */
  async start(rate) {
    const turn = ++this.turn;
    this.tell("asking");
    try {
      if (!navigator.mediaDevices) throw new DOMException("", "NotFoundError");
      const stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 }, video: false });
      const end = () => stream.getTracks().forEach((track) => track.stop());
      if (turn !== this.turn) return end();
      this.close.push(end);
      const context = new AudioContext();
      this.close.push(() => void context.close());
      await context.audioWorklet.addModule("/assets/microphone.js");
      if (turn !== this.turn) return;
      const node = new AudioWorkletNode(context, "microphone", { numberOfOutputs: 0, processorOptions: { rate } });
      node.port.onmessage = (e) => this.take(e.data, rate);
      context.createMediaStreamSource(stream).connect(node);
      this.tell("live");
    } catch (e) {
      if (turn !== this.turn) return;
      this.tell(e instanceof DOMException && e.name === "NotAllowedError" ? "refused" : "missing");
    }
  }

  stop() {
    this.turn++;
    for (const end of this.close) end();
    this.close = [];
    this.heard = [];
    this.samples = 0;
    this.tell("off");
  }

  /**
   * @param {Int16Array} samples
   * @param {number} rate
   */
  take(samples, rate) {
    this.heard.push(samples);
    this.samples += samples.length;
    // Drop samples that are more than a second behind.
    while (this.samples > rate) this.samples -= this.heard.shift()?.length ?? 0;
    this.wake?.();
  }

  /**
   * Returns the next 100 ms, with silence where the microphone has no sound.
   * @param {number} rate
   */
  async chunk(rate) {
    const want = (rate * chunkMs) / 1000;
    const until = performance.now() + (this.state.dataset.state === "live" ? longestWait : 0);
    while (this.samples < want && performance.now() < until) {
      await new Promise((/** @type {(v?: unknown) => void} */ done) => {
        this.wake = done;
        sleep(until - performance.now()).then(done);
      });
    }
    const chunk = new Int16Array(want);
    for (let at = 0; at < want && this.heard[0]; ) {
      const part = this.heard[0].subarray(0, want - at);
      chunk.set(part, at);
      at += part.length;
      this.samples -= part.length;
      const rest = this.heard[0].subarray(part.length);
      if (rest.length > 0) this.heard[0] = rest;
      else this.heard.shift();
    }
    return new Uint8Array(chunk.buffer);
  }

  /** @param {keyof typeof microphoneWords} state */
  tell(state) {
    this.state.textContent = microphoneWords[state] ?? "";
    this.state.dataset.state = state;
  }
}

/** @type {Record<string, string>} */
const microphoneWords = {
  off: "Off",
  asking: "Waiting for you",
  live: "Live",
  refused: "Refused: the app hears silence",
  missing: "None: the app hears silence",
};

/** Recognises the wearer's speech if the browser supports it and the user enabled it. */
export class Ears {
  /**
   * @param {HTMLInputElement} wanted
   * @param {HTMLElement} note
   * @param {(t: {text: string, final: boolean, language?: string, confidence?: number}) => void} heard
   */
  constructor(wanted, note, heard) {
    this.heard = heard;
    this.note = note;
    this.wanted = wanted;
    this.listening = false;
    this.language = "";
    /** @type {Recogniser | undefined} */
    this.recogniser = undefined;
    const can = window.SpeechRecognition ?? window.webkitSpeechRecognition;
    wanted.disabled = !can;
    if (!can) note.textContent = "This browser does not recognise speech: type what the wearer says.";
    wanted.addEventListener("change", () => this.set());
  }

  /** @param {string} language */
  start(language) {
    this.listening = true;
    this.language = language;
    this.set();
  }

  stop() {
    this.listening = false;
    this.set();
  }

  set() {
    const Kind = window.SpeechRecognition ?? window.webkitSpeechRecognition;
    const go = this.listening && this.wanted.checked;
    if (!go) {
      this.recogniser?.abort();
      this.recogniser = undefined;
      return;
    }
    if (this.recogniser || !Kind) return;
    const r = new Kind();
    this.recogniser = r;
    r.lang = this.language || navigator.language;
    r.continuous = r.interimResults = true;
    r.onresult = (e) => this.result(e, r.lang);
    r.onerror = (e) => {
      if (e.error === "no-speech" || e.error === "aborted") return;
      this.note.textContent = `The browser's speech recognition failed (${e.error}): type what the wearer says.`;
      this.wanted.checked = false;
    };
    r.onend = () => {
      if (this.recogniser !== r) return;
      this.recogniser = undefined;
      this.set(); // browsers end recognition after a pause
    };
    r.start();
  }

  /**
   * @param {RecogniserEvent} e
   * @param {string} language
   */
  result(e, language) {
    for (let i = e.resultIndex; i < e.results.length; i++) {
      const said = e.results[i];
      const best = said?.[0];
      const text = best?.transcript.trim();
      if (!said || !best || !text) continue;
      this.heard({ text, final: said.isFinal, language, confidence: Math.round(best.confidence * 100) });
    }
  }
}
