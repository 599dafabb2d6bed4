// Calls: a histogram with a brush, filters, and the calls as rows, or as counts by tool while there are too many.

import { state, now, post, KEEP, on } from "./api.js";
import { h, t, put, attr, keyed, button, plural, pageRoot, visText, tableHead } from "./dom.js";
import { setTime, clock, dateTime, shortTime, span } from "./time.js";
import { barChart, legend, sparkline } from "./charts.js";
import { virtualList } from "./virtual.js";
import { liveBuckets, liveRate, liveTools, tooMany } from "./live.js";
import { CLASSES, classOf, nameOf, stateText, stateLevel, cancelOf } from "./outcomes.js";
import { callView, stopButton, progressMark } from "./call.js";
import { chartCounts } from "./map.js";

const ROW_HEIGHT = 44;
const MINUTE = 60_000;
/** Times of the audit log: their length, and the length of a bar in minutes. `live` is what this page saw itself. */
const RANGES = { live: ["Live"], "60m": ["60 minutes", 60 * MINUTE, 1], "24h": ["24 hours", 1440 * MINUTE, 15], "7d": ["7 days", 10080 * MINUTE, 120] };
/** Classes of the audit log for each group of states. */
const PAST_CLASSES = { ok: ["allowed", "approved"], failed: ["failed", "cancelled"], refused: ["rule", "person", "expired", "frozen", "invalid", "rate", "busy", "not_found", "scope", "unsupported", "record", "result", "refused"] };
const GROUPS = {
  all: ["All", () => true],
  running: ["Running", (c) => c.state === "running" || c.state === "judging"],
  waiting: ["Waiting", (c) => c.state === "waiting"],
  ok: ["Done", (c) => c.outcome === "ok"],
  failed: ["Failed", (c) => c.state === "done" && ["failed", "cancelled"].includes(classOf(c))],
  refused: ["Refused", (c) => c.outcome === "refused" || c.outcome === "denied"],
};

const root = pageRoot("calls", "Calls");
const filter = h("input", { type: "search", id: "calls-filter", placeholder: "Filter: tool, caller, argument, id", "aria-label": "Filter the calls", autocomplete: "off", on: { input: render } });
const chips = Object.entries(GROUPS).map(([id, [label]]) => button(label, { class: "chip", "data-group": id, "aria-pressed": id === "all" ? "true" : "false" }, () => pick(id)));
const picks = { caller: select("Caller", "all callers"), server: select("Server", "all servers"), tool: select("Tool", "all tools") };
const ranges = Object.entries(RANGES).map(([id, [label]]) => button(label, { class: "seg", "data-range": id, "aria-pressed": String(id === "live") }, () => setRange(id)));
const onlyText = h("span", {});
const onlyClass = h("span", { class: "tag", hidden: true, "data-only": "" }, onlyText, button("\u00d7", { class: "quiet", "aria-label": "Show all outcomes", "data-act": "clear-only" }, () => { pastClass = pastRule = null; render(); }));
const reset = button("Clear filters", { class: "quiet", hidden: true, "data-act": "clear-filters" }, () => {
  filter.value = "";
  for (const one of Object.values(picks)) one.force("");
  chart.clear();
  brushed(null);
  pick("all");
});
const pause = button("Pause", { "data-act": "pause", "aria-pressed": "false" }, () => setPaused(!paused));
const shape = button("Show rows", { "data-act": "rows", hidden: true }, () => { wantsRows = !wantsRows; render(); });
const rate = h("span", { class: "dim", "data-rate": "" });
const range = h("span", { class: "tag", hidden: true }), rangeText = h("span", {}), clear = button("\u00d7", { class: "quiet", "aria-label": "End the selection of a time", "data-act": "clear-brush" }, () => { chart.clear(); brushed(null); });
range.append(rangeText, clear);
const chart = barChart({ label: "Calls in the last ten minutes", classes: CLASSES, height: 96, onBrush: brushed });
const list = virtualList({ label: "Calls", rowHeight: ROW_HEIGHT, key: (c) => c.id, make: makeRow, className: "calls" });
const none = h("p", { class: "empty", hidden: true });
const cap = h("p", { class: "dim cap", hidden: true }, `This page keeps the newest ${KEEP.toLocaleString("en")} calls; the audit log has all calls.`);
const byTool = h("tbody", {});
const totals = h("div", { class: "scroll", hidden: true, "data-by-tool": "" }, h("table", { class: "grants by-tool" },
  tableHead("Tool", ["Calls/s"], "Last minute", ...CLASSES.map((c) => [c.label]), ["Average"]), byTool));
