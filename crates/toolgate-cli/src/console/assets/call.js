// One call: where its time went, what decided, its arguments and its result.

import { state, now, post } from "./api.js";
import { h, t, put, attr, button, textBox, visText, plural } from "./dom.js";
import { timeTag, span } from "./time.js";
import { svg } from "./charts.js";
import { members } from "./json.js";
import { resultView } from "./result.js";
import { cancelOf, nameOf, outcomeOf, stateText, stateLevel } from "./outcomes.js";

/** Names of the parts of the pipeline, where those of the log say little. */
const PARTS = { access: "rules", confirm: "approval", pins: "pins", rate: "rate limit", freeze: "freeze", arguments: "arguments", output: "result", asking: "input requests", begin: "sent", intent: "sent", leaks: "secrets in arguments", entry: "audit log" };
const VERDICT_LEVEL = { allow: "calm", approved: "calm", granted: "calm", ask: "warn", refuse: "bad", hide: "bad", withhold: "bad", warn: "warn" };
const TIMES = [["rules", "rules"], ["waiting", "waiting for approval"], ["server", "server"], ["result", "sanitizing and audit"]];

/** A button that stops a running call. */
export function stopButton() {
  let id = null;
  const b = button("Stop", { "data-act": "stop", class: "danger small" }, async () => {
    b.disabled = true;
    put(b, "Stopping");
    const res = await post("/console/api/stop", { id });
    if (res.ok) return;
    b.disabled = false;
    put(b, "Stop");
    b.title = visText(res.error);
    attr(b, "aria-label", "Stop: " + visText(res.error));
    b.classList.add("failed");
  });
  return { node: b, update(c) {
    if (id !== c.id) { id = c.id; b.disabled = false; put(b, "Stop"); b.classList.remove("failed"); }
    attr(b, "hidden", c.state !== "running");
  } };
}

export function progressMark() {
  const bar = h("progress", { max: "1", "aria-label": "progress" });
  const text = h("span", { class: "dim" });
  const node = h("span", { class: "progress" }, bar, text);
  return { node, update(c) {
    const p = c.state === "running" ? c.progress : null;
    attr(node, "hidden", !p);
    if (!p) return;
    attr(bar, "hidden", !(p.total > 0));
    if (p.total > 0) { bar.max = p.total; bar.value = Math.min(p.progress, p.total); }
    put(text, `${p.progress}${p.total ? " of " + p.total : ""}${p.message ? ": " + p.message : ""}`);
  } };
}

