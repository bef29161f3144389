// Parses Swift files by a tree-sitter grammar and names what it does not understand; there is no Swift compiler to be had
// here. usage: node --liftoff-only parse-swift.mjs FILE... (without the flag, node spends many seconds on optimising the
// grammar, which parses a file in a fraction of one)
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { Language, Parser } = require("web-tree-sitter");

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
