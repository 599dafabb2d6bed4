// Upstream servers of the gateway: state, traffic, latency and errors, with stderr and a restart.

import { state, now, post } from "./api.js";
import { h, t, put, attr, keyed, sizeNote, button, plural, visText, pageRoot } from "./dom.js";
import { barChart, lineChart, legend } from "./charts.js";
import { chartCounts } from "./map.js";
import { CLASSES } from "./outcomes.js";
import { freezeButton } from "./freeze.js";
import { isDown } from "./strip.js";
import { dateTime, span } from "./time.js";
import { ownSignIns, signing } from "./sign-in-buttons.js";

const LEVEL = { running: "calm", starting: "running", backoff: "warn", "sign-in": "warn", failed: "bad", stopped: "idle" };
const NOTE_LEVEL = { failed: "bad", dropped: "bad", withheld: "bad", "partly checked": "warn" };
const WORDS = { backoff: "restarting later", "sign-in": "needs a sign-in" };
const MINUTE = 60_000, DAY = 1440 * MINUTE;

const root = pageRoot("servers", "Servers");
const serverList = h("div", { class: "servers" });
const noServers = h("p", { class: "empty", hidden: true }, "No server is configured. Add one to toolgate.toml.");
const issuerList = h("div", { class: "servers" });
const error = h("p", { class: "error", role: "alert", hidden: true });
root.append(error, noServers, serverList, issuerList);
const syncServers = keyed(serverList, (s) => s.id, makeServer);
const syncIssuers = keyed(issuerList, (i) => i.id, makeIssuer);
let traffic = null, loading = false, parts = new Map();

function draw() {
  // Servers that need attention come first.
  const order = (s) => (isDown(s) ? 0 : s.state === "running" ? 2 : 1);
  parts = syncServers([...state.servers].sort((a, b) => order(a) - order(b)));
  syncIssuers(state.issuers.filter((i) => i.error));
  attr(noServers, "hidden", state.servers.length > 0);
  if (!traffic || now() - traffic.at > 30000) loadTraffic();
}

async function loadTraffic() {
  if (loading || root.hidden) return;
  loading = true;
  const res = await post("/console/api/history/overview", { from: now() - DAY, to: now() + MINUTE, step: 15 });
  loading = false;
  put(error, res.error ?? "");
  attr(error, "hidden", res.ok);
  traffic = { at: now(), servers: new Map(res.ok ? JSON.parse(res.text).servers.map((g) => [g.name, g]) : []) };
  for (const part of parts.values()) part.traffic();
  if (res.ok && JSON.parse(res.text).behind) setTimeout(() => { traffic = null; draw(); }, 1000);
}

