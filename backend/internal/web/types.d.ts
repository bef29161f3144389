// Declarations that the pages use and the type checker's libraries lack.

declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}

declare function registerProcessor(name: string, of: new (options: any) => AudioWorkletProcessor): void;

/** Samples per second of the worklet's context. */
declare const sampleRate: number;

/** A speech recogniser, which only some browsers have. */
interface Recogniser {
  lang: string;
  continuous: boolean;
  interimResults: boolean;
  onresult: ((e: RecogniserEvent) => void) | null;
  onerror: ((e: { error: string }) => void) | null;
  onend: (() => void) | null;
  start(): void;
  abort(): void;
}

interface RecogniserEvent {
  resultIndex: number;
  results: ArrayLike<ArrayLike<{ transcript: string; confidence: number }> & { isFinal: boolean }>;
}

/** Go's loader (wasm_exec.js). */
interface GoProgram {
  importObject: WebAssembly.Imports;
  run(instance: WebAssembly.Instance): Promise<void>;
}

/** One output of the Go program: a frame, an ask, or what to do with a link of real glasses. */
interface GlassesOut {
  frame?: string;
  body?: Uint8Array<ArrayBuffer>;
  ask?: string;
  pcm?: Uint8Array<ArrayBuffer>;
  connect?: string;
  write?: string;
  data?: Uint8Array<ArrayBuffer>;
  response?: boolean;
  drop?: string;
  info?: string;
  note?: string;
}

/** The interface of the Go program (backend/simulator). JSON is passed as text. A picture is valid until the next one. */
interface GlassesProgram {
  words(): string;
  start(model: string, stored: string, display: string, state: string, prefix: string): string;
  agrees(model: string, display: string, state: string): boolean;
  handle(now: number, data: string | Uint8Array): string;
  control(now: number, type: string, payload: string): string;
  answer(now: number, ask: number, bytes: Uint8Array | null, refusal: { code: string; message: string } | null): void;
  /** Glasses that a page can connect: a JSON list of {deviceModel, links}. */
  kinds(): string;
  /** Why real glasses are not connected and what to do about it: a JSON object of texts, by code. */
  problems(): string;
  /** The pair and the link to which an advertised name belongs, as JSON. */
  identify(model: string, name: string): string;
  startReal(now: number, model: string, display: string, state: string, prefix: string): string;
  event(now: number, e: { kind: string; link: string; data?: Uint8Array; problem: string }): void;
  /** The links of real glasses, as a JSON list. */
  links(): string;
  /** What is known about the panel of real glasses, as a JSON object of panel.go. */
  panel(): string;
  setPanel(now: number, stored: string): void;
  check(now: number): void;
  seen(now: number, isUpright: boolean, hasBorder: boolean): void;
  cancel(now: number): void;
  leave(now: number): void;
  left(): boolean;
  next(): number;
  tick(now: number): void;
  take(): GlassesOut[];
  snapshot(): string;
  model(): string;
  reading(): string;
  /** Names of the fonts that are missing to handle this frame, or "" to draw the current view, as a JSON list. */
  wanted(data: string): string;
  /** Adds a font file, or null if it cannot be had. Returns what is wrong with it. */
  font(name: string, ttf: Uint8Array | null): string;
  picture(): ImageData | null;
  /** What is on the panel on another model, and as JSON what of it does not fit; null if nothing is on the panel. */
  preview(model: string, snapshot: string): { picture: ImageData; fit: string } | null;
  /** A step of a scenario that expects what the wearer sees, as JSON. */
  step(snapshot: string): string;
  /** What glasses with a snapshot show; reading and wanted are JSON. Returns null if it cannot be shown. */
  show(snapshot: string): { picture: ImageData | null; reading: string; wanted: string } | null;
  /** The glasses after rows of the event log, as a JSON list (backend/simulator/past.go). */
  rebuild(request: string): string;
  /** The SHA-256 of a text in base64. */
  digest(text: string): string;
  /** Replaces credentials in a text. */
  redact(text: string): string;
}

interface Window {
  Go?: new () => GoProgram;
  glasses?: GlassesProgram;
  SpeechRecognition?: new () => Recogniser;
  webkitSpeechRecognition?: new () => Recogniser;
}
