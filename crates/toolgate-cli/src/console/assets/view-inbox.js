// Inbox of pending approvals. Calls with a waiting caller come first, then by expiry.

import { state, now, post } from "./api.js";
import { h, t, put, attr, keyed, button, copyButton, textBox, hiddenCount, sizeNote, span, clock, stamp, say, visText } from "./dom.js";
import { members, pretty, kind, typeOf } from "./json.js";
import { editPanel, rememberPanel } from "./view-decide.js";

const root = document.getElementById("view-inbox");
const list = h("div", { class: "cards", id: "pending" });
const recent = h("ul", { class: "recent" });
const recentBox = h("div", { class: "recent-box", hidden: true }, h("h3", {}, "Just decided"), recent);
const empty = h("div", { class: "empty", hidden: true });
root.append(h("h2", { class: "sr" }, "Inbox"), empty, list, recentBox);

let selected = null, armedAt = 0, parts = new Map(), order = [];
const syncCards = keyed(list, (p) => p.id, makeCard);
const syncRecent = keyed(recent, (p) => p.id, makeGone);

/** Draws what changed. */
export function renderInbox() {
  const before = order;
  const items = [...state.pending.values()].sort((a, b) => Boolean(b.connected) - Boolean(a.connected) || a.expires - b.expires || (a.id < b.id ? -1 : 1));
  const focusWasIn = list.contains(document.activeElement);
  order = items.map((p) => p.id);
  parts = syncCards(items);
  if (before.some((id, i) => order[i] !== id)) settle();
  if (selected && !parts.has(selected)) moveOn(before.indexOf(selected), focusWasIn);
  else if (!selected && order.length) { select(order[0]); armedAt = Date.now() + 700; }
  syncRecent(state.gone);
  attr(recentBox, "hidden", !state.gone.length);
  drawEmpty();
}

/** Cards moved: for a moment, a click for one card must not hit another. */
let settling = 0;
function settle() {
  list.classList.add("settling");
  clearTimeout(settling);
  settling = setTimeout(() => list.classList.remove("settling"), 450);
}

function moveOn(was, focus) {
  select(order[Math.min(was, order.length - 1)] ?? null);
  armedAt = Date.now() + 700;
  if (focus && selected) parts.get(selected).node.focus({ preventScroll: true });
}

function select(id) {
  if (selected && parts.has(selected)) parts.get(selected).node.classList.remove("selected");
  selected = id;
  if (id) parts.get(id)?.node.classList.add("selected");
}

/** Answers a key pressed outside any field; true if it was one of the inbox's. */
export function inboxKey(key) {
  if (!order.length) return false;
  const i = order.indexOf(selected);
  if (key === "j" || key === "k") {
    const shownNow = list.contains(document.activeElement);
    select(order[shownNow ? Math.max(0, Math.min(order.length - 1, i + (key === "j" ? 1 : -1))) : Math.max(0, i)]);
    parts.get(selected).node.focus();
    parts.get(selected).node.scrollIntoView({ block: "nearest" });
    return true;
  }
  if (key === "a" && Date.now() >= armedAt && selected) { parts.get(selected).approve(); return true; }
  if (key === "d" && selected) { parts.get(selected).reason.focus(); return true; }
  return false;
}

/** Brings one pending call to the front. */
export function showPending(id) {
  if (!parts.has(id)) return;
  select(id);
  parts.get(id).node.focus();
  parts.get(id).node.scrollIntoView({ block: "start" });
}

/** Moves the countdowns on. */
export function tickInbox() {
  for (const part of parts.values()) part.tick();
}

/** Tags for the annotations that a server gives its tool. */
export function riskTags(hints = {}, trusted = false) {
  const tag = (text, level) => h("span", { class: "tag " + level }, text);
  const out = [];
  if (hints.readOnly === true) out.push(tag("read-only", "calm"));
  else out.push(tag(hints.readOnly === false ? "not read-only" : "may not be read-only", "warn"));
  if (hints.destructive === true) out.push(tag("destructive", "bad"));
  if (hints.openWorld === true) out.push(tag("reaches external systems", "warn"));
  if (hints.idempotent === true) out.push(tag("idempotent", "calm"));
  out.push(h("span", { class: "dim claim" }, trusted ? "claimed by the server, trusted by your configuration" : "claimed by the server, not verified"));
  return out;
}

