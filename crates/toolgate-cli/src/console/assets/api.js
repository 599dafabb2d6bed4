// The gateway's state as this page knows it, and the requests it can make.

/** Latest state from the gateway; `ready` once the full state has arrived. */
export const state = { ready: false, skew: 0, calls: new Map(), pending: new Map(), items: null, pinned: null, servers: [], issuers: [], grants: [], freezes: [], keys: [], pins: [], tasks: [], policy: null, disk: null, presence: [], page: null, gone: [] };
/** Maximum number of calls on the page. */
export const KEEP = 1000;

const listeners = { batch: [], change: [], hidden: [], link: [], login: [], page: [], pending: [] };
export const on = (name, run) => listeners[name].push(run);
export const tell = (name, value) => listeners[name].forEach((run) => run(value));

/** The gateway's clock, in milliseconds since the Unix epoch. */
export const now = () => Date.now() + state.skew;

/**
 * Address of the MCP endpoint as a client beside this browser reaches it: the gateway listens at a loopback address or
 * at all addresses, and this page may come from another one.
 */
export function endpointUrl() {
  const url = state.endpoint ?? "";
  try {
    const { host, pathname } = new URL(url);
    return host === location.host ? url : location.origin + pathname;
  } catch {
    return url;
  }
}

const STORED = "toolgate.key", EVENTS = "/console/api/events";
let held = null;

/** Stores the key of a session. Storage belongs to this origin only, port included; cookies do not. */
export function keepKey(key) {
  held = key;
  try { localStorage.setItem(STORED, key); } catch { /* then the session lasts as long as this page */ }
}

/** Deletes the key of a session that ended. */
export function dropKey() {
  held = null;
  try { localStorage.removeItem(STORED); } catch { /* no storage */ }
}

/** Ends the session of this browser. */
export async function logout() {
  const res = await post("/console/logout", {});
  if (!res.ok && res.status !== 401) return res;
  close();
  dropKey();
  tell("login", "");
  return { ...res, ok: true };
}

/** Header that shows that a request comes from this page. */
function mark() {
  let key = held;
  try { key = localStorage.getItem(STORED) ?? held; } catch { /* no storage */ }
  return { "X-Toolgate-Console": key ?? "1" };
}

/** POSTs raw JSON text; gives `{ok, status, text, error}` and never throws, unless it was aborted. */
export async function postText(path, body, signal) {
  let res, text;
  const own = path.startsWith("/console/login") ? { "X-Toolgate-Console": "1" } : mark();
  try {
    res = await fetch(path, { method: "POST", body, signal, credentials: "same-origin", headers: { "Content-Type": "application/json", ...own } });
    text = await res.text();
  } catch (e) {
    if (e.name === "AbortError") throw e;
    return { ok: false, status: 0, text: "", error: "the gateway did not respond; is it still running?" };
  }
  if (res.status === 401 && !path.startsWith("/console/login")) { close(); tell("login", ""); }
  let error = null;
  try { error = JSON.parse(text).error ?? null; } catch { /* an empty body is fine */ }
  if (!res.ok && !error) error = `the gateway responded with status ${res.status}`;
  return { ok: res.ok && !error, status: res.status, text, error };
}

export const post = (path, value) => postText(path, JSON.stringify(value));

let source = null, retry = 0, timer = 0, dirty = new Set(), soon = 0;

function close() {
  clearTimeout(timer);
  source?.abort();
  source = null;
}

/** Opens the event stream, and reopens it with backoff. An EventSource could not send the key. */
export async function connect() {
  close();
  tell("link", state.ready ? "lost" : "connecting");
  const mine = (source = new AbortController());
  let status = 0;
  try {
    const res = await fetch(EVENTS, { signal: mine.signal, credentials: "same-origin", cache: "no-store", headers: { Accept: "text/event-stream", ...mark() } });
    status = res.status;
    if (res.ok) await listen(res.body);
  } catch { /* unreachable, or the stream broke */ }
  if (mine !== source) return;
  if (status === 401) { close(); tell("login", ""); return; }
  tell("link", "lost");
  timer = setTimeout(connect, Math.min(8000, 500 * 2 ** retry++));
}

/** Reads events until the stream ends. Ours are one `event` and one `data` line each. */
async function listen(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      // An error of one view, or of the browser, must not end the stream.
      try { heard(block); } catch (e) { console.error(e); }
    }
  }
}

function heard(block) {
  let name = "message", value;
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    if (line.startsWith("data: ")) try { value = JSON.parse(line.slice(6)); } catch { return; }
  }
  if (value === undefined) return;
  if (name === "state") { retry = 0; takeState(value); tell("link", "live"); }
  else if (name === "calls") { takeBatch(value); changed("calls"); }
  else if (name === "pending") { value.forEach(takePending); changed("pending"); }
  else if (["items", "pinned", "servers", "issuers", "grants", "freezes", "keys", "tasks", "record", "policy", "disk", "presence", "passkeys"].includes(name)) { state[name] = value; changed(name); }
}

function takeState(s) {
  const first = !state.ready;
  Object.assign(state, { ready: true, version: s.version, endpoint: s.endpoint, data: s.data, record: s.record, policy: s.policy, disk: s.disk, presence: s.presence ?? [], page: s.page, me: s.me ?? null, skew: s.now - Date.now() });
  for (const name of ["servers", "issuers", "grants", "freezes", "keys", "tasks"]) state[name] = s[name] ?? [];
  Object.assign(state, { items: s.items, pinned: s.pinned });
  state.calls = new Map((s.calls ?? []).map((c) => [c.id, c]));
  const before = state.pending;
  state.pending = new Map((s.pending ?? []).filter((p) => p.state !== "gone").map((p) => [p.id, p]));
  if (!first) for (const p of state.pending.values()) if (!before.has(p.id)) tell("pending", p);
  changed("calls", "pending", "items", "pinned", "servers", "issuers", "grants", "freezes", "keys", "tasks", "record", "policy", "disk", "presence", "about");
  tell("page", s.page);
}

/** Takes a batch of changed calls, and the counts of all that ended, with those that have no row. */
function takeBatch(batch) {
  for (const c of batch.rows) {
    if (c.state === "lost") state.calls.delete(c.id);
    else state.calls.set(c.id, c);
  }
  tell("batch", batch);
  if (state.calls.size <= KEEP + 100) return;
  const old = [...state.calls.values()].filter((x) => x.state === "done").sort((a, b) => a.at - b.at);
  for (const c of old.slice(0, state.calls.size - KEEP)) state.calls.delete(c.id);
}

function takePending(p) {
  const had = state.pending.get(p.id);
  if (p.state === "gone") {
    state.pending.delete(p.id);
    if (had && state.gone[0]?.id !== p.id) state.gone = [{ ...had, ...p, gone: now() }, ...state.gone].slice(0, 8);
  } else {
    state.pending.set(p.id, p);
    if (!had) tell("pending", p);
  }
}

/** Notifies the views once per burst of events. */
export function changed(...names) {
  names.forEach((n) => dirty.add(n));
  if (!soon) soon = setTimeout(() => { soon = 0; const d = dirty; dirty = new Set(); tell("change", d); }, 30);
}

/** Who else looks at a request. */
export const othersAt = (id) => state.presence.filter((one) => one.request === id && one.page !== state.page).map((one) => one.who);
