// An agent for the end-to-end tests: the official TypeScript client over service-mcp, driven by lines of JSON.
//
//   node agent.mjs --era legacy|modern [--elicit] -- <service-mcp> [args]
//
// in:  {"id":1,"list":true} | {"id":2,"call":"tool","args":{},"timeoutMs":60000,"progress":true} | {"cancel":2}
// out: {"ready":{"server":{...},"protocol":"..."}} | {"id":2,"result":{...}} | {"id":2,"error":{"code":-32001,"message":"..."}}
//      {"id":2,"progress":{...}} | {"elicit":{...}}
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const argv = process.argv.slice(2);
const split = argv.indexOf("--");
const flags = argv.slice(0, split);
const [command, ...args] = argv.slice(split + 1);
const era = flags[flags.indexOf("--era") + 1];
const elicit = flags.includes("--elicit");
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");

const client = new Client(
  { name: "e2e-agent", version: "1.0.0" },
  {
    capabilities: elicit ? { elicitation: { url: {} } } : {},
    versionNegotiation: { mode: era === "modern" ? { pin: "2026-07-28" } : "legacy" },
  },
);
if (elicit) {
  client.setRequestHandler("elicitation/create", async (request) => {
    say({ elicit: request.params });
    return { action: "accept" };
  });
}
client.onerror = (error) => say({ clientError: String(error?.message ?? error) });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" }));
say({ ready: { server: client.getServerVersion(), instructions: client.getInstructions() } });

const running = new Map();
async function handle(message) {
  if (message.cancel) return running.get(message.cancel)?.abort("the person stopped it");
  const control = new AbortController();
  running.set(message.id, control);
  try {
    const options = { signal: control.signal, timeout: message.timeoutMs ?? 60000 };
    if (message.progress) options.onprogress = (progress) => say({ id: message.id, progress });
    const result = message.list
      ? await client.listTools(undefined, options)
      : await client.callTool({ name: message.call, arguments: message.args ?? {} }, options);
    say({ id: message.id, result });
  } catch (error) {
    say({ id: message.id, error: { code: error?.code ?? 0, message: String(error?.message ?? error) } });
  } finally {
    running.delete(message.id);
  }
}
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => handle(JSON.parse(line)));
lines.on("close", async () => {
  await client.close();
  process.exit(0);
});
