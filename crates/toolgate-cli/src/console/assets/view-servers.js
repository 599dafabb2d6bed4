// Upstream servers of the gateway.

import { state, post } from "./api.js";
import { h, t, put, attr, keyed, sizeNote, button, visText, pageRoot } from "./dom.js";
import { freezeButton } from "./freeze.js";
import { isDown } from "./strip.js";
import { dateTime } from "./time.js";

const LEVEL = { running: "calm", starting: "running", backoff: "warn", "sign-in": "warn", failed: "bad", stopped: "idle" };
const NOTE_LEVEL = { failed: "bad", dropped: "bad", withheld: "bad", "partly checked": "warn" };
const WORDS = { backoff: "restarting later", "sign-in": "needs a sign-in" };

const root = pageRoot("servers", "Servers");
const serverList = h("div", { class: "servers" });
const noServers = h("p", { class: "empty", hidden: true }, "No server is configured. Add one to toolgate.toml.");
const issuerList = h("div", { class: "servers" });
root.append(noServers, serverList, issuerList);
const syncServers = keyed(serverList, (s) => s.id, makeServer);
const syncIssuers = keyed(issuerList, (i) => i.id, makeIssuer);

function renderServers() {
  syncServers(state.servers);
  syncIssuers(state.issuers.filter((i) => i.error));
  attr(noServers, "hidden", state.servers.length > 0);
}

function makeServer(first) {
  const mark = h("span", { class: "state" });
  const facts = h("span", { class: "dim" });
  const command = h("code", { class: "command" });
  const error = h("p", { class: "error", hidden: true });
  const last = h("p", { class: "dim", "data-last-restart": "", hidden: true });
  const failed = h("p", { class: "error", role: "alert", hidden: true });
  const sign = signing(first.id, null, failed);
  const size = h("span", { class: "dim" });
  const log = h("pre", { tabindex: "0", "aria-label": "Last lines of stderr from " + first.id });
  const logBox = h("details", { class: "log" }, h("summary", {}, "Last lines of stderr ", size), last, log);
  const noteCount = h("span", { class: "dim" });
  const noteRows = h("ul", { class: "notes" });
  const noteBox = h("details", { class: "log", hidden: true }, h("summary", {}, "Notes on definitions ", noteCount), noteRows);
  let noted = "";
  const own = ownSignIns(first.id, failed);
  const node = h("article", { class: "server", "data-server": first.id },
    h("header", {}, t("h3", {}, first.id), mark, facts, sign.begin, sign.out, freezeButton("server " + first.id)), command, error, sign.ask, failed, own.node, noteBox, logBox);
  let was = null;
  return { node, update(s) {
    attr(node, "data-state", s.state);
    put(mark, WORDS[s.state] ?? s.state);
    mark.className = "state " + (LEVEL[s.state] ?? "idle");
    put(facts, [`${s.tools} tool${s.tools === 1 ? "" : "s"}`, s.revision && "revision " + s.revision, s.restarts ? `${s.restarts} restart${s.restarts === 1 ? "" : "s"}` : null].filter(Boolean).join(", "));
    put(command, s.command ?? "");
    // A server that runs again is in order: the reason of its last restart is then one line of its details.
    const now = s.state === "running" ? null : s.error;
    put(error, now ?? "");
    attr(error, "hidden", !now);
    put(last, s.state === "running" && s.error ? `Reason of the last restart: ${s.error}` : "");
    attr(last, "hidden", !last.textContent);
    sign.update(s.signs_in, s.state !== "sign-in" && s.signed_in, s.signed_in);
    sign.begin.className = s.state === "sign-in" ? "primary small" : "small";
    own.update(s.own_sign_ins);
    const notes = s.notes ?? [];
    const key = JSON.stringify(notes);
    if (key !== noted) {
      noted = key;
      noteRows.replaceChildren(...notes.map((n) => h("li", {}, h("span", { class: "tag " + (NOTE_LEVEL[n.action] ?? "") }, n.action), " ", t("b", {}, `${n.kind} ${n.name || "list"}`), " ", t("span", {}, n.reason))));
      put(noteCount, String(notes.length));
      attr(noteBox, "hidden", notes.length === 0);
    }
    attr(logBox, "hidden", Boolean(s.signs_in || s.own_sign_ins));
    if (was !== s.state && (s.state === "failed" || s.state === "backoff")) logBox.open = true;
    if (was && was !== s.state && s.state === "running") logBox.open = false;
    was = s.state;
    const text = (s.stderr ?? []).join("\n");
    const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
    put(log, text, true);
    put(size, text ? sizeNote(text) : "nothing yet");
    if (atEnd) log.scrollTop = log.scrollHeight;
  } };
}

