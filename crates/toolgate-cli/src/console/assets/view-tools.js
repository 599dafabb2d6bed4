// Tools, resources and prompts as callers see them: a list of any length, and one of them with a form to try it.

import { state, post, postText } from "./api.js";
import { h, t, put, attr, button, textBox, plural, visText, pageRoot } from "./dom.js";
import { argumentForm } from "./forms.js";
import { members, typeOf } from "./json.js";
import { resultView } from "./result.js";
import { riskTags } from "./request.js";
import { span } from "./time.js";
import { virtualList } from "./virtual.js";

const root = pageRoot("tools", "Tools");
const filter = h("input", { type: "search", id: "tools-filter", placeholder: "Filter: server, name, kind, description, decision", "aria-label": "Filter the tools, resources and prompts", autocomplete: "off", on: { input: () => draw() } });
const servers = h("select", { "aria-label": "Server", on: { change: () => draw() } }, h("option", { value: "" }, "all servers"));
const count = h("span", { class: "dim", role: "status" });
const error = h("p", { class: "error", role: "alert", hidden: true });
const list = virtualList({ label: "Tools, resources and prompts", rowHeight: 44, key: keyOf, make: makeRow, className: "tools" });
const none = h("div", { class: "empty", hidden: true });
const detail = h("aside", { class: "detail-pane", tabindex: "-1", "aria-label": "The tool", hidden: true });
const panes = h("div", { class: "panes" }, h("div", { class: "list-pane" }, none, list.node), detail);
root.append(h("div", { class: "tools-bar" }, filter, servers, count), error, panes);

let items = [], loaded = null, loading = false, open = null, shown = [], wanted = null;

function keyOf(x) { return `${x.kind} ${x.server}.${x.name}`; }
const nameOf = (x) => `${x.server}.${x.name}`;
const isTool = (x) => x.kind === "tool";

async function load() {
  if (loading) return;
  loading = true;
  const serial = state.items?.serial;
  const res = await post("/console/api/items", {});
  loading = false;
  put(error, res.error ?? "");
  attr(error, "hidden", res.ok);
  if (!res.ok) return;
  loaded = serial;
  // A resource and a template may have the same name; the list shows each name once.
  items = [...new Map(JSON.parse(res.text).map((x) => [keyOf(x), x])).values()].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  for (const x of items) x.hay = `${nameOf(x)} ${x.kind} ${x.wire} ${x.title ?? ""} ${x.description} ${x.verdict} ${x.rule} ${x.withheld ? "withheld" : ""} ${x.flags?.length ? "flagged" : ""} ${(x.actions ?? []).join(" ")}`.toLowerCase();
  const names = [...new Set(items.map((x) => x.server))];
  const value = servers.value;
  servers.replaceChildren(h("option", { value: "" }, "all servers"), ...names.map((s) => t("option", { value: s }, s)));
  servers.value = names.includes(value) ? value : "";
  draw();
  if (state.items?.serial !== loaded) load();
}

function draw() {
  if (loaded !== state.items?.serial && !loading) load();
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  shown = items.filter((x) => (!servers.value || x.server === servers.value) && words.every((w) => x.hay.includes(w)));
  list.set(shown);
  attr(list.node, "hidden", !shown.length);
  attr(none, "hidden", shown.length > 0 || loading);
  put(none, items.length ? "Nothing matches the filter." : "The servers offer no tools, resources or prompts yet.");
  const parts = [["tools", "tool"], ["resources", "resource"], ["prompts", "prompt"]].map(([key, word]) => [state.items?.[key] ?? 0, word]).filter(([n]) => n);
  put(count, shown.length === items.length ? parts.map(([n, word]) => plural(n, word)).join(", ") || "0 tools" : `${shown.length} of ${items.length}`);
  if (wanted) { const id = wanted; wanted = null; show(id); }
}

