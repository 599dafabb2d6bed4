// Calls: a histogram with a brush, filters, and the calls as rows, or as counts by tool while there are too many.

import { state, now, KEEP, on } from "./api.js";
import { h, t, put, attr, keyed, button, plural, pageRoot } from "./dom.js";
import { setTime, clock, span } from "./time.js";
import { barChart, legend, sparkline } from "./charts.js";
import { virtualList } from "./virtual.js";
import { liveBuckets, liveRate, liveTools, tooMany } from "./live.js";
import { CLASSES, classOf, nameOf, stateText, stateLevel, cancelOf } from "./outcomes.js";
import { callView, stopButton, progressMark } from "./call.js";

const ROW_HEIGHT = 44;
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
  h("thead", {}, h("tr", {}, ...["Tool", "Calls/s", "Last minute", ...CLASSES.map((c) => c.label), "Average"].map((x) => h("th", { scope: "col" }, x)))), byTool));
const detail = h("aside", { class: "detail-pane", tabindex: "-1", "aria-label": "Details of the call", hidden: true });
const panes = h("div", { class: "panes" }, h("div", { class: "list-pane" }, none, list.node, totals, cap), detail);
root.append(h("div", { class: "tools-bar" }, h("div", { class: "chips", role: "group", "aria-label": "State" }, ...chips), pause, shape, rate),
  h("div", { class: "tools-bar" }, filter, ...Object.values(picks).map((p) => p.node), range),
  h("div", { class: "chart-line" }, chart.node, legend(CLASSES)), panes);
const syncTools = keyed(byTool, (tool) => tool.name, makeTool);

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
    field.value = values.includes(value) ? value : "";
  } };
}

function pick(id) {
  group = id;
  for (const b of chips) attr(b, "aria-pressed", b.dataset.group === id ? "true" : "false");
  render();
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
  if (brush) put(rangeText, `${clock(brush[0])} to ${clock(brush[1])}`);
  render();
}

const haystack = (c) => `${c.id} ${nameOf(c)} ${c.caller} ${stateText(c)} ${c.detail ?? ""} ${cancelOf(c) ?? ""} ${c.arguments ?? ""}`.toLowerCase();

function render() {
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
  const speed = h("td", {}), spark = sparkline("Calls per second in the last minute"), took = h("td", {});
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
  };
  function update(next) {
    c = next;
    if (at !== c.at) { at = c.at; setTime(time, c.at, clock); }
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
function show(id) {
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
  tick: () => { for (const part of list.parts()) part.tick(); view?.tick(); if (!paused) { chart.update(liveBuckets()); put(rate, `${liveRate().toFixed(liveRate() < 10 ? 1 : 0)} calls/s`); } },
  count: () => { let n = 0; for (const c of state.calls.values()) if (c.state !== "done") n++; return n || ""; },
};
