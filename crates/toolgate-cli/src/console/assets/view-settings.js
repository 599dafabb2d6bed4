// Settings: the config file with masked secrets, its differences before they count, and earlier versions.

import { state, post, on } from "./api.js";
import { h, t, attr, button, plural, pageRoot, textBox, errorBox } from "./dom.js";
import { timeTag } from "./time.js";
import { configChange, versionList } from "./config-change.js";
import { loadSessions, sessions } from "./sessions.js";

const root = pageRoot("settings", "Settings");
const [error, tell] = errorBox();
const facts = h("dl", { class: "facts" });
const notes = h("ul", { class: "notes" });
const box = h("div", {});
const change = button("Edit\u2026", { class: "primary", "data-act": "edit-config" }, () => edit());
const reload = button("Read the file again", { "data-act": "reload" }, async () => {
  reload.disabled = true;
  const res = await post("/console/api/reload", {});
  reload.disabled = false;
  tell(res.error);
  load();
});
const undo = h("div", {});
root.append(h("div", { class: "stack" }, error, h("section", { class: "panel-box" }, h("h3", {}, "Config"), facts, notes, h("div", { class: "row" }, change, reload)), box, h("section", { class: "panel-box" }, h("h3", {}, "Versions that were in force"), undo), sessions));

let config = null, editing = false;

async function load() {
  const res = await post("/console/api/config/get", {});
  tell(res.error);
  if (!res.ok) return;
  config = { ...JSON.parse(res.text), time: timeTag };
  draw();
  loadSessions();
}

function draw() {
  if (editing) return;
  const p = config.policy;
  const row = (label, ...kids) => [h("dt", {}, label), h("dd", {}, ...kids)];
  facts.replaceChildren(
    ...row("File", t("code", {}, config.file ?? "none")), ...row("In force since", timeTag(p.at), t("span", { class: "dim" }, ` read by ${p.by}`)), ...row("Digest", t("code", {}, String(p.hash).slice(0, 12))),
    ...row("Data", t("code", {}, state.data ?? "")), ...row("Endpoint", t("code", {}, state.endpoint ?? "")),
    ...(p.refused ? row("Rejected", t("span", { class: "error" }, p.refused)) : config.disk_differs ? row("File", "differs from the config in force") : []),
    ...row("May change here", config.why_not ? t("span", {}, config.why_not) : config.may_change_all ? h("span", { class: "tag bad" }, "everything (danger_edit_config)") : t("span", {}, config.harmless.map((k) => `"${k}"`).join(", "))));
  notes.replaceChildren(...(p.notes ?? []).map((n) => t("li", {}, n)));
  attr(change, "hidden", Boolean(config.why_not));
  box.replaceChildren(...(config.text !== undefined ? [textBox("The file" + (config.masked ? `, ${plural(config.masked, "secret")} masked` : ""), config.text)] : []));
  undo.replaceChildren(config.versions.length ? versionList(config, load) : h("p", { class: "dim" }, "No version is kept yet."));
}

function edit() {
  editing = true;
  attr(change, "hidden", true);
  const view = configChange({ config, label: "Config", text: config.text, whole: (text) => text, done: (changed) => { editing = false; if (changed) load(); else draw(); } });
  box.replaceChildren(config.masked ? h("p", { class: "dim" }, `${plural(config.masked, "secret is", "secrets are")} written as "[secret N]" and stay as they are in the file.`) : "", view.node);
  view.editor.area.focus();
}

on("page", () => { config = null; });
export const page = { id: "settings", label: "Settings", letter: "e", topics: ["policy"], draw() { if (state.ready && !editing) load(); } };