const detail = h("aside", { class: "detail-pane", tabindex: "-1", "aria-label": "Details of the call", hidden: true });
const panes = h("div", { class: "panes" }, h("div", { class: "list-pane" }, none, list.node, totals, cap), detail);
root.append(h("div", { class: "tools-bar" }, h("span", { class: "segs", role: "group", "aria-label": "Time" }, ...ranges), h("div", { class: "chips", role: "group", "aria-label": "State" }, ...chips), pause, shape, rate),
  h("div", { class: "tools-bar" }, filter, ...Object.values(picks).map((p) => p.node), onlyClass, range, reset),
  h("div", { class: "chart-line" }, chart.node, legend(CLASSES)), panes);
const syncTools = keyed(byTool, (tool) => tool.name, makeTool);

let mode = "live", past = null, pastClass = null, pastRule = null;
let group = "all", open = null, view = null, paused = false, frozen = null, wantsRows = false, brush = null, shown = [];

function select(label, every) {
  const field = h("select", { "aria-label": label, on: { change: render } }, h("option", { value: "" }, every));
  let known = "";
  return { node: field, get value() { return field.value; }, set(values) {
    const key = values.join("\n");
    if (key === known) return;
    known = key;
    const value = field.value;
    field.replaceChildren(h("option", { value: "" }, every), ...values.map((v) => t("option", { value: v }, v)));
    if (value && !values.includes(value)) field.append(t("option", { value }, value));
    field.value = value;
  }, force(value) {
    if (value && ![...field.options].some((o) => o.value === value)) field.append(t("option", { value }, value));
    field.value = value;
  } };
}

function pick(id) {
  group = id;
  for (const b of chips) attr(b, "aria-pressed", b.dataset.group === id ? "true" : "false");
  pastClass = pastRule = null;
  render();
}

// Calls of the audit log ---------------------------------------------------

function setRange(id) {
  mode = id;
  past = null;
  markBusy(id !== "live");
  for (const b of ranges) attr(b, "aria-pressed", String(b.dataset.range === id));
  attr(pause, "hidden", id !== "live");
  // The index of the audit log has names, and no contents.
  attr(filter, "placeholder", id === "live" ? "Filter: tool, caller, argument, id" : "Filter: tool, caller, id");
  for (const b of chips) attr(b, "hidden", id !== "live" && ["running", "waiting"].includes(b.dataset.group));
  if (id !== "live" && ["running", "waiting"].includes(group)) group = "all";
  brushed(null);
  chart.clear();
}

/** Says whether rows of the audit log are still to come. */
const markBusy = (on) => attr(list.node, "aria-busy", on ? "true" : null);

/** The question that the filters and the selection of a time make. */
function pastQuestion() {
  const [, length] = RANGES[mode];
  const [from, to] = brush ?? [now() - length, now() + MINUTE];
  return { from: Math.floor(from), to: Math.ceil(to), caller: picks.caller.value || null, server: picks.server.value || null, tool: picks.tool.value || null,
    classes: pastClass ? [pastClass] : PAST_CLASSES[group] ?? [], rule: pastRule, text: filter.value.trim() || null };
}

/** The question without the present, which moves. */
const pastQuestionKey = () => { const q = pastQuestion(); return brush ? q : { ...q, from: 0, to: 0 }; };

