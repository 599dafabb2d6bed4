// The gateway's state as this page knows it, and the requests it can make.

/** What the gateway last told; `ready` once a whole snapshot came. */
export const state = { ready: false, skew: 0, calls: new Map(), pending: new Map(), tools: [], servers: [], grants: [], gone: [] };
/** Most calls kept on the page. */
export const KEEP = 500;

const listeners = { change: [], link: [], login: [], pending: [] };
export const on = (name, run) => listeners[name].push(run);
const tell = (name, value) => listeners[name].forEach((run) => run(value));

/** The gateway's clock, in milliseconds since 1970. */
export const now = () => Date.now() + state.skew;

/** POSTs raw JSON text; gives `{ok, status, text, error}` and never throws, unless it was aborted. */
export async function postText(path, body, signal) {
  let res, text;
  try {
    res = await fetch(path, { method: "POST", body, signal, credentials: "same-origin", headers: { "Content-Type": "application/json", "X-Toolgate-Console": "1" } });
    text = await res.text();
  } catch (e) {
    if (e.name === "AbortError") throw e;
    return { ok: false, status: 0, text: "", error: "the gateway did not answer; is it still running?" };
  }
  if (res.status === 401 && path !== "/console/login") { close(); tell("login", ""); }
  let error = null;
  try { error = JSON.parse(text).error ?? null; } catch { /* an empty body is fine */ }
  if (!res.ok && !error) error = `the gateway answered with status ${res.status}`;
  return { ok: res.ok && !error, status: res.status, text, error };
}

export const post = (path, value) => postText(path, JSON.stringify(value));

let source = null, retry = 0, timer = 0, dirty = new Set(), soon = 0;

function close() {
  clearTimeout(timer);
  source?.close();
  source = null;
}

/** Opens the event stream, or opens it again. */
export function connect() {
  close();
  tell("link", state.ready ? "lost" : "connecting");
  const es = (source = new EventSource("/console/api/events"));
  const hear = (name, run) => es.addEventListener(name, (e) => {
    let value;
    try { value = JSON.parse(e.data); } catch { return; }
    run(value);
  });
  hear("state", (s) => { retry = 0; takeState(s); tell("link", "live"); });
  hear("call", (c) => { takeCall(c); changed("calls"); });
  hear("pending", (p) => { takePending(p); changed("pending"); });
  for (const name of ["tools", "servers", "grants"]) hear(name, (list) => { state[name] = list; changed(name); });
  es.onerror = () => {
    tell("link", "lost");
    if (es.readyState === EventSource.CLOSED && es === source) probe();
  };
}

/** The browser gave up: find out whether the login is gone, else try again, ever more slowly. */
async function probe() {
  close();
  const stop = new AbortController();
  let status = 0;
  try { status = (await fetch("/console/api/events", { signal: stop.signal, headers: { Accept: "text/event-stream" } })).status; } catch { /* not there */ }
  stop.abort();
  if (status === 401) { tell("login", ""); return; }
  timer = setTimeout(connect, status === 200 ? 300 : Math.min(8000, 500 * 2 ** retry++));
}

function takeState(s) {
  const first = !state.ready;
  Object.assign(state, { ready: true, version: s.version, endpoint: s.endpoint, data: s.data, skew: s.now - Date.now() });
  for (const name of ["tools", "servers", "grants"]) state[name] = s[name] ?? [];
  state.calls = new Map((s.calls ?? []).map((c) => [c.id, c]));
  const before = state.pending;
  state.pending = new Map((s.pending ?? []).filter((p) => p.state !== "gone").map((p) => [p.id, p]));
  if (!first) for (const p of state.pending.values()) if (!before.has(p.id)) tell("pending", p);
  changed("calls", "pending", "tools", "servers", "grants", "about");
}

function takeCall(c) {
  state.calls.set(c.id, c);
  if (state.calls.size <= KEEP) return;
  const old = [...state.calls.values()].filter((x) => x.state === "done").sort((a, b) => a.at - b.at)[0];
  if (old) state.calls.delete(old.id);
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

/** Tells the views once per burst of events. */
function changed(...names) {
  names.forEach((n) => dirty.add(n));
  if (!soon) soon = setTimeout(() => { soon = 0; const d = dirty; dirty = new Set(); tell("change", d); }, 30);
}
