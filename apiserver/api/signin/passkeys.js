// Speaks between the service and the authenticators of a browser, for the sign-in page and the page
// of passkeys. Both work without it, but for passkeys.
"use strict";

const bytes = (text) => Uint8Array.from(
  atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
  .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

// sentence has a text begin and end as one.
const sentence = (said) => said[0].toUpperCase() + said.slice(1).replace(/([^.])$/, "$1.");

// call posts JSON, and has an error say what the service says.
async function call(path, body) {
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" },
    body: body && JSON.stringify(body) });
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const detail = told.detail || "The service does not answer. Try again.";
    throw new Error(sentence(detail.replace("currentPassword:", "The password")));
  }
  return told;
}

async function signIn() {
  const asked = await call("/api/auth/sign-in/passkey/challenge");
  const made = await navigator.credentials.get({ publicKey: { challenge: bytes(asked.challenge),
    rpId: asked.rpId, timeout: asked.timeoutSeconds * 1000, userVerification: "required" } });
  await call("/api/auth/sign-in/passkey", { id: text(made.rawId),
    clientDataJSON: text(made.response.clientDataJSON),
    authenticatorData: text(made.response.authenticatorData),
    signature: text(made.response.signature), userHandle: text(made.response.userHandle) });
}

async function add(name, currentPassword) {
  const asked = await call("/api/auth/passkeys/challenge", { currentPassword });
  const made = await navigator.credentials.create({ publicKey: {
    challenge: bytes(asked.challenge), timeout: asked.timeoutSeconds * 1000,
    rp: { id: asked.rpId, name: asked.rpId },
    user: { id: bytes(asked.userId), name: asked.userName, displayName: asked.userName },
    pubKeyCredParams: asked.algorithms.map((alg) => ({ type: "public-key", alg })),
    excludeCredentials: asked.excludeCredentials.map((id) => ({ type: "public-key", id: bytes(id) })),
    authenticatorSelection: { residentKey: "required", requireResidentKey: true, userVerification: "required" },
    attestation: "none" } });
  await call("/api/auth/passkeys", { name, id: text(made.rawId),
    clientDataJSON: text(made.response.clientDataJSON),
    attestationObject: text(made.response.attestationObject) });
}

// offer shows what needs a script, and says what goes wrong with it.
function offer(id, on, act) {
  const element = document.getElementById(id);
  if (!element || !window.PublicKeyCredential) return;
  const problem = document.getElementById("passkey-problem");
  element.hidden = false;
  element.addEventListener(on, async (event) => {
    event.preventDefault();
    problem.hidden = true;
    try {
      await act(element);
    } catch (error) {
      problem.textContent = error.name === "InvalidStateError" ? "This device has a passkey of the account already."
        : error.name === "NotAllowedError" ? "Nothing was confirmed, or it took too long. Try again." : error.message;
      problem.hidden = false;
    }
  });
}

offer("passkey", "click", async (button) => {
  await signIn();
  location.assign(button.dataset.next || "/sign-in");
});
offer("new-passkey", "submit", async (form) => {
  await add(form.elements.name.value, form.elements.current.value);
  location.assign("/sign-in/passkeys");
});