let asked = 0, soon = 0;
/** Reads the chart and the first rows of a time from the audit log. */
async function loadPast() {
  const mine = ++asked, question = pastQuestion(), [, length, step] = RANGES[mode];
  const whole = { from: now() - length, to: now() + MINUTE, step, caller: question.caller, server: question.server, tool: question.tool };
  const key = JSON.stringify([mode, pastQuestionKey(), group]);
  past = { key, calls: past?.calls ?? [], before: null, loading: true, overview: past?.overview ?? null };
  const [rows, overview] = await Promise.all([post("/console/api/history/calls", question), post("/console/api/history/overview", whole)]);
  if (mine !== asked || mode === "live") return;
  const wrong = rows.error ?? overview.error;
  const found = rows.ok ? JSON.parse(rows.text) : { calls: [], before: null };
  past = { key, question, calls: found.calls, before: found.before, error: wrong, loading: false, overview: overview.ok ? JSON.parse(overview.text) : null, behind: found.behind };
  drawPast();
  if (found.behind) setTimeout(() => { if (mine === asked && mode !== "live" && !root.hidden) loadPast(); }, 800);
}

/** Reads the rows after the last one, once it comes into view. */
async function loadOlder() {
  if (!past?.before || past.loading) return;
  past.loading = true;
  const mine = asked;
  const res = await post("/console/api/history/calls", { ...past.question, before: past.before });
  if (mine !== asked || mode === "live") return;
  past.loading = false;
  if (!res.ok) { past.before = null; return; }
  const found = JSON.parse(res.text);
  past.calls = [...past.calls, ...found.calls];
  past.before = found.before;
  drawPast();
}
list.node.addEventListener("scroll", () => {
  if (mode !== "live" && list.node.scrollTop + 3 * list.node.clientHeight > list.node.scrollHeight) loadOlder();
}, { passive: true });

function drawPast() {
  const o = past.overview;
  if (o) {
    chart.update({ from: o.from, step: o.step, buckets: o.buckets.map((b) => chartCounts(b.classes)) });
    picks.caller.set(o.callers.map((g) => g.name));
    picks.server.set(o.servers.map((g) => g.name));
    picks.tool.set(o.tools.map((g) => g.name));
  }
  shown = past.calls;
  list.set(shown);
  markBusy(past.loading || past.behind);
  attr(totals, "hidden", true);
  attr(list.node, "hidden", !shown.length);
  attr(none, "hidden", shown.length > 0);
  attr(cap, "hidden", true);
  attr(shape, "hidden", true);
  put(none, past.error ?? (past.loading ? "Reading the audit log." : past.behind ? "The index still reads the audit log." : "No call matches the filter."));
  put(rate, past.loading && !shown.length ? "reading" : `${plural(shown.length, "call")}${past.before ? ", older ones follow" : ""}`);
  for (const b of chips) put(b, GROUPS[b.dataset.group][0]);
  attr(onlyClass, "hidden", !pastClass);
  if (pastClass) put(onlyText, "only: " + stateText({ outcome: "refused", refusal: pastClass }) + (pastRule ? `, ${visText(pastRule)}` : ""));
}

function setPaused(on) {
  paused = on;
  frozen = on ? { calls: [...state.calls.values()], at: now(), buckets: liveBuckets() } : null;
  attr(pause, "aria-pressed", String(on));
  put(pause, on ? "Continue" : "Pause");
  render();
}

function brushed(next) {
  brush = next;
  attr(range, "hidden", !brush);
  const form = mode === "live" ? clock : dateTime;
  if (brush) put(rangeText, `${form(brush[0])} to ${form(brush[1])}`);
  render();
}

const haystack = (c) => `${c.id} ${nameOf(c)} ${c.caller} ${stateText(c)} ${c.detail ?? ""} ${cancelOf(c) ?? ""} ${c.arguments ?? ""}`.toLowerCase();

