/** The codes of errors; there may be new codes. */
export type ErrorCode =
  | "bad_payload" | "unsupported" | "not_connected" | "hinge_closed" | "thermal_critical" | "paused" | "permission_denied"
  | "disabled_by_user" | "busy" | "timeout" | "platform_error" // from the glasses
  | "bad_frame" | "id_reused" // from the service
  | "not_configured" | "simulator_refused" | "transport_unavailable" | "refused" | "closed" | "media_lost" // from this module
  | (string & {});

/** Every refusal. Branch on code; message is for people. */
export class GlassesError extends Error {
  readonly code: ErrorCode;
  /** With permission_denied and disabled_by_user: what was refused. */
  readonly part?: "camera" | "microphone" | "speech" | undefined;
  /** With part: whether the wearer did not allow it or switched it off. */
  readonly by?: "permission" | "switch" | undefined;
  //: if assistant
  /** Of ask: what to do next. */
  fixHint?: string;
  /** Of ask: when to ask again; absent if waiting does not help. */
  retryAfterMs?: number;
  //: end
  constructor(code: ErrorCode, message: string, refused: { part?: GlassesError["part"]; by?: GlassesError["by"] } = {}) {
    super(message);
    this.name = "GlassesError";
    this.code = code;
    this.part = refused.part;
    this.by = refused.by;
  }
}

/** The state of the glasses. */
export interface GlassesState {
  battery: { level: number; charging: boolean };
  worn: boolean;
  hinge: "open" | "folded";
  thermal: "nominal" | "warm" | "critical";
  link: "connected" | "lossy" | "lost" | "disconnected";
  route: "glasses" | "phone";
  call: boolean;
  permissions: Record<"camera" | "microphone" | "speech", "granted" | "denied">;
  /** What the wearer switched off. */
  disabled: ("camera" | "microphone" | "speech")[];
  clock: "real" | "virtual";
}

/** An event from the glasses. bytes is set for frames of a stream. */
export interface GlassesEvent {
  type: string;
  id: string;
  at: number;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  payload: any;
  bytes?: Uint8Array | undefined;
}

export type Handler = (event: GlassesEvent) => void | Promise<void>;

/** The task of a timer. */
export type Task = () => void | Promise<void>;

//: if display
/** One node of a display tree; PROTOCOL.md says which fields a type uses. Lengths are panel pixels. */
export interface DisplayNode {
  type: "column" | "row" | "list" | "text" | "button" | "image" | "icon" | "progress" | (string & {});
  id?: string;
  children?: DisplayNode[];
  text?: string;
  style?: "large" | "title" | "body" | "caption";
  align?: "start" | "center" | "end";
  /** BCP 47, for this node and those below it. */
  language?: string;
  direction?: "auto" | "ltr" | "rtl";
  colour?: string;
  gap?: number;
  padding?: number;
  grow?: number;
  overflow?: "clip" | "scroll" | "paginate";
  width?: number;
  height?: number;
  data?: string;
  alt?: string;
  icon?: string;
  value?: number;
  /** Only at the root: the id of the button or list entry that gets the focus. Absent: it stays where it is. */
  focus?: string;
}

//: end
//: if camera
/** A photo or a clip. */
export interface Media {
  bytes: Uint8Array;
  mime: string;
  sha256: string;
  width: number;
  height: number;
  durationMs: number;
}