function makeRow(first) {
  let x = first;
  const verdict = h("span", { class: "verdict" }), name = h("button", { type: "button", class: "open", on: { click: () => { location.hash = "#/tools/" + encodeURIComponent(keyOf(x)); } } });
  const about = h("span", { class: "dim about" }), tags = h("span", { class: "tags" });
  const node = h("div", { class: "tool" }, verdict, h("span", { class: "name" }, name, about), tags);
  return { node, button: name, update(next) {
    x = next;
    attr(node, "data-tool", nameOf(x));
    node.classList.toggle("current", open === keyOf(x));
    put(verdict, x.verdict);
    verdict.className = "verdict " + x.verdict;
    put(name, nameOf(x));
    put(about, x.title && x.title !== x.name ? `${x.title}: ${x.description}` : x.description);
    const tag = (text, level = "") => h("span", { class: "tag " + level }, text);
    tags.replaceChildren(...(x.withheld ? [tag("withheld", "bad")] : []), ...(x.flags?.length ? [tag(`${x.flags.length} flagged`, "warn")] : []), ...(x.actions ?? []).map((a) => tag(a)), ...(isTool(x) ? (x.hints.destructive && x.claimed?.includes("destructive") ? [tag("destructive", "bad")] : x.hints.readOnly === true ? [tag("read-only", "calm")] : []) : [tag(x.kind)]));
  } };
}

// One of them --------------------------------------------------------------

async function show(id) {
  if (id && !items.length) { wanted = id; return; }
  open = id;
  for (const part of list.parts()) part.node.classList.toggle("current", part.item && keyOf(part.item) === open);
  attr(detail, "hidden", !id);
  panes.classList.toggle("with-detail", Boolean(id));
  if (!id) return;
  const card = h("article", { class: "card tool-card", "data-tool-detail": id, "aria-label": visText(id) }, h("p", { class: "dim busy" }, "Loading."));
  detail.replaceChildren(h("a", { class: "close", href: "#/tools" }, "Close"), card);
  detail.scrollTop = 0;
  detail.focus({ preventScroll: true });
  const short = items.find((x) => keyOf(x) === id);
  if (!short) { card.replaceChildren(t("p", { class: "dim" }, `${id} is not offered any more.`)); return; }
  const res = await post("/console/api/items/get", { kind: short.kind, server: short.server, name: short.name });
  if (open !== id) return;
  if (!res.ok) { card.replaceChildren(t("p", { class: "error", role: "alert" }, res.error)); return; }
  const x = JSON.parse(res.text);
  card.replaceChildren(...describe(x), ...(isTool(x) ? [tryForm(x)] : []));
}

function describe(x) {
  const row = (label, node) => [h("dt", {}, label), h("dd", {}, node)];
  const pin = `${x.kind} ${nameOf(x)}`;
  return [
    t("h3", {}, nameOf(x)), x.title && x.title !== x.name ? t("p", { class: "dim" }, x.title) : "",
    x.withheld ? h("p", { class: "warning" }, "Withheld from callers: ", t("span", {}, x.withheld), ...(x.pinned_open ? [" ", h("a", { href: "#/changes/" + encodeURIComponent(pin) }, "Show the differences")] : [])) : "",
    ...(x.flags ?? []).map((flag) => h("p", { class: "warning" }, "Flagged: ", t("span", {}, flag))),
    ...(x.steering?.length ? [h("ul", { class: "steering", "data-steering": "" }, ...x.steering.map((f) => h("li", {}, h("span", { class: "tag " + (f.weight >= 8 ? "bad" : "warn") }, f.kind), " ", t("span", {}, f.text), t("small", { class: "dim" }, f.place))))] : []),
    ...(x.notes ?? []).map((note) => h("p", { class: "dim" }, `${note.action}: `, t("span", {}, note.reason))),
    t("div", { class: "prose", tabindex: "0", role: "group", "aria-label": "Description" }, x.description || "The server provides no description.", true),
    h("dl", { class: "facts" },
      ...row("Rule", t("span", {}, `${x.verdict}: ${x.rule}`)),
      ...row(x.kind === "resource template" ? "Template" : x.kind === "resource" ? "URI" : "Client name", t("code", {}, x.wire)),
      ...(x.mime ? row("Type", t("code", {}, x.mime)) : []), ...(x.pin ? row("Pin", t("span", {}, x.pin)) : []),
      ...(isTool(x) ? row("Hints", h("span", { class: "tags" }, ...riskTags(x))) : []),
      ...row("Calls", h("a", { href: "#/calls/past?" + new URLSearchParams({ tool: nameOf(x), range: "7d" }) }, "those of seven days"))),
    ...(isTool(x) || x.kind === "prompt" ? [inputs(x.input_schema)] : []),
    ...(isTool(x) ? [h("details", { class: "fold" }, h("summary", {}, "Input schema"), textBox("Input schema", JSON.stringify(x.input_schema, null, 2))), x.output_schema ? h("details", { class: "fold" }, h("summary", {}, "Output schema"), textBox("Output schema", JSON.stringify(x.output_schema, null, 2))) : ""] : []),
  ].filter((part) => part !== "");
}

