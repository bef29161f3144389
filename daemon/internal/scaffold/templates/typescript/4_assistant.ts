
//: if assistant
interface Gateway {
  url: string;
  token: string;
}

type AssistantToolCall = NonNullable<AssistantMessage["tool_calls"]>[number];

const maxRounds = 8; // answers of the model to one question
const maxAnswer = 1 << 20; // characters of an answer
const maxCalls = 64; // tool calls in one answer
const quiet = 120_000; // ms without a byte from the gateway

const fixHints: Record<string, string> = {
  no_gateway: "Start a session with assistantScript, or use createSimulatorSession in a project with models.",
  no_credit: "Ask the account's owner to add credit on the credit page; an assistantScript costs nothing.",
  cap_reached: "Ask the owner to raise the cap on the project's gateway page, or wait until it resets.",
  credit_reserved: "Ask again when the calls that have reserved the credit have ended.",
  credit_locked: "Ask the account's owner to confirm their email address.",
  request_too_large: "Send fewer or shorter messages.",
  invalid_key: "Attach to a session that is still open.",
  model_not_found: "Choose a textModel with setAssistantConfig.",
  not_configured: "Ask the backend's operator to set up a provider; until then use an assistantScript.",
  no_storage: "Make the user's data directory writable, or pass connect a user that the app stores itself.",
  cancelled: "Ask again when the wearer wants an answer.",
  too_many_rounds: "Make the tools' results say clearly that they are complete.",
  bad_answer: "Ask again; if that does not help, choose another textModel.",
};

function assistantError(code: string, message: string, status = 0, wait = ""): GlassesError {
  const error = new GlassesError(code, message);
  const waitingHelps = status === 0 || status === 408 || status === 429 || status >= 500;
  error.fixHint = fixHints[code] ?? (waitingHelps ? "Ask again." : "Change the request as the message explains.");
  if (/^\d{1,6}$/.test(wait)) error.retryAfterMs = Number(wait) * 1000;
  return error;
}

/** AssistantCall is one request to the AI gateway. */
class AssistantCall {
  #gateway: Gateway;
  #stop: AbortController;
  #quiet: number | undefined; // ms
  #waiting: <T>(work: Promise<T>) => Promise<T>;
  #text = "";
  #calls: AssistantToolCall[] = [];
  #finished = false;

  constructor(
    gateway: Gateway, stop: AbortController, quiet: number | undefined, waiting: <T>(work: Promise<T>) => Promise<T>,
  ) {
    this.#gateway = gateway;
    this.#stop = stop;
    this.#quiet = quiet;
    this.#waiting = waiting;
  }

