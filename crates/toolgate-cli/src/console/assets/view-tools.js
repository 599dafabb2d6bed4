// Tools, resources and prompts as callers see them: descriptions, rule decisions, and a form to try a
// tool.

import { state, postText } from "./api.js";
import { h, t, put, attr, keyed, button, textBox, visText, pageRoot } from "./dom.js";
import { span } from "./time.js";
import { members, sample, typeOf, valid } from "./json.js";
import { resultView } from "./result.js";
import { riskTags } from "./request.js";

const root = pageRoot("tools", "Tools");
const filter = h("input", { type: "search", id: "tools-filter", placeholder: "Filter: server, name, kind, description, decision", "aria-label": "Filter the tools, resources and prompts", on: { input: renderTools } });
const count = h("span", { class: "dim", "aria-live": "polite" });
const list = h("div", { class: "tools" });
root.append(h("div", { class: "tools-bar" }, filter, count), list);

const idOf = (tool) => `${tool.server}.${tool.name}`;
const isTool = (x) => (x.kind ?? "tool") === "tool";
const pinOf = (tool) => `${tool.kind} ${idOf(tool)}`;
const sync = keyed(list, idOf, makeTool);

function renderTools() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const hay = (x) => `${idOf(x)} ${x.kind} ${x.wire} ${x.title ?? ""} ${x.description} ${x.verdict} ${x.rule} ${x.withheld ? "withheld" : ""} ${x.flags?.length ? "flagged" : ""} ${(x.notes ?? []).map((n) => n.action).join(" ")}`.toLowerCase();
  const offered = [state.tools, state.resources, state.prompts].flatMap((part) => [...part].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1)));
  // A resource and a template may have the same name; the list shows each name once.
  const all = [...new Map(offered.map((x) => [idOf(x), x])).values()];
  const seen = all.filter((x) => words.every((w) => hay(x).includes(w)));
  sync(seen);
  const parts = [[state.tools, "tool"], [state.resources, "resource"], [state.prompts, "prompt"]].filter(([part]) => part.length);
  const whole = parts.map(([part, word]) => `${part.length} ${word}${part.length === 1 ? "" : "s"}`).join(", ") || "0 tools";
  put(count, seen.length === all.length ? whole : `${seen.length} of ${all.length}`);
}

function toolsKey(key) {
  if (key !== "/") return false;
  filter.focus();
  filter.select();
  return true;
}

function makeTool(first) {
  let tool = first, drawn = "", form = null;
  const verdict = h("span", { class: "verdict" });
  const title = h("span", { class: "dim" });
  const held = h("span", { class: "tag bad", hidden: true }, "withheld");
  const marks = h("span", {});
  const tags = h("span", { class: "tags" });
  const what = tool.kind && tool.kind !== "tool" ? h("span", { class: "tag" }, tool.kind) : null;
  const detail = h("div", { class: "detail" });
  const tryBox = h("div", {});
  const body = h("div", { class: "tool-body" }, detail, tryBox);
  const node = h("details", { class: "tool", "data-tool": idOf(tool), on: { toggle: () => fill() } },
    h("summary", {}, verdict, h("span", { class: "name" }, t("b", {}, idOf(tool)), title), held, marks, ...(what ? [what] : []), tags), body);
  function fill() {
    if (!node.open || detail.dataset.key === drawn) return;
    detail.dataset.key = drawn;
    detail.replaceChildren(...describe(tool));
    if (isTool(tool)) form ??= tryForm(tool, tryBox);
  }
  function update(next) {
    const key = JSON.stringify(next);
    if (key === drawn) return;
    tool = next;
    drawn = key;
    put(verdict, tool.verdict);
    verdict.className = "verdict " + tool.verdict;
    put(title, tool.title ?? "");
    attr(held, "hidden", !tool.withheld);
    const actions = [...new Set((tool.notes ?? []).map((note) => note.action))];
    const flagged = tool.flags?.length ? [h("span", { class: "tag warn" }, "flagged")] : [];
    marks.replaceChildren(...flagged, ...actions.map((action) => h("span", { class: "tag" }, action)));
    tags.replaceChildren(...(isTool(tool) ? riskTags(tool.hints, tool.trusted).slice(0, -1) : []));
    fill();
  }
  return { node, update };
}

