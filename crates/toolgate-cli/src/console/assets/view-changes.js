// Definitions that differ from the accepted ones: the differences, and buttons to accept or reject exactly what is shown.

import { state, post, changed } from "./api.js";
import { compare } from "./diff.js";
import { h, t, vis, put, attr, keyed, button, textBox, hiddenCount, sizeNote, say, visText, pageRoot } from "./dom.js";
import { dateTime } from "./time.js";
import { kind, pretty } from "./json.js";
import { typedName } from "./request.js";

/** Maximum number of differences of one definition, and of pins, that the gateway sends. */
const MOST = { differences: 200, pins: 500 };

const root = pageRoot("changes", "Changes");
const empty = h("div", { class: "empty", hidden: true }, h("h3", {}, "No definition has changed"),
  h("p", {}, "A tool, prompt or resource whose definition changes appears here, and is hidden from callers until you accept it."));
const bulk = h("div", { class: "bulk" });
const error = h("p", { class: "error", role: "alert", hidden: true });
const list = h("div", { class: "cards" });
const more = h("p", { class: "dim", hidden: true }, `This page shows ${MOST.pins} pins; more appear when some are decided.`);
root.append(empty, error, bulk, list, more);

const idOf = (pin) => pin.kind + " " + pin.name;
const sync = keyed(list, idOf, makeCard);
let wanted = null, selected = null, armedAt = 0, parts = new Map(), order = [];

/** Pins that wait for a decision; the others were rejected. */
const waiting = () => state.pins.filter((pin) => !pin.rejected);
const risky = (pin) => (pin.steering ?? []).some((f) => f.weight >= 8);

