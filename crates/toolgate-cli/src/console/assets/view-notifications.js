// Notifications: the entries of the config with a test message each, and the browsers that get push messages.

import { state, post } from "./api.js";
import { h, t, put, attr, keyed, button, plural, visText, pageRoot, tableHead, cell, errorBox } from "./dom.js";
import { span, setTime, timeTag } from "./time.js";

const CHANNELS = { desktop: "desktop", web_push: "push message to browsers", webhook: "webhook", ntfy: "ntfy", slack: "Slack", teams: "Teams", email: "e-mail" };

const root = pageRoot("notifications", "Notifications");
const [error, tell] = errorBox();
const none = h("div", { class: "empty", hidden: true }, h("h3", {}, "Nobody is notified"), h("p", {}, "Add [[notify]] to the config. Then people hear of approval requests while this page is closed."));
const rows = h("tbody", {});
const entries = h("table", { class: "grants" }, tableHead("Entry", "Channel", "Requests", "Last message", h("span", { class: "sr" }, "Test")), rows);
const entryBox = h("section", { class: "panel-box" }, h("h3", {}, "Entries of the config"), entries);
const browserRows = h("tbody", {});
const noBrowsers = h("p", { class: "dim" }, "No browser is subscribed. \u201cNotify me\u201d in the header subscribes this one.");
const browserTable = h("table", { class: "grants" }, tableHead("Person", "Push service", "Since", h("span", { class: "sr" }, "Remove")), browserRows);
const browsers = h("section", { class: "panel-box", "data-subscriptions": "", hidden: true }, h("h3", {}, "Browsers that get push messages"), noBrowsers, browserTable);
root.append(h("div", { class: "stack" }, error, none, entryBox, browsers));

const syncEntries = keyed(rows, (entry) => entry.name, makeEntry);
const syncBrowsers = keyed(browserRows, (one) => one.id, makeBrowser);

async function load() {
  const res = await post("/console/api/notifications", {});
  tell(res.error);
  if (!res.ok) return;
  const all = JSON.parse(res.text);
  syncEntries(all);
  attr(none, "hidden", all.length > 0);
  attr(entryBox, "hidden", !all.length);
  const pushes = all.some((entry) => entry.channel === "web_push") && (!state.me || state.me.rights?.includes("own"));
  attr(browsers, "hidden", !pushes);
  if (pushes) loadBrowsers();
}

async function loadBrowsers() {
  const res = await post("/console/api/push/subscriptions", {});
  if (!res.ok) return tell(res.error);
  const all = JSON.parse(res.text);
  syncBrowsers(all);
  attr(noBrowsers, "hidden", all.length > 0);
  attr(browserTable, "hidden", !all.length);
}

/** Which requests an entry is for. */
function scope(entry) {
  const words = [entry.tools.length ? entry.tools.join(", ") : "all tools"];
  if (entry.except.length) words.push("except " + entry.except.join(", "));
  if (entry.callers.length) words.push("of " + entry.callers.join(", "));
  if (entry.after_seconds) words.push("undecided for " + span(entry.after_seconds * 1000));
  if (entry.arguments) words.push("with arguments");
  if (entry.people) words.push(plural(entry.people, "person", "people") + " may decide there");
  return words.join("; ");
}

function makeEntry(first) {
  const requests = h("td", { "data-label": "Requests" }), mark = h("span", {}), time = h("time", {}), why = h("span", { class: "dim" });
  const test = button("Send a test message", { class: "small", "data-act": "test-notification", "aria-label": "Send a test message of " + visText(first.name) }, async () => {
    test.disabled = true;
    const res = await post("/console/api/notifications/test", { name: first.name });
    test.disabled = false;
    await load();
    tell(res.error && `The test message of ${visText(first.name)} was not sent: ${res.error}`);
  });
  const node = h("tr", { "data-notification": first.name }, cell("Entry", t("b", {}, first.name)), cell("Channel", CHANNELS[first.channel] ?? first.channel), requests, cell("Last message", mark, " ", time, " ", why), cell("", test));
  return { node, update(entry) {
    put(requests, scope(entry));
    const last = entry.last;
    put(mark, !last ? "none since the gateway started" : last.state);
    mark.className = !last ? "dim" : last.state === "sent" ? "tag" : "tag bad";
    attr(node, "data-last", last?.state ?? "none");
    attr(time, "hidden", !last);
    if (last) setTime(time, last.at);
    put(why, last?.why ?? "");
  } };
}

function makeBrowser(one) {
  const remove = button("Remove", { class: "danger small", "data-act": "remove-subscription", "aria-label": "Remove a browser of " + visText(one.person) }, async () => {
    remove.disabled = true;
    const res = await post("/console/api/push/remove", { id: one.id });
    remove.disabled = false;
    tell(res.error);
    loadBrowsers();
  });
  const node = h("tr", { "data-subscription": one.id }, cell("Person", t("b", {}, one.person || "the owner of a link"), one.issuer ? t("span", { class: "dim" }, ` by ${one.issuer}`) : ""),
    cell("Push service", t("code", {}, one.service)), cell("Since", timeTag(one.created)), cell("", remove));
  return { node, update() {} };
}

export const page = { id: "notifications", label: "Notifications", letter: "m", topics: ["policy", "pending"], draw() { if (state.ready) load(); } };
