"use strict";
// The sliders between two pictures. Without this script the page shows the pictures side by side.
for (const compare of document.querySelectorAll(".compare")) {
  const stack = compare.querySelector(".stack");
  const range = stack.querySelector("input");
  const follow = () => {
    stack.querySelector(".over").style.setProperty("--at", `${range.value}%`);
    range.setAttribute("aria-valuetext", `${range.value} % of the picture seen`);
  };
  range.addEventListener("input", follow);
  follow();
  stack.hidden = false;
}
// A picture of a strip grows when it is pressed.
for (const image of document.querySelectorAll(".strip img")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "zoom";
  button.setAttribute("aria-expanded", "false");
  const place = image.closest("li") ?? image.closest("figure");
  const caption = image.closest("figure").querySelector("figcaption").textContent;
  button.setAttribute("aria-label", `Enlarge: ${caption}`);
  image.replaceWith(button);
  button.append(image);
  button.addEventListener("click", () => {
    const large = place.classList.toggle("large");
    button.setAttribute("aria-expanded", String(large));
  });
}
// Everything is printed, also what is folded.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const d of folded) d.open = true;
});
addEventListener("afterprint", () => { for (const d of folded) d.open = false; });
// A link to a run opens it.
const openTarget = () => {
  const details = location.hash.length > 1 && document.getElementById(location.hash.slice(1))?.querySelector("details");
  if (details) details.open = true;
};
addEventListener("hashchange", openTarget);
openTarget();
