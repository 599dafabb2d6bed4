// Remembered approvals, API keys of callers, and freezes. All of them can be revoked here.

import { state, post } from "./api.js";
import { h, t, put, attr, keyed, button, clock, stamp, visText } from "./dom.js";

const root = document.getElementById("view-grants");
const error = h("p", { class: "error", role: "alert", hidden: true });
const headings = (...names) => h("thead", {}, h("tr", {}, ...names.map((x) => h("th", { scope: "col" }, x)), h("th", { scope: "col" }, h("span", { class: "sr" }, "Revoke"))));
const grantList = h("tbody", {});
const grantTable = h("table", { class: "grants" }, headings("Tool", "Caller", "Only when", "Given", "Used", "Until"), grantList);
const noGrants = h("div", { class: "empty", hidden: true }, h("h3", {}, "No remembered approvals"), h("p", {}, "An approval given with \u201cRemember\u201d appears here and can be revoked."));
const freezeList = h("tbody", {});
const freezeTable = h("table", { class: "grants freezes" }, headings("Frozen", "Reason", "By", "Since"), freezeList);
const noFreezes = h("p", { class: "dim" }, "Nothing is frozen.");
const keyList = h("tbody", {});
const keyTable = h("table", { class: "grants keys-of-callers" }, headings("Caller", "Created", "Until", "Last use"), keyList);
const noKeys = h("p", { class: "dim" }, "There are no keys.");
root.append(h("h2", { class: "sr" }, "Grants"), error, noGrants, grantTable,
  h("section", { class: "freeze-box" }, h("h3", {}, "Keys of callers"),
    h("p", { class: "dim" }, "Create a key in a terminal with ", h("code", {}, "toolgate keys create NAME"), "; it is shown there only once. Revoking a key ends everything that it started."),
    noKeys, keyTable),
  h("section", { class: "freeze-box" }, h("h3", {}, "Freezes"),
    h("p", { class: "dim" }, "A freeze cancels running calls and rejects new ones, in all gateways on this data directory, until you thaw it."),
    noFreezes, freezeTable, freezeForm()));

const syncGrants = keyed(grantList, (g) => g.id, makeGrant);
const syncKeys = keyed(keyList, (k) => k.name + " " + k.created, makeKey);
const syncFreezes = keyed(freezeList, (f) => f.what, makeFreeze);

export function renderGrants() {
  syncGrants(state.grants);
  attr(noGrants, "hidden", state.grants.length > 0);
  attr(grantTable, "hidden", !state.grants.length);
  syncKeys(state.keys);
  attr(noKeys, "hidden", state.keys.length > 0);
  attr(keyTable, "hidden", !state.keys.length);
  syncFreezes(state.freezes);
  attr(noFreezes, "hidden", state.freezes.length > 0);
  attr(freezeTable, "hidden", !state.freezes.length);
}

/** Executes an action, and shows its error on this page. */
async function act(path, value, by) {
  by.disabled = true;
  const res = await post("/console/api/" + path, value);
  put(error, res.error ?? "");
  attr(error, "hidden", !res.error);
  by.disabled = false;
  return res.ok;
}

const cell = (label, kid) => h("td", { "data-label": label }, kid);
const day = (ms) => stamp(ms).slice(0, 16) + " UTC";

function makeGrant(first) {
  const used = h("span", {}), until = h("span", {});
  const revoke = button("Revoke", { class: "danger small", "data-act": "revoke", "aria-label": "Revoke the remembered approval" }, () => act("grants/revoke", { id: first.id }, revoke));
  const node = h("tr", { "data-grant": first.id }, cell("Tool", t("b", {}, `${first.server}.${first.tool}`)), cell("Caller", t("span", {}, first.caller ?? "all callers")),
    cell("Only when", first.when ? t("code", {}, first.when) : h("span", { class: "dim" }, "always")),
    cell("Given", h("span", {}, h("time", { title: stamp(first.made) }, clock(first.made)), t("span", { class: "dim" }, " by " + first.by))), cell("Used", used), cell("Until", until), cell("", revoke));
  return { node, update(g) {
    const times = g.used === 0 ? "never" : g.used === 1 ? "once" : `${g.used} times`;
    put(used, (g.uses ? `${g.used} of ${g.uses} times` : times) + (g.last ? `, last ${day(g.last)}` : ""));
    put(until, g.over ?? day(g.until));
    until.className = g.over ? "tag bad" : "";
  } };
}

function makeKey(first) {
  const until = h("span", {}), used = h("span", {});
  const revoke = button("Revoke", { class: "danger small", "data-act": "revoke-key", "aria-label": "Revoke the key of " + visText(first.name) }, () => {
    if (confirm(`Revoke the key of ${visText(first.name)}? Everything that it started ends, and new requests are rejected.`)) act("keys/revoke", { name: first.name }, revoke);
  });
  const node = h("tr", { "data-key": first.name }, cell("Caller", t("b", {}, "key:" + first.name)),
    cell("Created", h("span", {}, h("time", { title: stamp(first.created) }, day(first.created)), t("span", { class: "dim" }, " by " + first.by))),
    cell("Until", until), cell("Last use", used), cell("", revoke));
  return { node, update(k) {
    put(until, k.over ? `${k.over} ${day(k.revoked ?? k.expires)}` : k.expires ? day(k.expires) : "no expiry");
    until.className = k.over ? "tag bad" : "";
    put(used, k.used ? day(k.used) : "never");
    attr(revoke, "hidden", Boolean(k.over));
  } };
}

function makeFreeze(first) {
  const reason = h("span", {}), by = h("span", {}), since = h("time", {});
  const thaw = button("Thaw", { class: "small", "data-act": "thaw" }, () => act("thaw", { what: first.what }, thaw));
  const node = h("tr", { "data-freeze": first.what }, cell("Frozen", t("b", {}, first.what)), cell("Reason", reason), cell("By", by), cell("Since", since), cell("", thaw));
  return { node, update(f) {
    put(reason, f.reason ?? "");
    put(by, f.by);
    put(since, day(f.since));
  } };
}

/** Freezes everything, or one caller, with a reason. */
function freezeForm() {
  const what = h("input", { type: "text", "data-field": "freeze-caller", "aria-label": "Caller; empty for everything", placeholder: "Caller; empty for everything", autocomplete: "off", maxlength: "500" });
  const reason = h("input", { type: "text", "data-field": "freeze-reason", "aria-label": "Reason, given to callers", placeholder: "Reason, given to callers", autocomplete: "off", maxlength: "500" });
  const go = button("Freeze", { class: "danger", "data-act": "freeze" }, async () => {
    const caller = what.value.trim();
    const name = caller ? "caller " + caller : "all";
    if (!confirm(`Freeze ${visText(caller || "everything")}? Running calls are cancelled.`)) return;
    if (await act("freeze", { what: name, reason: reason.value }, go)) { what.value = ""; reason.value = ""; }
  });
  return h("div", { class: "row" }, what, reason, go);
}

/** A button that freezes one thing. */
export function freezeButton(what) {
  const go = button("Freeze", { class: "danger small", "data-act": "freeze-one" }, () => {
    if (confirm(`Freeze ${visText(what())}? Running calls are cancelled.`)) act("freeze", { what: what(), reason: "" }, go);
  });
  return go;
}
