// Callers: who calls, how much of it was refused and why, and what each of them has.

import { state, now, post } from "./api.js";
import { h, t, put, attr, plural, visText, pageRoot } from "./dom.js";
import { barChart, legend } from "./charts.js";
import { chartCounts } from "./map.js";
import { CLASSES, outcomeOf } from "./outcomes.js";
import { freezeButton } from "./freeze.js";
import { dateTime } from "./time.js";

const MINUTE = 60_000, DAY = 1440 * MINUTE, WEEK = 7 * DAY;
const root = pageRoot("callers", "Callers");
const error = h("p", { class: "error", role: "alert", hidden: true });
const filter = h("input", { type: "search", placeholder: "Filter: name", "aria-label": "Filter the callers", autocomplete: "off", on: { input: () => draw() } });
const note = h("span", { class: "dim", role: "status" });
const body = h("tbody", {});
const heads = ["Caller", "Calls in 7 days", "Refused", "Failed", "Key", ""].map((x, i) => h("th", { scope: "col" }, x || h("span", { class: "sr" }, "Freeze")));
const table = h("table", { class: "grants callers" }, h("thead", {}, h("tr", {}, ...heads)), body);
const none = h("div", { class: "empty", hidden: true }, h("h3", {}, "No callers"), h("p", {}, "Programs that call tools appear here under the name by which rules know them."));
const detail = h("aside", { class: "detail-pane", tabindex: "-1", "aria-label": "The caller", hidden: true });
const panes = h("div", { class: "panes" }, h("div", { class: "list-pane" }, none, table), detail);
root.append(h("div", { class: "tools-bar" }, filter, note), error, panes);

let last = null, open = null, loading = false;

async function load() {
  if (loading) return;
  loading = true;
  const res = await post("/console/api/history/overview", { from: now() - WEEK, to: now() + MINUTE, step: 1440 });
  loading = false;
  put(error, res.error ?? "");
  attr(error, "hidden", res.ok);
  if (!res.ok) return;
  last = { ...JSON.parse(res.text), at: now() };
  draw();
  if (last.behind) setTimeout(() => { if (!root.hidden) load(); }, 800);
}

function callers() {
  const all = new Map();
  const of = (name) => { if (!all.has(name)) all.set(name, { name, counts: new Array(CLASSES.length).fill(0), n: 0 }); return all.get(name); };
  for (const g of last?.callers ?? []) Object.assign(of(g.name), { counts: chartCounts(g.classes), n: g.n });
  for (const k of state.keys) of("key:" + k.name).key = k;
  for (const c of state.calls.values()) of(c.caller);
  return [...all.values()].sort((a, b) => b.n - a.n || (a.name < b.name ? -1 : 1));
}

const count = (one, id) => one.counts[CLASSES.findIndex((c) => c.id === id)];

function draw() {
  const word = filter.value.toLowerCase();
  const all = callers().filter((one) => one.name.toLowerCase().includes(word));
  put(note, last?.behind ? "Reading the audit log." : plural(all.length, "caller"));
  attr(none, "hidden", all.length > 0);
  attr(table, "hidden", !all.length);
  const frozen = new Set(state.freezes.map((f) => f.what));
  const cell = (label, kid, cls = null) => h("td", { "data-label": label, class: cls }, kid);
  body.replaceChildren(...all.slice(0, 300).map((one) => h("tr", { "data-caller-row": one.name, class: open === one.name ? "current" : "" },
    cell("Caller", h("a", { href: "#/callers/" + encodeURIComponent(one.name) }, t("b", {}, one.name))),
    ...[["Calls", one.n], ["Refused", count(one, "refused")], ["Failed", count(one, "failed")]].map(([label, n]) => cell(label, n ? n.toLocaleString("en") : "0", "n")),
    cell("Key", one.key ? h("span", { class: one.key.over ? "tag bad" : "tag calm" }, one.key.over ?? "valid") : ""),
    cell("", frozen.has("caller " + one.name) ? h("span", { class: "tag bad" }, "frozen") : freezeButton("caller " + one.name)))));
}

async function show(name) {
  open = name;
  attr(detail, "hidden", !name);
  panes.classList.toggle("with-detail", Boolean(name));
  draw();
  if (!name) return;
  const midnight = new Date(now());
  midnight.setHours(0, 0, 0, 0);
  const card = h("article", { class: "card", "data-caller-detail": name, "aria-label": visText(name) }, t("h3", {}, name), h("p", { class: "dim busy" }, "Reading the audit log."));
  detail.replaceChildren(h("a", { class: "close", href: "#/callers" }, "Close"), card);
  detail.focus({ preventScroll: true });
  const res = await post("/console/api/history/overview", { from: midnight.getTime() - 6 * DAY, to: now() + MINUTE, step: 120, caller: name });
  if (open !== name) return;
  if (!res.ok) { card.append(t("p", { class: "error", role: "alert" }, res.error)); return; }
  const past = JSON.parse(res.text);
  const chart = barChart({ label: "Calls in seven days", classes: CLASSES, height: 110 });
  const grants = state.grants.filter((g) => g.caller === name && !g.over), key = state.keys.find((k) => "key:" + k.name === name && !k.over);
  const running = [...state.calls.values()].filter((c) => c.caller === name && c.state !== "done").length;
  const row = (label, ...kids) => [h("dt", {}, label), h("dd", {}, ...kids)];
  card.replaceChildren(t("h3", {}, name), chart.node, legend(CLASSES),
    h("dl", { class: "facts" }, ...row("Running now", String(running)), ...(key ? row("Key", h("a", { href: "#/keys" }, key.expires ? "valid until " + dateTime(key.expires) : "valid, without an expiry")) : []),
      ...row("Grants", grants.length ? h("a", { href: "#/grants" }, plural(grants.length, "remembered approval")) : "none"), ...row("Calls", h("a", { href: "#/calls/past?" + new URLSearchParams({ caller: name, range: "7d" }) }, "all of seven days")), ...row("Audit", h("a", { href: "#/audit/find?" + new URLSearchParams({ caller: name }) }, "its records"))),
    h("h4", {}, "Refused, by reason"), past.refusals.length ? h("table", { class: "steps" }, h("tbody", {}, ...past.refusals.slice(0, 12).map((r) => h("tr", {}, h("td", { class: "n" }, r.n.toLocaleString("en")), t("td", {}, r.tool ?? ""), h("td", {}, outcomeOf({ refusal: r.class }), r.rule ? t("small", { class: "dim" }, r.rule) : ""))))) : h("p", { class: "dim" }, "Nothing was refused."),
    h("h4", {}, "Tools"), past.tools.length ? h("table", { class: "steps" }, h("tbody", {}, ...past.tools.slice(0, 12).map((g) => h("tr", {}, h("td", { class: "n" }, g.n.toLocaleString("en")), t("td", {}, g.name))))) : h("p", { class: "dim" }, "No calls."));
  chart.update({ from: past.from, step: past.step, buckets: past.buckets.map((b) => chartCounts(b.classes)) });
}

export const page = {
  id: "callers", label: "Callers", letter: "w", topics: ["keys", "freezes", "grants"],
  draw() { if (!last || now() - last.at > 30000) load(); draw(); }, show,
  key: (pressed) => { if (pressed === "/") { filter.focus(); return true; } if (pressed === "Escape" && open) { location.hash = "#/callers"; return true; } return false; },
};
