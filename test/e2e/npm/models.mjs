// An app for the end-to-end tests: the official clients of model providers, configured by nothing but the base URLs and
// keys in their usual variables, driven by lines of JSON.
//
// in:  {"api":"chat|responses|messages|models|realtime","body":{...},"how":"stream|leave|helper","options":{"maxRetries":0}}
// out: {"answer":{...}} | {"text":"...","last":{...}} | {"text":"...","error":{"name":"RateLimitError","status":429,...}}
//
// stream reads the events one by one, leave stops at the first text, and helper lets the client put them together.
// Options are those of the client.
import { createInterface } from "node:readline";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { OpenAIRealtimeWebSocket } from "openai/realtime/websocket";

const openai = new OpenAI();
const anthropic = new Anthropic();
const apis = {
  chat: {
    create: (body, options) => openai.chat.completions.create(body, options),
    stream: (body, options) => openai.chat.completions.stream(body, options).finalChatCompletion(),
    // As apps do: every chunk has a choice, unless they ask for the usage.
    text: (chunk, body) =>
      (body.stream_options?.include_usage ? chunk.choices[0]?.delta : chunk.choices[0].delta)?.content,
  },
  responses: {
    create: (body, options) => openai.responses.create(body, options),
    stream: (body, options) => openai.responses.stream(body, options).finalResponse(),
    text: (event) => event.type === "response.output_text.delta" && event.delta,
  },
  messages: {
    create: (body, options) => anthropic.messages.create(body, options),
    stream: (body, options) => anthropic.messages.stream(body, options).finalMessage(),
    text: (event) => event.type === "content_block_delta" && event.delta.text,
  },
  realtime: { create: converse },
  models: {
    create: async () => ({ openai: (await openai.models.list()).data, anthropic: (await anthropic.models.list()).data }),
  },
};

/** converse holds a realtime session of one turn, in text or sound, until its end, an error or the close. unasked turns
 * off automatic answers to sound. */
function converse({ model, sound, unasked }) {
  return new Promise((resolve) => {
    const talk = new OpenAIRealtimeWebSocket({ model }, openai);
    let text = "";
    let isOver = false;
    const end = (how) => {
      if (isOver) return;
      isOver = true;
      resolve({ text, ...how });
      talk.close();
    };
    talk.on("response.output_text.delta", ({ delta }) => (text += delta));
    talk.on("response.done", ({ response }) => end({ end: response.status, usage: response.usage }));
    talk.on("error", ({ error, message }) => end({ end: error?.code ?? String(message) }));
    talk.socket.addEventListener("close", ({ code }) => end({ end: String(code) }));
    talk.on("session.created", () => {
      if (unasked) {
        talk.send({ type: "session.update", session: { type: "realtime", audio: { input: {
          turn_detection: { type: "server_vad", create_response: false } } } } });
      }
      if (sound) return talk.send({ type: "input_audio_buffer.append", audio: Buffer.alloc(4800).toString("base64") });
      talk.send({ type: "conversation.item.create", item: { type: "message", role: "user",
        content: [{ type: "input_text", text: "Hello" }] } });
      talk.send({ type: "response.create" });
    });
  });
}

async function call({ api, body, how, options }) {
  const { create, stream, text } = apis[api];
  const said = { text: "" };
  try {
    if (how === "helper") {
      said.answer = await stream(body, options);
    } else if (how) {
      for await (const event of await create({ ...body, stream: true }, options)) {
        said.text += text(event, body) || "";
        said.last = event;
        if (how === "leave" && said.text) break;
      }
    } else {
      said.answer = await create(body, options);
    }
  } catch (error) {
    const detail = error.error?.error ?? error.error ?? {};
    said.error = {
      name: error.constructor.name,
      status: error.status ?? 0,
      code: error.code ?? detail.code ?? "",
      type: error.type ?? detail.type ?? "",
      message: String(error.message),
      isAPIError: error instanceof OpenAI.APIError || error instanceof Anthropic.APIError,
    };
  }
  process.stdout.write(JSON.stringify(said) + "\n");
}
createInterface({ input: process.stdin }).on("line", (line) => call(JSON.parse(line)));
