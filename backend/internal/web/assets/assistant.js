// The assistant's form works without scripts: each voice lists the models it supports, and the server checks. With
// scripts, voices that the chosen model cannot speak with are disabled and explain why.

import { get } from "./elements.js";

const voices = radios("voice");
const models = radios("realtimeModel");

const status = document.createElement("p");
status.id = "voice-status";
status.className = "field-error";
status.setAttribute("role", "status");
get("voice", HTMLFieldSetElement).querySelector(".cards")?.before(status);

/** The voice that was chosen before the model ruled it out; restored with the model. */
let ruledOut = /** @type {HTMLInputElement | undefined} */ (undefined);

/**
 * @param {string} name
 * @returns {HTMLInputElement[]}
 */
function radios(name) {
  const found = [...document.querySelectorAll(`input[type="radio"][name="${name}"]`)];
  return found.filter((e) => e instanceof HTMLInputElement);
}

/** @param {HTMLInputElement | undefined} radio */
const labelOf = (radio) => radio?.labels?.[0]?.textContent ?? "";

function check() {
  const model = models.find((m) => m.checked);
  if (!model) return;
  status.textContent = "";
  for (const voice of voices) {
    const goes = !voice.dataset.with || voice.dataset.with.split(" ").includes(model.value);
    explain(voice, goes ? "" : `Not with ${labelOf(model)}.`);
    voice.disabled = !goes;
    if (goes || !voice.checked) continue;
    voice.checked = false;
    ruledOut = voice;
  }
  if (voices.some((v) => v.checked)) return;
  if (ruledOut && !ruledOut.disabled) ruledOut.checked = true;
  else if (ruledOut) status.textContent = `${labelOf(ruledOut)} does not go with ${labelOf(model)}. Choose another voice.`;
}

/**
 * @param {HTMLInputElement} voice
 * @param {string} text
 */
function explain(voice, text) {
  const id = `${voice.id}-reason`;
  document.getElementById(id)?.remove();
  const about = (voice.getAttribute("aria-describedby") ?? "").split(" ").filter((one) => one && one !== id);
  if (text) {
    const reason = document.createElement("p");
    reason.id = id;
    reason.className = "reason";
    reason.textContent = text;
    voice.closest(".choice")?.append(reason);
    about.push(id);
  }
  voice.setAttribute("aria-describedby", about.join(" "));
}

for (const model of models) model.addEventListener("change", check);
for (const voice of voices) {
  voice.addEventListener("change", () => {
    ruledOut = undefined;
    status.textContent = "";
  });
}
check();
if (document.getElementById("voice-error")) status.textContent = ""; // the server has already reported it
