// The exact arguments of a request, in several forms of which one is visible.

import { h, t, attr, button, copyButton, hiddenCount, sizeNote, visText, vis } from "./dom.js";
import { compare } from "./diff.js";
import { members, pretty, kind, typeOf } from "./json.js";
import { longText } from "./longtext.js";
import { timeTag } from "./time.js";

const LABELS = { table: "Table", diff: "Changes", pretty: "Indented", raw: "Exact text" };

/**
 * Shows the arguments of `p`. `seen()` tells whether one whole form was on the screen; `onSeen` runs when that changes.
 * `raw` is the exact text, with secrets if they were revealed.
 */
export function argumentsView(p, raw, onSeen) {
  const rows = members(raw);
  const last = p.last ? members(p.last.arguments) : null;
  const forms = {};
  const add = (name, build) => {
    const texts = [];
    const long = (label, text, how) => { const box = longText(label, text, { ...how, onSeen }); texts.push(box); return box.node; };
    forms[name] = { node: h("div", { class: "form" }, build(long)), texts, shown: false };
  };
  add("table", (long) => (rows ? argumentTable(rows, p.schema, long) : long("Arguments", raw)));
  if (rows && last) add("diff", () => diffTable(rows, last, p.last));
  add("pretty", (long) => long("Arguments, indented", pretty(raw)));
  add("raw", (long) => long("Arguments, exact text", raw, { lines: false }));

  const switches = Object.keys(forms).map((m) => button(LABELS[m], { class: "seg", "data-mode": m }, () => show(m)));
  const warnings = warningsOf(raw, rows);
  const node = h("div", { class: "args", "data-arguments": true },
    h("div", { class: "box-head" }, h("span", { class: "label" }, "Arguments"), h("span", { class: "dim" }, sizeNote(raw)),
      h("span", { class: "segs", role: "group", "aria-label": "Form of the arguments" }, ...switches), copyButton(() => raw)),
    warnings.length ? t("p", { class: "warning" }, warnings.join(" ")) : "",
    rows && last ? changeNote(rows, last, p.last) : "",
    ...Object.values(forms).map((form) => form.node));
  function show(m) {
    for (const [name, form] of Object.entries(forms)) attr(form.node, "hidden", name !== m);
    for (const b of switches) attr(b, "aria-pressed", b.dataset.mode === m ? "true" : "false");
    forms[m].shown = true;
    look();
  }
  function look() {
    for (const form of Object.values(forms)) if (!form.node.hidden) form.texts.forEach((text) => text.look());
    onSeen();
  }
  show("table");
  // The changes leave out what is the same, so they alone are not all of the arguments.
  const seen = () => Object.entries(forms).some(([name, form]) => name !== "diff" && form.shown && form.texts.every((text) => text.seen()));
  return { node, look, seen };
}

function warningsOf(raw, rows) {
  const out = [];
  const values = (rows ?? []).map((r) => r.key + (kind(r.raw) === "string" ? JSON.parse(r.raw) : r.raw)).join("");
  const marked = hiddenCount(rows ? values.replace(/[\n\t]/g, "") : raw);
  if (marked) out.push(`${marked} hidden or look-alike part${marked === 1 ? " is" : "s are"} marked below.`);
  const keys = (rows ?? []).map((r) => r.key);
  if (new Set(keys).size < keys.length) out.push("A property occurs more than once; servers differ in which one they use.");
  return out;
}

/** The text of a value: that of a string without its quotes, and anything nested indented. */
export function valueText(raw) {
  const type = kind(raw);
  return type === "string" ? JSON.parse(raw) : type === "object" || type === "array" ? pretty(raw) : raw;
}

function argumentTable(rows, schema, long) {
  if (!rows.length) return h("p", { class: "dim none" }, "No arguments.");
  const props = schema?.properties ?? {};
  return h("table", {}, h("tbody", {}, ...rows.map(({ key, raw }) => {
    const known = Object.hasOwn(props, key) ? props[key] : null;
    const type = kind(raw);
    const text = valueText(raw);
    const isLong = text.length > 200 || text.includes("\n");
    return h("tr", {},
      h("th", { scope: "row" }, t("code", {}, key), h("small", { class: "dim" }, known ? type : type + ", not in the schema")),
      h("td", {},
        isLong ? long("", text) : t("code", { class: "value " + type }, text),
        type === "string" && text === "" ? h("small", { class: "dim" }, "empty text") : "",
        known?.description ? t("small", { class: "dim says", title: "From the tool's schema: " + visText(typeOf(known)) }, known.description, true) : ""));
  })));
}

/** The names of the arguments that differ from those of the last approved call. */
function changedNames(rows, last) {
  const [now, then] = [rows, last].map((all) => new Map(all.map((r) => [r.key, r.raw])));
  return [...new Set([...now.keys(), ...then.keys()])].filter((key) => now.get(key) !== then.get(key));
}

function changeNote(rows, last, info) {
  const names = changedNames(rows, last);
  const about = names.length ? `Differs from the last approved call of this tool in ${names.map(visText).join(", ")}` : "The same arguments as in the last approved call of this tool";
  return h("p", { class: "dim", "data-last-approved": names.length ? "differs" : "same" }, about, ", approved ", timeTag(info.at), t("span", {}, ` by ${info.by}.`));
}

function diffTable(rows, last, info) {
  const [now, then] = [rows, last].map((all) => new Map(all.map((r) => [r.key, r.raw])));
  const names = changedNames(rows, last);
  if (!names.length) return h("p", { class: "dim none" }, "No argument differs.");
  return h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Argument"), h("th", { scope: "col" }, "Last approved"), h("th", { scope: "col" }, "Now"))),
    h("tbody", {}, ...names.map((key) => {
      const [a, b] = [then.get(key), now.get(key)].map((raw) => (raw === undefined ? null : valueText(raw)));
      const [older, newer] = a !== null && b !== null ? compare(a, b) : [a, b].map((text) => (text === null ? null : [{ text, changed: true }]));
      return h("tr", {}, h("th", { scope: "row" }, t("code", {}, key)), h("td", {}, side(older, "del")), h("td", {}, side(newer, "ins")));
    })));
}

/** One side of a difference, with the parts marked that only this side has. */
export function side(runs, mark) {
  if (runs === null) return h("span", { class: "dim" }, "absent");
  const node = h("code", { class: "value" });
  for (const run of runs) {
    if (!run.changed) { node.append(vis(run.text, true)); continue; }
    const part = h(mark, {});
    part.append(vis(run.text, true));
    node.append(part);
  }
  return node;
}
