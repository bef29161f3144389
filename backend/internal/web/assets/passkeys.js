// Passkeys: forms marked data-passkey="get" (sign in) or "create" (add one) request a credential from the
// browser, put it into their hidden field and are submitted like any other form, so that the responses
// are ordinary pages.

/** @param {string} text base64url */
function bytes(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (c) => c.charCodeAt(0));
}

/** @param {ArrayBuffer | null} buffer */
function text(buffer) {
  if (!buffer) return undefined;
  const plain = Array.from(new Uint8Array(buffer), (b) => String.fromCharCode(b)).join("");
  return btoa(plain).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** @param {{id: string, type: PublicKeyCredentialType, transports?: AuthenticatorTransport[]}[] | undefined} list */
function descriptors(list) {
  return list?.map((d) => ({ ...d, id: bytes(d.id) }));
}

/**
 * Returns the new credential in the form that servers read (WebAuthn level 3, toJSON).
 * @param {any} options
 */
async function create(options) {
  const made = await navigator.credentials.create({ publicKey: {
    ...options, challenge: bytes(options.challenge), user: { ...options.user, id: bytes(options.user.id) },
    excludeCredentials: descriptors(options.excludeCredentials),
  } });
  if (!(made instanceof PublicKeyCredential) || !(made.response instanceof AuthenticatorAttestationResponse)) throw new Error("no passkey");
  return {
    id: made.id, rawId: made.id, type: made.type, authenticatorAttachment: made.authenticatorAttachment ?? undefined,
    clientExtensionResults: made.getClientExtensionResults(),
    response: { clientDataJSON: text(made.response.clientDataJSON), attestationObject: text(made.response.attestationObject), transports: made.response.getTransports?.() ?? [] },
  };
}

/**
 * Returns a passkey's signature.
 * @param {any} options
 */
async function get(options) {
  const got = await navigator.credentials.get({ publicKey: {
    ...options, challenge: bytes(options.challenge), allowCredentials: descriptors(options.allowCredentials),
  } });
  if (!(got instanceof PublicKeyCredential) || !(got.response instanceof AuthenticatorAssertionResponse)) throw new Error("no passkey");
  return {
    id: got.id, rawId: got.id, type: got.type, authenticatorAttachment: got.authenticatorAttachment ?? undefined,
    clientExtensionResults: got.getClientExtensionResults(),
    response: {
      clientDataJSON: text(got.response.clientDataJSON), authenticatorData: text(got.response.authenticatorData),
      signature: text(got.response.signature), userHandle: text(got.response.userHandle),
    },
  };
}

/** @param {unknown} e */
function sentence(e) {
  const name = e instanceof Error || e instanceof DOMException ? e.name : "";
  switch (name) {
    case "NotAllowedError":
    case "AbortError":
      return "That was cancelled, or took too long. Nothing was changed.";
    case "InvalidStateError":
      return "This device has a passkey for your account already.";
    case "SecurityError":
      return "Passkeys do not work at this address.";
  }
  return e instanceof Refusal ? e.message : "That did not work. Reload the page and try again.";
}

class Refusal extends Error {
  /** Whether the form should ask for the password. */
  password = false;
}

/** @param {HTMLFormElement} form */
async function options(form) {
  const body = new URLSearchParams({ csrf: field(form, "csrf").value });
  const password = passwordField(form);
  if (password && !password.disabled) body.set("password", password.value);
  const answer = await fetch(form.dataset.begin ?? "", { method: "POST", body, redirect: "error" });
  if (answer.status === 429) throw new Refusal("Too many attempts from your network address. Wait a minute, then try again.");
  if (answer.status === 409) throw refusal(await answer.json());
  if (!answer.ok) throw new Error("no options");
  const { publicKey } = await answer.json();
  return publicKey;
}

/**
 * @param {HTMLFormElement} form
 * @param {string} name
 */
function field(form, name) {
  const found = form.elements.namedItem(name);
  if (!(found instanceof HTMLInputElement)) throw new Error(`no field ${name}`);
  return found;
}

/** @param {{message: string, password: boolean}} answer */
function refusal(answer) {
  const found = new Refusal(answer.message);
  found.password = answer.password;
  return found;
}

/** @param {HTMLFormElement} form */
function passwordField(form) {
  const found = form.querySelector("[data-password] input");
  return found instanceof HTMLInputElement ? found : null;
}

/**
 * Asks for the password in the form, which keeps everything else that was entered.
 * @param {HTMLInputElement} input
 */
function ask(input) {
  const row = input.closest("[data-password]");
  if (row instanceof HTMLElement) row.hidden = false;
  input.disabled = false;
  input.value = "";
  input.focus();
}

/** @param {HTMLFormElement} form */
function enliven(form) {
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    const trouble = form.querySelector("[data-trouble]");
    const button = form.querySelector("button");
    if (!(trouble instanceof HTMLElement) || !button) return;
    trouble.hidden = true;
    button.disabled = true;
    try {
      const asked = await options(form);
      const credential = form.dataset.passkey === "create" ? await create(asked) : await get(asked);
      field(form, "credential").value = JSON.stringify(credential);
      const password = passwordField(form);
      if (password) password.disabled = true; // it was checked, and is not sent again
      form.submit();
    } catch (e) {
      trouble.textContent = sentence(e);
      trouble.hidden = false;
      button.disabled = false;
      const password = passwordField(form);
      if (e instanceof Refusal && e.password && password) ask(password);
      else button.focus();
    }
  });
}

if (window.PublicKeyCredential) {
  for (const found of document.querySelectorAll("[data-passkey]")) {
    if (found instanceof HTMLFormElement) enliven(found);
    if (found instanceof HTMLElement) found.hidden = false;
  }
  for (const found of document.querySelectorAll("[data-no-passkey]")) found.remove();
}
