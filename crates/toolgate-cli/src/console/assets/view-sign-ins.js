// Sign-ins to upstream servers: by all callers together, or by each caller separately.

import { state } from "./api.js";
import { h, t, put, attr, keyed, pageRoot } from "./dom.js";
import { ownSignIns, signing } from "./sign-in-buttons.js";

const root = pageRoot("sign-ins", "Sign-ins");
const list = h("div", { class: "servers" });
const none = h("div", { class: "empty", hidden: true }, h("h3", {}, "No server needs a sign-in"), h("p", {}, "Servers that you reach with OAuth appear here, with who is signed in."));
root.append(h("p", { class: "dim" }, "The gateway stores the credentials sealed, and renews them. Nobody who calls a tool sees them."), none, list);
const sync = keyed(list, (s) => s.id, make);

function draw() {
  const servers = state.servers.filter((s) => s.signs_in || s.own_sign_ins);
  sync(servers);
  attr(none, "hidden", servers.length > 0);
}

function make(first) {
  const mark = h("span", { class: "state" }), who = h("span", { class: "dim" });
  const failed = h("p", { class: "error", role: "alert", hidden: true });
  const sign = signing(first.id, null, failed), own = ownSignIns(first.id, failed);
  const node = h("article", { class: "server", "data-sign-in": first.id }, h("header", {}, t("h3", {}, first.id), mark, who, sign.begin, sign.out), t("code", { class: "command" }, first.command), sign.ask, failed, own.node);
  return { node, update(s) {
    const needs = s.state === "sign-in";
    put(mark, needs ? "needs a sign-in" : s.signed_in ? "signed in" : s.own_sign_ins ? "each caller signs in" : "not signed in");
    mark.className = "state " + (needs ? "warn" : s.signed_in ? "calm" : "idle");
    put(who, s.own_sign_ins ? "" : "one account for all callers");
    sign.update(s.signs_in, !needs && s.signed_in, s.signed_in);
    own.update(s.own_sign_ins);
  } };
}

export const page = {
  id: "sign-ins", label: "Sign-ins", letter: "n", topics: ["servers"], draw,
  count: () => state.servers.filter((s) => s.state === "sign-in" || s.own_sign_ins?.some((o) => !o.granted)).length || "",
  alert: () => state.servers.some((s) => s.state === "sign-in"),
};