function makeServer(first) {
  const mark = h("span", { class: "state" });
  const frozen = h("span", { class: "tag bad", hidden: true, "data-frozen": "" }, "frozen");
  const freeze = freezeButton("server " + first.id);
  const facts = h("span", { class: "dim" });
  const command = h("code", { class: "command" });
  const wrong = h("p", { class: "error", hidden: true });
  const last = h("p", { class: "dim", "data-last-restart": "", hidden: true });
  const failed = h("p", { class: "error", role: "alert", hidden: true });
  const sign = signing(first.id, null, failed);
  const size = h("span", { class: "dim" });
  const log = h("pre", { tabindex: "0", "aria-label": "Last lines of stderr from " + visText(first.id) });
  const logBox = h("details", { class: "log" }, h("summary", {}, "Last lines of stderr ", size), last, log);
  const noteCount = h("span", { class: "dim" });
  const noteRows = h("ul", { class: "notes" });
  const noteBox = h("details", { class: "log", hidden: true }, h("summary", {}, "Notes on definitions ", noteCount), noteRows);
  const numbers = h("dl", { class: "numbers", "data-traffic": "" });
  const charts = h("details", { class: "log", on: { toggle: () => { if (charts.open) drawCharts(); } } }, h("summary", {}, "Traffic and latency of the last 24 hours"));
  const restart = button("Restart", { class: "small", "data-act": "restart", "aria-label": "Restart " + visText(first.id) }, async () => {
    if (!confirm(`Restart ${visText(first.id)}? Its running calls fail.`)) return;
    restart.disabled = true;
    const res = await post("/console/api/servers/restart", { id: first.id });
    restart.disabled = false;
    put(failed, res.error ?? "");
    attr(failed, "hidden", res.ok);
  });
  let noted = "", was = null;
  const own = ownSignIns(first.id, failed);
  const node = h("article", { class: "server", "data-server": first.id },
    h("header", {}, t("h3", {}, first.id), mark, frozen, facts, sign.begin, sign.out, restart, freeze), command, wrong, sign.ask, failed, own.node, numbers, charts, noteBox, logBox);

  function drawTraffic() {
    const g = traffic?.servers.get(first.id);
    const c = g ? chartCounts(g.classes) : null;
    const of = (id) => (c ? c[CLASSES.findIndex((x) => x.id === id)] : 0);
    const ran = g ? g.n - of("refused") : 0;
    const rows = !traffic ? [] : [["Calls in 24 h", g ? g.n.toLocaleString("en") : "none"], ...(g ? [["Failed", ran ? `${of("failed")} (${((100 * of("failed")) / ran).toFixed(1)} %)` : "0"], ["Refused", of("refused").toLocaleString("en")], ["Median", g.p50 === null ? "none" : span(g.p50 / 1000)], ["95th percentile", g.p95 === null ? "none" : span(g.p95 / 1000)]] : [])];
    numbers.replaceChildren(...rows.map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, value))));
  }
  async function drawCharts() {
    const res = await post("/console/api/history/overview", { from: now() - DAY, to: now() + MINUTE, step: 15, server: first.id });
    if (!res.ok) { put(failed, res.error); attr(failed, "hidden", false); return; }
    const o = JSON.parse(res.text), ms = (us) => (us === null ? null : us / 1000);
    const calls = barChart({ label: "Calls", classes: CLASSES, height: 100 }), latency = lineChart({ label: "Latency", lines: [{ id: "p50", label: "median" }, { id: "p95", label: "95th percentile" }], height: 100, unit: " ms" });
    charts.replaceChildren(charts.firstChild, h("div", { class: "boxes" }, h("div", {}, calls.node, legend(CLASSES)), h("div", {}, latency.node, legend([{ id: "p50", label: "median" }, { id: "p95", label: "95th percentile" }], "l"))));
    calls.update({ from: o.from, step: o.step, buckets: o.buckets.map((b) => chartCounts(b.classes)) });
    latency.update({ from: o.from, step: o.step, values: [o.buckets.map((b) => ms(b.p50)), o.buckets.map((b) => ms(b.p95))] });
  }
  return { node, traffic: drawTraffic, open() { charts.open = true; }, update(s) {
    attr(node, "data-state", s.state);
    put(mark, WORDS[s.state] ?? s.state);
    mark.className = "state " + (LEVEL[s.state] ?? "idle");
    const isFrozen = state.freezes.some((f) => f.what === "all" || f.what === "server " + s.id);
    attr(frozen, "hidden", !isFrozen);
    attr(freeze, "hidden", isFrozen);
    put(facts, [plural(s.tools, "tool"), s.revision && "revision " + s.revision, s.restarts ? plural(s.restarts, "restart") : null].filter(Boolean).join(", "));
    put(command, s.command ?? "");
    // A server that runs again is in order: the reason of its last restart is then one line of its details.
    const now_ = s.state === "running" ? null : s.error;
    put(wrong, now_ ?? "");
    attr(wrong, "hidden", !now_);
    put(last, s.state === "running" && s.error ? `Reason of the last restart: ${s.error}` : "");
    attr(last, "hidden", !last.textContent);
    sign.update(s.signs_in, s.state !== "sign-in" && s.signed_in, s.signed_in);
    sign.begin.className = s.state === "sign-in" ? "primary small" : "small";
    attr(restart, "hidden", s.state === "starting" || s.state === "stopped");
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
    drawTraffic();
  } };
}

/** An issuer of callers' tokens that cannot be used. */
function makeIssuer(first) {
  const why = h("p", { class: "error", role: "status" });
  const node = h("article", { class: "server", "data-issuer": first.id },
    h("header", {}, t("h3", {}, first.id), h("span", { class: "state bad" }, "tokens cannot be checked")), t("code", { class: "command" }, first.url), why);
  return { node, update(i) { put(why, `${i.error} (since ${dateTime(i.since)})`); } };
}

function show(id) {
  const part = id && parts.get(id);
  if (!part) return;
  part.open();
  part.node.scrollIntoView({ block: "start" });
}

export const page = {
  id: "servers", label: "Servers", letter: "s", topics: ["servers", "issuers", "freezes"], draw, show,
  count: () => { const down = state.servers.filter(isDown).length; return down ? `${state.servers.length - down}/${state.servers.length}` : state.servers.length || ""; },
};