function render() {
  attr(reset, "hidden", !filter.value && !pastClass && !brush && group === "all" && !Object.values(picks).some((one) => one.value));
  if (mode !== "live") {
    if (past?.key !== JSON.stringify([mode, pastQuestionKey(), group])) { clearTimeout(soon); soon = setTimeout(loadPast, past ? 250 : 0); }
    if (past) drawPast();
    view?.update();
    return;
  }
  const calls = paused ? frozen.calls : [...state.calls.values()];
  const newer = paused ? [...state.calls.values()].filter((c) => c.at > frozen.at).length : 0;
  put(rate, paused ? `paused, ${plural(newer, "newer call")}` : `${liveRate().toFixed(liveRate() < 10 ? 1 : 0)} calls/s`);
  chart.update(paused ? frozen.buckets : liveBuckets());
  const aggregate = !paused && !brush && tooMany();
  attr(shape, "hidden", !aggregate);
  put(shape, wantsRows ? "Show counts" : "Show rows");
  const counts = aggregate && !wantsRows;
  attr(totals, "hidden", !counts);
  attr(list.node, "hidden", counts);
  root.classList.toggle("many", counts);
  if (counts) {
    attr(none, "hidden", true);
    attr(cap, "hidden", true);
    drawTools();
  } else drawRows(calls);
  view?.update();
}

function drawTools() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = liveTools().filter((tool) => words.every((w) => tool.name.toLowerCase().includes(w)) && (!picks.server.value || tool.server === picks.server.value) && (!picks.tool.value || tool.name === picks.tool.value));
  syncTools(fits.slice(0, 60));
}

function drawRows(calls) {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = calls.sort((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1));
  const values = (of) => [...new Set(all.map(of))].filter(Boolean).sort().slice(0, 200);
  picks.caller.set(values((c) => c.caller));
  picks.server.set(values((c) => c.server));
  picks.tool.set(values(nameOf));
  for (const b of chips) put(b, `${GROUPS[b.dataset.group][0]} ${all.filter(GROUPS[b.dataset.group][1]).length}`);
  shown = all.filter((c) => GROUPS[group][1](c)
    && (!picks.caller.value || c.caller === picks.caller.value) && (!picks.server.value || c.server === picks.server.value) && (!picks.tool.value || nameOf(c) === picks.tool.value)
    && (!brush || (c.at + (c.took_ms ?? 0) >= brush[0] && c.at <= brush[1]))
    && words.every((w) => haystack(c).includes(w)));
  list.set(shown);
  attr(list.node, "hidden", !shown.length);
  attr(none, "hidden", shown.length > 0);
  put(none, all.length ? "No call matches the filter." : "No calls yet.");
  attr(cap, "hidden", all.length < KEEP);
}

function makeTool(first) {
  const speed = h("td", { class: "n" }), spark = sparkline("Calls per second in the last minute"), took = h("td", { class: "n" });
  const cells = CLASSES.map((c) => h("td", { class: "n n-" + c.id }));
  const node = h("tr", { "data-tool-rate": first.name }, h("td", {}, t("b", {}, first.name)), speed, h("td", {}, spark.node), ...cells, took);
  return { node, update(tool) {
    put(speed, tool.rate.toFixed(1));
    spark.update(tool.spark);
    cells.forEach((cell, i) => put(cell, tool.classes[i] || ""));
    put(took, span(tool.took / Math.max(1, tool.total)));
  } };
}