function renderPins() {
  const before = order, had = list.contains(document.activeElement);
  if (loaded !== state.pinned?.serial && !loading) load();
  // What may steer a model comes first; rejected ones last.
  const items = [...state.pins].sort((a, b) => !!a.rejected - !!b.rejected || weight(b) - weight(a) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  order = items.map(idOf);
  parts = sync(items);
  if (!parts.has(selected)) {
    select(order[Math.max(0, Math.min(before.indexOf(selected), order.length - 1))] ?? null);
    if (had && selected) parts.get(selected).node.focus({ preventScroll: true });
  }
  if (before.some((id, i) => order[i] !== id)) moved();
  if (wanted && parts.has(wanted)) { const id = wanted; wanted = null; showPin(id); }
  attr(empty, "hidden", items.length > 0 || loading);
  attr(more, "hidden", items.length < MOST.pins);
  drawBulk();
}

/** The gateway only tells that the pins changed; their differences are read while this page is shown. */
let loaded = null, loading = false;
async function load() {
  loading = true;
  const serial = state.pinned?.serial;
  const res = await post("/console/api/pins/open", {});
  loading = false;
  put(error, res.error ?? "");
  attr(error, "hidden", res.ok);
  if (!res.ok) return;
  loaded = serial;
  state.pins = JSON.parse(res.text);
  changed("pins");
}

/** How much a change may steer a model: the sum of its flags, and changed texts before changed types. */
const weight = (pin) => (pin.steering ?? []).reduce((sum, f) => sum + f.weight, 0) + (pin.differences ?? []).reduce((sum, d) => sum + (d.cosmetic ? 0 : /description|title|instructions/i.test(d.place) ? 0.5 : 0.1), 0);

/** A key for one definition must not hit another: for a moment, keys do nothing. */
function arm() { armedAt = Date.now() + 700; }

/** The same for a click, if another card is now under the pointer. */
let settling = 0;
function moved() {
  list.classList.add("settling");
  clearTimeout(settling);
  settling = setTimeout(() => list.classList.remove("settling"), 450);
}

function select(id) {
  parts.get(selected)?.node.classList.remove("selected");
  if (id !== selected) arm();
  selected = id;
  parts.get(id)?.node.classList.add("selected");
}

/** Answers a key pressed outside any field; true if it was one of this view's. */
function pinsKey(key) {
  if (!order.length) return false;
  const i = order.indexOf(selected);
  if (key === "j" || key === "k") {
    const shown = list.contains(document.activeElement);
    select(order[shown ? Math.max(0, Math.min(order.length - 1, i + (key === "j" ? 1 : -1))) : Math.max(0, i)]);
    armedAt = 0;
    parts.get(selected).node.focus();
    parts.get(selected).node.scrollIntoView({ block: "nearest" });
    return true;
  }
  if (key !== "a" && key !== "r") return false;
  if (Date.now() >= armedAt) parts.get(selected)?.press(key === "a" ? "accept" : "reject");
  return true;
}

/** Brings one pin to the front. */
function showPin(id) {
  if (!parts.has(id)) return;
  select(id);
  parts.get(id).node.focus();
  parts.get(id).node.scrollIntoView({ block: "start" });
}

/** Accepts or rejects exactly the definition that is shown. */
const settle = (act, pin) => post("/console/api/pins/" + act, { name: pin.name, digest: pin.other });

/** One button for each server with several pending pins. Each is accepted by its digest, so none is accepted unseen. */
function drawBulk() {
  const by = new Map();
  // What is flagged as an instruction or a request for a secret is accepted one by one.
  for (const pin of waiting().filter((pin) => !risky(pin))) by.set(pin.server, (by.get(pin.server) ?? 0) + 1);
  const many = [...by].filter(([, count]) => count > 1);
  const key = JSON.stringify(many);
  if (bulk.dataset.key === key) return;
  bulk.dataset.key = key;
  bulk.replaceChildren(...many.map(([server, count]) => button(`Accept all ${count} from ${visText(server)}\u2026`, { class: "small", "data-act": "accept-all", "data-server": server }, (e) => acceptAll(server, e.target))));
}

async function acceptAll(server, by) {
  const all = waiting().filter((pin) => pin.server === server && !risky(pin));
  if (!confirm(`Accept ${all.length} definition${all.length === 1 ? "" : "s"} from ${visText(server)} as shown here?`)) return;
  by.disabled = true;
  const wrong = [];
  for (const pin of all) {
    const res = await settle("accept", pin);
    if (!res.ok) wrong.push(res.error);
  }
  put(error, wrong.length ? `${wrong.length} of ${all.length} were not accepted: ${wrong[0]}` : "");
  attr(error, "hidden", !wrong.length);
  by.disabled = false;
}

function makeCard(first) {
  let pin = first, busy = false, drawn = "", fetched = null;
  const name = t("h3", {}, pin.name);
  const tags = h("div", { class: "tags" });
  const flags = h("ul", { class: "steering", "data-steering": "", hidden: true });
  const body = h("div", { class: "changes" });
  const wrong = h("p", { class: "error", role: "alert", hidden: true });
  const note = h("p", { class: "dim" });
  const yes = button("Accept", { class: "primary", "data-act": "accept", title: "Key: a" }, () => run("accept"));
  const no = button("Reject", { class: "danger", "data-act": "reject", title: "Key: r" }, () => run("reject"));
  /** What is flagged as an instruction or a request for a secret is accepted only with its name. */
  const typed = typedName(pin.name, () => allow(), "To accept despite the flags");
  const mine = () => select(idOf(pin));
  const node = h("article", { class: "card pin", tabindex: "-1", "data-pin": pin.name, "data-kind": pin.kind, "aria-label": visText(`${pin.kind} ${pin.name}`), on: { focusin: mine, pointerdown: mine } },
    h("header", {}, name, tags), flags, body, wrong, note, typed.node, h("footer", {}, yes, no));
  /** The pin with its differences, sent or requested. */
  const whole = () => (pin.differences ? pin : fetched?.other === pin.other ? fetched : null);
  function draw() {
    tags.replaceChildren(...tagsOf(pin, whole()));
    body.replaceChildren(...(whole() ? changes(whole()) : [button("Show the differences", { "data-act": "show" }, show)]));
    flags.replaceChildren(...(pin.steering ?? []).map((f) => h("li", {}, h("span", { class: "tag " + (f.weight >= 8 ? "bad" : "warn") }, f.kind), " ", t("span", {}, f.text), t("small", { class: "dim" }, f.place))));
    attr(flags, "hidden", !pin.steering?.length);
    node.classList.toggle("risky", risky(pin));
    attr(typed.node, "hidden", !risky(pin));
    yes.className = risky(pin) ? "destroy" : "primary";
    no.className = risky(pin) ? "primary" : "danger";
    put(yes, risky(pin) ? "Accept despite the flags" : "Accept");
    attr(no, "hidden", !!pin.rejected);
    put(note, standing(pin));
    allow();
  }
  function allow() {
    for (const b of [yes, no]) b.disabled = busy || !whole();
    if (risky(pin) && !typed.fits()) yes.disabled = true;
  }
  function tell(what) {
    put(wrong, what ?? "");
    attr(wrong, "hidden", !what);
  }
  async function show() {
    const res = await post("/console/api/pins/diff", { name: pin.name });
    tell(res.error);
    fetched = res.ok ? JSON.parse(res.text).find((one) => one.kind === pin.kind) ?? null : null;
    draw();
  }
  async function run(act) {
    if (busy || !whole() || (act === "reject" && pin.rejected)) return;
    busy = true;
    allow();
    const res = await settle(act, pin);
    busy = false;
    allow();
    tell(res.error);
    if (res.ok) say(`${act === "accept" ? "Accepted" : "Rejected"} ${visText(pin.name)}`);
  }
  function update(next) {
    const key = JSON.stringify(next);
    if (key === drawn) return;
    if (drawn && next.other !== pin.other) { arm(); moved(); typed.field.value = ""; tell("The definition changed again; this is the latest one."); }
    pin = next;
    drawn = key;
    draw();
  }
  /** A key: like the button, but what is flagged first wants its name. */
  function press(act) {
    if (act === "accept" && risky(pin) && !typed.fits()) typed.field.focus();
    else run(act);
  }
  return { node, update, press };
}

const tag = (text, level) => h("span", { class: "tag " + level }, text);

function tagsOf(pin, whole) {
  const weights = (whole?.differences ?? []).map((one) => one.cosmetic);
  const count = (cosmetic) => weights.filter((w) => w === cosmetic).length;
  return [
    tag(pin.kind, ""),
    pin.state === "new" ? tag("new", "warn") : tag("changed", "warn"),
    ...(count(false) ? [tag(`${count(false)} semantic change${count(false) === 1 ? "" : "s"}`, "bad")] : []),
    ...(count(true) ? [tag(`${count(true)} cosmetic change${count(true) === 1 ? "" : "s"}`, "calm")] : []),
    ...(pin.rejected ? [tag("rejected by " + visText(pin.rejected), "bad")] : []),
    pin.hidden ? tag("hidden from callers", "") : tag("usable meanwhile", "warn"),
  ];
}

function standing(pin) {
  if (pin.rejected) return "The definition is hidden. If the server changes it, it appears here again. You can still accept this one.";
  const was = pin.accepted ? `The accepted definition is in use since ${dateTime(pin.at)}, accepted ${pin.by === "first sight" ? "at first sight" : `by ${pin.by}`}. ` : "Nothing was accepted under this name. ";
  return was + `Digest of the new definition: ${pin.other.slice(0, 12)}.`;
}

/** The differences, place by place; the whole definition if it is new. */
function changes(pin) {
  if (pin.text !== null && pin.text !== undefined) return [warning([pin.text]), textBox("The whole definition", shown(pin.text))];
  if (!pin.differences.length) return [h("p", { class: "warning" }, "One of the two definitions is too large to be stored, so the differences cannot be shown. Accept it only if you know why it changed.")];
  const all = pin.differences.map(change);
  if (pin.differences.length >= MOST.differences) all.push(h("p", { class: "warning" }, `Only the first ${MOST.differences} differences are listed.`));
  return [warning(pin.differences.map((one) => one.new ?? "")), ...all];
}

/** Warning about hidden or confusable characters in the new texts. */
function warning(texts) {
  const marked = texts.reduce((sum, text) => sum + hiddenCount(shown(text)), 0);
  return h("p", { class: "warning", hidden: !marked }, `${marked} hidden or look-alike part${marked === 1 ? " is" : "s are"} marked below.`);
}

/** Readable JSON: a string without its quotes, anything else indented. */
function shown(raw) {
  try { return kind(raw) === "string" ? JSON.parse(raw) : pretty(raw); } catch { return raw; }
}

function change(one) {
  const [before, after] = [one.old, one.new].map((raw) => raw === null ? null : shown(raw));
  const [older, newer] = before !== null && after !== null ? compare(before, after) : [before, after].map((text) => text === null ? null : [{ text, changed: true }]);
  return h("section", { class: "change", "data-change": one.place },
    h("div", { class: "box-head" }, t("code", { class: "place" }, one.place || "whole definition"), one.cosmetic ? tag("cosmetic", "calm") : tag("semantic", "bad")),
    h("div", { class: "sides" }, side("\u2212", "Accepted", "del", older, before), side("+", "Now", "ins", newer, after)));
}

function side(sign, word, mark, runs, text) {
  if (runs === null) return h("div", { class: "side" }, h("span", { class: "label" }, word), h("p", { class: "dim" }, "nothing"));
  const pre = h("pre", { tabindex: "0", "aria-label": word });
  for (const run of runs) pre.append(run.changed ? changedRun(mark, run.text) : vis(run.text, true));
  return h("div", { class: "side " + mark }, h("div", { class: "box-head" }, h("span", { class: "label" }, `${sign} ${word}`), h("span", { class: "dim" }, sizeNote(text))), pre);
}

function changedRun(mark, text) {
  const node = h(mark, {});
  node.append(vis(text, true));
  return node;
}

export const page = {
  id: "changes", label: "Changes", letter: "h", topics: ["pins", "pinned"], draw: renderPins, key: pinsKey, show: (id) => { if (id) showPin(id); wanted = parts.has(id) ? null : id; },
  count: () => state.pinned?.open || "", alert: () => Boolean(state.pinned?.open),
};
