// API keys of callers: created here and shown once, with their last use, and revoked here.

import { state, now, post } from "./api.js";
import { h, t, put, attr, keyed, button, copyButton, visText, pageRoot, cell, errorBox } from "./dom.js";
import { dateTime, setTime, timeTag } from "./time.js";

const DAY = 86_400_000;
const LIVES = [["30 days", 30 * DAY], ["90 days", 90 * DAY], ["1 year", 365 * DAY], ["no expiry", 0]];

const root = pageRoot("keys", "Keys");
const [error, tell] = errorBox();
const list = h("tbody", {});
const heads = ["Caller", "Created", "Until", "Last use"].map((x) => h("th", { scope: "col" }, x));
const table = h("table", { class: "grants keys-of-callers" }, h("thead", {}, h("tr", {}, ...heads, h("th", { scope: "col" }, h("span", { class: "sr" }, "Revoke")))), list);
const none = h("div", { class: "empty", hidden: true }, h("h3", {}, "No keys"), h("p", {}, "A key lets a program call over HTTP under a name of its own."));
const name = h("input", { type: "text", "data-field": "key-name", maxlength: "64", autocomplete: "off", spellcheck: "false", required: true, pattern: "[A-Za-z0-9._@\\-]+", placeholder: "ci", "aria-label": "Name of the new key" });
const life = h("select", { "data-field": "key-life", "aria-label": "Lifetime of the new key" }, ...LIVES.map(([label, ms], i) => h("option", { value: String(ms), selected: i === 1 }, label)));
const create = h("button", { type: "submit", class: "primary", "data-act": "create-key" }, "Create a key");
const form = h("form", { class: "tools-bar", on: { submit: (e) => { e.preventDefault(); make_key("keys/create", name.value.trim()); } } }, h("label", {}, "Name ", name), h("label", {}, "valid for ", life), create);
root.append(error, h("p", { class: "dim" }, "The name of the caller in rules and records is key:NAME. A key is shown once, when it is created; the gateway stores only its digest. Revoking a key ends everything that it started."), form, none, table);

const sync = keyed(list, (k) => k.name + " " + k.created, makeKey);

function draw() {
  sync(state.keys);
  attr(none, "hidden", state.keys.length > 0);
  attr(table, "hidden", !state.keys.length);
}

/** Creates or rotates a key, and shows it once. */
async function make_key(action, of, more = {}) {
  create.disabled = true;
  const res = await post("/console/api/" + action, { name: of, ...(Number(life.value) ? { expires: Math.round(now() + Number(life.value)) } : {}), ...more });
  create.disabled = false;
  tell(res.error);
  if (!res.ok) return;
  name.value = "";
  show_once(of, JSON.parse(res.text).key);
}

/** A dialog with the key. Closing it removes the key from the page. */
function show_once(of, key) {
  const text = h("code", { class: "once", "data-key-once": "", tabindex: "0" });
  text.textContent = key;
  const done = button("I have stored it", { class: "primary", "data-act": "key-stored" }, () => dialog.close());
  const dialog = h("dialog", { id: "key-dialog", "aria-labelledby": "key-title", on: { close: () => { text.textContent = ""; dialog.remove(); } } },
    h("h2", { id: "key-title" }, visText(`Key of ${of}`)), h("div", { class: "stack" },
      h("p", {}, "This is the only time that the key is shown. Give it to the program as the header ", h("code", {}, "Authorization: Bearer KEY"), "."),
      text, h("div", { class: "row" }, copyButton(() => key, "Copy", { class: "" }), done)));
  document.body.append(dialog);
  dialog.showModal();
  done.focus();
}


function makeKey(first) {
  const until = h("span", {}), end = h("time", {}), used = h("time", {}), never = h("span", {}, "never");
  const act = async (b, work) => { b.disabled = true; await work(); b.disabled = false; };
  const revoke = button("Revoke", { class: "danger small", "data-act": "revoke-key", "aria-label": "Revoke the key of " + visText(first.name) }, () => {
    if (!confirm(`Revoke the key of ${visText(first.name)}? Everything that it started ends, and new requests are rejected.`)) return;
    act(revoke, async () => tell((await post("/console/api/keys/revoke", { name: first.name })).error));
  });
  const rotate = button("Rotate", { class: "small", "data-act": "rotate-key", "aria-label": "Rotate the key of " + visText(first.name) }, () => {
    if (!confirm(`Rotate the key of ${visText(first.name)}? The old key is valid for one more hour.`)) return;
    act(rotate, () => make_key("keys/rotate", first.name, { expires: undefined, keep_seconds: 3600 }));
  });
  const node = h("tr", { "data-key": first.name }, cell("Caller", h("a", { href: "#/callers/" + encodeURIComponent("key:" + first.name) }, t("b", {}, "key:" + first.name))),
    cell("Created", h("span", {}, timeTag(first.created), t("span", { class: "dim" }, " by " + first.by))),
    cell("Until", h("span", {}, until, " ", end)), cell("Last use", used, never), cell("", h("span", { class: "row end" }, rotate, revoke)));
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
    attr(rotate, "hidden", Boolean(k.over));
  } };
}

export const page = { id: "keys", label: "Keys", letter: "k", topics: ["keys"], draw };
