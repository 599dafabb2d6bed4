// Requests of the same form as one table, with the differences marked: approve or deny those that are selected.

import { now, post } from "./api.js";
import { h, t, put, attr, button, hiddenCount, plural, say, visText } from "./dom.js";
import { members } from "./json.js";
import { valueText } from "./arguments.js";
import { riskTags, typedName, freezesOf } from "./request.js";
import { span } from "./time.js";

/** Longer values, and those with hidden characters, have to be looked at one by one. */
const MAX_CELL_CHARS = 160;
/** Number of decisions that are sent at the same time. */
const PARALLEL = 4;

/** The form of a value: letters, digits and spaces count as one each. A value of another form than most stands out. */
const formOf = (text) => text.replace(/\p{L}+/gu, "a").replace(/\p{N}+/gu, "0").replace(/\s+/g, " ");

/** The values of a column that have another form than at least two thirds of them. */
function outliers(texts) {
  const byForm = Map.groupBy(texts, formOf);
  const [usual, same] = [...byForm].reduce((a, b) => (b[1].length > a[1].length ? b : a));
  return new Set(3 * same.length < 2 * texts.length ? [] : texts.filter((text) => formOf(text) !== usual));
}

/** The view of a group. `requests()` returns its open requests. */
export function groupView(requests, done) {
  const first = requests()[0];
  const marked = new Set();
  let asking = false, drawn = "", rows = [];
  const name = t("h3", {}, `${first.server}.${first.tool}`);
  const note = h("span", { class: "dim" });
  const same = h("p", { class: "dim", "data-same": "" });
  const frozen = h("p", { class: "warning frozen", hidden: true });
  const head = h("tr", {}), body = h("tbody", {});
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const typed = typedName(first.tool, () => busy());
  attr(typed.node, "hidden", !first.must_type);
  const approve = button("", { class: first.must_type ? "destroy" : "primary", "data-act": "approve-marked" }, () => decide("approve"));
  const reason = h("input", { "data-field": "reason", type: "text", maxlength: "500", "aria-label": "Reason for denying, given to the model", placeholder: "Reason, given to the model", autocomplete: "off" });
  const deny = button("", { class: "danger", "data-act": "deny-marked" }, () => decide("deny"));
  const all = h("input", { type: "checkbox", "data-act": "mark-all", "aria-label": "Select all", on: { change: () => { for (const r of rows) if (r.box && !r.box.disabled) mark(r, all.checked); busy(); } } });
  const node = h("article", { class: "card group", tabindex: "-1", "aria-label": visText(`Calls of ${first.server}.${first.tool}`) },
    h("header", {}, h("div", { class: "what" }, name, note)),
    h("div", { class: "tags" }, ...riskTags(first)), frozen, same,
    h("div", { class: "scroll" }, h("table", { class: "same-shape" }, h("thead", {}, head), body)), error,
    h("footer", {}, typed.node, h("div", { class: "yes" }, approve), h("div", { class: "no" }, reason, deny)));

  function mark(row, on) {
    row.box.checked = on;
    if (on) marked.add(row.p.id);
    else marked.delete(row.p.id);
  }
  async function decide(act) {
    const ids = rows.filter((r) => marked.has(r.p.id)).map((r) => r.p.id);
    if (asking || !ids.length || (act === "approve" && first.must_type && !typed.fits())) return;
    asking = true;
    busy();
    const wrong = [];
    const queue = [...ids];
    const work = async () => {
      for (let id; (id = queue.shift()); ) {
        const res = await post("/console/api/" + act, act === "deny" ? { id, reason: reason.value.trim() } : { id });
        if (res.ok) marked.delete(id);
        else wrong.push(res.error);
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, work));
    asking = false;
    put(error, wrong.length ? `${wrong.length} of ${ids.length} were not decided: ${wrong[0]}` : "");
    attr(error, "hidden", !wrong.length);
    say(`${act === "deny" ? "Denied" : "Approved"} ${ids.length - wrong.length} calls`);
    busy();
  }
  function busy() {
    const n = rows.filter((r) => marked.has(r.p.id)).length;
    put(approve, `Approve ${n || "the selected"}`);
    put(deny, `Deny ${n || "the selected"}`);
    approve.disabled = asking || !n || (first.must_type && !typed.fits());
    deny.disabled = asking || !n;
    const free = rows.filter((r) => !r.box.disabled);
    all.checked = free.length > 0 && free.every((r) => r.box.checked);
    all.indeterminate = !all.checked && n > 0;
  }
  function update() {
    const list = requests();
    if (!list.length) { done(); return; }
    const texts = list.flatMap((p) => freezesOf(p).map((f) => f.what));
    put(frozen, texts.length ? `Frozen: ${[...new Set(texts)].join(", ")}. Approved calls are rejected until the freeze is lifted.` : "");
    attr(frozen, "hidden", !texts.length);
    const key = JSON.stringify(list.map((p) => [p.id, p.arguments]));
    if (key !== drawn) { drawn = key; draw(list); }
    tick();
  }
  function draw(list) {
    const tables = list.map((p) => new Map(members(p.arguments).map((m) => [m.key, m.raw])));
    const keys = [...tables[0].keys()];
    const differing = keys.filter((k) => tables.some((table) => table.get(k) !== tables[0].get(k)));
    const equal = keys.filter((k) => !differing.includes(k));
    put(note, plural(list.length, "call") + " of the same form");
    put(same, equal.length ? "The same in all: " + equal.map((k) => `${k}: ${cut(valueText(tables[0].get(k))).text}`).join("; ") : "");
    const callers = new Set(list.map((p) => p.caller)).size > 1;
    head.replaceChildren(h("th", { scope: "col" }, all), ...differing.map((k) => t("th", { scope: "col" }, k)), ...(callers ? [h("th", { scope: "col" }, "Caller")] : []), h("th", { scope: "col" }, "Left"), h("th", { scope: "col" }, h("span", { class: "sr" }, "Open")));
    for (const id of [...marked]) if (!list.some((p) => p.id === id)) marked.delete(id);
    const odd = new Map(differing.map((k) => [k, outliers(tables.map((table) => valueText(table.get(k))))]));
    rows = list.map((p, i) => makeRow(p, keys, differing, tables[i], callers, odd));
    body.replaceChildren(...rows.map((r) => r.node));
    busy();
  }
  /** The part of a value that fits into a cell; `whole` if that is all of it and nothing in it is hidden. */
  function cut(text) {
    const chars = [...text];
    const fits = chars.length <= MAX_CELL_CHARS;
    return { text: fits ? text : chars.slice(0, MAX_CELL_CHARS - 20).join("") + ` \u2026 and ${chars.length - MAX_CELL_CHARS + 20} more characters`, whole: fits && hiddenCount(text) === 0 };
  }
  function makeRow(p, keys, differing, table, callers, odd) {
    const cells = new Map(keys.map((k) => [k, cut(valueText(table.get(k)))]));
    const whole = [...cells.values()].every((c) => c.whole) && p.masked === 0 && !p.passkey;
    const box = h("input", { type: "checkbox", "data-mark": p.id, disabled: !whole, "aria-label": "Select " + visText(differing.map((k) => cells.get(k).text).join(", ")), on: { change: () => { mark(row, box.checked); busy(); } } });
    box.checked = whole && marked.has(p.id);
    const time = h("span", { class: "left" });
    const link = h("a", { href: "#/inbox/" + encodeURIComponent(p.id), "data-act": "open" }, whole ? "Open" : "Open to decide");
    const node = h("tr", { "data-row": p.id }, h("td", {}, box), ...differing.map((k) => { const cell = h("ins", {}); put(cell, cells.get(k).text); return h("td", {}, cell, odd.get(k).has(valueText(table.get(k))) ? h("span", { class: "tag warn", "data-odd": "" }, "unlike the others") : ""); }),
      ...(callers ? [t("td", {}, p.caller)] : []), h("td", {}, time), h("td", {}, link));
    const row = { p, node, box, time };
    return row;
  }
  function tick() {
    for (const r of rows) put(r.time, span(Math.max(0, Math.ceil((r.p.expires - now()) / 1000) * 1000)));
  }
  update();
  return { node, update, tick, reason, close() {}, approve: () => { if (first.must_type && !typed.fits()) typed.field.focus(); else decide("approve"); } };
}
