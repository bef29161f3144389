// A provider of models by somebody else: @copilotkit/aimock. It prints its address. Of itself it counts the tokens of
// chat completions only, so what it bills is set here, by the names of all three interfaces.
import { LLMock } from "@copilotkit/aimock";

const mock = new LLMock({ port: 0 });
const usage = (read, wrote) => ({ prompt_tokens: read, completion_tokens: wrote, total_tokens: read + wrote,
  input_tokens: read, output_tokens: wrote });
mock.onMessage("weather", { toolCalls: [{ name: "weather", arguments: '{"city":"Berlin"}' }], usage: usage(31, 5) });
mock.onMessage("Hello", { content: "Grüße to the world of small glasses 你好!", usage: usage(17, 11) });
console.log(await mock.start());
