// Overview: what the gateway did, by decision, latency, caller and server, and what stands out.

import { state, now, post, on } from "./api.js";
import { h, t, put, attr, button, plural, visText, pageRoot, redraw, tableHead } from "./dom.js";
import { barChart, lineChart, legend } from "./charts.js";
import { trafficMap, chartCounts } from "./map.js";
import { CLASSES, outcomeOf } from "./outcomes.js";
import { span } from "./time.js";

const MINUTE = 60_000, DAY = 24 * 60 * MINUTE;
/** Spans of time: their length, the length of a bar in minutes, and how often they are read again. */
const RANGES = { "60m": ["60 minutes", 60 * MINUTE, 1, 5000], "24h": ["24 hours", DAY, 15, 30000], "7d": ["7 days", 7 * DAY, 120, 60000] };
const APPROVAL_DAYS = 7;
const DECISIONS = [{ id: "approved", label: "approved" }, { id: "refused", label: "denied" }, { id: "cancelled", label: "not decided" }];

const root = pageRoot("overview", "Overview");
let range = "60m", filter = {}, loading = false, again = 0, last = null, insightsAt = 0;

const ranges = Object.entries(RANGES).map(([id, [label]]) => button(label, { class: "chip", "data-range": id, "aria-pressed": String(id === range) }, () => { range = id; for (const b of ranges) attr(b, "aria-pressed", String(b.dataset.range === id)); load(); }));
const filters = h("span", { class: "tags", "data-filters": "" });
const behind = h("span", { class: "dim", role: "status" });
const tiles = h("dl", { class: "tiles" });
const calls = barChart({ label: "Calls by decision", classes: CLASSES, height: 150 });
const latency = lineChart({ label: "Latency of calls that ran", lines: [{ id: "p50", label: "median" }, { id: "p95", label: "95th percentile" }], height: 150, unit: " ms" });
const map = trafficMap((kind, name) => { filter = { ...filter, [kind]: filter[kind] === name ? undefined : name }; load(); });
const approvals = barChart({ label: "Requests for approval by day", classes: DECISIONS, height: 110, unit: "requests" });
const denied = h("p", { class: "dim" });
const refusals = h("tbody", {}), tools = h("tbody", {});
const noRefusals = h("p", { class: "dim", hidden: true }, "No call was refused in this time.");
const insights = h("ul", { class: "insights" });
const error = h("p", { class: "error", role: "alert", hidden: true });
const panel = (title, ...kids) => h("section", { class: "panel-box" }, h("h3", {}, title), ...kids);
const table = (body, ...heads) => h("div", { class: "scroll" }, h("table", {}, tableHead(...heads), body));
root.append(h("div", { class: "tools-bar" }, h("div", { class: "chips", role: "group", "aria-label": "Time" }, ...ranges), filters, behind), error, tiles,
  h("div", { class: "boxes" },
    panel("Calls by decision", calls.node, legend(CLASSES)),
    panel("Latency", latency.node, legend([{ id: "p50", label: "median" }, { id: "p95", label: "95th percentile" }], "l")),
    h("section", { class: "panel-box wide" }, h("h3", {}, "Who calls what"), map.node, h("p", { class: "dim" }, "Choose a caller or a server to see only its calls.")),
    panel("Refused, by caller and reason", noRefusals, table(refusals, "Caller", "Tool", "Why", ["Calls"])),
    panel("Tools", table(tools, "Tool", ...["Calls", "Failed", "Refused", "Median", "95th"].map((x) => [x]))),
    panel("Requests for approval", approvals.node, legend(DECISIONS), denied),
    panel("Insights", insights)));

async function load() {
  if (loading) { again = 1; return; }
  loading = true;
  const [, length, step] = RANGES[range];
  const midnight = new Date(now());
  midnight.setHours(0, 0, 0, 0);
  const res = await post("/console/api/history/overview", { from: now() - length, to: now() + MINUTE, step, days_from: midnight.getTime() - (APPROVAL_DAYS - 1) * DAY, ...filter });
  loading = false;
  put(error, res.error ?? "");
  attr(error, "hidden", res.ok);
  if (res.ok) { last = { at: now(), range, ...JSON.parse(res.text) }; draw(); }
  if (again || last?.behind) { again = 0; setTimeout(() => { if (!root.hidden) load(); }, 700); }
}

async function loadInsights() {
  insightsAt = now();
  const res = await post("/console/api/history/insights", {});
  if (res.ok) drawInsights(JSON.parse(res.text));
}

