// Console of the gateway: login, sections, shortcuts and the header. The views render themselves.

import { state, on, connect, post, keepKey, logout } from "./api.js";
import { h, t, put, attr, button, say, stamp, visText } from "./dom.js";
import { renderInbox, tickInbox, inboxKey, showPending } from "./view-inbox.js";
import { renderCalls, tickCalls, callsKey, showCall } from "./view-calls.js";
import { renderTools, toolsKey } from "./view-tools.js";
import { renderServers } from "./view-servers.js";
import { renderGrants } from "./view-grants.js";
import { renderPins, pinsKey, showPin, waiting } from "./view-pins.js";
import { renderTasks, tickTasks, tasksRunning } from "./view-tasks.js";

const $ = (id) => document.getElementById(id);
const TABS = ["inbox", "calls", "tools", "servers", "grants", "pins", "tasks"];
const tabs = TABS.map((name) => $("tab-" + name));
let current = "inbox";

// Login ------------------------------------------------------------------

/** Returns the token of a link, or the bare token. */
function tokenIn(text) {
  const found = /[#?&]token=([^&\s]+)/.exec(text);
  if (!found) return text.trim();
  try { return decodeURIComponent(found[1]); } catch { return found[1]; }
}

async function login(token) {
  const res = await post("/console/login", { token });
  if (res.ok) { keepKey(JSON.parse(res.text).key); showLogin(null); connect(); return; }
  showLogin(res.status === 401 || res.status === 403 ? "this link is invalid or expired; create a new one with `toolgate console`" : res.error);
}

/** Shows the login screen with a message, or hides it with null. */
function showLogin(message) {
  attr($("login"), "hidden", message === null);
  attr($("console"), "hidden", message !== null || !state.ready);
  attr($("logout"), "hidden", message !== null || !state.ready);
  attr($("login-error"), "hidden", !message);
  put($("login-error"), message ?? "");
  if (message === null) return;
  for (const banner of document.querySelectorAll(".banner[role=alert]")) attr(banner, "hidden", true);
  setLink("out");
  document.title = "Toolgate";
  $("login-token").focus();
}

$("login-form").addEventListener("submit", (e) => {
  e.preventDefault();
  const token = tokenIn($("login-token").value);
  $("login-token").value = "";
  if (token) login(token);
});

// Header -----------------------------------------------------------------

function setLink(how) {
  attr($("link"), "data-link", how);
  put($("link-text"), { live: "live", lost: "reconnecting", connecting: "connecting", out: "not logged in" }[how]);
}

on("link", (how) => {
  setLink(how);
  attr($("banner"), "hidden", how !== "lost");
  if (how === "lost") put($("banner"), state.ready ? "Connection lost; reconnecting. This page may be out of date." : "The gateway is not responding yet; retrying.");
  document.body.classList.toggle("stale", how === "lost");
});
on("login", showLogin);

$("endpoint-copy").addEventListener("click", async () => {
  let done = "Copied";
  try { await navigator.clipboard.writeText(state.endpoint); } catch { done = "Blocked by the browser"; }
  put($("endpoint-copy"), done);
  setTimeout(() => put($("endpoint-copy"), "Copy"), 1200);
});

function drawHeader() {
  put($("version"), state.version ?? "");
  put($("endpoint-url"), state.endpoint ?? "");
  attr($("endpoint"), "hidden", !state.endpoint);
  attr($("link"), "title", state.data ? "Data: " + visText(state.data) : null);
}

/** Shows problems of the audit log and of its checkpoint mirror. */
function drawRecord() {
  const record = state.record ?? {};
  const failed = record.state === "failed" && `The audit log cannot be written, so all calls are rejected: ${visText(record.why ?? "")}`;
  const place = record.checkpoints && `The checkpoint mirror does not accept the checkpoints of the audit log: ${visText(record.checkpoints)}`;
  const damaged = (record.damage ?? []).map((d) => `The audit log is damaged: ${visText(d.about)}: ${visText(d.why)}. Run: toolgate audit verify, then: toolgate audit acknowledge`).join(" ");
  attr($("record"), "hidden", !failed && !place && !damaged);
  put($("record"), failed || damaged || place || "");
}

/** Shows that the config on disk was rejected, until a valid one is active. */
function drawPolicy() {
  const refused = state.policy?.refused;
  attr($("policy"), "hidden", !refused);
  put($("policy"), refused ? `The config was rejected, and the previous one stays active: ${visText(refused)}` : "");
}

/** Shows on every page that everything is frozen: by whom, since when, why, with a Thaw button. */
let frozenDrawn = "";
function drawFrozen() {
  const all = state.freezes.find((f) => f.what === "all");
  attr($("frozen"), "hidden", !all);
  const key = JSON.stringify(all ?? null);
  if (key === frozenDrawn) return;
  frozenDrawn = key;
  const error = h("span", { class: "error" });
  const thaw = button("Thaw", { class: "small", "data-act": "thaw-all" }, async () => {
    thaw.disabled = true;
    const res = await post("/console/api/thaw", { what: "all" });
    thaw.disabled = false;
    put(error, res.error ?? "");
  });
  $("frozen").replaceChildren(...(all ? [
    t("span", {}, `Everything is frozen by ${all.by} since ${stamp(all.since).slice(0, 16)} UTC${all.reason ? ": " + all.reason : ", without a reason"}. All calls are rejected. `),
    thaw, " ", error] : []));
}

function drawCounts() {
  const down = state.servers.filter((s) => ["failed", "backoff", "sign-in"].includes(s.state)).length;
  const running = [...state.calls.values()].filter((c) => c.state !== "done").length;
  const counts = { inbox: state.pending.size || "", calls: running || "", tools: state.tools.length || "", servers: down ? `${state.servers.length - down}/${state.servers.length}` : state.servers.length || "", grants: (state.freezes.length ? `${state.freezes.length} frozen` : state.grants.length) || "", pins: waiting().length || "", tasks: tasksRunning() || "" };
  for (const el of document.querySelectorAll("[data-count]")) put(el, counts[el.dataset.count]);
  $("tab-inbox").classList.toggle("waiting", state.pending.size > 0);
  $("tab-pins").classList.toggle("waiting", waiting().length > 0);
  $("tab-servers").classList.toggle("down", down > 0);
  attr($("tab-servers"), "title", down ? `${down} of ${state.servers.length} down` : null);
  const title = (state.pending.size ? `(${state.pending.size}) ` : "") + current[0].toUpperCase() + current.slice(1) + " \u00b7 Toolgate";
  if (document.title !== title) document.title = title;
}

// Notifications ----------------------------------------------------------

let canNotify = "Notification" in window;
const wants = () => canNotify && Notification.permission === "granted" && localStorage.getItem("toolgate.notify") === "1";

function drawNotify() {
  attr($("notify"), "hidden", !canNotify);
  attr($("notify"), "aria-pressed", wants() ? "true" : "false");
  put($("notify"), wants() ? "Notifying" : "Notify me");
}

$("notify").addEventListener("click", async () => {
  const next = wants() ? "0" : "1";
  const allowed = next === "0" || (await Notification.requestPermission()) === "granted";
  localStorage.setItem("toolgate.notify", allowed ? next : "0");
  drawNotify();
  if (!allowed) { put($("notify"), "The browser blocks notifications"); setTimeout(drawNotify, 2500); }
});

on("pending", (p) => {
  const name = visText(`${p.server}.${p.tool}`);
  say(`New pending approval: ${name}, requested by ${visText(p.caller)}`);
  if (!document.hidden || !wants()) return;
  try {
    const n = new Notification("Approval needed: " + name, { body: "Requested by " + visText(p.caller), tag: p.id });
    n.onclick = () => { window.focus(); location.hash = "#/inbox/" + encodeURIComponent(p.id); n.close(); };
  } catch {
    // Chrome on Android has the constructor and throws: it wants a service worker, which this page does not have.
    canNotify = false;
    drawNotify();
  }
});

// Sections ---------------------------------------------------------------

function go(name) {
  current = name;
  TABS.forEach((tab, i) => {
    attr(tabs[i], "aria-selected", tab === name ? "true" : "false");
    attr(tabs[i], "tabindex", tab === name ? "0" : "-1");
    attr($("view-" + tab), "hidden", tab !== name);
  });
  drawCounts();
}

/** Follows the fragment: a login token, or `#/section/id`. */
function route() {
  if (/^#token=/.test(location.hash)) {
    const token = tokenIn(location.hash);
    history.replaceState(null, "", location.pathname);
    login(token);
    return true;
  }
  const [, name = "inbox", id = ""] = /^#\/(\w+)(?:\/(.+))?$/.exec(location.hash) ?? [];
  go(TABS.includes(name) ? name : "inbox");
  let part = id;
  try { part = decodeURIComponent(id); } catch { /* use it unchanged */ }
  if (state.ready) {
    if (current === "calls" || !part) showCall(current === "calls" && part ? part : null);
    if (current === "inbox" && part) showPending(part);
    if (current === "pins" && part) showPin(part);
  }
  return false;
}

tabs.forEach((tab, i) => {
  tab.addEventListener("click", () => { location.hash = "#/" + TABS[i]; });
  tab.addEventListener("keydown", (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    const next = (i + step + TABS.length) % TABS.length;
    tabs[next].focus();
    location.hash = "#/" + TABS[next];
  });
});
window.addEventListener("hashchange", route);

const isField = (el) => el instanceof HTMLElement && (el.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(el.tagName));

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || $("help").open || $("console").hidden) return;
  if (isField(e.target)) { if (e.key === "Escape") e.target.blur(); return; }
  if (e.repeat && e.key !== "j" && e.key !== "k") return;
  const views = { inbox: inboxKey, calls: callsKey, tools: toolsKey, pins: pinsKey };
  let used = false;
  if (e.key >= "1" && e.key <= String(TABS.length)) {
    location.hash = "#/" + TABS[e.key - 1];
    // Route at once: the hashchange event comes later than a key that is pressed immediately and meant for the new section.
    route();
    used = true;
  }
  else if (e.key === "?") { $("help").showModal(); used = true; }
  else used = views[current]?.(e.key) ?? false;
  if (used) e.preventDefault();
});
$("keys").addEventListener("click", () => $("help").showModal());
$("logout").addEventListener("click", async () => {
  const res = await logout();
  if (!res.ok) say(visText(res.error));
});

// Drawing ----------------------------------------------------------------

const drawFreezes = () => { drawFrozen(); renderGrants(); renderInbox(); };

const DRAW = { about: drawHeader, pending: renderInbox, calls: renderCalls, tools: renderTools, resources: renderTools, prompts: renderTools, servers: renderServers, issuers: renderServers, grants: renderGrants, freezes: drawFreezes, policy: drawPolicy, keys: renderGrants, pins: renderPins, tasks: renderTasks, record: drawRecord };

on("change", (dirty) => {
  if ($("console").hidden && $("login").hidden && state.ready) { attr($("console"), "hidden", false); attr($("logout"), "hidden", false); dirty.add("first"); }
  for (const [name, draw] of Object.entries(DRAW)) if (dirty.has(name)) draw();
  if (!dirty.has("pending") && state.pending.size === 0) renderInbox();
  drawCounts();
  if (dirty.has("first")) route();
});

setInterval(() => { tickInbox(); tickCalls(); tickTasks(); }, 500);
drawNotify();
if (!route()) connect();