/** The details of a call, which follow its state. */
export function callView(id) {
  let c = state.calls.get(id) ?? null, whole = null, closed = false, loaded = "";
  const name = h("h3", {});
  const mark = h("span", { class: "state" }), took = h("span", { class: "took" });
  const stop = stopButton(), progress = progressMark();
  const error = h("p", { class: "dim", role: "status", hidden: true });
  const times = h("div", { class: "time-bar", hidden: true });
  const steps = h("div", {}), args = h("div", {}), result = h("div", { "data-result": "" });
  const facts = h("dl", { class: "facts" });
  const node = h("article", { class: "card", "data-call-detail": id, "aria-label": "Call " + visText(id) }, name, h("p", { class: "headline" }, mark, took, stop.node), progress.node, error, times, steps, args, result, facts);

  async function load() {
    if (!state.calls.has(id)) { loadPast(); return; }
    const res = await post("/console/api/calls/get", { id });
    if (closed) return;
    if (!res.ok) { loadPast(); return; }
    attr(error, "hidden", true);
    // The exact text of the result keeps its numbers as the server wrote them.
    const raw = members(res.text).find((m) => m.key === "result")?.raw;
    whole = JSON.parse(res.text);
    drawWhole(raw);
  }

  /** A call of the past has what the audit log has of it. */
  async function loadPast() {
    const res = await post("/console/api/audit/call", { id });
    if (closed) return;
    put(error, res.ok ? "" : res.error);
    attr(error, "hidden", res.ok);
    if (!res.ok) return;
    const { call, records, approvals } = JSON.parse(res.text);
    c = call;
    put(name, nameOf(c));
    put(mark, stateText(c));
    mark.className = "state " + stateLevel(c);
    put(took, span(c.took_ms));
    const field = (key) => records.map((r) => r.fields[key]).find((v) => v !== undefined && v !== null);
    const trail = records.flatMap((r) => r.fields.trail ?? []);
    drawSteps(trail);
    const held = field("args"), answer = field("res");
    args.replaceChildren(held ? textBox("Arguments", held) : h("p", { class: "dim" }, `The audit log has only a digest of the arguments (${field("args_len") ?? 0} bytes).`));
    result.replaceChildren(...(answer ? [h("h4", {}, "Result"), ...resultView(answer)] : field("res_len") ? [h("p", { class: "dim" }, `The audit log has only a digest of the result (${field("res_len")} bytes).`)] : []));
    const removed = [...Object.entries(field("redactions") ?? {}).map(([rule, n]) => `${plural(n, "secret")} found by ${rule}`), ...(field("removed_chars") ? [plural(field("removed_chars"), "control or invisible character") + " removed"] : [])].join(", ");
    const rows = [["Call", t("code", {}, c.id)], ["Ended", timeTag(records.at(-1).ts)], ["Time", `${span(c.took_ms)}${c.approved ? " from the approval to the end" : ""}`], ["Caller", c.caller], ["Client", field("client")], ["Rule", c.rule], ["Outcome", outcomeOf(c)],
      ...approvals.map((r) => ["Approval", h("span", {}, timeTag(r.ts), t("span", {}, ` ${r.fields.state}${r.fields.who ? " by " + r.fields.who : ""}${r.fields.by ? ` (${r.fields.by})` : ""}`))]), ["Sanitized", removed || null], ["Records", auditLinks(records)]].filter((r) => r[1]);
    facts.replaceChildren(...rows.flatMap(([label, value]) => [h("dt", {}, label), h("dd", {}, value instanceof Node ? value : t("span", {}, value, true))]));
  }

  function drawSteps(trail) {
    steps.replaceChildren(h("h4", {}, "Decisions"), trail.length ? h("table", { class: "steps" }, h("tbody", {}, ...trail.map((s) => h("tr", {},
      t("th", { scope: "row" }, PARTS[s.by] ?? s.by), h("td", {}, t("span", { class: "tag " + (VERDICT_LEVEL[s.verdict] ?? "") }, s.verdict)), t("td", {}, s.why))))) : h("p", { class: "dim" }, "Nothing was decided yet."));
  }

  const auditLinks = (records) => h("span", {}, ...records.map((r) => t("span", { class: "tag" }, `${r.event} ${r.seq}`)), " ", h("a", { href: "#/audit/find?" + new URLSearchParams({ text: id }) }, "in the audit log"));

  function drawWhole(rawResult) {
    drawTimes();
    drawSteps(whole.trail);
    args.replaceChildren(textBox("Arguments", whole.arguments ?? ""), whole.masked ? h("p", { class: "dim" }, `${plural(whole.masked, "secret is", "secrets are")} masked here.`) : "");
    const kept = rawResult && rawResult !== "null";
    const why = whole.state !== "done" || whole.outcome === "refused" ? "" : whole.result_bytes ? `The result of ${whole.result_bytes.toLocaleString("en")} bytes is not kept. The console keeps results only while one of its pages is open, and up to console_result_bytes. To find them later, set results in [audit].` : "";
    result.replaceChildren(...(kept ? [h("h4", {}, whole.outcome === "tool_error" ? "Result (tool error)" : "Result"), ...resultView(rawResult)] : why ? [h("h4", {}, "Result"), t("p", { class: "dim" }, why)] : []));
    drawFacts();
  }

  /** A bar with the share of each part of the call. */
  function drawTimes() {
    const parts = TIMES.map(([key, label]) => ({ key, label, us: whole.times?.[key] ?? 0 }));
    const sum = parts.reduce((all, p) => all + p.us, 0);
    attr(times, "hidden", !sum);
    if (!sum) return;
    let x = 0;
    const bars = parts.map((p) => { const width = (100 * p.us) / sum; const bar = svg("rect", { class: "p-" + p.key, x, y: 0, width, height: 10 }); x += width; return bar; });
    const words = parts.filter((p) => p.us).map((p) => `${p.label} ${micros(p.us)}`);
    times.replaceChildren(svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": "Time: " + words.join(", ") }, ...bars),
      h("ul", { class: "legend" }, ...parts.filter((p) => p.us).map((p) => h("li", {}, h("i", { class: "p-" + p.key }), `${p.label} ${micros(p.us)}`))));
  }

  function drawFacts() {
    const w = whole;
    const decided = w.decision ? `${w.decision.decision}${w.decision.by ? " by " + w.decision.by : ""}${w.decision.reason ? `: ${w.decision.reason}` : ""}` : null;
    const cleaned = Object.entries(w.sanitized ?? {}).map(([what, n]) => (what === "removed_chars" ? plural(n, "control or invisible character") + " removed" : what.startsWith("secret:") ? `${plural(n, "secret")} found by ${what.slice(7)}` : `${what}: ${n}`)).join(", ");
    const rows = [["Call", t("code", {}, w.id)], ["Started", timeTag(w.at)], ["Caller", w.caller], ["Client", w.client], ["Transport", `${w.transport}, revision ${w.revision ?? "unknown"}`],
      ["Rules", w.verdict], ["Rule", w.rule], ["Outcome", w.state === "done" ? outcomeOf(w) : null], ["Cancelled", cancelOf(w)], ["Detail", w.detail],
      ["Approval", w.approval && state.pending.has(w.approval) ? h("a", { href: "#/inbox/" + encodeURIComponent(w.approval) }, visText(w.approval), ", waiting for you") : w.approval], ["Decision", decided],
      ["Result", w.result_bytes ? `${w.result_bytes.toLocaleString("en")} bytes` : null], ["Sanitized", cleaned || (w.outcome === "ok" ? "nothing" : null)], ["Records", w.state === "done" ? h("a", { href: "#/audit/find?" + new URLSearchParams({ text: id }) }, "in the audit log") : null]].filter((r) => r[1]);
    facts.replaceChildren(...rows.flatMap(([label, value]) => [h("dt", {}, label), h("dd", {}, value instanceof Node ? value : t("span", {}, value, true))]));
  }

  const tick = () => {
    if (!c) return;
    const ms = c.state === "done" ? c.took_ms : now() - c.at;
    put(took, ms === null || ms === undefined ? "" : span(ms));
  };
  function update() {
    c = state.calls.get(id) ?? c;
    if (c) {
      put(name, nameOf(c));
      put(mark, stateText(c));
      mark.className = "state " + stateLevel(c);
      stop.update(c);
      progress.update(c);
      tick();
    }
    attr(stop.node, "hidden", c?.state !== "running");
    attr(progress.node, "hidden", !c?.progress || c.state !== "running");
    const key = `${c?.state} ${c?.outcome} ${c?.approval && state.pending.has(c.approval)}`;
    if (key === loaded) return;
    loaded = key;
    load();
  }
  update();
  return { node, update, tick, close: () => { closed = true; } };
}

const micros = (us) => (us < 1000 ? `${us} \u00b5s` : us < 10000 ? `${(us / 1000).toFixed(1)} ms` : span(us / 1000));
