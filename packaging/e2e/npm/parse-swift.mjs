// Parses Swift files by a tree-sitter grammar and names what it does not understand; there is no Swift compiler to be had
// here. usage: node parse-swift.mjs FILE...
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setFlagsFromString } from "node:v8";

const require = createRequire(import.meta.url);
const { Language, Parser } = require("web-tree-sitter");

setFlagsFromString("--no-wasm-tier-up"); // optimising the grammar takes many seconds, parsing with it a fraction of one
await Parser.init();
const parser = new Parser();
parser.setLanguage(await Language.load(require.resolve("tree-sitter-wasms/out/tree-sitter-swift.wasm")));

function report(node, file) {
  if (!node.hasError && !node.isMissing) return;
  if (node.isError || node.isMissing) {
    console.log(`${file}:${node.startPosition.row + 1}: ${node.isMissing ? "missing " + node.type : "not understood: " + node.text.slice(0, 80)}`);
    process.exitCode = 1;
  }
  for (const child of node.children) report(child, file);
}

for (const file of process.argv.slice(2)) report(parser.parse(readFileSync(file, "utf8")).rootNode, file);