/** Freezes that refuse this call, whatever the approver decides. */
const freezesOf = (p) => state.freezes.filter((f) => f.what === "all" || f.what === "caller " + p.caller || f.what === "server " + p.server);
const freezeText = (f) => visText(`Frozen: ${f.what === "all" ? "everything" : f.what}, by ${f.by}, since ${stamp(f.since).slice(0, 16)} UTC${f.reason ? ": " + f.reason : ""}. Approved calls are rejected until the freeze is lifted.`);

const isTool = (p) => (p.kind ?? "tool") === "tool";

/** Tags of an approval for a prompt or a resource. */
function kindTags(p) {
  const word = p.kind === "prompt" ? "fetches a prompt" : "reads a resource";
  return [h("span", { class: "tag" }, word), h("span", { class: "dim claim" }, p.trusted ? "from a server that your configuration trusts" : "from a server that is not trusted")];
}

function makeCard(first) {
  let p = first, sent = false, asking = false;
  const name = t("h3", { id: "name-" + p.id }, `${p.server}.${p.tool}`);
  const title = h("span", { class: "dim title" });
  const tags = h("div", { class: "tags" });
  const frozen = h("p", { class: "warning frozen", "data-frozen": "", hidden: true });
  const left = h("b", { class: "left" });
  const bar = h("progress", { max: "1", value: "1", "aria-label": "time left" });
  const presence = h("span", { class: "presence" });
  const facts = h("dl", { class: "facts" });
  const args = argumentsView(p);
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const note = h("p", { class: "dim note" });
  const approve = button("Approve once", { class: "primary", "data-act": "approve", title: "Key: a" }, () => run("approve"));
  const editing = editPanel(() => p, () => run("edit"));
  const remembering = rememberPanel(() => p, () => run("remember"));
  const panels = [editing, remembering];
  const edit = button("Edit\u2026", { "data-act": "edit", "aria-expanded": "false" }, () => open(editing));
  const remember = button("Remember\u2026", { "data-act": "remember", "aria-expanded": "false", "aria-describedby": "note-" + p.id }, () => open(remembering));
  const reason = h("input", { "data-field": "reason", type: "text", maxlength: "500", "aria-label": "Reason for denying, given to the model", placeholder: "Reason, given to the model", autocomplete: "off" });
  const deny = button("Deny", { class: "danger", "data-act": "deny", title: "Key: d, then Enter" }, () => run("deny"));
  attr(note, "id", "note-" + p.id);
  reason.addEventListener("keydown", (e) => {
    if (e.isComposing) return;
    if (e.key === "Enter") { e.preventDefault(); run("deny"); }
    if (e.key === "Escape") { e.stopPropagation(); node.focus(); }
  });
  const node = h("article", { class: "card", tabindex: "-1", "data-pending": p.id, "aria-labelledby": name.id, on: { focusin: () => select(p.id), pointerdown: () => select(p.id) } },
    h("header", {}, h("div", { class: "what" }, name, title), h("div", { class: "clock" }, h("span", { role: "timer" }, left), bar)),
    tags, frozen,
    h("div", { class: "body" }, args.node, facts),
    error,
    h("footer", {}, h("div", { class: "yes" }, approve, edit, remember), h("div", { class: "no" }, reason, deny)),
    editing.node, remembering.node,
    note);

  async function run(act) {
    if (sent || asking || expired()) return;
    asking = true;
    busy();
    const body = { deny: () => ({ reason: reason.value.trim() }), edit: () => editing.value(), remember: () => remembering.value(), approve: () => ({}) }[act]();
    body.id = p.id;
    const res = await post("/console/api/" + (act === "deny" ? "deny" : "approve"), body);
    put(error, res.error ?? "");
    attr(error, "hidden", !res.error);
    asking = false;
    const more = res.ok && res.text.includes('"more":true');
    sent = res.ok && !more;
    busy();
    if (more) { put(error, "Your approval is recorded; another person has to approve too."); attr(error, "hidden", false); }
    if (res.ok) say(`${act === "deny" ? "Denied" : "Approved"} ${visText(p.server + "." + p.tool)}`);
  }
  function busy() {
    for (const b of [approve, edit, remember, deny, ...panels.map((x) => x.go)]) b.disabled = asking || sent || expired();
    node.classList.toggle("sent", asking || sent);
  }
  const expired = () => p.expires <= now();
  /** Opens one panel and closes the others. */
  function open(panel) {
    for (const other of panels) other.show(other === panel && other.node.hidden);
    attr(edit, "aria-expanded", String(!editing.node.hidden));
    attr(remember, "aria-expanded", String(!remembering.node.hidden));
  }

  function tick() {
    const ms = p.expires - now();
    put(left, ms <= 0 ? "time is up, so denied" : `${span(Math.ceil(ms / 1000) * 1000)} left, then denied`);
    bar.value = Math.max(0, Math.min(1, ms / Math.max(1, p.expires - p.at)));
    node.classList.toggle("urgent", ms < 30000);
    if (ms <= 0 !== approve.disabled) busy();
  }
  let drawn = "";
  function update(next) {
    p = next;
    tick();
    const freezes = freezesOf(p).map(freezeText).join(" ");
    put(frozen, freezes);
    attr(frozen, "hidden", !freezes);
    const key = JSON.stringify(p);
    if (key === drawn) return;
    drawn = key;
    put(name, `${p.server}.${p.tool}`);
    put(title, p.title ?? "");
    attr(node, "data-caller", p.connected ? "waits" : "gone");
    node.classList.toggle("gone", !p.connected);
    tags.replaceChildren(...(p.connected ? [] : [h("span", { class: "tag bad" }, p.own ? "caller disconnected" : "no caller is connected")]), ...(isTool(p) ? riskTags(p.hints, p.trusted) : kindTags(p)));
    drawFacts(facts, p, presence);
    args.update(p);
    attr(edit, "hidden", !p.may_edit);
    attr(remember, "hidden", p.needs > 1);
    put(approve, p.needs > 1 ? `Approve (${p.yeses.length + 1} of ${p.needs})` : "Approve once");
    put(note, p.needs > 1
      ? `${p.needs} people have to approve.` + (p.yeses.length ? ` So far: ${p.yeses.join(", ")}.` : "")
      : p.may_remember ? "" : "You can remember this approval only with a condition: " + (isTool(p) && p.hints?.destructive === true
        ? "the server annotates this tool as destructive."
        : `this server is not trusted, so its claim that the ${p.kind ?? "tool"} is harmless does not count.`));
  }
  return { node, update, tick, reason, approve: () => run("approve") };
}

