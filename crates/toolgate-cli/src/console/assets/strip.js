// Status strip: the problems that every page shows until they are gone.

import { state, post } from "./api.js";
import { h, t, put, attr, button, keyed, plural, visText } from "./dom.js";
import { timeTag } from "./time.js";

const strip = document.getElementById("strip");
const list = h("div", { class: "strip-list" });
strip.append(list);
const sync = keyed(list, (one) => one.id, makeItem);

/** Below this many freezes, each has a line of its own. */
const MAX_LISTED_FREEZES = 3;

/** States of a server that a person should know about. */
export const isDown = (server) => ["failed", "backoff", "sign-in"].includes(server.state);

export function drawStrip() {
  sync(state.ready ? [...frozen(), ...audit(), ...config(), ...servers(), ...disk()] : []);
}

function frozen() {
  const others = state.freezes.filter((f) => f.what !== "all");
  const all = state.freezes.find((f) => f.what === "all");
  const out = [];
  if (all) out.push({ id: "frozen", freeze: all, level: "bad", key: JSON.stringify(all) });
  if (others.length <= MAX_LISTED_FREEZES) out.push(...others.map((f) => ({ id: "frozen " + f.what, freeze: f, level: "warn", key: JSON.stringify(f) })));
  else out.push({ id: "freezes", level: "warn", key: JSON.stringify(others), text: `${others.length} callers or servers are frozen.`, more: others });
  return out;
}

/** The audit log cannot be written or is damaged, or its checkpoint mirror does not work. */
function audit() {
  const record = state.record ?? {};
  const damaged = (record.damage ?? []).map((d) => `The audit log is damaged: ${visText(d.about)}: ${visText(d.why)}. Run: toolgate audit verify, then: toolgate audit acknowledge`).join(" ");
  const text = (record.state === "failed" && `The audit log cannot be written, so all calls are rejected: ${visText(record.why ?? "")}`)
    || damaged
    || (record.checkpoints && `The checkpoint mirror does not accept the checkpoints of the audit log: ${visText(record.checkpoints)}`);
  return text ? [{ id: "record", level: record.state === "failed" || damaged ? "bad" : "warn", key: text, text }] : [];
}

/** The config on disk was rejected; until a valid one is active. */
function config() {
  const refused = state.policy?.refused;
  return refused ? [{ id: "policy", level: "warn", key: refused, text: `The config was rejected, and the previous one stays active: ${visText(refused)}` }] : [];
}

function servers() {
  const down = state.servers.filter(isDown);
  if (!down.length) return [];
  const words = { failed: "failed", backoff: "restarting later", "sign-in": "needs a sign-in" };
  const names = down.slice(0, 4).map((s) => `${visText(s.id)} (${words[s.state]})`).join(", ");
  const text = `${plural(down.length, "server is", "servers are")} down: ${names}${down.length > 4 ? ` and ${down.length - 4} more` : ""}.`;
  return [{ id: "servers-down", level: "warn", key: text, text, href: "#/servers", link: "Show" }];
}

function disk() {
  const d = state.disk;
  if (!d?.low) return [];
  const text = `The disk of the data directory is almost full: ${megabytes(d.free)} free. Once it is full, the audit log cannot be written and all calls are rejected.`;
  return [{ id: "disk", level: "warn", key: text, text }];
}

const megabytes = (bytes) => `${Math.floor(bytes / 1048576).toLocaleString("en")} MiB`;

function makeItem(first) {
  const node = h("div", { class: "banner", role: "alert", id: domId(first.id), "data-freeze": first.freeze?.what ?? null });
  let drawn = null;
  return { node, update(one) {
    if (drawn === one.key) return;
    drawn = one.key;
    node.className = "banner " + one.level;
    node.replaceChildren(...(one.freeze ? freezeLine(one.freeze) : [t("span", {}, one.text), one.href ? h("a", { href: one.href }, one.link) : "", ...(one.more ?? []).flatMap((f) => [h("div", { "data-freeze": f.what }, ...freezeLine(f))])]));
  } };
}

const domId = (id) => (id.includes(" ") ? null : id);

function freezeLine(f) {
  const error = h("span", { class: "error", hidden: true });
  const what = f.what === "all" ? "Everything is" : `The ${f.what} is`;
  const thaw = button("Thaw", { class: "small", "data-act": "thaw", "aria-label": "Thaw " + visText(f.what === "all" ? "everything" : f.what) }, async () => {
    thaw.disabled = true;
    const res = await post("/console/api/thaw", { what: f.what });
    thaw.disabled = false;
    put(error, res.error ?? "");
    attr(error, "hidden", !res.error);
  });
  return [t("span", {}, `${what} frozen by ${f.by} since `), timeTag(f.since), t("span", {}, f.reason ? `: ${f.reason}.` : ", without a reason."), f.what === "all" ? " All calls are rejected. " : " ", thaw, " ", error];
}