//: end
//: if assistant
/** Something that the model may call. */
export interface AssistantTool {
  name: string;
  description: string;
  /** The JSON Schema of the arguments, an object. */
  parameters?: object;
  /** Gets the arguments and returns the result for the model: a text, or a value that JSON can represent. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  run(given: any): unknown;
}

/** One message of a conversation with the model. */
export interface AssistantMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: string;
  tool_calls?: { id: string; type: "function"; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

export interface AssistantOptions {
  /** Instructions for the model, sent before the conversation. */
  system?: string;
  tools?: AssistantTool[];
  /** true states that the wearer agreed that the service remembers what is said; the model then knows it later. */
  remember?: boolean;
  /** Gets the text of the model's message so far, whenever more of it arrives. */
  onText?: (text: string) => void | Promise<void>;
}

export interface ConversationOptions {
  /** What the model should be and do. */
  instructions?: string;
  tools?: AssistantTool[];
  /** As for ask: true states that the wearer agreed. */
  remember?: boolean;
  /** Gets what the wearer said, once it is known. */
  onHeard?: (text: string) => void | Promise<void>;
  /** Gets the text of the answer so far, whenever more of it arrives. */
  onSaid?: (text: string) => void | Promise<void>;
  /** Gets why an answer failed; the conversation continues. Without it, the error is printed. */
  onError?: (error: GlassesError) => void | Promise<void>;
}

/** How a conversation ended. */
export interface ConversationEnd {
  /** stopped by stopConversing, or the code of what ended it: no_credit, cap_reached, session_limit, ... */
  reason: string;
  /** realtime, or text if the session has no realtime model: transcripts, ask and say instead of sound. */
  mode: "realtime" | "text";
}

/** The model's answer. To continue, pass [...messages, { role: "user", content: "..." }]. */
export interface AssistantAnswer {
  text: string;
  /** Without the system text. */
  messages: AssistantMessage[];
}

//: end
/** How to reach the glasses. Absent settings come from the environment (Node) or globalThis.SERVICE_GLASSES (web). */
export interface Settings {
  app: { name: string; version?: string };
  /** The one setting: SERVICE_GLASSES_TRANSPORT. Default: simulator in a development build, device in a release build.
   * */
  transport?: "simulator" | "device";
  /** The session's endpoint: SERVICE_GLASSES_URL. */
  url?: string;
  /** The session's secret; in Node the file SERVICE_GLASSES_SECRET_FILE is read instead. */
  secret?: string;
  /** true makes this a release build whatever the environment says; false changes nothing. */
  release?: boolean;
  //: if assistant
  /** The secret of the user whom remember, memory and forget are about: 32 random lower-case hexadecimal digits, such as
   * one for each person who signs in. Default: the module makes and stores one on this device. */
  user?: string;
  //: end
}

interface Target {
  url: string;
  secret: string;
}

// Bundlers replace the whole of process.env.NODE_ENV and of __SERVICE_RELEASE__ with constants.
declare const process: {
  env: { NODE_ENV?: string; [name: string]: string | undefined };
  getBuiltinModule?: (name: string) => { readFileSync(path: string, encoding: string): string };
};
declare const __SERVICE_RELEASE__: boolean;

function isRelease(settings: Settings): boolean {
  const asked = settings.release === true || setting("RELEASE") === "1";
  const says = (probe: () => boolean): boolean => {
    try {
      return probe();
    } catch {
      return false; // not defined here
    }
  };
  return asked || says(() => process.env.NODE_ENV === "production") || says(() => __SERVICE_RELEASE__);
}

/** setting reads SERVICE_<name>, or in a page the field of globalThis.SERVICE_GLASSES with its name in Settings. */
function setting(name: string): string | undefined {
  const page = (globalThis as { SERVICE_GLASSES?: Record<string, unknown> }).SERVICE_GLASSES;
  const field = { RELEASE: "release", GLASSES_TRANSPORT: "transport", GLASSES_URL: "url", GLASSES_SECRET: "secret" }[name];
  const value = field ? page?.[field] : undefined;
  if (value !== undefined) return value === true ? "1" : String(value);
  try {
    return process.env["SERVICE_" + name] || undefined;
  } catch {
    return undefined; // a page
  }
}

/** target decides where to attach: never to a simulator in a release build, and only by the transport that was set. */
function target(settings: Settings): Target {
  const release = isRelease(settings);
  const transport = settings.transport ?? setting("GLASSES_TRANSPORT") ?? (release ? "device" : "simulator");
  if (transport === "device") {
    throw new GlassesError("transport_unavailable", "this version of the module has no transport to real glasses; set SERVICE_GLASSES_TRANSPORT=simulator while developing");
  }
  if (transport !== "simulator") {
    throw new GlassesError("not_configured", `SERVICE_GLASSES_TRANSPORT is ${transport}, want simulator or device`);
  }
  if (release) throw new GlassesError("simulator_refused", "a release build does not attach to a simulator");
  const url = settings.url ?? setting("GLASSES_URL");
  if (!url || !/^wss?:\/\//.test(url)) {
    throw new GlassesError("not_configured", "SERVICE_GLASSES_URL is not the ws:// endpoint of a session; startLocalSimulation and createSimulatorSession return one");
  }
  if (typeof WebSocket === "undefined") throw new GlassesError("not_configured", "there is no WebSocket here: use Node 22 or newer, or start Node 20 with --experimental-websocket");
  return { url, secret: settings.secret ?? secretOf() };
}

function secretOf(): string {
  const inPage = setting("GLASSES_SECRET");
  if (inPage) return inPage;
  const file = setting("GLASSES_SECRET_FILE");
  if (!file) throw new GlassesError("not_configured", "SERVICE_GLASSES_SECRET_FILE does not name the file with the session's secret");
  try {
    return process.getBuiltinModule!("node:fs").readFileSync(file, "utf8").trim();
  } catch (e) {
    throw new GlassesError("not_configured", `reading the session's secret: ${(e as Error).message}`);
  }
}

