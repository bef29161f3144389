// Descriptions of the event log: a sentence for each type of frame in glasses/PROTOCOL.md, and JSON for all others.
// The result is plain text.

/** @typedef {{type: string, kind: string, sender: string, payload: any, took: number, of: string}} Said took is in ms from the request to its result, -1 if unknown; of is the type of the request */

const longest = 160; // characters of JSON or of an app's text

/** @param {unknown} value */
const cut = (value, most = longest) => {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  return text.length > most ? `${text.slice(0, most).replace(/[\uD800-\uDBFF]$/, "")}…` : text;
};

/**
 * Returns a row's JSON for display: indented, unless deep nesting would make it many times as long.
 * @param {string} json
 */
export function indented(json) {
  let level = 0;
  let spaces = 0;
  for (const [c] of json.replace(/"(?:[^"\\]|\\.)*"/g, '""').matchAll(/[{}[\],]/g)) {
    level += "{[".includes(c) ? 1 : "}]".includes(c) ? -1 : 0;
    spaces += 2 * level;
    if (spaces > 8 * json.length + 4000) return json;
  }
  return JSON.stringify(JSON.parse(json), null, 2);
}

/** @param {unknown} text */
const quote = (text) => `"${cut(text, 80)}"`;

/** @param {number} n @param {string} noun */
const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

/** @param {unknown} value @param {string} before */
const and = (value, before = ", ") => (value === undefined || value === null || value === "" ? "" : `${before}${cut(value, 80)}`);

/** Returns a number of a payload; other values have no sentence. @param {unknown} value */
const number = (value) => {
  if (typeof value !== "number") throw new TypeError("not a number");
  return value;
};

/** Returns a list of a payload. @param {unknown} value @returns {unknown[]} */
const items = (value) => {
  if (!Array.isArray(value)) throw new TypeError("not a list");
  return value;
};

/** @param {unknown[]} list */
const list = (list) => list.map((one) => cut(one, 60)).join(", ");

