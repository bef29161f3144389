// The page is the response to a sign-in. Reloading it must not repeat the sign-in.
const section = document.querySelector("[data-here]");
if (section instanceof HTMLElement) history.replaceState(null, "", section.dataset.here);
