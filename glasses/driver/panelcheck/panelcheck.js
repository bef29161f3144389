// The questions about the test picture of package panelcheck, on any page that connects real glasses.

/** @typedef {""|"showing"|"asking"|"askingAgain"|"right"|"wrong"|"lost"} Step */
/** @typedef {{name: string, canCheck: boolean, checked: boolean, step: Step}} State */

const template = `
  <svg class="test-picture" viewBox="0 0 288 68" aria-hidden="true">
    <path class="back" d="M0 0h288v68H0z"/>
    <path class="edge" d="M1.5 1.5h285v65H1.5z"/>
    <path class="lit" d="M37 23h22v22H37zM144 11l15 22h-11v24h-8V33h-11z"/>
    <path class="lit" fill-rule="evenodd" d="M229 23h22v22h-22zm5.5 5.5v11h11v-11z"/>
  </svg>
  <div class="panel-check-text">
    <p class="panel-check-say" role="status"></p>
    <form hidden>
      <fieldset><legend>Is the arrow upright, and is the LEFT square filled with light?</legend>
        <label><input type="radio" name="upright" value="yes" required> Yes</label>
        <label><input type="radio" name="upright" value="no"> No</label></fieldset>
      <fieldset><legend>Do you see the border on all four sides?</legend>
        <label><input type="radio" name="border" value="yes" required> Yes</label>
        <label><input type="radio" name="border" value="no"> No</label></fieldset>
      <p class="panel-check-actions"><button type="submit">Continue</button>
        <button class="quiet" type="button" data-do="cancel">Stop</button></p>
    </form>
    <p class="panel-check-actions"><button type="button" data-do="begin"></button></p>
  </div>`;

export class PanelCheck {
  /**
   * @param {HTMLElement} root the element to fill with the questions
   * @param {{begin: () => void, answer: (isUpright: boolean, hasBorder: boolean) => void, cancel: () => void}} on
   */
  constructor(root, on) {
    this.root = root;
    root.classList.add("panel-check");
    const content = document.createElement("template");
    content.innerHTML = template;
    root.append(content.content);
    this.form = /** @type {HTMLFormElement} */ (root.querySelector("form"));
    this.say = /** @type {HTMLElement} */ (root.querySelector(".panel-check-say"));
    this.begin = /** @type {HTMLButtonElement} */ (root.querySelector("[data-do=begin]"));
    /** @type {Step} */
    this.step = "";
    this.begin.addEventListener("click", () => on.begin());
    root.querySelector("[data-do=cancel]")?.addEventListener("click", () => on.cancel());
    this.form.addEventListener("submit", (e) => {
      e.preventDefault();
      const said = new FormData(this.form);
      on.answer(said.get("upright") === "yes", said.get("border") === "yes");
    });
  }

  /** @param {State} state */
  show({ name, canCheck, checked, step }) {
    this.root.hidden = !canCheck;
    const asks = step === "asking" || step === "askingAgain";
    const text = words(step, checked, name || "these glasses");
    if (this.say.textContent !== text) this.say.textContent = text; // screen readers announce each write
    if (asks && step !== this.step) this.form.reset();
    const hadFocus = this.root.contains(document.activeElement);
    this.form.hidden = !asks;
    this.begin.hidden = asks || step === "showing";
    this.begin.textContent = checked || step ? "Check again" : "Show a test picture";
    this.begin.classList.toggle("quiet", checked);
    if (hadFocus && step !== this.step) (asks ? this.form.querySelector("input") : this.begin)?.focus();
    this.step = step;
  }
}

/**
 * @param {Step} step
 * @param {boolean} checked
 * @param {string} name
 */
function words(step, checked, name) {
  switch (step) {
    case "showing":
      return "The test picture is on its way to the glasses.";
    case "asking":
      return "The glasses show this picture. Look through them.";
    case "askingAgain":
      return "The glasses show it in another way now. Look once more.";
    case "right":
      return `The picture is right. This is remembered for ${name}.`;
    case "wrong":
      return "Nothing was changed. If the picture was wrong in both ways, update the glasses in the vendor's app and check again.";
    case "lost":
      return "The glasses did not show the picture, because the connection broke. Check again once they are connected.";
  }
  return checked ? `Pictures were right on ${name} when they were checked.`
    : "Makers disagree on how these glasses show a picture. A test picture and two questions settle it.";
}