/** @param {number} bytes */
export const size = (bytes) => (bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${Math.round(bytes / 1000)} KB` : `${(bytes / 1e6).toFixed(1)} MB`);

/** @param {any} p */
const input = (p) => {
  const at = p.x || p.y ? ` at ${number(p.x ?? 0)}, ${number(p.y ?? 0)}` : "";
  return `${spaced(p.kind ?? "select")}${and(p.direction, " ")}${and(p.side, " ")}${at}${p.target ? ` on ${quote(p.target)}` : ""}`;
};

/** @param {any} p */
const spoken = (p) => `${quote(p.text)}${p.final === false ? ", not final" : ""}${and(p.language)}${p.confidence === undefined ? "" : `, ${p.confidence} % sure`}`;

/** @param {any} m */
const media = (m) => [m.mime, m.width && `${m.width} × ${m.height}`, m.durationMs && `${m.durationMs} ms`, size(number(m.bytes))].filter(Boolean).join(", ");

/** @param {any} p */
const motion = (p) => `acceleration ${p.ax}, ${p.ay}, ${p.az}, rotation ${p.gx}, ${p.gy}, ${p.gz}`;

/** @param {any} p */
const battery = (p) => `${number(p.level)} %${p.charging ? ", charging" : ""}`;

/** @param {any} p */
const fault = (p) => {
  if (p.clear && !p.code) return "every fault is forgotten";
  if (p.dropApp) return "the connections of the apps are closed";
  const effect = [p.code && `answers ${p.code}`, p.latencyMs && `${p.latencyMs} ms late`].filter(Boolean).join(", ");
  return `${p.command || "every command"} ${effect}${p.times ? `, ${count(p.times, "time")}` : ""}`;
};

/** @param {any} p */
const running = (p) => (p.running ? "goes on" : `stopped${and(p.reason, ": ")}${and(p.part)}`);

/** @param {any} app */
const named = (app) => `${quote(app?.name ?? "an app")}${and(app?.version, " version ")}`;

/** @param {any} p */
const clock = (p) => `advance to ${p.toMs} ms`;

/** @type {Record<string, (p: any) => string>} */
const sentences = {
  "display.show": (p) => tree(p.tree),
  "display.clear": () => "the panel becomes dark",
  "speech.say": (p) => `${quote(p.text)}${and(p.language)}`,
  "speech.stop": () => "nothing more is said",
  "sound.play": (p) => `${cut(p.sound)}`,
  "playback.start": (p) => `play sound${and(p.sampleRate, " at ")}${p.sampleRate ? " Hz" : ""}`,
  "playback.end": () => "that was all of the sound",
  "playback.flush": () => "discard the rest of the sound",
  "audio.start": (p) => `listen${and(p.sampleRate, " at ")}${p.sampleRate ? " Hz" : ""}`,
  "audio.stop": () => "stop listening",
  "transcription.start": (p) => `recognise speech${and(p.language, " in ")}`,
  "transcription.stop": () => "recognise no more speech",
  "phrases.announce": (p) => `${count(items(p.phrases).length, "phrase")}${p.phrases.length ? `: ${list(p.phrases)}` : ""}`,
  "camera.photo": (p) => `take a photo${and(p.width, ", at most ")}${p.width ? " pixels wide" : ""}`,
  "camera.video": (p) => `record${and(p.durationMs, " ")}${p.durationMs ? " ms" : ""}${and(p.fps)}${p.fps ? " a second" : ""}${and(p.width)}${p.width ? " pixels wide" : ""}`,
  "video.start": (p) => `stream pictures${and(p.fps)}${p.fps ? " a second" : ""}${and(p.width)}${p.width ? " pixels wide" : ""}`,
  "video.stop": () => "stream no more pictures",
  "motion.start": (p) => `report motion${and(p.hz)}${p.hz ? " times a second" : ""}`,
  "motion.stop": () => "report no more motion",
  "clock.sleep": (p) => `wait ${number(p.ms)} ms`,
  "clock.cancel": (p) => `wake ${cut(p.id)}`,

  input,
  transcript: spoken,
  transcription: running,
  speech: (p) => `${cut(p.state)}, ${cut(p.id)}`,
  playback: (p) => `sound ${cut(p.state)}${p.state === "started" ? "" : ` after ${number(p.playedMs)} ms`}${and(p.reason, ": ")}`,
  motion,
  battery,
  wear: (p) => (p.worn ? "put on" : "taken off"),
  hinge: (p) => cut(p.state),
  thermal: (p) => cut(p.state),
  link: (p) => cut(p.state),
  route: (p) => `sound plays on the ${cut(p.to)}`,
  call: (p) => (p.active ? "a phone call begins" : "the phone call ended"),
  permission: (p) => `${cut(p.part)} ${cut(p.state)}`,
  disabled: (p) => (items(p.parts).length ? `switched off: ${list(p.parts)}` : "everything is switched on"),
  device: (p) => cut(p.deviceModel.name ?? p.deviceModel.id),
  fault,

  media,
  "audio.chunk": (p) => `sound at ${number(p.sampleRate)} Hz`,
  "playback.chunk": (p) => `sound of ${cut(p.playback)}`,
  "video.frame": (p) => `picture, ${number(p.width)} × ${number(p.height)}`,
  "stream.counted": (p) => `${cut(p.type)}: ${count(number(p.frames), "frame")}, ${size(number(p.bytes))}`,

  "app.attached": named,
  "app.detached": named,
  "glasses.attached": () => "glasses are connected",
  "glasses.detached": () => "glasses are no longer connected",
  "session.closed": () => "the session has ended",
  "assistant.started": (p) => `a conversation with ${cut(p.model)} begins`,
  "assistant.heard": (p) => (p.text ? quote(p.text) : `${number(p.audioMs)} ms of sound`),
  "assistant.said": (p) => `${quote(p.text)} after ${number(p.afterMs)} ms`,
  "assistant.interrupted": (p) => `interrupted after ${number(p.playedMs)} of ${number(p.audioMs)} ms`,
  "assistant.failed": (p) => `no answer: ${cut(p.code)}: ${cut(p.message)}`,
  "assistant.ended": (p) => `the conversation has ended: ${cut(p.reason)}`,
  "assistant.tool_called": (p) => `${cut(p.name)}(${p.arguments ? cut(p.arguments) : ""})`,

  hello: (p) => `${named(p.app)} attaches`,
  welcome: (p) => `${cut(p.deviceModel?.name ?? p.deviceModel?.id)}, up to row ${number(p.lastSeq)}`,
  ack: (p) => `${cut(p.kind)} ${cut(p.id)} is row ${number(p.seq)}`,
  cursor: (p) => `everything up to row ${number(p.seq)} was sent`,
  error: (p) => `${cut(p.code)}: ${cut(p.message)}`,
  barrier: (p) => (p.calls === undefined ? "wait for the app" : `the app waits for ${count(number(p.calls), "call")}`),
  "gateway.token": () => "a new token for the gateway",
  row: (p) => `row ${number(p.seq)}`,
  peers: (p) => `${count(items(p.apps).length, "app")}, ${count(number(p.pages), "page")}`,
  role: (p) => (p.active ? "this page acts as the glasses" : "this page only shows the glasses"),
  beat: () => "the service is alive",

  "sim.input": input,
  "sim.transcript": spoken,
  "sim.state": (p) => (Object.keys(p).length ? `change ${list(Object.keys(p))}` : "read the state"),
  "sim.motion": motion,
  "sim.fault": fault,
  "sim.device": (p) => cut(p.deviceModel),
  "sim.camera": () => "what the camera sees",
  "sim.microphone": () => "what the microphone hears",
  "sim.standing": (p) => `${count(p.phrases?.length ?? 0, "phrase")}, transcription ${p.transcription ? "on" : "off"}`,
  "sim.advance": clock,
};

/**
 * Returns the description of a row: its title, the code of a failure, and the rest of the sentence.
 * @param {Said} row
 * @returns {{title: string, code: string, text: string}}
 */
export function words(row) {
  try {
    if (row.kind === "result" || row.type === "result") return result(row);
    const text = Object.hasOwn(sentences, row.type) ? sentences[row.type]?.(row.payload ?? {}) : undefined;
    if (text !== undefined) return { title: row.type, code: "", text };
  } catch {
    // An app may use such a type with its own payload.
  }
  const text = cut(row.payload);
  return { title: row.type, code: "", text: text === "{}" ? "" : text };
}

/** @param {Said} row */
function result(row) {
  const p = row.payload ?? {};
  const took = row.took < 0 ? "" : ` in ${row.took} ms`;
  const by = row.sender === "service" ? ", answered by the service" : "";
  if (p.error) {
    return { title: "result", code: String(p.error.code), text: `${took.trim()}${row.of ? `${took ? ", " : ""}${row.of}` : ""}: ${cut(p.error.message)}${by}` };
  }
  const more = [
    row.of, p.media && media(p.media), p.findings?.length && unfit(p.findings.length + (p.moreFindings ?? 0)),
    p.superseded && "replaced before it was shown", p.lateMs && `${p.lateMs} ms late`, p.clock && `clock at ${p.clock.nowMs} ms`,
  ].filter(Boolean).join(", ");
  return { title: "result", code: "", text: `${p.ok ? "ok" : cut(p)}${took}${more && `, ${more}`}${by}` };
}

/** @param {number} n */
const unfit = (n) => `${count(n, "part")} ${n === 1 ? "does" : "do"} not fit`;

/** @param {any} root */
function tree(root) {
  let nodes = 0;
  let first = "";
  /** @param {any} node */
  const walk = (node) => {
    nodes++;
    first ||= node.text || node.alt || "";
    for (const child of node.children ?? []) walk(child);
  };
  walk(root);
  return `${count(nodes, "node")}${first ? `, ${quote(first)}` : ""}`;
}

/** @param {string} name */
const spaced = (name) => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/**
 * Returns the time of day of a row, to the millisecond.
 * @param {number} at
 */
export function timeOf(at) {
  const date = new Date(at);
  return `${date.toLocaleTimeString([], { hour12: false })}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