function describe(tool) {
  const row = (label, node) => [h("dt", {}, label), h("dd", {}, node)];
  const about = isTool(tool) ? describeTool(tool) : tool.kind === "prompt" ? [inputs(tool.input_schema)] : [];
  return [
    tool.withheld ? h("p", { class: "warning" }, "Withheld from callers: ", t("span", {}, tool.withheld), ...(state.pins.some((pin) => pinOf(tool) === `${pin.kind} ${pin.name}`) ? [" ", h("a", { href: "#/changes/" + encodeURIComponent(pinOf(tool)) }, "Show the differences")] : [])) : null,
    ...(tool.flags ?? []).map((flag) => h("p", { class: "warning" }, "Flagged: ", t("span", {}, flag))),
    ...(tool.notes ?? []).map((note) => h("p", { class: "dim" }, `${note.action}: `, t("span", {}, note.reason))),
    t("div", { class: "prose" }, tool.description || "The server provides no description.", true),
    h("dl", { class: "facts" },
      ...row("Rule", t("span", {}, `${tool.verdict}: ${tool.rule}`)),
      ...row(tool.kind === "resource template" ? "Template" : tool.kind === "resource" ? "URI" : "Client name", t("code", {}, tool.wire)),
      ...(tool.mime ? row("Type", t("code", {}, tool.mime)) : []),
      ...(isTool(tool) ? row("Hints", h("span", { class: "tags" }, ...riskTags(tool.hints, tool.trusted))) : [])),
    ...about,
  ].filter(Boolean);
}

function describeTool(tool) {
  return [
    inputs(tool.input_schema),
    h("details", {}, h("summary", {}, "Input schema"), textBox("Input schema", JSON.stringify(tool.input_schema, null, 2))),
    tool.output_schema ? h("details", {}, h("summary", {}, "Output schema"), textBox("Output schema", JSON.stringify(tool.output_schema, null, 2))) : null,
  ];
}

function inputs(schema) {
  const props = Object.entries(schema?.properties ?? {});
  if (!props.length) return h("p", { class: "dim" }, "The schema declares no arguments.");
  const required = new Set(schema.required ?? []);
  return h("table", { class: "inputs" }, h("tbody", {}, ...props.map(([name, p]) => h("tr", {},
    h("th", { scope: "row" }, t("code", {}, name), h("small", { class: "dim" }, required.has(name) ? "required" : "optional")),
    h("td", {}, t("code", { class: "dim" }, typeOf(p)), p?.description ? t("small", { class: "says" }, p.description, true) : null)))));
}

function tryForm(tool, box) {
  const name = idOf(tool);
  const text = h("textarea", { rows: "6", spellcheck: "false", "aria-label": "Arguments as JSON", autocomplete: "off", value: sample(tool.input_schema) });
  const out = h("div", { class: "result", "aria-live": "polite" });
  let stop = null;
  const go = button("Call", { class: "primary", "data-act": "call" }, run);
  const cancel = button("Cancel", { hidden: true, "data-act": "cancel" }, () => stop?.abort());
  async function run() {
    if (stop) return;
    if (!valid(text.value) || members(text.value) === null) { out.replaceChildren(h("p", { class: "error" }, "The arguments are not a JSON object.")); return; }
    stop = new AbortController();
    attr(cancel, "hidden", false);
    go.disabled = true;
    out.replaceChildren(h("p", { class: "dim busy" }, "Calling. If a rule requires an approval, the call waits in the ", h("a", { href: "#/inbox" }, "inbox"), "."));
    const began = performance.now();
    try {
      // The text is sent as written, so that big numbers keep their digits.
      const res = await postText("/console/api/call", `{"tool":${JSON.stringify(name)},"arguments":${text.value}}`, stop.signal);
      out.replaceChildren(...result(res, performance.now() - began));
    } catch {
      out.replaceChildren(h("p", { class: "dim" }, "Cancelled."));
    }
    stop = null;
    attr(cancel, "hidden", true);
    go.disabled = false;
  }
  text.addEventListener("keydown", (e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) run(); });
  box.replaceChildren(h("div", { class: "try" }, h("h3", {}, "Try it"), h("p", { class: "dim" }, "The call goes through the same rules and into the same audit log as any other."), text, h("div", { class: "row" }, go, cancel), out));
  return box;
}

function result(res, ms) {
  if (res.error) return [t("p", { class: "error" }, res.error)];
  const bad = members(res.text)?.find((p) => p.key === "isError")?.raw === "true";
  return [h("p", {}, h("span", { class: "state " + (bad ? "bad" : "calm") }, bad ? "tool error" : "ok"), " ", h("span", { class: "took" }, span(ms))), ...resultView(res.text)];
}

export const page = {
  id: "tools", label: "Tools", letter: "t", topics: ["tools", "resources", "prompts", "pins"],
  draw: renderTools, key: toolsKey, count: () => state.tools.length || "",
};
