// Sign-ins to upstream servers: the buttons of a server, and of each caller that signs in separately.

import { post } from "./api.js";
import { h, t, put, attr, keyed, button, visText } from "./dom.js";

/** Callers that have or need a sign-in of their own. */
export function ownSignIns(server, failed) {
  const rows = h("ul", { class: "own-list" });
  const none = h("p", { class: "dim" }, "Each caller signs in separately. No caller is signed in, and none has needed a sign-in recently.");
  const node = h("div", { class: "own", hidden: true }, none, rows);
  const sync = keyed(rows, (one) => one.caller, (one) => ownSignIn(server, one.caller, failed));
  return { node, update(all) {
    attr(node, "hidden", !all);
    attr(none, "hidden", (all ?? []).length > 0);
    sync(all ?? []);
  } };
}

/** One caller, with its sign-in. */
function ownSignIn(server, caller, failed) {
  const how = h("span", { class: "dim" });
  const sign = signing(server, caller, failed);
  const node = h("li", { "data-caller": caller }, t("b", {}, caller), " ", how, " ", sign.begin, " ", sign.out, sign.ask);
  return { node, update(one) {
    put(how, one.granted ? "is signed in" : "needs a sign-in");
    attr(node, "data-granted", one.granted ? "yes" : "no");
    sign.update(true, one.granted, one.granted);
  } };
}

/**
 * Buttons to sign in and out, for one caller or for all. They show where the user signs in, and who will use the account,
 * before the user leaves this page.
 */
export function signing(server, caller, failed) {
  const who = caller === null ? server : visText(caller);
  const begin = button("Sign in\u2026", { class: "small", hidden: true, "data-act": "sign-in", "aria-label": "Sign in for " + who }, () => ready());
  const out = button("Sign out", { class: "small", hidden: true, "data-act": "sign-out", "aria-label": "Sign out " + who }, () => signOut());
  const issuer = t("b", {}, ""), at = h("span", {});
  const users = caller === null
    ? h("span", {}, "by all callers that may use ", t("b", {}, server), ". Continue only if they may use your account.")
    : h("span", {}, "by ", t("b", {}, caller), " only. Continue only if this caller may use your account.");
  const words = h("span", {}, "You will sign in at the authorization server ", issuer, at, ". The credentials will be used ", users);
  let page = "";
  const go = button("Go to the sign-in page", { class: "primary small", "data-act": "go" }, () => location.assign(page));
  const ask = h("p", { class: "own-ask", role: "status", hidden: true }, words, " ", go, " ", button("Not now", { class: "small" }, () => show(false)));
  const show = (open) => { attr(ask, "hidden", !open); (open ? go : begin).focus(); };
  const say = (error) => { put(failed, error ?? ""); attr(failed, "hidden", !error); };
  const of = caller === null ? { server } : { server, caller };

  /** Requests the authorization page and its issuer from the gateway, which has validated both. */
  async function ready() {
    begin.disabled = true;
    const res = await post("/console/api/sign-in/begin", of);
    begin.disabled = false;
    const begun = res.ok ? JSON.parse(res.text) : null;
    if (!begun || !/^https?:\/\//.test(begun.page)) { say(res.error ?? "the gateway returned no page"); return; }
    say(null);
    page = begun.page;
    put(issuer, begun.issuer);
    put(at, `${begun.issuer}/`.startsWith(`${begun.origin}/`) ? "" : `, on a page at ${begun.origin}`);
    show(true);
  }

  async function signOut() {
    out.disabled = true;
    const res = await post("/console/api/sign-in/out", of);
    out.disabled = false;
    say(res.ok ? null : res.error);
  }

  return { begin, out, ask, update(takes, again, granted) {
    attr(begin, "hidden", !takes);
    attr(out, "hidden", !(takes && granted));
    // Also with another account, or to grant more.
    put(begin, again ? "Sign in again\u2026" : "Sign in\u2026");
  } };
}