function drawFacts(facts, p, presence) {
  const schema = p.schema ?? {};
  put(presence, p.connected
    ? "waiting for the decision"
    : !p.own ? "requested in another process or before a restart; an approval is valid for the identical call until it expires"
    : "disconnected; an approval stays valid for the identical call until it expires");
  presence.className = "presence " + (p.connected ? "here" : "away");
  const row = (label, ...kids) => [h("dt", {}, label), h("dd", {}, ...kids)];
  facts.replaceChildren(
    ...row("Reasons", h("ul", {}, ...(p.reasons ?? []).map((r) => t("li", {}, r)))),
    ...row("Caller", t("span", {}, p.caller), " ", presence),
    ...(p.client ? row("Client", t("span", {}, p.client)) : []),
    ...row("Description", t("div", { class: "prose" }, p.description || schema.description || "nothing", true)),
    ...row("Asked", h("time", { title: stamp(p.at) }, clock(p.at)), " as call ", h("a", { href: "#/calls/" + encodeURIComponent(p.call) }, visText(p.call)), ", approval ", t("code", {}, p.id)),
    ...row("Digest", t("code", { title: p.digest, class: "digest" }, String(p.digest ?? "").slice(0, 16)), " ", copyButton(() => p.digest)));
}

/** The exact arguments in three forms, of which one is visible. */
function argumentsView(first) {
  let raw = null, mode = "table";
  const forms = { table: h("div", { class: "form" }), pretty: h("div", { class: "form" }), raw: h("div", { class: "form" }) };
  const switches = Object.keys(forms).map((m) => button({ table: "Table", pretty: "Indented", raw: "Exact text" }[m], { class: "seg", "data-mode": m }, () => show(m)));
  const size = h("span", { class: "dim" });
  const warn = h("p", { class: "warning", hidden: true });
  const node = h("div", { class: "args", "data-arguments": true },
    h("div", { class: "box-head" }, h("span", { class: "label" }, "Arguments"), size, h("span", { class: "segs", role: "group", "aria-label": "Form of the arguments" }, ...switches), copyButton(() => raw)),
    warn, ...Object.values(forms));
  function show(m) {
    mode = m;
    for (const [k, form] of Object.entries(forms)) attr(form, "hidden", k !== m);
    for (const b of switches) attr(b, "aria-pressed", b.dataset.mode === m ? "true" : "false");
  }
  function update(p) {
    const text = p.arguments_raw ?? p.arguments_pretty ?? "{}";
    if (text === raw) return;
    raw = text;
    put(size, sizeNote(raw));
    const pre = (text, label) => t("pre", { tabindex: "0", "aria-label": label }, text, true);
    const rows = members(raw);
    forms.table.replaceChildren(rows ? argumentTable(rows, p.schema) : pre(raw, "Arguments"));
    forms.pretty.replaceChildren(pre(pretty(raw), "Arguments, indented"));
    forms.raw.replaceChildren(pre(raw, "Arguments, exact text"));
    const warnings = warningsOf(raw, rows);
    put(warn, warnings.join(" "));
    attr(warn, "hidden", !warnings.length);
  }
  show(mode);
  update(first);
  return { node, update };
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

function argumentTable(rows, schema) {
  if (!rows.length) return h("p", { class: "dim none" }, "No arguments.");
  const props = schema?.properties ?? {};
  return h("table", {}, h("tbody", {}, ...rows.map(({ key, raw }) => {
    const known = Object.hasOwn(props, key) ? props[key] : null;
    const type = kind(raw);
    const text = type === "string" ? JSON.parse(raw) : type === "object" || type === "array" ? pretty(raw) : raw;
    const long = text.length > 200 || text.includes("\n");
    return h("tr", {},
      h("th", { scope: "row" }, t("code", {}, key), h("small", { class: "dim" }, known ? type : type + ", not in the schema")),
      h("td", {},
        long ? textBox("", text) : t("code", { class: "value " + type }, text),
        type === "string" && text === "" ? h("small", { class: "dim" }, "empty text") : null,
        known?.description ? t("small", { class: "dim says", title: "From the tool's schema: " + visText(typeOf(known)) }, known.description, true) : null));
  })));
}

function makeGone(first) {
  const node = h("li", {});
  return { node, update: () => {
    const p = first;
    const d = p.decided;
    const how = typeof d === "string" ? d : [d?.verdict ?? d?.outcome ?? d?.decision, d?.by && "by " + d.by, d?.reason && "\u201c" + d.reason + "\u201d"].filter(Boolean).join(" ");
    if (node.childNodes.length) return;
    node.append(h("time", { class: "dim" }, clock(p.gone)), " ", t("b", {}, `${p.server}.${p.tool}`), " ", t("span", {}, how || "decided"), " ",
      h("a", { href: "#/calls/" + encodeURIComponent(p.call) }, visText(p.call)));
  } };
}

function drawEmpty() {
  attr(empty, "hidden", state.pending.size > 0);
  if (state.pending.size) return;
  const running = [...state.calls.values()].filter((c) => c.state === "running").length;
  const up = state.servers.filter((s) => s.state === "running").length;
  const key = `${running} ${up} ${state.servers.length} ${state.tools.length} ${state.calls.size > 0} ${state.endpoint}`;
  if (empty.dataset.key === key) return;
  empty.dataset.key = key;
  empty.replaceChildren(h("h3", {}, "No pending approvals"),
    h("p", {}, "Calls that need a person's approval appear here. A call that nobody decides in time is denied."),
    h("p", { class: "dim" }, `Servers running: ${up} of ${state.servers.length}. Tools: ${state.tools.length}. Calls running: ${running}.`),
    ...(state.calls.size ? [] : [h("p", {}, "No calls yet. Point a client at ", t("code", {}, state.endpoint), " ", copyButton(() => state.endpoint))]));
}