function inputs(schema) {
  const props = Object.entries(schema?.properties ?? {});
  if (!props.length) return h("p", { class: "dim" }, "The schema declares no arguments.");
  const required = new Set(schema.required ?? []);
  return h("table", { class: "inputs" }, h("tbody", {}, ...props.map(([name, p]) => h("tr", {},
    h("th", { scope: "row" }, t("code", {}, name), h("small", { class: "dim" }, required.has(name) ? "required" : "optional")),
    h("td", {}, t("code", { class: "dim" }, typeOf(p)), p?.description ? t("small", { class: "says" }, p.description, true) : "")))));
}

function tryForm(x) {
  const form = argumentForm(x.input_schema);
  const out = h("div", { class: "result", "aria-live": "polite" });
  let stop = null;
  const go = button("Call", { class: "primary", "data-act": "call" }, run);
  const cancel = button("Cancel", { hidden: true, "data-act": "cancel" }, () => stop?.abort());
  async function run() {
    if (stop) return;
    let text;
    try { text = form.value(); } catch { return; }
    stop = new AbortController();
    attr(cancel, "hidden", false);
    go.disabled = true;
    out.replaceChildren(h("p", { class: "dim busy" }, "Calling. If a rule requires an approval, the call waits in the ", h("a", { href: "#/inbox" }, "inbox"), "."));
    const began = performance.now();
    try {
      // The text is sent as written, so that big numbers keep their digits.
      const res = await postText("/console/api/call", `{"tool":${JSON.stringify(nameOf(x))},"arguments":${text}}`, stop.signal);
      out.replaceChildren(...result(res, performance.now() - began));
    } catch {
      out.replaceChildren(h("p", { class: "dim" }, "Cancelled."));
    }
    stop = null;
    attr(cancel, "hidden", true);
    go.disabled = false;
  }
  form.node.addEventListener("keydown", (e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) run(); });
  return h("div", { class: "try" }, h("h4", {}, "Try it"), h("p", { class: "dim" }, "The call goes through the same rules and into the same audit log as any other."), form.node, h("div", { class: "row" }, go, cancel), out);
}

function result(res, ms) {
  if (res.error) return [t("p", { class: "error" }, res.error, true)];
  const bad = members(res.text)?.find((p) => p.key === "isError")?.raw === "true";
  return [h("p", {}, h("span", { class: "state " + (bad ? "bad" : "calm") }, bad ? "tool error" : "ok"), " ", h("span", { class: "took" }, span(ms))), ...resultView(res.text)];
}

function key(pressed) {
  if (pressed === "/") { filter.focus(); filter.select(); return true; }
  if (pressed === "Escape" && open) { location.hash = "#/tools"; return true; }
  if (pressed !== "j" && pressed !== "k") return false;
  const at = shown.findIndex((x) => nameOf(x) === document.activeElement?.closest?.("[data-tool]")?.dataset.tool);
  const next = shown[Math.max(0, Math.min(shown.length - 1, at + (pressed === "j" ? 1 : -1)))];
  if (next) list.reveal(keyOf(next))?.button.focus({ preventScroll: true });
  return true;
}

export const page = { id: "tools", label: "Tools", letter: "t", topics: ["items", "pins"], draw, key, show, count: () => state.items?.tools || "" };
