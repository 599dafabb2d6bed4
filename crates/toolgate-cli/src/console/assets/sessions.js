// Sessions: the browsers in which people are signed in to the console.

import { post } from "./api.js";
import { h, t, keyed, button, visText, tableHead, cell, errorBox } from "./dom.js";
import { dateTime, timeTag } from "./time.js";

const [error, tell] = errorBox();
const rows = h("tbody", {});
export const sessions = h("section", { class: "panel-box", "data-sessions": "" }, h("h3", {}, "People who are signed in to the console"), error,
  h("table", { class: "grants" }, tableHead("Person", "Groups", "Since", "Until", h("span", { class: "sr" }, "End")), rows));
const sync = keyed(rows, (one) => one.id, makeSession);

export async function loadSessions() {
  const res = await post("/console/api/console/sessions", {});
  if (!res.ok) return tell(res.error);
  sync(JSON.parse(res.text));
}

function makeSession(one) {
  const name = one.who || "the owner of a link";
  const end = button("End", { class: "danger small", "data-act": "end-session", "aria-label": `End the session of ${visText(name)}` }, async () => {
    if (!confirm(`End the session of ${visText(name)}? That browser has to sign in again.`)) return;
    end.disabled = true;
    const res = await post("/console/api/console/end", { id: one.id });
    end.disabled = false;
    tell(res.error);
    loadSessions();
  });
  const node = h("tr", { "data-session": one.id }, cell("Person", t("b", {}, name), one.issuer ? t("span", { class: "dim" }, ` by ${one.issuer}`) : ""),
    cell("Groups", (one.groups ?? []).map(visText).join(", ") || "\u2013"), cell("Since", timeTag(one.since)), cell("Until", timeTag(one.expires, dateTime)), cell("", end));
  return { node, update() {} };
}
