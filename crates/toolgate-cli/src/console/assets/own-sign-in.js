// Page on which the user of a program signs in for it. They first prove their identity, with the program's API key or at
// their issuer, and then sign in at the authorization server of the server.

const $ = (id) => document.getElementById(id);
const KEPT = "toolgate.own-sign-in";
/** Storage key of the link, while the user proves their identity. */
const SHOWING = "toolgate.showing";

/** Posts JSON to a path next to this page; returns `{ok, value, error}`. */
async function post(step, value, key) {
  const headers = { "Content-Type": "application/json", ...(key ? { Authorization: "Bearer " + key } : {}) };
  try {
    const res = await fetch(step, { method: "POST", headers, body: JSON.stringify(value), credentials: "omit" });
    const text = await res.text();
    let read = null;
    try { read = JSON.parse(text); } catch { /* plain text */ }
    return { ok: res.ok, value: read, error: res.ok ? null : read?.error ?? text.trim() };
  } catch {
    return { ok: false, value: null, error: "the gateway did not respond; is it still running?" };
  }
}

function show(id, visible) { $(id).hidden = !visible; }
function say(title, words, error) {
  if (title) $("title").textContent = title;
  if (words) $("words").textContent = words;
  $("error").textContent = error ?? "";
  show("error", Boolean(error));
}

async function begin(link) {
  const field = $("key"), button = $("who").querySelector("button");
  button.disabled = true;
  const key = field.value.trim();
  // The key is sent once, and not stored.
  field.value = "";
  const res = await post("begin", { link }, key);
  button.disabled = false;
  if (!res.ok) { say(null, null, res.error); field.focus(); return; }
  lead(res.value);
}

/** Shows where the user signs in, and which caller will use the credentials, before they leave this page. */
function lead({ page, origin, issuer, server, caller, key: own }) {
  const at = `${issuer}/`.startsWith(`${origin}/`) ? "" : `, on a page at ${origin}`;
  say("Sign in for a program", `You will sign in at the authorization server ${issuer}${at}. Only ${caller} will use the credentials, at the server ${server}. Continue only if this caller may use your account.`);
  show("who", false);
  show("go", true);
  $("page").addEventListener("click", () => {
    if (!/^https?:\/\//.test(page)) return;
    sessionStorage.setItem(KEPT, own);
    location.assign(page);
  });
  $("page").focus();
}

/** Lets the user prove their identity at their issuer. */
async function show_who(link, issuer) {
  say(null, `A program that uses this gateway on your behalf needs you to sign in to a server. First prove your identity: sign in at ${issuer}.`);
  $("issuer").textContent = `Sign in at ${issuer}`;
  show("at", true);
  $("issuer").addEventListener("click", async () => {
    $("issuer").disabled = true;
    const res = await post("show", { link });
    $("issuer").disabled = false;
    if (!res.ok) { say(null, null, res.error); return; }
    const { page, key } = res.value;
    if (!/^https?:\/\//.test(page)) return;
    sessionStorage.setItem(SHOWING, JSON.stringify({ link, key }));
    location.assign(page);
  });
  $("issuer").focus();
}

async function shown(query, { link, key }) {
  say("Signing in", "Checking the response from your issuer.");
  const res = await post("shown", { link, query, key });
  if (res.ok) lead(res.value);
  else say("Not signed in", "Nothing was changed.", res.error);
}

async function start(link) {
  if (!link) { say(null, "Open this page with the link that the program shows."); return; }
  const res = await post("who", { link });
  if (!res.ok) { say(null, "Nothing was changed.", res.error); return; }
  if (res.value.by === "issuer") { await show_who(link, res.value.issuer); return; }
  say(null, "A program that uses this gateway needs you to sign in to a server. First prove that the program is yours: enter the API key with which it calls this gateway. The key is sent to this gateway only.");
  show("who", true);
  $("who").addEventListener("submit", (event) => { event.preventDefault(); begin(link); });
  $("key").focus();
}

async function end(query) {
  const key = sessionStorage.getItem(KEPT) ?? "";
  sessionStorage.removeItem(KEPT);
  say("Signing in", "Checking the response from the authorization server.");
  const res = await post("end", { query, key });
  if (res.ok) {
    const { issuer, server, caller, scopes } = res.value;
    say("Signed in", `Signed in at ${issuer} for the server ${server}, only for the caller ${caller}${scopes ? `, with the scope${scopes.includes(" ") ? "s" : ""} ${scopes}` : ""}. You can close this page.`);
  } else {
    say("Not signed in", "Nothing was changed.", res.error);
  }
}

if (location.pathname.endsWith("/back")) {
  const query = location.search.slice(1);
  // The code is valid once, and must not stay in the history.
  history.replaceState(null, "", location.pathname);
  await end(query);
} else if (location.pathname.endsWith("/shown")) {
  const query = location.search.slice(1);
  history.replaceState(null, "", location.pathname);
  const showing = sessionStorage.getItem(SHOWING);
  sessionStorage.removeItem(SHOWING);
  await shown(query, JSON.parse(showing ?? "{}"));
} else {
  await start(location.hash.slice(1));
}
document.title = $("title").textContent + " \u00b7 Toolgate";
