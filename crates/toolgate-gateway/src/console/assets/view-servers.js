// The servers behind the gateway, and the grants that were remembered.

import { state, post } from "./api.js";
import { h, t, put, attr, keyed, button, clock, stamp, sizeNote } from "./dom.js";

const LEVEL = { running: "calm", starting: "running", backoff: "warn", failed: "bad", stopped: "idle" };
const WORDS = { backoff: "restarting later" };

const servers = document.getElementById("view-servers");
const serverList = h("div", { class: "servers" });
const noServers = h("p", { class: "empty", hidden: true }, "No server is configured. Add one to toolgate.toml.");
servers.append(h("h2", { class: "sr" }, "Servers"), noServers, serverList);
const syncServers = keyed(serverList, (s) => s.id, makeServer);

export function renderServers() {
  syncServers(state.servers);
  attr(noServers, "hidden", state.servers.length > 0);
}

function makeServer(first) {
  const mark = h("span", { class: "state" });
  const facts = h("span", { class: "dim" });
  const command = h("code", { class: "command" });
  const error = h("p", { class: "error", hidden: true });
  const size = h("span", { class: "dim" });
  const log = h("pre", { tabindex: "0", "aria-label": "Last lines of stderr of " + first.id });
  const logBox = h("details", { class: "log" }, h("summary", {}, "Last lines of stderr ", size), log);
  const node = h("article", { class: "server", "data-server": first.id },
    h("header", {}, t("h3", {}, first.id), mark, facts), command, error, logBox);
  let was = null;
  return { node, update(s) {
    attr(node, "data-state", s.state);
    put(mark, WORDS[s.state] ?? s.state);
    mark.className = "state " + (LEVEL[s.state] ?? "idle");
    put(facts, [`${s.tools} tool${s.tools === 1 ? "" : "s"}`, s.revision && "revision " + s.revision, s.restarts ? `${s.restarts} restart${s.restarts === 1 ? "" : "s"}` : null].filter(Boolean).join(", "));
    put(command, s.command ?? "");
    put(error, s.error ?? "");
    attr(error, "hidden", !s.error);
    if (was !== s.state && (s.state === "failed" || s.state === "backoff")) logBox.open = true;
    was = s.state;
    const text = (s.stderr ?? []).join("\n");
    const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
    put(log, text, true);
    put(size, text ? sizeNote(text) : "nothing yet");
    if (atEnd) log.scrollTop = log.scrollHeight;
  } };
}

const grants = document.getElementById("view-grants");
const grantList = h("tbody", {});
const grantTable = h("table", { class: "grants" }, h("thead", {}, h("tr", {}, ...["Tool", "Caller", "Made", "Used", "Until"].map((x) => h("th", { scope: "col" }, x)), h("th", { scope: "col" }, h("span", { class: "sr" }, "Withdraw")))), grantList);
const noGrants = h("div", { class: "empty", hidden: true }, h("h3", {}, "Nothing is remembered"), h("p", {}, "An approval given with \u201cApprove and remember\u201d stands here and can be withdrawn."));
const grantError = h("p", { class: "error", role: "alert", hidden: true });
grants.append(h("h2", { class: "sr" }, "Grants"), grantError, noGrants, grantTable);
const syncGrants = keyed(grantList, (g) => g.id, makeGrant);

export function renderGrants() {
  syncGrants(state.grants);
  attr(noGrants, "hidden", state.grants.length > 0);
  attr(grantTable, "hidden", !state.grants.length);
}

function makeGrant(first) {
  const cell = (label, kid) => h("td", { "data-label": label }, kid);
  const used = h("span", {}), until = h("span", {}), caller = h("span", {});
  const revoke = button("Withdraw", { class: "danger small", "data-act": "revoke", "aria-label": "Withdraw the grant" }, async () => {
    revoke.disabled = true;
    const res = await post("/console/api/grants/revoke", { id: first.id });
    put(grantError, res.error ?? "");
    attr(grantError, "hidden", !res.error);
    revoke.disabled = res.ok;
  });
  const node = h("tr", { "data-grant": first.id }, cell("Tool", t("b", {}, `${first.server}.${first.tool}`)), cell("Caller", caller),
    cell("Made", h("time", { title: stamp(first.made) }, clock(first.made))), cell("Used", used), cell("Until", until), cell("", revoke));
  return { node, update(g) {
    put(caller, g.caller);
    put(used, g.used === 0 ? "never" : g.used === 1 ? "once" : `${g.used} times`);
    put(until, g.until);
  } };
}
