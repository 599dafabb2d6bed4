// Passkeys of approvers: the enrolled ones, a new one, and requests that wait for the signature of an enrolled one.

import { state, post } from "./api.js";
import { h, t, attr, button, copyButton, plural, pageRoot, say, cell, errorBox } from "./dom.js";
import { timeTag } from "./time.js";
import { create, sign, passkeyError } from "./passkey.js";

const root = pageRoot("passkeys", "Passkeys");
const [error, tell] = errorBox();
const notes = h("div", { class: "stack" });
const label = h("input", { type: "text", "data-field": "passkey-label", maxlength: "60", autocomplete: "off", required: true, placeholder: "laptop", "aria-label": "Name of the passkey" });
const admin = h("input", { type: "checkbox", "data-field": "passkey-admin" });
const adminLabel = h("label", {}, admin, " may sign for other people");
const add = h("button", { type: "submit", class: "primary", "data-act": "approve-add-passkey" }, "Add a passkey");
const form = h("form", { class: "tools-bar", on: { submit: (e) => { e.preventDefault(); act(add, enroll); } } }, h("label", {}, "Name ", label), adminLabel, add);
const waiting = h("div", {}), enrolled = h("div", {});
root.append(error, h("p", { class: "dim" }, "With a passkey, an approver signs the exact call. Rules with passkey = true accept no other approval. An enrolled passkey has to sign each enrollment and removal."), notes, form, waiting, enrolled);

let list = null, busy = false;
const host = location.hostname;

/** Runs the work of a button, and shows its error. */
async function act(pressed, work) {
  if (busy) return;
  busy = pressed.disabled = true;
  tell(null);
  try { await work(); } catch (e) { tell(e.shown ?? passkeyError(e)); }
  busy = pressed.disabled = false;
  load();
}

/** Posts an action; throws its error. */
async function ask(action, value) {
  const res = await post("/console/api/" + action, value);
  if (!res.ok) throw Object.assign(new Error(res.error), { shown: res.error });
  return JSON.parse(res.text);
}

async function enroll() {
  const here = list.addresses.some((one) => new URL(one).hostname === host);
  if (!here) throw Object.assign(new Error(), { shown: list.addresses.length ? "passkeys do not work at this address; open the console at " + list.addresses.join(" or ") : "passkeys work at no address of this console; set console_url in the config to its https address" });
  const person = state.me?.name ?? "";
  const own = list.passkeys.filter((one) => one.person === person && one.address === host).map((one) => one.credential);
  const made = await create(person, host, own);
  const request = await ask("passkeys/prepare", { ...made, host, label: label.value.trim(), admin: admin.checked });
  const proof = await sign({ challenge: request.challenge, relying_party: host, allowed: [made.credential] });
  const done = await ask("passkeys/request", { text: request.text, proof });
  label.value = "";
  admin.checked = false;
  say(done.first ? "The first passkey is enrolled" : `The request ${done.id} waits for the signature of an enrolled passkey`);
}

/** Signs a change of the list with an enrolled passkey. */
async function change(wanted) {
  const text = await ask("passkeys/sign", { ...wanted, host });
  const by = await sign(text);
  await ask("passkeys/change", { text: text.text, by });
}

async function load() {
  const res = await post("/console/api/passkeys", {});
  if (!res.ok) { tell(res.error); return; }
  list = JSON.parse(res.text);
  draw();
}

function table(rows, last, of) {
  const heads = ["Person", "Name", "At", "Since"].map((x) => h("th", { scope: "col" }, x));
  return h("table", { class: "grants passkeys" }, h("thead", {}, h("tr", {}, ...heads, h("th", { scope: "col" }, h("span", { class: "sr" }, last)))), h("tbody", {}, ...rows.map((one) =>
    h("tr", { "data-passkey": one.credential.slice(0, 16) }, cell("Person", t("b", {}, one.person)), cell("Name", t("span", {}, one.label), one.id ? t("code", { "data-request": one.id }, one.id) : "", one.admin ? h("span", { class: "tag" }, "may sign for others") : ""),
      cell("At", t("span", {}, one.address)), cell("Since", timeTag(one.at)), cell("", of(one))))));
}

function digest(name, text) {
  return h("p", {}, name + " ", h("code", { class: "digest", "data-digest": name }, text), " ", copyButton(() => text));
}

function draw() {
  const { enabled, anchor, passkeys, requests, problem, head } = list;
  attr(form, "hidden", !enabled || Boolean(problem));
  attr(adminLabel, "hidden", !passkeys.length);
  const out = [];
  if (!enabled) out.push(h("p", {}, "Passkeys are off. Write ", h("code", {}, "[passkeys]"), " in the config to turn them on."));
  if (problem) out.push(t("p", { class: "warning" }, problem));
  if (head) out.push(digest("Digest of the last change", head));
  if (head && !anchor) out.push(h("p", { class: "warning", "data-anchor": "" }, "No passkey counts yet. If these passkeys are yours, set ", t("code", {}, `anchor = "${head}"`), " in ", h("code", {}, "[passkeys]"), " of the config."));
  if (enabled && !head && !problem) out.push(h("p", { class: "dim" }, "No passkey is enrolled. The first one may sign for others."));
  notes.replaceChildren(...out);
  waiting.replaceChildren(...(requests.length ? [h("section", { class: "panel-box" }, h("h3", {}, plural(requests.length, "request waits", "requests wait") + " for a signature"),
    table(requests, "Sign", (one) => { const b = button("Sign", { class: "primary small", "data-act": "approve-sign-passkey", "aria-label": `Enroll the passkey ${one.label} of ${one.person}` }, () => act(b, () => change({ request: one.id }))); return b; }))] : []));
  enrolled.replaceChildren(...(passkeys.length ? [table(passkeys, "Remove", (one) => { const b = button("Remove", { class: "danger small", "data-act": "approve-remove-passkey", "aria-label": `Remove the passkey ${one.label} of ${one.person}` }, () => act(b, () => change({ remove: one.credential }))); return b; })] : []));
}

export const page = { id: "passkeys", label: "Passkeys", letter: "p", topics: ["policy", "passkeys"], draw() { if (state.ready && !busy) load(); } };