function draw() {
  if (!last) return;
  put(behind, last.behind ? `Reading the audit log; ${Math.ceil(last.behind / 1048576).toLocaleString("en")} MiB left.` : "");
  const buckets = last.buckets.map((b) => chartCounts(b.classes));
  calls.update({ from: last.from, step: last.step, buckets });
  const ms = (us) => (us === null ? null : us / 1000);
  latency.update({ from: last.from, step: last.step, values: [last.buckets.map((b) => ms(b.p50)), last.buckets.map((b) => ms(b.p95))] });
  map.update(last.flows);
  drawFilters();
  drawTiles(buckets);
  redraw(refusals, [last.refusals, range], () => last.refusals.slice(0, 15).map((r) => h("tr", {}, t("td", {}, r.caller), t("td", {}, r.tool ?? ""), h("td", {}, outcomeOf({ refusal: r.class }), r.rule ? t("small", { class: "dim" }, r.rule) : ""), h("td", { class: "n" },
    h("a", { href: "#/calls/past?" + new URLSearchParams({ caller: r.caller, tool: r.tool ?? "", class: r.class, rule: r.rule ?? "", range }) }, r.n.toLocaleString("en"))))));
  attr(noRefusals, "hidden", last.refusals.length > 0);
  redraw(tools, last.tools, () => last.tools.slice(0, 15).map((g) => {
    const c = chartCounts(g.classes), of = (id) => c[CLASSES.findIndex((x) => x.id === id)];
    return h("tr", {}, h("td", {}, t("b", {}, g.name)), ...[g.n, of("failed"), of("refused")].map((n) => h("td", { class: "n" }, n ? n.toLocaleString("en") : "")), ...[g.p50, g.p95].map((us) => h("td", { class: "n" }, us === null ? "" : span(us / 1000))));
  }));
  approvals.update({ from: last.days[0]?.from ?? 0, step: DAY, buckets: last.days.map((d) => [d.approved, d.denied, d.asked - d.approved - d.denied]) });
  const sum = (key) => last.days.reduce((all, d) => all + d[key], 0);
  const decided = sum("approved") + sum("denied");
  put(denied, sum("asked") ? `${plural(sum("asked"), "request")} in seven days, ${(sum("asked") / APPROVAL_DAYS).toFixed(1)} a day; people denied ${decided ? Math.round((100 * sum("denied")) / decided) : 0} % of those that they decided.` : "Nobody was asked to approve anything in seven days.");
}

function drawFilters() {
  redraw(filters, filter, () => ["caller", "server"].filter((kind) => filter[kind]).map((kind) => h("span", { class: "tag" }, `${kind} ${visText(filter[kind])} `,
    button("\u00d7", { class: "quiet", "aria-label": `All ${kind}s`, "data-act": "clear-" + kind }, () => { filter = { ...filter, [kind]: undefined }; load(); }))));
}

function drawTiles(buckets) {
  const totals = CLASSES.map((_, i) => buckets.reduce((all, b) => all + b[i], 0));
  const all = totals.reduce((a, b) => a + b, 0);
  const share = (id) => (all ? `${((100 * totals[CLASSES.findIndex((c) => c.id === id)]) / all).toFixed(1)} %` : "none");
  const today = last.days.at(-1);
  const live = [...state.pending.values()].filter((p) => p.connected).length;
  const rows = [["Calls", all.toLocaleString("en")], ["Refused", share("refused")], ["Failed", share("failed")],
    ["Waiting now", String(live)],
    ["Median wait today", today?.median_wait_ms === null || today === undefined ? "none" : span(today.median_wait_ms)],
    ["Servers up", `${state.servers.filter((s) => s.state === "running").length} of ${state.servers.length}`]];
  redraw(tiles, rows, () => rows.map(([label, value]) => h("div", { "data-tile": label }, h("dt", {}, label), h("dd", {}, label === "Waiting now" && live ? h("a", { href: "#/inbox" }, value) : value))));
}

// What stands out ---------------------------------------------------------

/** A tool is always approved if so many requests were approved, and no person and no rule denied a call. */
const ALWAYS = 3;
const SLOW_MS = 1000;

function drawInsights({ approvals: byTool, never_called, servers }) {
  const out = [];
  for (const a of byTool.filter((x) => x.approved >= ALWAYS && x.denied === 0 && !x.denied_by_rule).slice(0, 5)) {
    const rule = `[[rule]]\ntools = [${JSON.stringify(a.tool)}]\naction = "allow"\n`;
    out.push(h("li", { "data-insight": "always-approved" }, h("p", {}, t("b", {}, a.tool), ` was approved ${a.approved} times in seven days, and never denied. If every call of it is harmless, a rule can allow it:`), t("pre", { tabindex: "0", "aria-label": "Rule" }, rule, true),
      h("a", { href: "#/rules/add?" + new URLSearchParams({ rule }) }, "Open it in the rules")));
  }
  const day = now() - DAY;
  const unused = state.grants.filter((g) => !g.over && !g.used && g.made < day);
  if (unused.length) out.push(h("li", { "data-insight": "unused-grants" }, plural(unused.length, "remembered approval") + " was never used since it was given: ", h("a", { href: "#/grants" }, "see the grants"), "."));
  if (never_called.length) out.push(h("li", { "data-insight": "never-called" }, plural(never_called.length, "tool was", "tools were") + " not called in seven days: ", t("span", {}, never_called.slice(0, 6).join(", ") + (never_called.length > 6 ? ` and ${never_called.length - 6} more` : "")), ". A deny rule hides what nobody needs."));
  for (const s of servers.filter((x) => x.p95 !== null && x.p95 / 1000 > SLOW_MS && x.n >= 10).slice(0, 3)) out.push(h("li", { "data-insight": "slow-server" }, t("b", {}, s.name), ` is slow: one call in twenty takes longer than ${span(s.p95 / 1000)}. `, h("a", { href: "#/servers/" + encodeURIComponent(s.name) }, "See the server"), "."));
  redraw(insights, [byTool, never_called, servers, unused.length], () => (out.length ? out : [h("li", { class: "dim" }, "Nothing stands out.")]));
}

function refresh() {
  if (!state.ready || root.hidden || document.hidden) return;
  const [, , , every] = RANGES[range];
  if (!last || last.range !== range || now() - last.at > every) load();
  if (!insightsAt || now() - insightsAt > 60000) loadInsights();
}
on("page", () => { last = null; insightsAt = 0; });

export const page = { id: "overview", label: "Overview", letter: "o", topics: ["pending", "servers", "grants"], draw: () => { refresh(); draw(); }, show: refresh, tick: refresh };
