// Console of the gateway: login, navigation, header and shortcuts. The pages render themselves.

import { state, on, tell, connect, post, keepKey, logout, endpointUrl } from "./api.js";
import { h, put, attr, copyButton, say, visText, isField } from "./dom.js";
import { drawStrip } from "./strip.js";
import { openFreeze } from "./freeze.js";
import { page as overview } from "./view-overview.js";
import { canPush, subscribe, unsubscribe, isSubscribed } from "./push.js";
import { page as inbox } from "./view-inbox.js";
import { page as calls } from "./view-calls.js";
import { page as tools } from "./view-tools.js";
import { page as servers } from "./view-servers.js";
import { page as changes } from "./view-changes.js";
import { page as rules } from "./view-rules.js";
import { page as grants } from "./view-grants.js";
import { page as callers } from "./view-callers.js";
import { page as keys } from "./view-keys.js";
import { page as passkeys } from "./view-passkeys.js";
import { page as signIns } from "./view-sign-ins.js";
import { page as tasks } from "./view-tasks.js";
import { page as audit } from "./view-audit.js";
import { page as notifications } from "./view-notifications.js";
import { page as settings } from "./view-settings.js";

const $ = (id) => document.getElementById(id);

/**
 * The pages in the order of the navigation, by group.
 *
 * A page has `id`, `label`, `letter` (of its shortcut), `topics` (the parts of the state that it shows), and `draw()`.
 * It may have `count()` for the navigation, `alert()` if the count is urgent, `show(id)` for the rest of its address,
 * `key(key)` for keys outside a field, and `tick()` twice a second.
 */
const GROUPS = [
  ["Now", [overview, inbox, calls, tasks]],
  ["Offered", [tools, servers, changes, signIns]],
  ["Allowed", [rules, grants, callers, keys, passkeys]],
  ["Record", [audit, notifications, settings]],
];
const PAGES = GROUPS.flatMap(([, pages]) => pages);
let current = PAGES[0];
/** Pages whose state changed while they were hidden. */
const stale = new Set(PAGES);

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
  for (const id of ["console", "logout", "freeze", "menu", "strip"]) attr($(id), "hidden", id === "strip" ? message !== null : message !== null || !state.ready);
  attr($("login-error"), "hidden", !message);
  put($("login-error"), message ?? "");
  if (message === null) return;
  setLink("out");
  document.title = "Toolgate";
  $("login-token").focus();
  offerIssuers();
}

/** Storage key of a sign-in that this tab began. */
const SIGN_IN = "toolgate.sign-in";

/** Offers to sign in at the issuers of the config. */
async function offerIssuers() {
  let issuers = [];
  try { issuers = (await (await fetch("/console/login/options", { credentials: "omit" })).json()).issuers; } catch { /* the link stays */ }
  attr($("login-issuers"), "hidden", !issuers.length);
  $("login-issuers").replaceChildren(...issuers.map((issuer) => {
    const button = h("button", { type: "button", "data-issuer": issuer }, "Sign in at " + visText(issuer));
    button.addEventListener("click", () => beginSignIn(issuer));
    return button;
  }));
}

