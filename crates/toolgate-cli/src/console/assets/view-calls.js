// Live list of calls with a filter, and the detail of one call next to it.

import { state, now, post, KEEP } from "./api.js";
import { h, t, put, attr, keyed, button, textBox, span, clock, stamp, visText } from "./dom.js";

const GROUPS = {
  all: ["All", () => true],
  running: ["Running", (c) => c.state === "running" || c.state === "judging"],
  waiting: ["Waiting", (c) => c.state === "waiting"],
  ok: ["Done", (c) => c.outcome === "ok"],
  failed: ["Failed", (c) => ["tool_error", "rpc_error", "timeout", "bad_answer", "upstream_lost", "cancelled"].includes(c.outcome)],
  refused: ["Refused", (c) => c.outcome === "refused" || c.outcome === "denied"],
};
const WORDS = { ok: "ok", tool_error: "tool error", rpc_error: "protocol error", timeout: "timed out", bad_answer: "unusable answer", cancelled: "cancelled", upstream_lost: "server lost", refused: "refused", denied: "denied" };
/** Text for each class of refusal. */
const REFUSED = { invalid: "invalid arguments", rule: "denied by a rule", person: "denied by a person", expired: "approval expired", frozen: "frozen", rate: "rate limited", busy: "too many calls", not_found: "unknown item", scope: "scope missing", unsupported: "capability missing in the client", record: "audit log unavailable", result: "result blocked" };
const REFUSED_LEVEL = { person: "bad", expired: "idle", invalid: "idle", not_found: "idle" };
const outcomeOf = (c) => REFUSED[c.refusal] ?? WORDS[c.outcome] ?? c.outcome;
const LEVEL = { ok: "calm", tool_error: "bad", rpc_error: "bad", timeout: "bad", bad_answer: "bad", upstream_lost: "bad", cancelled: "idle", refused: "warn", denied: "warn" };
const STATES = { judging: "checking rules", waiting: "waiting for approval", running: "running" };

const root = document.getElementById("view-calls");
const filter = h("input", { type: "search", id: "calls-filter", placeholder: "Filter: tool, caller, argument, id", "aria-label": "Filter the calls", on: { input: renderCalls } });
const chips = Object.entries(GROUPS).map(([id, [label]]) => button("", { class: "chip", "data-group": id, "aria-pressed": id === "all" ? "true" : "false" }, () => pick(id)));
const list = h("ul", { class: "calls" });
const none = h("p", { class: "empty", hidden: true });
const cap = h("p", { class: "dim cap", hidden: true }, `This page shows the newest ${KEEP.toLocaleString("en")} calls; the audit log has all calls.`);
const drawer = h("aside", { class: "drawer", tabindex: "-1", "aria-label": "Details of the call", hidden: true });
root.append(h("h2", { class: "sr" }, "Calls"),
  h("div", { class: "tools-bar" }, h("div", { class: "chips", role: "group", "aria-label": "State" }, ...chips), filter),
  h("div", { class: "split" }, h("div", {}, none, list, cap), drawer));

let group = "all", open = null, detail = null, rows = new Map();
const sync = keyed(list, (c) => c.id, makeRow);

function pick(id) {
  group = id;
  for (const b of chips) attr(b, "aria-pressed", b.dataset.group === id ? "true" : "false");
  renderCalls();
}

const nameOf = (c) => (c.server ? `${c.server}.${c.tool}` : c.tool) + (c.method === "completion/complete" ? " (completion)" : "");
/** Who cancelled a call, with the reason if there is one. */
const BY = { caller: "cancelled by its caller", link: "its caller disconnected", deadline: "the call timed out", operator: "stopped by an operator", stop: "the gateway shut down" };
const cancelOf = (c) => c.cancel ? (BY[c.cancel.by] ?? c.cancel.by) + (c.cancel.reason ? `: ${c.cancel.reason}` : "") : null;
const haystack = (c) => `${c.id} ${nameOf(c)} ${c.caller} ${c.client ?? ""} ${c.state} ${outcomeOf(c) ?? ""} ${c.detail ?? ""} ${cancelOf(c) ?? ""} ${c.arguments}`.toLowerCase();

export function renderCalls() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = [...state.calls.values()].sort((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1));
  for (const b of chips) put(b, `${GROUPS[b.dataset.group][0]} ${all.filter(GROUPS[b.dataset.group][1]).length}`);
  const seen = all.filter((c) => GROUPS[group][1](c) && words.every((w) => haystack(c).includes(w)));
  rows = sync(seen);
  attr(none, "hidden", seen.length > 0);
  put(none, all.length ? "No call matches the filter." : "No calls yet.");
  attr(cap, "hidden", all.length < KEEP);
  if (open && detail && state.calls.has(open)) detail.update(state.calls.get(open));
}

/** Moves the running times on. */
export function tickCalls() {
  for (const part of rows.values()) part.tick();
  detail?.tick();
}

/** Answers a key pressed outside any field. */
export function callsKey(key) {
  if (key === "/") { filter.focus(); filter.select(); return true; }
  if (key === "Escape" && open) { location.hash = "#/calls"; return true; }
  if (key !== "j" && key !== "k") return false;
  const all = [...list.querySelectorAll("button.open")];
  const i = all.indexOf(document.activeElement?.closest("li")?.querySelector("button.open"));
  all[Math.max(0, Math.min(all.length - 1, i + (key === "j" ? 1 : -1)))]?.focus();
  return true;
}

