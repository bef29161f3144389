// A list to choose from. The glasses move the focus and scroll; the app learns the choice from the id of its node.
import { connect, type DisplayNode } from "./service/glasses.js";

const glasses = await connect({ app: { name: "Menu", version: "1.0" } });
const dishes = ["Soup", "Salad", "Pasta", "Cake"];

function menu(chosen: string): DisplayNode {
  return {
    type: "column", gap: 8, padding: 16, children: [
      { type: "text", text: chosen === "" ? "Choose a dish" : `You chose ${chosen}`, style: "title" },
      { type: "list", gap: 4, grow: 1, overflow: "scroll", children: dishes.map((dish): DisplayNode => ({ type: "button", id: dish, text: dish })) },
    ],
  };
}

let screen = menu("");
await glasses.show(screen);
for await (const { type, payload } of glasses.events()) {
  if (type === "device" && glasses.device.panel) await glasses.show(screen); // another model, whose panel is clear
  if (type !== "input") continue;
  if (payload.kind === "back") await glasses.clear();
  else if ((payload.kind === "select" || payload.kind === "tap") && payload.target) await glasses.show(screen = menu(payload.target));
}
