// Passkeys (WebAuthn): a new one, and signatures of enrolled ones. Bytes go to the gateway in hexadecimal.

const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
/** Time in which a person has to use the passkey, in milliseconds. */
const TIMEOUT = 120_000;

/** Algorithms that the gateway verifies: ES256, EdDSA, RS256. */
const ALGORITHMS = [-7, -8, -257];

/** Returns what the browser says about a passkey that signed nothing, for a person. */
export function passkeyError(e) {
  if (e.name === "NotAllowedError") return "no passkey signed: it was canceled, the time was up, or none of them fits";
  if (e.name === "InvalidStateError") return "this device has a passkey for this console already";
  if (e.name === "SecurityError") return "a passkey does not work at this address: " + e.message;
  return "the passkey cannot be used: " + e.message;
}

function check() {
  if (!window.PublicKeyCredential || !window.isSecureContext) throw new Error("this browser, or this address, has no passkeys; use https or localhost");
}

/** Signs a challenge with one of the allowed passkeys. Throws an error for `passkeyError`. */
export async function sign({ challenge, relying_party, allowed }) {
  check();
  const made = await navigator.credentials.get({ publicKey: {
    challenge: bytes(challenge), rpId: relying_party, timeout: TIMEOUT, userVerification: "required",
    allowCredentials: allowed.map((id) => ({ type: "public-key", id: bytes(id) })),
  } });
  const { authenticatorData, clientDataJSON, signature } = made.response;
  return { credential: hex(made.rawId), authenticator_data: hex(authenticatorData), client_data: hex(clientDataJSON), signature: hex(signature) };
}

/** Makes a passkey for a person at this host. Throws an error for `passkeyError`. */
export async function create(person, host, exclude) {
  check();
  const random = (length) => crypto.getRandomValues(new Uint8Array(length));
  const made = await navigator.credentials.create({ publicKey: {
    // The gateway reads no attestation, and the new passkey signs its request afterwards.
    challenge: random(32), attestation: "none", timeout: TIMEOUT,
    rp: { id: host, name: "Toolgate" }, user: { id: random(32), name: person, displayName: person },
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: "public-key", alg })),
    authenticatorSelection: { userVerification: "required", residentKey: "preferred" },
    excludeCredentials: exclude.map((id) => ({ type: "public-key", id: bytes(id) })),
  } });
  const key = made.response.getPublicKey();
  if (!key) throw new Error("the browser does not know its algorithm");
  return { credential: hex(made.rawId), key: hex(key) };
}
