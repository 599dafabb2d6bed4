// Inbox: requests for approval as a list, and the selected one beside it.

import { state, now, post, on, endpointUrl, othersAt } from "./api.js";
import { h, t, put, attr, keyed, copyButton, visText, plural, pageRoot, isNarrow } from "./dom.js";
import { timeTag, clock, span } from "./time.js";
import { members, kind } from "./json.js";
import { requestView } from "./request.js";
import { groupView } from "./group.js";

const root = pageRoot("inbox", "Inbox");
const filter = h("input", { type: "search", placeholder: "Filter: tool, caller, argument", "aria-label": "Filter the requests", autocomplete: "off", on: { input: () => draw() } });
const count = h("span", { class: "dim", role: "status" });
const list = h("div", { class: "requests", id: "pending" });
const goneList = h("div", { class: "requests" });
const goneCount = h("span", {});
const goneBox = h("details", { class: "fold", id: "callers-gone", hidden: true }, h("summary", {}, goneCount), h("p", { class: "dim" }, "Nobody waits for these calls. An approval stays valid for the identical call until it expires."), goneList);
const recent = h("ul", { class: "recent" });
const recentBox = h("details", { class: "fold", hidden: true }, h("summary", {}, "Just decided"), recent);
const empty = h("div", { class: "empty", hidden: true });
const detail = h("div", { class: "detail-pane", tabindex: "-1", hidden: true });
const left = h("div", { class: "list-pane" }, h("div", { class: "tools-bar" }, filter, count), list, goneBox, recentBox);
const panes = h("div", { class: "panes" }, left, detail);
root.append(empty, panes);

const syncRecent = keyed(recent, (p) => p.id, makeGone);
const rowsLive = keyed(list, (r) => r.id, makeRow), rowsGone = keyed(goneList, (r) => r.id, makeRow);
let rows = new Map();
/** The id of a request whose link the person opened before the page lists the request. */
let wanted = null;
/** Ids of the list in its order: of requests and of groups. */
let order = [];
let selected = null, view = null, armedAt = 0;
const openGroups = new Set();

// The list ---------------------------------------------------------------

/** Requests are of one shape if the tool and the names of the arguments are the same. */
function shapeOf(p) {
  const args = p.arguments ? members(p.arguments) : null;
  if (!args || !args.length || p.needs > 1 || p.missing) return null;
  return JSON.stringify([p.server, p.tool, args.map((a) => a.key).sort()]);
}

const byTime = (a, b) => a.expires - b.expires || (a.id < b.id ? -1 : 1);
const hay = (p) => `${p.server}.${p.tool} ${p.title ?? ""} ${p.caller} ${p.client ?? ""} ${p.arguments ?? ""} ${p.id}`.toLowerCase();

function draw() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = [...state.pending.values()].sort(byTime);
  const fits = all.filter((p) => words.every((w) => hay(p).includes(w)));
  const live = fits.filter((p) => p.connected), gone = fits.filter((p) => !p.connected);
  const shapes = Map.groupBy(live.filter(shapeOf), shapeOf);
  const items = [];
  const listed = new Set();
  for (const p of live) {
    const same = shapes.get(shapeOf(p));
    if (!same || same.length < 2) { items.push({ id: p.id, p }); continue; }
    const id = "group " + shapeOf(p);
    if (listed.has(id)) continue;
    listed.add(id);
    items.push({ id, group: same });
    items.push(...same.map((one) => ({ id: one.id, p: one, of: id })));
  }
  const before = order;
  rows = new Map([...rowsLive(items), ...rowsGone(gone.map((p) => ({ id: p.id, p })))]);
  order = [...items.filter((r) => !r.of || openGroups.has(r.of)).map((r) => r.id), ...gone.map((p) => p.id)];
  attr(goneBox, "hidden", !gone.length);
  put(goneCount, `${plural(gone.length, "request")} whose caller has gone`);
  syncRecent(state.gone);
  attr(recentBox, "hidden", !state.gone.length);
  put(count, fits.length === all.length ? plural(all.length, "request") : `${fits.length} of ${all.length}`);
  attr(panes, "hidden", !all.length && !state.gone.length && !view);
  if (selected && !rows.has(selected)) moveOn(before.indexOf(selected));
  else if (!selected && order.length && !isNarrow()) select(order[0]);
  view?.update();
  drawEmpty(all.length);
  if (wanted && rows.has(wanted)) show(wanted);
}