  /** message sends the request and reads the model's message. With a user the service remembers what is said. */
  async message(body: string, user: string, onText: AssistantOptions["onText"]): Promise<AssistantMessage> {
    const own = new AbortController(); // ends the request, however this ends
    const stopped = () => own.abort(this.#stop.signal.reason);
    this.#stop.signal.addEventListener("abort", stopped);
    try {
      this.#stop.signal.throwIfAborted();
      const response = await this.#wait(own, fetch(`${this.#gateway.url}/chat/completions`, {
        method: "POST", body, redirect: "error", credentials: "omit", cache: "no-store", signal: own.signal,
        headers: {
          Authorization: `Bearer ${this.#gateway.token}`,
          "Content-Type": "application/json",
          Accept: "text/event-stream",
          ...(user && { "X-Service-User": user, "X-Service-Memory": "wearer-agreed" }),
        },
      }));
      if (response.status !== 200) throw await this.#refusal(own, response);
      await this.#read(own, response, onText);
      return { role: "assistant", content: this.#text, ...(this.#calls.length > 0 && { tool_calls: this.#calls }) };
    } finally {
      this.#stop.signal.removeEventListener("abort", stopped);
      own.abort();
    }
  }

  /** profile reads or deletes what the service remembers about the user, and returns it. */
  async profile(method: "GET" | "DELETE", user: string): Promise<string> {
    const response = await this.#wait(this.#stop, fetch(`${this.#gateway.url}/memory`, {
      method, redirect: "error", credentials: "omit", cache: "no-store", signal: this.#stop.signal,
      headers: { Authorization: `Bearer ${this.#gateway.token}`, "X-Service-User": user },
    }));
    if (response.status === 204) return "";
    if (response.status !== 200) throw await this.#refusal(this.#stop, response);
    const text = await this.#wait(this.#stop, response.text(), true);
    try {
      return String(JSON.parse(text).profile ?? "");
    } catch {
      throw assistantError("bad_answer", "the AI gateway sent an invalid answer");
    }
  }

  /** wait waits for the gateway. It hides the errors of fetch, whose texts may quote the request with the token. */
  async #wait<T>(own: AbortController, work: Promise<T>, broken = false): Promise<T> {
    const late = assistantError("gateway_timeout", `the AI gateway sent nothing for ${quiet / 1000} s`);
    const timer = this.#quiet && setTimeout(() => own.abort(late), this.#quiet);
    try {
      return await this.#waiting(work);
    } catch {
      if (own.signal.aborted) throw own.signal.reason;
      throw broken ? assistantError("answer_broken", "the answer broke off")
        : assistantError("gateway_unreachable", "the AI gateway cannot be reached");
    } finally {
      clearTimeout(timer);
    }
  }

  async #refusal(own: AbortController, response: Response): Promise<GlassesError> {
    const wait = response.headers.get("Retry-After") ?? "";
    const text = await this.#wait(own, response.text(), true);
    try {
      const { code, message } = JSON.parse(text).error;
      if (typeof code === "string") return assistantError(code, String(message), response.status, wait);
    } catch {
      // not an error of the gateway
    }
    const { status } = response;
    return assistantError("gateway_error", `the AI gateway answered with status ${status}`, status, wait);
  }

  async #read(own: AbortController, response: Response, onText: AssistantOptions["onText"]): Promise<void> {
    const reader = response.body!.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    for (let left = maxAnswer; ; ) {
      const { done, value } = await this.#wait(own, reader.read(), true);
      const came = done ? "\n" : decoder.decode(value, { stream: true });
      if ((left -= came.length) < 0) throw assistantError("bad_answer", "the answer is over 1 MB");
      const lines = (rest + came).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        if (!line.startsWith("data:")) continue;
        const data = line.slice(5).trim();
        if (data === "[DONE]") return;
        if (!this.#chunk(data) || !onText) continue;
        await onText(this.#text);
        this.#stop.signal.throwIfAborted();
      }
      if (done && this.#finished) return;
      if (done) throw assistantError("answer_broken", "the answer broke off");
    }
  }

  /** chunk takes one event. It reports whether the event contained text. */
  #chunk(data: string): boolean {
    try {
      const { error, choices } = JSON.parse(data);
      if (error) {
        const message = String(error.message ?? "the answer broke off");
        throw assistantError(String(error.code ?? "provider_error"), message);
      }
      const choice = choices?.[0];
      if (choice?.finish_reason) this.#finished = true;
      for (const part of choice?.delta?.tool_calls ?? []) this.#toolCall(part);
      const text = choice?.delta?.content;
      if (!text) return false;
      this.#text += text;
      return true;
    } catch (e) {
      if (e instanceof GlassesError) throw e;
      throw assistantError("bad_answer", "the AI gateway sent an invalid answer");
    }
  }

  #toolCall(part: { index?: number; id?: string; function?: { name?: string; arguments?: string } }): void {
    const index = part.index ?? this.#calls.length;
    if (index === this.#calls.length && index < maxCalls) {
      this.#calls.push({ id: "", type: "function", function: { name: "", arguments: "" } });
    }
    const call = this.#calls[index]!;
    call.id ||= part.id ?? "";
    call.function.name += part.function?.name ?? "";
    call.function.arguments += part.function?.arguments ?? "";
  }
}
//: end