/** An issuer of callers' tokens that cannot be used. */
function makeIssuer(first) {
  const error = h("p", { class: "error", role: "status" });
  const node = h("article", { class: "server", "data-issuer": first.id },
    h("header", {}, t("h3", {}, first.id), h("span", { class: "state bad" }, "tokens cannot be checked")), t("code", { class: "command" }, first.url), error);
  return { node, update(i) { put(error, `${i.error} (since ${dateTime(i.since)})`); } };
}

/** Callers that have or need a sign-in of their own. */
function ownSignIns(server, failed) {
  const rows = h("ul", { class: "own-list" });
  const none = h("p", { class: "dim" }, "Each caller signs in separately. No caller is signed in, and none has needed a sign-in recently.");
  const node = h("div", { class: "own", hidden: true }, none, rows);
  const sync = keyed(rows, (one) => one.caller, (one) => ownSignIn(server, one.caller, failed));
  return { node, update(all) {
    attr(node, "hidden", !all);
    attr(none, "hidden", (all ?? []).length > 0);
    sync(all ?? []);
  } };
}

/** One caller, with its sign-in. */
function ownSignIn(server, caller, failed) {
  const how = h("span", { class: "dim" });
  const sign = signing(server, caller, failed);
  const node = h("li", { "data-caller": caller }, t("b", {}, caller), " ", how, " ", sign.begin, " ", sign.out, sign.ask);
  return { node, update(one) {
    put(how, one.granted ? "is signed in" : "needs a sign-in");
    attr(node, "data-granted", one.granted ? "yes" : "no");
    sign.update(true, one.granted, one.granted);
  } };
}

/**
 * Buttons to sign in and out, for one caller or for all. They show where the user signs in, and who will use the account,
 * before the user leaves this page.
 */
function signing(server, caller, failed) {
  const who = caller === null ? server : visText(caller);
  const begin = button("Sign in\u2026", { class: "small", hidden: true, "data-act": "sign-in", "aria-label": "Sign in for " + who }, () => ready());
  const out = button("Sign out", { class: "small", hidden: true, "data-act": "sign-out", "aria-label": "Sign out " + who }, () => signOut());
  const issuer = t("b", {}, ""), at = h("span", {});
  const users = caller === null
    ? h("span", {}, "by all callers that may use ", t("b", {}, server), ". Continue only if they may use your account.")
    : h("span", {}, "by ", t("b", {}, caller), " only. Continue only if this caller may use your account.");
  const words = h("span", {}, "You will sign in at the authorization server ", issuer, at, ". The credentials will be used ", users);
  let page = "";
  const go = button("Go to the sign-in page", { class: "primary small", "data-act": "go" }, () => location.assign(page));
  const ask = h("p", { class: "own-ask", role: "status", hidden: true }, words, " ", go, " ", button("Not now", { class: "small" }, () => show(false)));
  const show = (open) => { attr(ask, "hidden", !open); (open ? go : begin).focus(); };
  const say = (error) => { put(failed, error ?? ""); attr(failed, "hidden", !error); };
  const of = caller === null ? { server } : { server, caller };

  /** Requests the authorization page and its issuer from the gateway, which has validated both. */
  async function ready() {
    begin.disabled = true;
    const res = await post("/console/api/sign-in/begin", of);
    begin.disabled = false;
    const begun = res.ok ? JSON.parse(res.text) : null;
    if (!begun || !/^https?:\/\//.test(begun.page)) { say(res.error ?? "the gateway returned no page"); return; }
    say(null);
    page = begun.page;
    put(issuer, begun.issuer);
    put(at, `${begun.issuer}/`.startsWith(`${begun.origin}/`) ? "" : `, on a page at ${begun.origin}`);
    show(true);
  }

  async function signOut() {
    out.disabled = true;
    const res = await post("/console/api/sign-in/out", of);
    out.disabled = false;
    say(res.ok ? null : res.error);
  }

  return { begin, out, ask, update(takes, again, granted) {
    attr(begin, "hidden", !takes);
    attr(out, "hidden", !(takes && granted));
    // Also with another account, or to grant more.
    put(begin, again ? "Sign in again\u2026" : "Sign in\u2026");
  } };
}

export const page = {
  id: "servers", label: "Servers", letter: "s", topics: ["servers", "issuers"], draw: renderServers,
  count: () => { const down = state.servers.filter(isDown).length; return down ? `${state.servers.length - down}/${state.servers.length}` : state.servers.length || ""; },
};
