// The documentation works without scripts. This adds a copy button to each code block, and "/" moves to the search.

for (const block of document.querySelectorAll(".docs-text pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.querySelector("code")?.textContent ?? "");
      button.textContent = "Copied";
    } catch {
      getSelection()?.selectAllChildren(block);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  const frame = document.createElement("div");
  frame.className = "snippet";
  block.replaceWith(frame);
  frame.append(block, button);
}

document.addEventListener("keydown", (event) => {
  const field = document.querySelector(".docs-search input");
  const typing = event.target instanceof HTMLElement && event.target.closest("input, textarea, select");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (!(field instanceof HTMLInputElement)) return;
  event.preventDefault();
  field.focus();
  field.select();
});
