// Rules: the list in force with the calls that each decides, and an editor that shows what a change does before it counts.

import { state, post, on } from "./api.js";
import { h, t, put, attr, button, plural, pageRoot } from "./dom.js";
import { timeTag } from "./time.js";
import { configChange, versionList } from "./config-change.js";

const root = pageRoot("rules", "Rules");
const note = h("p", { class: "dim" });
const error = h("p", { class: "error", role: "alert", hidden: true });
const body = h("div", { class: "rule-list" });
const addBox = h("div", {});
const add = button("Add a rule\u2026", { class: "primary", "data-act": "add-rule" }, () => edit(null));
const count = button("Count hits of the last 7 days", { "data-act": "hits" }, () => loadHits());
const undoBox = h("details", { class: "fold", "data-undo": "" }, h("summary", {}, "Undo: earlier versions of the config"));
root.append(note, error, h("div", { class: "tools-bar" }, add, count), addBox, body, undoBox);

const TEMPLATE = '[[rule]]\ntools = ["server.tool"]\naction = "ask"\n';
let config = null, hits = null, editing = false, wanted = null;

async function load() {
  const res = await post("/console/api/config/get", {});
  put(error, res.error ?? "");
  attr(error, "hidden", res.ok);
  if (!res.ok) return;
  config = { ...JSON.parse(res.text), time: timeTag };
  draw();
}

/** Counts the calls of the last days by the rule that decides them: those of a preview of the config as it is. */
async function loadHits() {
  if (!config?.text) return;
  count.disabled = true;
  const res = await post("/console/api/config/preview", { text: config.text, days: 7 });
  count.disabled = false;
  put(error, res.error ?? "");
  attr(error, "hidden", res.ok);
  if (!res.ok) return;
  hits = JSON.parse(res.text);
  draw();
}

/** The lines of each rule in the text: from its header, with the comments above, to the next section. */
function sections(text) {
  const lines = text.split("\n");
  const out = [];
  for (let i = 0; i < lines.length; i++) {
    if (!/^\s*\[\[\s*rule\s*\]\]/.test(lines[i])) continue;
    let start = i, end = i + 1;
    while (start > 0 && /^\s*#/.test(lines[start - 1])) start--;
    while (end < lines.length && !/^\s*\[/.test(lines[end])) end++;
    // Comments and empty lines before the next section belong to it.
    while (end > i + 1 && /^\s*(#.*)?$/.test(lines[end - 1])) end--;
    out.push({ header: i + 1, start, end, text: lines.slice(start, end).join("\n") });
  }
  return { lines, out };
}

function draw() {
  if (editing) return;
  const why = config.why_not;
  put(note, why ? `The rules cannot be changed here: ${why}.` : `Of all rules that match a call, the strictest decides. Without a matching rule, a tool that a trusted server marks as read-only is allowed, and every other call needs an approval. The file is ${config.file.split(/[\\/]/).at(-1)}.`);
  attr(add, "hidden", Boolean(why));
  attr(count, "hidden", Boolean(why));
  body.replaceChildren(...(config.rules.length ? config.rules.map(ruleCard) : [h("div", { class: "empty" }, h("h3", {}, "No rules"), h("p", {}, "A rule allows, asks for or denies calls of tools by their names, callers and arguments."))]));
  undoBox.replaceChildren(undoBox.firstChild, config.versions.length ? versionList(config, finished) : h("p", { class: "dim" }, "No earlier version is kept yet."));
  if (wanted && !why) { const rule = wanted; wanted = null; edit(null, rule); }
}

/** Calls that a rule decides, by its number. */
function hitsOf(i) {
  if (!hits) return null;
  const label = `rule ${i + 1} (`;
  return Object.entries(hits.hits).reduce((sum, [why, n]) => sum + (why.startsWith(label) ? n : 0), 0);
}

function ruleCard(rule, i) {
  const n = hitsOf(i);
  const level = { allow: "calm", ask: "warn", deny: "bad" }[rule.action];
  const box = h("div", {});
  const change = button("Edit\u2026", { class: "small", "data-act": "edit-rule" }, () => edit({ rule, i, box }));
  const remove = button("Delete\u2026", { class: "danger small", "data-act": "delete-rule" }, () => edit({ rule, i, box, remove: true }));
  attr(change, "hidden", Boolean(config.why_not));
  attr(remove, "hidden", Boolean(config.why_not));
  const words = (all) => all.join(", ");
  return h("article", { class: "rule", "data-rule": i + 1 },
    h("header", {}, h("span", { class: "dim" }, `${i + 1}`), h("span", { class: "verdict " + rule.action }, rule.action), t("b", {}, words(rule.tools)),
      rule.except.length ? t("span", { class: "dim" }, "except " + words(rule.except)) : "", rule.callers.length ? t("span", {}, "for " + words(rule.callers)) : "",
      rule.rate ? t("span", { class: "tag" }, rule.rate) : "", rule.approvals ? t("span", { class: "tag" }, (rule.approvals > 1 ? `${rule.approvals} approvals` : "1 approval") + (rule.approval_groups?.length ? " of " + rule.approval_groups.map((groups) => groups.join(" or ")).join(" and ") : "")) : "",
      h("span", { class: "right" }, n === null ? "" : h("span", { class: "dim", "data-hits": n }, plural(n, "hit")), h("span", { class: "dim" }, `line ${rule.line}`), change, remove)),
    rule.when ? t("code", { class: "when" }, rule.when) : "", box);
}

/** Opens the editor for one rule, to delete it, or for a new one. */
function edit(which, text = TEMPLATE) {
  const { lines, out } = sections(config.text);
  const section = which && out.find((s) => s.header === which.rule.line);
  if (which && !section) { put(error, "The rule is written in a form that this page cannot edit; use the page Settings or an editor."); attr(error, "hidden", false); return; }
  editing = true;
  const before = section ? lines.slice(0, section.start) : null, after = section ? lines.slice(section.end) : null;
  const end = config.text.endsWith("\n") || config.text === "" ? "" : "\n";
  const whole = (part) => (section ? [...before, ...(part === "" ? [] : [part]), ...after].join("\n") : `${config.text}${end}\n${part}`);
  const first = section ? section.start + 1 : lines.length + (end ? 1 : 0) + 1;
  const box = which ? which.box : addBox;
  const view = configChange({ config, label: "Rule", text: which ? (which.remove ? "" : section.text) : text, first, whole, line: (n) => n, done: finished });
  box.replaceChildren(h("div", { class: "rule-edit" }, which?.remove ? h("p", {}, "The rule is removed:") : "", view.node));
  for (const b of root.querySelectorAll("[data-act=edit-rule], [data-act=delete-rule], [data-act=add-rule]")) b.disabled = true;
  if (which?.remove) attr(view.editor.node, "hidden", true);
  view.editor.run();
  view.editor.area.focus();
}

function finished(changed) {
  editing = false;
  addBox.replaceChildren();
  add.disabled = false;
  if (changed) { hits = null; load(); } else draw();
}

on("page", () => { config = null; hits = null; });
export const page = {
  id: "rules", label: "Rules", letter: "l", topics: ["policy"],
  draw() { if (state.ready && !editing) load(); },
  /** `add?rule=…` opens the editor with a proposed rule. */
  show(rest) {
    if (!rest?.startsWith("add?")) return;
    wanted = new URLSearchParams(rest.slice(4)).get("rule");
    if (config) draw();
  },
};