/** The selected request is decided: the next one takes its place, and is not armed at once. */
function moveOn(was) {
  const focus = detail.contains(document.activeElement) || document.activeElement === document.body;
  const next = isNarrow() ? null : order[Math.max(0, Math.min(was, order.length - 1))] ?? null;
  select(next);
  settle();
  if (location.hash.startsWith("#/inbox/")) history.replaceState(null, "", next && !next.startsWith("group ") ? "#/inbox/" + encodeURIComponent(next) : "#/inbox");
  if (focus && next) rows.get(next)?.node.focus({ preventScroll: true });
}

/** Another request is shown at the same place: for a moment, a click for the one before must not hit it. */
let settling = 0;
function settle() {
  detail.classList.add("settling");
  clearTimeout(settling);
  settling = setTimeout(() => detail.classList.remove("settling"), 450);
}

function select(id) {
  if (id === selected && view) return;
  rows.get(selected)?.mark(false);
  selected = id;
  armedAt = Date.now() + 700;
  view?.close();
  const row = id === null ? null : rows.get(id);
  view = !row ? null : row.item.group ? groupView(() => groupOf(id), () => select(null)) : requestView(id);
  row?.mark(true);
  detail.replaceChildren(...(view ? [h("a", { class: "back", href: "#/inbox" }, "Back to the list"), view.node] : []));
  view?.update();
  attr(detail, "hidden", !view);
  panes.classList.toggle("with-detail", Boolean(view));
  detail.scrollTop = 0;
  look(id);
}

const groupOf = (id) => [...state.pending.values()].filter((p) => p.connected && "group " + shapeOf(p) === id).sort(byTime);

let lookedAt = null, lastPost = Promise.resolve();
/** Tells the others which request this page shows. Messages on two connections could arrive in the wrong order, so each waits for the one before. */
function look(id) {
  const shown = id && state.pending.has(id) && !document.hidden && !root.hidden ? id : "";
  if (shown === lookedAt || !state.page) return;
  lookedAt = shown;
  lastPost = lastPost.then(() => post("/console/api/requests/look", { page: state.page, id: shown }));
}
document.addEventListener("visibilitychange", () => look(selected));
on("hidden", (page) => { if (page === "inbox") look(null); });
// A new stream is a new page for the gateway.
on("page", () => { lookedAt = null; look(selected); });

/** The argument that says most about a call: one with a telling name, or else the first text. */
const TELLING = ["command", "cmd", "path", "file", "uri", "url", "query", "sql", "to", "target", "host", "device", "id", "name", "text", "message"];
export function mainArgument(p) {
  const args = p.arguments ? members(p.arguments) : null;
  if (!args) return `${p.arguments_bytes.toLocaleString("en")} bytes: ${p.preview ?? ""}`;
  const found = TELLING.map((name) => args.find((a) => a.key.toLowerCase() === name)).find(Boolean) ?? args.find((a) => kind(a.raw) === "string") ?? args[0];
  if (!found) return "";
  const value = kind(found.raw) === "string" ? JSON.parse(found.raw) : found.raw;
  const rest = args.length - 1;
  return `${found.key}: ${value.replace(/\s+/g, " ")}${rest ? ` (+${rest})` : ""}`;
}

function risk(p) {
  if (p.must_type) return ["bad", "destructive"];
  if ((p.kind ?? "tool") === "tool" && p.hints?.readOnly === true) return ["calm", "read-only"];
  return ["warn", (p.kind ?? "tool") === "tool" ? "may change something" : p.kind];
}

function makeRow(first) {
  let item = first;
  const dot = h("i", { class: "risk" }), word = h("span", { class: "sr" });
  const name = h("b", {}), argument = h("span", { class: "arg" }), who = h("span", {}), time = h("span", { class: "left" });
  const seen = h("span", { class: "eyes", hidden: true });
  const node = h("a", { class: "request", href: "#/inbox", on: { click: (e) => { if (item.group) { e.preventDefault(); toggle(); } } } }, dot, word, name, argument, h("span", { class: "who dim" }, seen, who), time);
  function toggle() {
    const id = item.id;
    if (!openGroups.has(id)) openGroups.add(id);
    else if (selected === id) openGroups.delete(id);
    draw();
    select(id);
  }
  function tick() {
    const p = item.p ?? item.group[0];
    const ms = p.expires - now();
    put(time, ms <= 0 ? "time is up" : span(Math.ceil(ms / 1000) * 1000));
    node.classList.toggle("urgent", ms < 30000);
  }
  function update(next) {
    item = next;
    part.item = next;
    const p = item.p ?? item.group[0];
    const [level, text] = risk(p);
    dot.className = "risk " + level;
    put(word, text + ": ");
    put(name, `${p.server}.${p.tool}`);
    if (item.group) {
      put(argument, `${item.group.length} calls of the same form`);
      attr(node, "data-requests", item.group.map((one) => one.id).join(" "));
      attr(node, "aria-expanded", String(openGroups.has(item.id)));
      put(who, [...new Set(item.group.map((one) => one.caller))].slice(0, 2).join(", "));
    } else {
      put(argument, mainArgument(p));
      attr(node, "title", visText(p.arguments ?? p.preview ?? "").slice(0, 400));
      attr(node, "href", "#/inbox/" + encodeURIComponent(p.id));
      attr(node, "data-pending", p.id);
      attr(node, "data-caller", p.connected ? "waits" : "gone");
      put(who, p.caller);
      const others = othersAt(p.id);
      attr(seen, "hidden", !others.length);
      put(seen, others.length ? `${others.length} looking` : "");
      attr(seen, "title", others.length ? visText(others.join(", ")) : null);
    }
    attr(node, "hidden", Boolean(item.of) && !openGroups.has(item.of));
    node.classList.toggle("member", Boolean(item.of));
    name.classList.toggle("sr", Boolean(item.of));
    tick();
  }
  const part = { node, update, tick, item, mark: (on) => { node.classList.toggle("selected", on); attr(node, "aria-current", on ? "true" : null); } };
  return part;
}

