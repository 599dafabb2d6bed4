// One request for approval, with everything that a decision needs.

import { state, now, post, othersAt } from "./api.js";
import { h, t, put, attr, button, copyButton, say, visText, plural } from "./dom.js";
import { timeTag, dateTime, span, clock } from "./time.js";
import { argumentsView } from "./arguments.js";
import { editPanel, rememberPanel } from "./decide.js";
import { sign, passkeyError } from "./passkey.js";

/** Tags for the annotations that a server gives its tool. */
export function riskTags({ hints = {}, claimed = [], trusted = false }) {
  const tag = (text, level) => h("span", { class: "tag " + level }, text);
  const says = (hint) => claimed.includes(hint);
  const out = [];
  if (hints.readOnly) out.push(tag("read-only", "calm"));
  else out.push(tag(says("readOnly") ? "not read-only" : "may not be read-only", "warn"));
  // Where the server says nothing, the worse is assumed, as the specification does.
  if (hints.destructive) out.push(says("destructive") ? tag("destructive", "bad") : tag("may be destructive", "warn"));
  if (hints.openWorld) out.push(tag(says("openWorld") ? "reaches external systems" : "may reach external systems", "warn"));
  if (hints.idempotent) out.push(tag("idempotent", "calm"));
  const source = !claimed.length ? "the server claims nothing about it" : trusted ? "claimed by the server, trusted by your configuration" : "claimed by the server, not verified";
  out.push(h("span", { class: "dim claim" }, source));
  return out;
}

/** Freezes that refuse this call, whatever the approver decides. */
export const freezesOf = (p) => state.freezes.filter((f) => f.what === "all" || f.what === "caller " + p.caller || f.what === "server " + p.server);
const freezeText = (f) => visText(`Frozen: ${f.what === "all" ? "everything" : f.what}, by ${f.by}, since ${dateTime(f.since)}${f.reason ? ": " + f.reason : ""}. Approved calls are rejected until the freeze is lifted.`);

const isTool = (p) => (p.kind ?? "tool") === "tool";

/** Tags of a request for a prompt or a resource. */
function kindTags(p) {
  const word = p.kind === "prompt" ? "fetches a prompt" : "reads a resource";
  return [h("span", { class: "tag" }, word), h("span", { class: "dim claim" }, p.trusted ? "from a server that your configuration trusts" : "from a server that is not trusted")];
}

/** A field into which the approver types a name, before a dangerous decision. */
export function typedName(name, changed, purpose = "To approve") {
  const field = h("input", { type: "text", "data-field": "typed-name", autocomplete: "off", spellcheck: "false", "aria-label": `${purpose}, type the name`, on: { input: changed } });
  const node = h("label", { class: "typed" }, h("span", {}, purpose + ", type ", t("b", {}, name)), field);
  return { node, field, fits: () => field.value.trim() === name };
}

/**
 * The view of one request. `update()` follows the state, `tick()` the time; `approve()` presses the button, and `close()` ends
 * it.
 */
