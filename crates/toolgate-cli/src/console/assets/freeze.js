// Freeze dialog: everything, one caller or one server, with a reason.

import { state, post } from "./api.js";
import { h, put, attr, button, visText } from "./dom.js";

let opened = null;

/** Opens the dialog. `what` is `all`, `caller NAME` or `server ID`. */
export function openFreeze(what = "all") {
  opened?.node.remove();
  opened = makeDialog(what);
  document.body.append(opened.node);
  opened.node.showModal();
  opened.reason.focus();
}

/** A button that opens the dialog for one target. */
export const freezeButton = (what) => button("Freeze\u2026", { class: "danger small", "data-act": "freeze-one", "aria-label": "Freeze " + visText(what) }, () => openFreeze(what));

/** Callers that this page knows. */
function knownCallers() {
  const names = [...[...state.calls.values()].map((c) => c.caller), ...state.keys.map((k) => "key:" + k.name)];
  return [...new Set(names)].sort().slice(0, 200);
}

function makeDialog(what) {
  const [kind, ...rest] = what.split(" ");
  const name = rest.join(" ");
  const pick = (id, label) => h("label", {}, h("input", { type: "radio", name: "freeze-kind", value: id, checked: kind === id, on: { change: () => choose(id) } }), " ", label);
  const target = h("input", { type: "text", "data-field": "freeze-target", list: "freeze-names", autocomplete: "off", maxlength: "500", "aria-label": "Name of the caller or server", value: name });
  const names = h("datalist", { id: "freeze-names" });
  const reason = h("input", { type: "text", "data-field": "freeze-reason", autocomplete: "off", maxlength: "500", "aria-label": "Reason, given to callers", placeholder: "Reason, given to callers" });
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const note = h("p", { class: "dim", role: "status", hidden: true });
  const go = h("button", { type: "submit", class: "danger", "data-act": "freeze" }, "Freeze");
  let chosen = kind;
  function choose(id) {
    chosen = id;
    attr(target, "hidden", id === "all");
    attr(target, "placeholder", id === "server" ? "Name of the server" : "Name of the caller, such as key:ci");
    names.replaceChildren(...(id === "server" ? state.servers.map((s) => s.id) : knownCallers()).map((n) => h("option", { value: n })));
  }
  const node = h("dialog", { id: "freeze-dialog", "aria-labelledby": "freeze-title", on: { close: () => node.remove() } },
    h("h2", { id: "freeze-title" }, "Freeze"),
    h("form", { method: "dialog", class: "stack", on: { submit: run } },
      h("fieldset", {}, h("legend", { class: "sr" }, "What to freeze"), pick("all", "Everything"), pick("caller", "One caller"), pick("server", "One server")),
      target, names, reason,
      h("p", { class: "dim" }, "A freeze cancels running calls and rejects new ones, in all gateways on this data directory, until you thaw it."),
      error, note, h("div", { class: "row" }, go, button("Cancel", {}, () => node.close()))));
  async function run(e) {
    e.preventDefault();
    const name = target.value.trim();
    if (chosen !== "all" && !name) {
      put(error, `Write the name of the ${chosen}.`);
      attr(error, "hidden", false);
      target.focus();
      return;
    }
    go.disabled = true;
    const res = await post("/console/api/freeze", { what: chosen === "all" ? "all" : `${chosen} ${name}`, reason: reason.value.trim() });
    go.disabled = false;
    put(error, res.error ?? "");
    attr(error, "hidden", !res.error);
    if (!res.ok) return;
    const told = JSON.parse(res.text).note;
    if (!told) { node.close(); return; }
    // The freeze holds; the note says that nobody of that name has called yet.
    put(note, told);
    attr(note, "hidden", false);
    go.replaceWith(button("Close", { class: "primary" }, () => node.close()));
  }
  choose(kind);
  return { node, reason };
}