function makeRow(first) {
  let c = first, at = 0;
  const time = h("time", {}), name = h("button", { type: "button", class: "open", on: { click: () => { location.hash = open === c.id ? "#/calls" : "#/calls/" + encodeURIComponent(c.id); } } });
  const who = h("span", { class: "who dim" }), args = h("code", { class: "preview" }), note = h("span", { class: "note dim" });
  const mark = h("span", { class: "state" }), took = h("span", { class: "took" });
  const stop = stopButton(), progress = progressMark();
  const node = h("div", { class: "call", "data-call": c.id }, time, h("span", { class: "name" }, name, who), h("span", { class: "more" }, args, progress.node, note), mark, took, stop.node);
  const tick = () => {
    const ms = c.state === "done" ? c.took_ms : now() - c.at;
    put(took, ms === null || ms === undefined ? "" : span(ms));
    attr(took, "title", c.past && c.approved ? "from the approval to the end" : null);
  };
  function update(next) {
    c = next;
    if (at !== c.at) { at = c.at; setTime(time, c.at, c.past ? shortTime : clock); }
    attr(node, "data-state", c.state);
    attr(node, "data-outcome", c.outcome);
    attr(node, "data-refusal", c.refusal);
    node.classList.toggle("current", c.id === open);
    put(name, nameOf(c));
    put(who, c.caller);
    put(args, c.arguments ?? "");
    put(mark, stateText(c));
    mark.className = "state " + stateLevel(c);
    const said = c.detail ?? cancelOf(c);
    put(note, said ?? "");
    attr(note, "hidden", !said);
    stop.update(c);
    progress.update(c);
    tick();
  }
  return { node, update, tick: () => { if (c.state !== "done") tick(); }, button: name };
}

// Address and keys -------------------------------------------------------

/** Opens the details of one call, or closes them with null. */
function show(rest) {
  const asks = rest?.startsWith("past?") ? new URLSearchParams(rest.slice(5)) : null;
  if (asks) {
    // A link to calls of the past: of a caller, a tool, or a class of refusal.
    setRange(asks.get("range") in RANGES ? asks.get("range") : "24h");
    for (const name of ["caller", "server", "tool"]) picks[name].force(asks.get(name) ?? "");
    pastClass = asks.get("class");
    pastRule = asks.get("rule") || null;
    history.replaceState(null, "", "#/calls");
    render();
  }
  const id = asks ? null : rest;
  const was = open;
  open = id;
  for (const part of list.parts()) part.node.classList.toggle("current", part.node.dataset.call === open);
  if (id !== was || !view) {
    view?.close();
    view = id ? callView(id) : null;
    detail.replaceChildren(...(view ? [h("a", { class: "close", href: "#/calls", "aria-label": "Close the details" }, "Close"), view.node] : []));
    detail.scrollTop = 0;
    if (view) detail.focus({ preventScroll: true });
  }
  attr(detail, "hidden", !view);
  panes.classList.toggle("with-detail", Boolean(view));
  if (!id && was && !root.hidden) list.find(was)?.button.focus({ preventScroll: true });
}

/** Answers a key pressed outside any field. */
function key(pressed) {
  if (pressed === "/") { filter.focus(); filter.select(); return true; }
  if (pressed === "p") { setPaused(!paused); return true; }
  if (pressed === "Escape" && open) { location.hash = "#/calls"; return true; }
  if ((pressed !== "j" && pressed !== "k") || list.node.hidden) return false;
  const at = shown.findIndex((c) => c.id === document.activeElement?.closest?.("[data-call]")?.dataset.call);
  const next = shown[Math.max(0, Math.min(shown.length - 1, at + (pressed === "j" ? 1 : -1)))];
  if (next) list.reveal(next.id)?.button.focus({ preventScroll: true });
  return true;
}

on("page", () => { if (paused) setPaused(false); });

export const page = {
  id: "calls", label: "Calls", letter: "c", topics: ["calls", "pending"], draw: render, key, show,
  tick: () => { for (const part of list.parts()) part.tick(); view?.tick(); if (!paused && mode === "live") { chart.update(liveBuckets()); put(rate, `${liveRate().toFixed(liveRate() < 10 ? 1 : 0)} calls/s`); } },
  count: () => { let n = 0; for (const c of state.calls.values()) if (c.state !== "done") n++; return n || ""; },
};
