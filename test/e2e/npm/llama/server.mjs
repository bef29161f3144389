// A server of a model on this machine, by llama.cpp, in the shape of OpenAI's chat completions. Usage: node server.mjs
// MODEL.gguf. It prints its address, and for each answer the tokens that the model really read and wrote, as JSON.
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { getLlama } from "node-llama-cpp";

// One thread: several wait for each other at every layer, which takes seconds on a busy machine.
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error", maxThreads: 1 });
const model = await llama.loadModel({ modelPath: process.argv[2] });
const context = await model.createContext({ contextSize: 512, threads: 1 });
const sequence = context.getSequence();

// answer calls each with the text of each token, and returns the counts of llama.cpp's own meter.
async function answer({ messages, max_tokens, max_completion_tokens }, each) {
  await sequence.clearHistory();
  const before = sequence.tokenMeter.getState();
  const prompt = model.tokenize(messages.map((m) => `${m.role}: ${m.content}`).join("\n"));
  const most = max_completion_tokens ?? max_tokens ?? 16;
  let written = 0;
  for await (const token of sequence.evaluate([model.tokens.bos, ...prompt])) {
    if (model.isEogToken(token)) break;
    each(model.detokenize([token]));
    if (++written >= most) break;
  }
  const { usedInputTokens, usedOutputTokens } = sequence.tokenMeter.diff(before);
  console.log(JSON.stringify({ in: usedInputTokens, out: usedOutputTokens }));
  return { prompt_tokens: usedInputTokens, completion_tokens: usedOutputTokens,
    total_tokens: usedInputTokens + usedOutputTokens };
}

async function serve(request, response) {
  const body = JSON.parse(await text(request));
  const chunk = (choices, more) => ({ id: "chatcmpl-llama", created: 1, model: body.model, choices, ...more });
  if (!body.stream) {
    let content = "";
    const usage = await answer(body, (token) => (content += token));
    const choice = { index: 0, finish_reason: "length", message: { role: "assistant", content } };
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify(chunk([choice], { object: "chat.completion", usage })));
    return;
  }
  response.setHeader("Content-Type", "text/event-stream");
  const send = (choices, more) =>
    response.write(`data: ${JSON.stringify(chunk(choices, { object: "chat.completion.chunk", ...more }))}\n\n`);
  const delta = (content, reason = null) => send([{ index: 0, delta: { role: "assistant", content }, finish_reason: reason }]);
  const usage = await answer(body, (token) => delta(token));
  delta("", "length");
  if (body.stream_options?.include_usage) send([], { usage });
  response.end("data: [DONE]\n\n");
}

let last = Promise.resolve(); // there is one sequence, so requests wait for each other
const server = createServer((request, response) => {
  last = last.then(() => serve(request, response)).catch((error) => {
    console.error(error);
    response.destroy();
  });
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
