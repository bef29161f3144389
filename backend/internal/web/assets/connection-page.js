// The form of the connection page works without scripts: buttons preview the entered values and add a row with a
// request. With scripts, the preview follows the input, rows are added in place, and a colour can be picked.

import { get } from "./elements.js";

const form = get("page-form", HTMLFormElement);

/** Milliseconds without a key before the preview is updated. */
const pause = 250;

/** @type {HTMLButtonElement[]} */
const states = [...document.querySelectorAll("button[data-preview]")].filter((b) => b instanceof HTMLButtonElement);
let shown = states[0];
let section = "";
let count = 0;
let timer = 0;

// Each preview is loaded into a new frame behind the current one and replaces it when it is complete. This avoids
// flickering, and keeps previews out of the browser's history.
function preview() {
  const frames = document.querySelector(".preview-frames");
  const now = frames?.querySelector("iframe:not([data-next])");
  if (!frames || !(now instanceof HTMLIFrameElement)) return;
  frames.querySelector("[data-next]")?.remove();
  const next = document.createElement("iframe");
  next.className = now.className;
  next.name = `preview-${count += 1}`;
  next.title = now.title;
  next.setAttribute("sandbox", "");
  next.dataset.next = "";
  frames.append(next);
  next.addEventListener("load", () => {
    if (!next.isConnected) return;
    delete next.dataset.next;
    now.remove();
  }, { once: true });
  const { formAction, formTarget } = shown;
  shown.formTarget = next.name;
  shown.formAction = formAction + (section ? `#${section}` : "");
  form.requestSubmit(shown);
  Object.assign(shown, { formAction, formTarget });
}

for (const state of states) {
  state.addEventListener("click", (event) => {
    event.preventDefault();
    shown = state;
    press();
    preview();
  });
}

function press() {
  for (const state of states) state.setAttribute("aria-pressed", String(state === shown));
}

/** @param {Event} event */
function follow(event) {
  const at = event.target instanceof Element ? event.target.closest("[data-shows]") : null;
  section = at instanceof HTMLElement ? at.dataset.shows ?? "" : "";
  clearTimeout(timer);
  timer = setTimeout(preview, pause);
}

// Unsaved input is lost with the page, so leaving asks first.
let unsaved = form.dataset.entered !== undefined;

form.addEventListener("input", (event) => {
  unsaved = true;
  follow(event);
});
form.addEventListener("submit", (event) => {
  clearTimeout(timer);
  if (!states.some((state) => state === event.submitter)) unsaved = false;
});
addEventListener("beforeunload", (event) => { if (unsaved) event.preventDefault(); });

// The colour picker and its text field.
const accent = get("accent", HTMLInputElement);
const picker = get("accent-picker", HTMLInputElement);
const toPicker = () => {
  const colour = accent.value.trim().toLowerCase();
  if (/^#[0-9a-f]{6}$/.test(colour)) picker.value = colour;
};
toPicker();
picker.hidden = false;
accent.addEventListener("input", toPicker);
picker.addEventListener("input", () => { accent.value = picker.value; });

// A new row is an empty copy of the last one, with the next number.
for (const rows of document.querySelectorAll("[data-rows]")) {
  const button = rows.querySelector("[data-add]");
  if (!(button instanceof HTMLButtonElement)) continue;
  button.addEventListener("click", (event) => {
    event.preventDefault();
    add(rows, button);
  });
}

/**
 * @param {Element} rows
 * @param {HTMLButtonElement} button
 */
function add(rows, button) {
  const all = rows.querySelectorAll("[data-row]");
  const last = all[all.length - 1];
  const row = last?.cloneNode(true);
  if (!last || !(row instanceof HTMLElement)) return;
  const n = String(all.length + 1);
  /** @param {string} text */
  const renumber = (text) => text.replace(/\d+$/, n);
  row.ariaLabel = renumber(row.ariaLabel ?? "");
  for (const label of row.querySelectorAll("label")) label.htmlFor = renumber(label.htmlFor);
  for (const error of row.querySelectorAll(".field-error")) error.remove();
  for (const input of row.querySelectorAll("input")) {
    input.id = renumber(input.id);
    input.name = renumber(input.name);
    for (const name of ["aria-invalid", "aria-describedby", "autofocus"]) input.removeAttribute(name);
    if (input.type === "checkbox") input.checked = false;
    else input.value = "";
  }
  last.after(row);
  row.querySelector("input")?.focus();
  if (all.length + 1 < Number(form.dataset.most)) return;
  button.remove();
  const full = rows.querySelector("[data-full]");
  if (full instanceof HTMLElement) full.hidden = false;
}

const how = get("preview-how", HTMLElement);
how.textContent = "It follows what you enter. Nothing is saved until you save it.";
press();
if (form.dataset.entered !== undefined) preview();
