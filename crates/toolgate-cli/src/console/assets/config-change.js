// A change of the config: checked while it is written, shown as a diff with its effect on past calls, then put in force.

import { post } from "./api.js";
import { h, t, put, attr, button, plural, tableHead, visText, errorBox } from "./dom.js";
import { diffView, lineEditor } from "./editor.js";

const DAYS = 7;
const LEVEL = { allow: "calm", ask: "warn", deny: "bad" };

/**
 * An editor with the steps to a changed config. `whole(part)` gives the text of the whole config for the edited part, and
 * `line(n)` the line of the part for a line of the whole. `done()` runs when the change is in force.
 */
export function configChange({ config, label, text, first = 1, whole, line = (n) => n, done }) {
  const effect = h("div", { class: "effect", "data-effect": "" });
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const preview = button("Show what changes", { class: "primary", "data-act": "preview" }, () => run(show));
  const save = button("Put in force", { class: "primary", "data-act": "save", hidden: true }, () => run(put_in_force));
  const cancel = button("Cancel", { "data-act": "cancel-edit" }, () => done(false));
  let shown = null;
  const editor = lineEditor({ label, text, first, onChange: (value, wrong) => {
    if (value !== shown) { attr(save, "hidden", true); attr(preview, "hidden", false); effect.replaceChildren(); shown = null; }
    preview.disabled = Boolean(wrong);
  }, check: async (value) => {
    const res = await post("/console/api/config/check", { text: whole(value) });
    if (!res.ok) return { line: null, why: res.error };
    const told = JSON.parse(res.text);
    return told.ok ? null : { line: told.line === null ? null : line(told.line), why: told.why };
  } });
  const node = h("div", { class: "change-config" }, editor.node, error, h("div", { class: "row" }, preview, save, cancel), effect);

  async function run(work) {
    for (const b of [preview, save]) b.disabled = true;
    const wrong = await work();
    for (const b of [preview, save]) b.disabled = false;
    put(error, wrong ?? "");
    attr(error, "hidden", !wrong);
  }
  async function show() {
    const value = editor.value;
    effect.replaceChildren(h("p", { class: "dim", role: "status" }, "Judging the calls of the last seven days under this config."));
    const res = await post("/console/api/config/preview", { text: whole(value), days: DAYS });
    if (!res.ok) { effect.replaceChildren(); return res.error; }
    shown = value;
    effect.replaceChildren(...effectView(JSON.parse(res.text)));
    attr(save, "hidden", false);
    attr(preview, "hidden", true);
    save.focus();
    return null;
  }
  async function put_in_force() {
    const res = await post("/console/api/config/save", { text: whole(editor.value), digest: config.digest });
    if (!res.ok) return res.error;
    done(true);
    return null;
  }
  return { node, editor };
}

/** The diff, and what the calls of the past would have become. */
export function effectView(p) {
  const changed = p.changes.reduce((sum, c) => sum + c.n, 0) + p.more;
  return [
    p.diff ? diffView(p.diff) : h("p", { class: "dim" }, "Nothing differs."),
    h("p", { "data-effect-sum": "" }, p.calls === 0 ? `No call was recorded in the last ${p.days} days.` : `Of ${plural(p.calls, "call")} in the last ${p.days} days, ${changed ? plural(changed, "would have", "would have") + " been decided differently" : "none would have been decided differently"}${p.unknown ? `; ${p.unknown} cannot be judged, because the log has only a digest of what a rule reads` : ""}.`),
    ...(p.changes.length ? [h("div", { class: "scroll" }, h("table", { "data-changes": "" }, tableHead(["Calls"], "Tool", "Caller", "Then", "Now", "Why"),
      h("tbody", {}, ...p.changes.map((c) => h("tr", {}, h("td", { class: "n" }, c.n.toLocaleString("en")), h("td", {}, t("b", {}, c.tool)), t("td", {}, c.caller), h("td", {}, h("span", { class: "tag " + (LEVEL[c.before] ?? "") }, visText(c.before))), h("td", {}, h("span", { class: "tag " + (LEVEL[c.after] ?? "") }, visText(c.after))), t("td", {}, c.why))))))] : []),
    p.more ? h("p", { class: "dim" }, `and ${p.more} more.`) : "",
  ].filter(Boolean);
}

/** What a version changed: the number of lines, and the first of them. */
const changeText = ({ added, removed, first }) => [added && `${plural(added, "line")} added`, removed && `${plural(removed, "line")} removed`].filter(Boolean).join(", ") + ` (${first})`;

/** Earlier versions of the config, each of which can be put back after its differences are shown. */
export function versionList(config, done) {
  const list = h("ul", { class: "versions" });
  list.append(...config.versions.map((v, i) => {
    const box = h("div", {}), [error, tell] = errorBox();
    const show = button(i === 0 ? "Compare with the file" : "Show the differences", { class: "small", "data-act": "show-version" }, async () => {
      show.disabled = true;
      const res = await post("/console/api/config/version", { id: v.id });
      show.disabled = false;
      tell(res.error);
      if (!res.ok) return;
      const found = JSON.parse(res.text);
      const restore = button("Put this one back", { class: "danger small", "data-act": "restore", disabled: Boolean(found.why_not) || !found.diff }, async () => {
        restore.disabled = true;
        const saved = await post("/console/api/config/save", { version: v.id, digest: found.digest });
        restore.disabled = false;
        tell(saved.error);
        if (saved.ok) done(true);
      });
      box.replaceChildren(found.diff ? diffView(found.diff) : h("p", { class: "dim" }, "The file has exactly this text."), found.why_not ? t("p", { class: "dim" }, found.why_not) : "", restore);
    });
    return h("li", { "data-version": v.id }, h("span", {}, config.time(v.at), t("span", { class: "dim" }, ` by ${v.by}${v.change ? `: ${changeText(v.change)}` : ""}`)), " ", show, error, box);
  }));
  return list;
}