export function requestView(id) {
  let p = state.pending.get(id), whole = null, exact = null, sent = false, asking = false, closed = false;
  const name = t("h3", { id: "name-" + id }, `${p.server}.${p.tool}`);
  const title = h("span", { class: "dim title" });
  const tags = h("div", { class: "tags" });
  const frozen = h("p", { class: "warning frozen", "data-frozen": "", hidden: true });
  const others = h("p", { class: "others", role: "status", "data-others": "", hidden: true });
  const left = h("b", { class: "left" });
  const bar = h("progress", { max: "1", value: "1", "aria-label": "time left" });
  const facts = h("dl", { class: "facts" });
  const masked = h("p", { class: "warning", hidden: true });
  const argsBox = h("div", { class: "args-box" }, h("p", { class: "dim busy" }, "Loading the arguments."));
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const hint = h("p", { class: "dim", id: "hint-" + id, role: "status" });
  const note = h("p", { class: "dim note", id: "note-" + id });
  const approve = button("Approve once", { class: "primary", "data-act": "approve", title: "Key: a", "aria-describedby": hint.id }, () => run("approve"));
  const typed = typedName(p.tool, () => busy());
  const editing = editPanel(() => exact ?? whole?.arguments_raw ?? "{}", () => run("edit"));
  const remembering = rememberPanel(() => p, () => run("remember"));
  const panels = [editing, remembering];
  const edit = button("Edit\u2026", { "data-act": "edit", "aria-expanded": "false" }, () => open(editing));
  const remember = button("Remember\u2026", { "data-act": "remember", "aria-expanded": "false", "aria-describedby": note.id }, () => open(remembering));
  const reason = h("input", { "data-field": "reason", type: "text", maxlength: "500", "aria-label": "Reason for denying, given to the model", placeholder: "Reason, given to the model", autocomplete: "off" });
  const deny = button("Deny", { class: "danger", "data-act": "deny", title: "Key: d, then Enter" }, () => run("deny"));
  reason.addEventListener("keydown", (e) => {
    if (e.isComposing) return;
    if (e.key === "Enter") { e.preventDefault(); run("deny"); }
    if (e.key === "Escape") { e.stopPropagation(); node.focus(); }
  });
  typed.field.addEventListener("keydown", (e) => { if (e.key === "Enter" && !approve.disabled) { e.preventDefault(); run("approve"); } });
  const recentCalls = h("div", {});
  const node = h("article", { class: "card", tabindex: "-1", "data-detail": id, "aria-labelledby": name.id },
    h("header", {}, h("div", { class: "what" }, name, title), h("div", { class: "clock" }, h("span", { role: "timer" }, left), bar)),
    others, tags, frozen,
    h("div", { class: "body" }, h("div", { class: "args-column" }, masked, argsBox), facts),
    error,
    h("footer", {}, typed.node, h("div", { class: "yes" }, approve, edit, remember), h("div", { class: "no" }, reason, deny)),
    hint, note, editing.node, remembering.node, recentCalls);

  let args = null;
  async function load() {
    const res = await post("/console/api/requests/get", { id });
    if (closed) return;
    if (!res.ok) { tell(res.error); return; }
    whole = JSON.parse(res.text);
    drawArguments();
    drawFacts();
    drawRecent();
  }
  function drawArguments() {
    args = argumentsView({ ...p, ...whole }, exact ?? whole.arguments_raw, () => busy());
    argsBox.replaceChildren(args.node);
    args.look();
    const hidden = whole.masked > 0 && exact === null;
    attr(masked, "hidden", !hidden);
    if (hidden) masked.replaceChildren(plural(whole.masked, "secret is", "secrets are") + " masked. ", reveal);
    busy();
  }
  const reveal = button("Show the secrets", { class: "small", "data-act": "reveal", title: "The audit log records who asks to see them" }, async () => {
    reveal.disabled = true;
    const res = await post("/console/api/requests/reveal", { id });
    reveal.disabled = false;
    tell(res.error);
    if (!res.ok) return;
    exact = JSON.parse(res.text).arguments_raw;
    drawArguments();
  });

  function tell(text) {
    put(error, text ?? "");
    attr(error, "hidden", !text);
  }
  async function run(act) {
    if (sent || asking || expired() || (act === "approve" && approve.disabled)) return;
    if (act !== "deny" && p.must_type && !typed.fits()) { typed.field.focus(); return; }
    asking = true;
    tell(null);
    busy();
    const body = { deny: () => ({ reason: reason.value.trim() }), edit: () => editing.value(), remember: () => remembering.value(), approve: () => ({}) }[act]();
    body.id = id;
    if (p.passkey && act !== "deny") {
      const wrong = await signCall(body);
      if (wrong) { tell(wrong); asking = false; busy(); return; }
    }
    const res = await post("/console/api/" + (act === "deny" ? "deny" : "approve"), body);
    tell(res.error);
    asking = false;
    const more = res.ok && res.text.includes('"more":true');
    sent = res.ok && !more;
    busy();
    if (more) tell("Your approval is recorded; another person has to approve too.");
    if (res.ok) say(`${act === "deny" ? "Denied" : "Approved"} ${visText(p.server + "." + p.tool)}`);
  }
  /** Adds the signature of a passkey over the exact call. Returns an error for a person, or null. */
  async function signCall(body) {
    const res = await post("/console/api/approve/text", { ...body, host: location.hostname });
    if (!res.ok) return res.error;
    try { body.passkey = await sign(JSON.parse(res.text)); } catch (e) { return passkeyError(e); }
    return null;
  }
  /** Sets which buttons can be pressed, and says why not. */
  function busy() {
    const stop = asking || sent || expired();
    const unread = !args?.seen();
    const untyped = p.must_type && !typed.fits();
    for (const b of [deny, edit, remember]) b.disabled = stop;
    edit.disabled = stop || !whole || (whole.masked > 0 && exact === null);
    for (const b of [approve, ...panels.map((panel) => panel.go)]) b.disabled = stop || unread || untyped;
    node.classList.toggle("sent", asking || sent);
    attr(node, "aria-busy", asking ? "true" : null);
    put(hint, stop || !whole ? "" : unread ? "Scroll through the long texts to their end, in one form of the arguments; then you can approve." : untyped ? "The server says that this tool destroys something: type its name to approve." : "");
    attr(node, "data-ready", approve.disabled ? "no" : "yes");
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
    if (ms <= 0 !== deny.disabled && !asking && !sent) busy();
  }
  let drawn = "";
  function update() {
    const next = state.pending.get(id);
    if (!next) return;
    p = next;
    tick();
    const freezes = freezesOf(p).map(freezeText).join(" ");
    put(frozen, freezes);
    attr(frozen, "hidden", !freezes);
    const looking = othersAt(id);
    put(others, looking.length ? `Also looking at this request: ${looking.join(", ")}.` : "");
    attr(others, "hidden", !looking.length);
    const key = JSON.stringify(p);
    if (key === drawn) return;
    const digest = drawn && JSON.parse(drawn).digest !== p.digest;
    drawn = key;
    put(title, p.title ?? "");
    attr(node, "data-caller", p.connected ? "waits" : "gone");
    node.classList.toggle("gone", !p.connected);
    node.classList.toggle("destructive", p.must_type);
    tags.replaceChildren(...(p.connected ? [] : [h("span", { class: "tag bad" }, p.own ? "caller disconnected" : "no caller is connected")]), ...(isTool(p) ? riskTags(p) : kindTags(p)));
    attr(typed.node, "hidden", !p.must_type);
    approve.className = p.must_type ? "destroy" : "primary";
    attr(edit, "hidden", !p.may_edit);
    attr(remember, "hidden", p.needs > 1 || Boolean(p.missing) || p.passkey);
    put(approve, (p.needs > 1 ? `Approve (${p.yeses.length + 1} of ${p.needs})` : "Approve once") + (p.passkey ? " with a passkey" : ""));
    put(note, p.needs > 1 || p.missing || p.passkey
      ? [p.passkey && "A passkey has to sign this call.", p.needs > 1 && `${p.needs} people have to approve.`, p.yeses.length && `So far: ${p.yeses.join(", ")}.`, p.missing && `Still needed: an approver of ${visText(p.missing)}.`].filter(Boolean).join(" ")
      : p.may_remember ? "" : "You can remember this approval only with a condition: " + (isTool(p) && p.hints?.destructive === true
        ? p.claimed?.includes("destructive") ? "the server annotates this tool as destructive." : "the tool may be destructive."
        : `this server is not trusted, so its claim that the ${p.kind ?? "tool"} is harmless does not count.`));
    drawFacts();
    busy();
    if (digest) load();
  }
  function drawFacts() {
    const presence = h("span", { class: "presence " + (p.connected ? "here" : "away") }, p.connected
      ? "waiting for the decision"
      : !p.own ? "requested in another process or before a restart; an approval is valid for the identical call until it expires"
      : "disconnected; an approval stays valid for the identical call until it expires");
    const row = (label, ...kids) => [h("dt", {}, label), h("dd", {}, ...kids)];
    const more = whole ?? {};
    facts.replaceChildren(
      ...(more.reasons ? row("Reasons", h("ul", {}, ...more.reasons.map((r) => t("li", {}, r)))) : []),
      ...row("Caller", t("span", {}, p.caller), " ", presence),
      ...(p.client ? row("Client", t("span", {}, p.client)) : []),
      ...row("Description", t("div", { class: "prose", tabindex: "0", role: "group", "aria-label": "Description" }, more.description || more.schema?.description || (whole ? "nothing" : ""), true)),
      ...(more.flags?.length ? row("Flagged", h("ul", {}, ...more.flags.map((f) => t("li", {}, f)))) : []),
      ...row("Asked", timeTag(p.at), " as call ", h("a", { href: "#/calls/" + encodeURIComponent(p.call) }, visText(p.call)), ", approval ", t("code", {}, id)),
      ...row("Digest", t("code", { title: p.digest, class: "digest" }, String(p.digest ?? "").slice(0, 16)), " ", copyButton(() => p.digest)));
  }
  function drawRecent() {
    const calls = (whole.recent ?? []).filter((c) => c.id !== p.call);
    recentCalls.replaceChildren(...(calls.length ? [h("details", { class: "fold" }, h("summary", {}, `Recent calls of this caller: ${calls.length}`),
      h("ul", { class: "recent" }, ...calls.map((c) => h("li", {}, timeTag(c.at, clock), " ", t("b", {}, c.server ? `${c.server}.${c.tool}` : c.tool), " ", t("span", { class: "dim" }, c.outcome ?? c.state), " ", h("a", { href: "#/calls/" + encodeURIComponent(c.id) }, visText(c.id))))))] : []));
  }

  load();
  return { node, update, tick, reason, close: () => { closed = true; },
    approve: () => { if (p.must_type && !typed.fits()) typed.field.focus(); else run("approve"); } };
}
