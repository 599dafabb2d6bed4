// API keys of callers, each of which can be revoked here.

import { state, post } from "./api.js";
import { h, t, put, attr, keyed, button, visText, pageRoot } from "./dom.js";
import { dateTime, setTime, timeTag } from "./time.js";

const root = pageRoot("keys", "Keys");
const error = h("p", { class: "error", role: "alert", hidden: true });
const list = h("tbody", {});
const heads = ["Caller", "Created", "Until", "Last use"].map((x) => h("th", { scope: "col" }, x));
const table = h("table", { class: "grants keys-of-callers" }, h("thead", {}, h("tr", {}, ...heads, h("th", { scope: "col" }, h("span", { class: "sr" }, "Revoke")))), list);
const none = h("div", { class: "empty", hidden: true }, h("h3", {}, "No keys"), h("p", {}, "A key lets a program call over HTTP under a name of its own."));
root.append(error, h("p", { class: "dim" }, "Create a key in a terminal with ", h("code", {}, "toolgate keys create NAME"), "; it is shown there only once. Revoking a key ends everything that it started."), none, table);
const sync = keyed(list, (k) => k.name + " " + k.created, makeKey);

function draw() {
  sync(state.keys);
  attr(none, "hidden", state.keys.length > 0);
  attr(table, "hidden", !state.keys.length);
}

const cell = (label, ...kids) => h("td", { "data-label": label }, ...kids);

function makeKey(first) {
  const until = h("span", {}), end = h("time", {}), used = h("time", {}), never = h("span", {}, "never");
  const revoke = button("Revoke", { class: "danger small", "data-act": "revoke-key", "aria-label": "Revoke the key of " + visText(first.name) }, async () => {
    if (!confirm(`Revoke the key of ${visText(first.name)}? Everything that it started ends, and new requests are rejected.`)) return;
    revoke.disabled = true;
    const res = await post("/console/api/keys/revoke", { name: first.name });
    put(error, res.error ?? "");
    attr(error, "hidden", !res.error);
    revoke.disabled = false;
  });
  const node = h("tr", { "data-key": first.name }, cell("Caller", t("b", {}, "key:" + first.name)),
    cell("Created", h("span", {}, timeTag(first.created), t("span", { class: "dim" }, " by " + first.by))),
    cell("Until", h("span", {}, until, " ", end)), cell("Last use", used, never), cell("", revoke));
  return { node, update(k) {
    put(until, k.over ?? (k.expires ? "" : "no expiry"));
    until.className = k.over ? "tag bad" : "";
    const at = k.over ? k.revoked ?? k.expires : k.expires;
    attr(end, "hidden", !at);
    if (at) setTime(end, at, dateTime);
    attr(used, "hidden", !k.used);
    attr(never, "hidden", Boolean(k.used));
    if (k.used) setTime(used, k.used);
    attr(revoke, "hidden", Boolean(k.over));
  } };
}

export const page = { id: "keys", label: "Keys", letter: "k", topics: ["keys"], draw };