/** Opens the detail of a call, or closes it with null. */
export function showCall(id) {
  const was = open;
  open = id && state.calls.has(id) ? id : null;
  for (const part of rows.values()) part.node.classList.toggle("current", part.node.dataset.call === open);
  attr(drawer, "hidden", !id);
  root.classList.toggle("with-drawer", !!id);
  if (!id) {
    detail = null;
    drawer.replaceChildren();
    if (was && !root.hidden) rows.get(was)?.node.querySelector("button.open").focus({ preventScroll: true });
    return;
  }
  if (!open) { detail = null; drawer.replaceChildren(closeLink(), t("p", { class: "empty" }, `The call ${id} is no longer on this page; the audit log has it.`)); return; }
  if (was === open && detail) return;
  detail = makeDetail(state.calls.get(open));
  drawer.replaceChildren(detail.node);
  drawer.scrollTop = 0;
  drawer.focus({ preventScroll: true });
}

const closeLink = () => h("a", { class: "close", href: "#/calls", "aria-label": "Close the details" }, "Close");
const elapsed = (c) => (c.state === "done" ? c.took_ms : now() - c.at);

function stateMark() {
  const node = h("span", { class: "state" });
  return { node, update(c) {
    const done = c.state === "done";
    put(node, done ? outcomeOf(c) ?? "done" : STATES[c.state] ?? c.state);
    node.className = "state " + (done ? REFUSED_LEVEL[c.refusal] ?? LEVEL[c.outcome] ?? "idle" : c.state);
  } };
}

function stopButton() {
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
    id = c.id;
    attr(b, "hidden", c.state !== "running");
  } };
}

function progressMark() {
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

/** The beginning of the arguments on one line, with a note about the rest. */
function preview(text) {
  const flat = text.replace(/\s*\n\s*/g, " ");
  const chars = [...flat];
  return chars.length > 110 ? `${chars.slice(0, 100).join("")} \u2026 and ${chars.length - 100} more characters` : flat;
}

function makeRow(first) {
  let c = first;
  const mark = stateMark(), stop = stopButton(), progress = progressMark();
  const took = h("span", { class: "took" });
  const args = h("code", { class: "preview" });
  const who = h("span", { class: "who dim" });
  const note = h("span", { class: "note dim" });
  const openIt = h("button", { type: "button", class: "open", on: { click: () => { location.hash = open === c.id ? "#/calls" : "#/calls/" + encodeURIComponent(c.id); } } }, t("b", {}, nameOf(c)));
  const node = h("li", { "data-call": c.id, "data-state": c.state },
    h("time", { title: stamp(c.at) }, clock(c.at)), h("span", { class: "name" }, openIt, who), mark.node, took, stop.node,
    h("span", { class: "more" }, args, progress.node, note));
  const tick = () => put(took, elapsed(c) === null ? "" : span(elapsed(c)));
  function update(next) {
    const same = next === c && node.dataset.drawn;
    c = next;
    if (same) return;
    node.dataset.drawn = "1";
    attr(node, "data-state", c.state);
    attr(node, "data-outcome", c.outcome);
    attr(node, "data-refusal", c.refusal);
    node.classList.toggle("current", c.id === open);
    put(who, c.caller);
    put(args, preview(c.arguments ?? ""));
    const said = c.detail ?? cancelOf(c);
    put(note, said ?? "");
    attr(note, "hidden", !said);
    for (const part of [mark, stop, progress]) part.update(c);
    tick();
  }
  return { node, update, tick: () => { if (c.state !== "done") tick(); } };
}

function makeDetail(first) {
  let c = first, args = null;
  const mark = stateMark(), stop = stopButton(), progress = progressMark();
  const took = h("span", { class: "took" });
  const facts = h("dl", { class: "facts" });
  const box = h("div", {});
  const node = h("div", {}, closeLink(), t("h3", {}, nameOf(c)),
    h("p", { class: "headline" }, mark.node, " ", took, " ", stop.node), progress.node, box, facts);
  const tick = () => put(took, elapsed(c) === null ? "" : span(elapsed(c)));
  function update(next) {
    c = next;
    for (const part of [mark, stop, progress]) part.update(c);
    tick();
    if (c.arguments !== args) {
      args = c.arguments;
      box.replaceChildren(textBox("Arguments", args ?? ""));
    }
    const rows = [["Call", c.id], ["Started", stamp(c.at)], ["Caller", c.caller], ["Client", c.client], ["Transport", `${c.transport}, revision ${c.revision ?? "unknown"}`],
      ["Verdict", c.verdict], ["Rule", c.rule], ["Outcome", outcomeOf(c)], ["Cancelled", cancelOf(c)], ["Detail", c.detail], ["Approval", c.approval],
      ["Masked", c.masked ? `${c.masked} secret${c.masked === 1 ? "" : "s"} in the arguments shown` : null]].filter((r) => r[1]);
    const key = JSON.stringify(rows);
    if (facts.dataset.key === key) return;
    facts.dataset.key = key;
    facts.replaceChildren(...rows.flatMap(([label, text]) => [h("dt", {}, label), h("dd", {},
      label === "Approval" && state.pending.has(text) ? h("a", { href: "#/inbox/" + encodeURIComponent(text) }, visText(text), ", waiting for you") : t("span", {}, text, true))]));
  }
  update(c);
  return { node, update, tick: () => { if (c.state !== "done") tick(); } };
}