async function beginSignIn(issuer) {
  const res = await post("/console/login/begin", { issuer });
  if (!res.ok) return showLogin(res.error);
  const { page, key } = JSON.parse(res.text);
  if (!/^https?:\/\//.test(page)) return;
  // The page to return to, such as a request that a message links to.
  sessionStorage.setItem(SIGN_IN, JSON.stringify({ key, hash: location.hash }));
  location.assign(page);
}

/** Submits the response with which the issuer sent this tab back. */
async function endSignIn() {
  const query = location.search.slice(1);
  const { key = "", hash = "" } = JSON.parse(sessionStorage.getItem(SIGN_IN) ?? "{}");
  sessionStorage.removeItem(SIGN_IN);
  // The code is valid once, and must not stay in the history.
  history.replaceState(null, "", "/" + (hash.startsWith("#/") ? hash : ""));
  const res = await post("/console/login/end", { query, key });
  if (!res.ok) return showLogin(res.error);
  keepKey(JSON.parse(res.text).key);
  showLogin(null);
  route();
  connect();
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

$("endpoint").append(copyButton(endpointUrl, "Copy", { id: "endpoint-copy", "aria-label": "Copy the endpoint address" }));
$("freeze").addEventListener("click", () => openFreeze());

function drawHeader() {
  put($("version"), state.version ?? "");
  put($("endpoint-url"), endpointUrl());
  attr($("endpoint"), "hidden", !state.endpoint);
  // The page hides what the person has no right to; the gateway rejects it in any case.
  const { name, issuer, rights = [] } = state.me ?? {};
  for (const right of ["approve", "audit", "operate", "own"]) document.body.classList.toggle("no-" + right, Boolean(state.me) && !rights.includes(right));
  attr($("me"), "hidden", !issuer);
  put($("me"), issuer ? visText(name) : "");
  attr($("link"), "title", state.data ? "Data: " + visText(state.data) : null);
}

function drawCounts() {
  for (const [page, link] of links) {
    put(link.count, page.count?.() ?? "");
    link.node.classList.toggle("urgent", Boolean(page.alert?.()));
  }
  const frozen = state.freezes.some((f) => f.what === "all");
  put($("freeze"), frozen ? "Frozen" : "Freeze\u2026");
  attr($("freeze"), "aria-pressed", frozen ? "true" : "false");
  const title = (state.pending.size ? `(${state.pending.size}) ` : "") + current.label + " \u00b7 Toolgate";
  if (document.title !== title) document.title = title;
}

// Notifications ----------------------------------------------------------

// Without a secure context, as at an address of the network without TLS, the browser shows no notifications.
let canNotify = "Notification" in window && window.isSecureContext;
const wants = () => canNotify && Notification.permission === "granted" && localStorage.getItem("toolgate.notify") === "1";

function drawNotify() {
  attr($("notify"), "hidden", !canNotify || !state.ready);
  attr($("notify"), "aria-pressed", wants() ? "true" : "false");
  put($("notify"), wants() ? "Notifying" : "Notify me");
}

$("notify").addEventListener("click", async () => {
  const next = wants() ? "0" : "1";
  const allowed = next === "0" || (await Notification.requestPermission()) === "granted";
  localStorage.setItem("toolgate.notify", allowed ? next : "0");
  // Push messages come while the console is closed. Without them, the open page notifies.
  const error = !canPush ? null : next === "1" && allowed ? await subscribe() : await unsubscribe();
  drawNotify();
  attr($("notify"), "title", error ? "No messages while the console is closed: " + error : null);
  if (error) say("No messages while the console is closed: " + error);
  if (!allowed) { put($("notify"), "The browser blocks notifications"); setTimeout(drawNotify, 2500); }
});

on("pending", async (p) => {
  const name = visText(`${p.server}.${p.tool}`);
  say(`New pending approval: ${name}, requested by ${visText(p.caller)}`);
  // The service worker shows the push message about the same request.
  if (!document.hidden || !wants() || (await isSubscribed())) return;
  // Another request may have shown meanwhile that this browser cannot notify.
  if (!wants()) return;
  try {
    const n = new Notification("Approval needed: " + name, { body: "Requested by " + visText(p.caller), tag: p.id });
    n.onclick = () => { window.focus(); location.hash = "#/inbox/" + encodeURIComponent(p.id); n.close(); };
  } catch {
    // Chrome on Android has the constructor and throws: only a service worker may notify there, and this browser has no
    // subscription.
    canNotify = false;
    drawNotify();
  }
});

// Navigation -------------------------------------------------------------

const links = new Map();
for (const [group, pages] of GROUPS) {
  const items = pages.map((page) => {
    const count = h("b", { class: "count" });
    const node = h("a", { href: "#/" + page.id, "data-tab": page.id, title: "Keys: g " + page.letter }, h("span", {}, page.label), count);
    links.set(page, { node, count });
    return h("li", {}, node);
  });
  const id = "nav-" + group.toLowerCase();
  $("nav").append(h("h2", { id }, group), h("ul", { "aria-labelledby": id }, ...items));
}
put($("help-letters"), "go to a page: " + PAGES.map((page) => `${page.letter} ${page.label}`).join(", "));

function showMenu(open) {
  attr($("menu"), "aria-expanded", String(open));
  $("nav").classList.toggle("open", open);
}
$("menu").addEventListener("click", () => showMenu($("menu").getAttribute("aria-expanded") !== "true"));

function go(page) {
  if (page !== current) window.scrollTo(0, 0);
  const before = current;
  current = page;
  for (const one of PAGES) {
    attr(links.get(one).node, "aria-current", one === page ? "page" : null);
    attr($("view-" + one.id), "hidden", one !== page);
  }
  if (before !== page) tell("hidden", before.id);
  showMenu(false);
  drawPage();
  drawCounts();
}

/** Draws the page that is shown if its state changed. */
function drawPage() {
  if (!state.ready || !stale.has(current)) return;
  stale.delete(current);
  current.draw();
}

/** The page for an address that names none: the inbox if a call waits, or else the overview. */
const start = () => (state.pending.size ? inbox : overview);

/** Follows the fragment: a login token, or `#/page/rest`. */
function route() {
  if (/^#token=/.test(location.hash)) {
    const token = tokenIn(location.hash);
    history.replaceState(null, "", location.pathname);
    login(token);
    return true;
  }
  const [, name = "", rest = ""] = /^#\/([\w-]+)(?:\/(.+))?$/.exec(location.hash) ?? [];
  go(PAGES.find((page) => page.id === name) ?? start());
  // A query keeps its encoding: its parts are decoded one by one.
  let part = rest;
  if (!rest.includes("?")) try { part = decodeURIComponent(rest); } catch { /* use it unchanged */ }
  if (state.ready) current.show?.(part || null);
  return false;
}
window.addEventListener("hashchange", route);
$("skip").addEventListener("click", (e) => { e.preventDefault(); $("main").focus(); });

/** Goes to a page at once: the hashchange event comes later than a key that is pressed next and meant for the new page. */
function goTo(page) {
  location.hash = "#/" + page.id;
  route();
}

let letterUntil = 0;
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || document.querySelector("dialog[open]") || $("console").hidden) return;
  if (isField(e.target)) { if (e.key === "Escape") e.target.blur(); return; }
  if (e.repeat && e.key !== "j" && e.key !== "k") return;
  let used = true;
  const letter = Date.now() < letterUntil && PAGES.find((page) => page.letter === e.key);
  letterUntil = 0;
  if (letter) goTo(letter);
  else if (e.key === "g") letterUntil = Date.now() + 1500;
  else if (e.key >= "1" && e.key <= "9" && PAGES[e.key - 1]) goTo(PAGES[e.key - 1]);
  else if (e.key === "?") $("help").showModal();
  else if (e.key === "Escape" && $("nav").classList.contains("open")) showMenu(false);
  else used = Boolean(current.key?.(e.key));
  if (used) e.preventDefault();
});
$("keys").addEventListener("click", () => $("help").showModal());
$("logout").addEventListener("click", async () => {
  $("logout").disabled = true;
  const res = await logout();
  $("logout").disabled = false;
  if (!res.ok) say(res.error);
});

// Changes ----------------------------------------------------------------

function showConsole() {
  for (const id of ["console", "logout", "freeze", "menu"]) attr($(id), "hidden", false);
  drawNotify();
}

on("change", (dirty) => {
  const first = state.ready && $("console").hidden && $("login").hidden;
  if (first) showConsole();
  if (dirty.has("about")) drawHeader();
  drawStrip();
  for (const page of PAGES) if (page.topics.some((topic) => dirty.has(topic))) stale.add(page);
  drawPage();
  drawCounts();
  if (first) route();
});

setInterval(() => current.tick?.(), 500);
drawNotify();
if (location.pathname === "/console/identity") endSignIn();
else if (!route()) connect();
