// Where the user of a program signs in for it: by the key of the program first, then at the authorization server.

const $ = (id) => document.getElementById(id);
const KEPT = "toolgate.own-sign-in";

/** Sends JSON to a request beside this page; gives `{ok, value, error}`. */
async function post(step, value, key) {
  const headers = { "Content-Type": "application/json", ...(key ? { Authorization: "Bearer " + key } : {}) };
  try {
    const res = await fetch(step, { method: "POST", headers, body: JSON.stringify(value), credentials: "omit" });
    const text = await res.text();
    let read = null;
    try { read = JSON.parse(text); } catch { /* a line of words */ }
    return { ok: res.ok, value: read, error: res.ok ? null : read?.error ?? text.trim() };
  } catch {
    return { ok: false, value: null, error: "the gateway did not answer; is it still running?" };
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
  // It is sent once, and kept nowhere.
  field.value = "";
  const res = await post("begin", { link }, key);
  button.disabled = false;
  if (!res.ok) { say(null, null, res.error); field.focus(); return; }
  const { page, at, server, caller, key: own } = res.value;
  say(null, `What you grant at ${at} will be used by ${caller} at the server ${server}, and by nobody else. Go on only if this caller may use your account.`);
  show("who", false);
  show("go", true);
  $("page").addEventListener("click", () => {
    if (!/^https?:\/\//.test(page)) return;
    sessionStorage.setItem(KEPT, own);
    location.assign(page);
  });
  $("page").focus();
}

async function end(query) {
  const key = sessionStorage.getItem(KEPT) ?? "";
  sessionStorage.removeItem(KEPT);
  show("who", false);
  say("Signing in", "The answer of the authorization server is looked at.");
  const res = await post("end", { query, key });
  if (res.ok) {
    const { issuer, server, caller, scopes } = res.value;
    say("Signed in", `Signed in at ${issuer} for ${server}, for ${caller} alone${scopes ? `, for ${scopes}` : ""}. You can close this page.`);
  } else {
    say("Not signed in", "Nothing was changed.", res.error);
  }
}

if (location.pathname.endsWith("/back")) {
  const query = location.search.slice(1);
  // The code is used once, and has no business in the history.
  history.replaceState(null, "", location.pathname);
  await end(query);
} else {
  const link = location.hash.slice(1);
  $("who").addEventListener("submit", (event) => { event.preventDefault(); begin(link); });
  if (!link) { show("who", false); say(null, "Open this page by the link that the program was given."); }
}
document.title = $("title").textContent + " \u00b7 Toolgate";