function makeGone(first) {
  const node = h("li", {});
  return { node, update: () => {
    const p = first;
    if (node.childNodes.length) return;
    const how = [p.decided ?? "ended", p.by && "by " + p.by, p.reason && "\u201c" + p.reason + "\u201d"].filter(Boolean).join(" ");
    node.append(timeTag(p.gone, clock), " ", t("b", {}, `${p.server}.${p.tool}`), " ", t("span", {}, how), " ",
      h("a", { href: "#/calls/" + encodeURIComponent(p.call) }, visText(p.call)));
  } };
}

function drawEmpty(waiting) {
  attr(empty, "hidden", waiting > 0 || state.gone.length > 0);
  if (waiting) return;
  const running = [...state.calls.values()].filter((c) => c.state === "running").length;
  const up = state.servers.filter((s) => s.state === "running").length;
  const key = `${running} ${up} ${state.servers.length} ${state.items?.tools} ${state.calls.size > 0} ${state.endpoint}`;
  if (empty.dataset.key === key) return;
  empty.dataset.key = key;
  empty.replaceChildren(h("h3", {}, "No pending approvals"),
    h("p", {}, "Calls that need a person's approval appear here. A call that nobody decides in time is denied."),
    h("p", { class: "dim" }, `Servers running: ${up} of ${state.servers.length}. Tools: ${state.items?.tools ?? 0}. Calls running: ${running}.`),
    ...(state.calls.size ? [] : [h("p", {}, "No calls yet. Point a client at ", t("code", {}, endpointUrl()), " ", copyButton(endpointUrl))]));
}

// Keys and address -------------------------------------------------------

function key(pressed) {
  if (pressed === "/") { filter.focus(); filter.select(); return true; }
  if (!order.length) return false;
  const i = order.indexOf(selected);
  if (pressed === "j" || pressed === "k") {
    const focused = left.contains(document.activeElement);
    const next = order[focused || view ? Math.max(0, Math.min(order.length - 1, i + (pressed === "j" ? 1 : -1))) : 0];
    if (!state.pending.get(next)?.connected && state.pending.has(next)) goneBox.open = true;
    select(next);
    rows.get(next).node.focus({ preventScroll: true });
    rows.get(next).node.scrollIntoView({ block: "nearest" });
    return true;
  }
  if (pressed === "Escape" && isNarrow() && view) { location.hash = "#/inbox"; return true; }
  if (!view) return false;
  if (pressed === "a" && Date.now() >= armedAt) { view.approve(); return true; }
  if (pressed === "d") { view.reason?.focus(); return true; }
  return false;
}

/** Shows one request, or the list on a narrow screen. */
function show(id) {
  open(id);
  look(selected);
}

function open(id) {
  wanted = id === null || rows.has(id) ? null : id;
  if (id === null) { if (isNarrow()) select(null); return; }
  if (wanted) return;
  const item = rows.get(id).item;
  if (item.of) { openGroups.add(item.of); draw(); }
  if (!state.pending.get(id).connected) goneBox.open = true;
  select(id);
  rows.get(id).node.scrollIntoView({ block: "nearest" });
  if (isNarrow()) detail.focus({ preventScroll: true });
}

export const page = {
  id: "inbox", label: "Inbox", letter: "i", topics: ["pending", "presence", "freezes", "calls", "servers", "items"],
  draw, key, show, tick: () => { for (const row of rows.values()) row.tick(); view?.tick(); },
  count: () => state.pending.size || "", alert: () => [...state.pending.values()].some((p) => p.connected),
};
