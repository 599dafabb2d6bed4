// Remembered approvals, each of which can be revoked here.

import { state, post } from "./api.js";
import { h, t, put, attr, keyed, button, pageRoot, cell } from "./dom.js";
import { dateTime, setTime, timeTag } from "./time.js";

const root = pageRoot("grants", "Grants");
const error = h("p", { class: "error", role: "alert", hidden: true });
const list = h("tbody", {});
const heads = ["Tool", "Caller", "Only when", "Given", "Used", "Until"].map((x) => h("th", { scope: "col" }, x));
const table = h("table", { class: "grants" }, h("thead", {}, h("tr", {}, ...heads, h("th", { scope: "col" }, h("span", { class: "sr" }, "Revoke")))), list);
const none = h("div", { class: "empty", hidden: true }, h("h3", {}, "No remembered approvals"), h("p", {}, "An approval given with \u201cRemember\u201d appears here and can be revoked."));
root.append(error, none, table);
const sync = keyed(list, (g) => g.id, makeGrant);

function draw() {
  sync(state.grants);
  attr(none, "hidden", state.grants.length > 0);
  attr(table, "hidden", !state.grants.length);
}


function makeGrant(first) {
  const used = h("span", {}), last = h("time", {}), until = h("span", {}), end = h("time", {}), over = h("span", { class: "tag bad" });
  const revoke = button("Revoke", { class: "danger small", "data-act": "revoke", "aria-label": "Revoke the remembered approval" }, async () => {
    revoke.disabled = true;
    const res = await post("/console/api/grants/revoke", { id: first.id });
    put(error, res.error ?? "");
    attr(error, "hidden", !res.error);
    revoke.disabled = false;
  });
  const node = h("tr", { "data-grant": first.id }, cell("Tool", t("b", {}, `${first.server}.${first.tool}`)), cell("Caller", t("span", {}, first.caller ?? "all callers")),
    cell("Only when", first.when ? t("code", {}, first.when) : h("span", { class: "dim" }, "always")),
    cell("Given", h("span", {}, timeTag(first.made), t("span", { class: "dim" }, " by " + first.by))), cell("Used", h("span", {}, used, last)), cell("Until", h("span", {}, end, over)), cell("", revoke));
  return { node, update(g) {
    const times = g.used === 0 ? "never" : g.used === 1 ? "once" : `${g.used} times`;
    put(used, (g.uses ? `${g.used} of ${g.uses} times` : times) + (g.last ? ", last " : ""));
    attr(last, "hidden", !g.last);
    if (g.last) setTime(last, g.last);
    attr(end, "hidden", Boolean(g.over));
    setTime(end, g.until, dateTime);
    put(over, g.over ?? "");
    attr(over, "hidden", !g.over);
  } };
}

export const page = { id: "grants", label: "Grants", letter: "r", topics: ["grants"], draw, count: () => state.grants.length || "" };
