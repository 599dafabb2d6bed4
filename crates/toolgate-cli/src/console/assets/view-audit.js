// Audit log: search, verification with the chain drawn, and export.

import { state, now, post } from "./api.js";
import { h, t, put, attr, button, plural, textBox, visText, pageRoot } from "./dom.js";
import { svg } from "./charts.js";
import { setTime, dateTime, shortTime, timeTag } from "./time.js";
import { virtualList } from "./virtual.js";

const HOUR = 3600_000;
const SPANS = [["1 hour", HOUR], ["24 hours", 24 * HOUR], ["7 days", 168 * HOUR], ["30 days", 720 * HOUR], ["all", 0]];
const EVENTS = ["call.begin", "call.end", "deny", "call.unknown", "approval", "reveal", "freeze", "policy.reload", "config.saved", "key", "sign_in", "tool.pinned", "tool.changed", "tool.returned", "tool.settled", "tool.flagged", "definition", "server.started", "server.restart", "server.failed", "server.stopped", "elicit", "overload", "drain", "checkpoint", "segment.sealed", "genesis", "audit.acknowledged", "contents.erased", "console.revoked", "client.unheard"];
const FORMATS = [["jsonl", "JSON lines, as stored"], ["otlp", "OpenTelemetry logs"], ["ocsf", "OCSF"], ["cef", "CEF"]];

const root = pageRoot("audit", "Audit");
const field = (name, label, list = null) => h("input", { type: "search", "data-field": name, "aria-label": label, placeholder: label, autocomplete: "off", spellcheck: "false", list });
const fields = { text: field("text", "Text in a record"), tool: field("tool", "Tool"), caller: field("caller", "Caller"), server: field("server", "Server"), decision: field("decision", "Decision or outcome") };
const choose = (label, options, first) => h("select", { "aria-label": label, on: { change: () => search() } }, ...options.map(([value, text]) => h("option", { value, selected: value === first }, text)));
const since = choose("Since", SPANS.map(([label, ms]) => [String(ms), "Last " + label]), String(24 * HOUR));
since.lastChild.textContent = "All of the log";
const event = choose("Event", [["", "all events"], ...EVENTS.map((e) => [e, e])], "");
const from = h("input", { type: "datetime-local", "data-field": "from", "aria-label": "From (local time)" }), to = h("input", { type: "datetime-local", "data-field": "to", "aria-label": "To (local time)" });
const form = h("form", { class: "audit-form", on: { submit: (e) => { e.preventDefault(); search(); } } },
  fields.text, fields.tool, fields.caller, fields.server, fields.decision, event, since, h("label", {}, "from ", from), h("label", {}, "to ", to), h("button", { type: "submit", class: "primary", "data-act": "search" }, "Search"));
const found = h("span", { class: "dim", role: "status" });
const error = h("p", { class: "error", role: "alert", hidden: true });
const list = virtualList({ label: "Audit records", rowHeight: 34, key: (r) => `${r.chain} ${r.seq}`, make: makeRow, className: "records" });
const more = button("Older records", { "data-act": "older", hidden: true }, () => search(true));
const detail = h("aside", { class: "detail-pane", tabindex: "-1", "aria-label": "The record", hidden: true });
const panes = h("div", { class: "panes" }, h("div", { class: "list-pane" }, list.node, more), detail);
const verifyBox = h("div", { "data-verify": "" });
const verify = button("Verify the log", { "data-act": "verify" }, runVerify);
const format = h("select", { "aria-label": "Format of the export" }, ...FORMATS.map(([value, text]) => h("option", { value }, text)));
const exportIt = button("Export what is found", { "data-act": "export" }, runExport);
root.append(h("div", { class: "tools-bar" }, verify, format, exportIt), verifyBox, form, error, found, panes);

let records = [], next = null, open = null;

function filter() {
  const local = (input) => (input.value ? new Date(input.value).getTime() : null);
  const out = { event: event.value || null };
  for (const [name, input] of Object.entries(fields)) out[name] = input.value.trim() || null;
  out.from = local(from) ?? (Number(since.value) ? now() - Number(since.value) : 0);
  if (local(to) !== null) out.to = local(to) + 60000;
  return out;
}

let asked = 0;
async function search(older = false) {
  const mine = ++asked;
  const with_ = filter();
  if (older && next) with_.before = next;
  put(found, "Searching.");
  const res = await post("/console/api/audit/search", with_);
  if (mine !== asked) return;
  put(error, res.error ?? "");
  attr(error, "hidden", res.ok);
  if (!res.ok) { put(found, ""); return; }
  const answer = JSON.parse(res.text);
  records = older ? [...records, ...answer.records] : answer.records;
  next = answer.next;
  attr(more, "hidden", !next);
  list.set(records);
  put(found, `${plural(records.length, "record")}${next ? ", there may be older ones" : ""}.` + (answer.behind ? ` The index still reads ${Math.ceil(answer.behind / 1048576)} MiB of the log.` : ""));
  const caller = with_.caller ?? "";
  if (!records.length && caller && !/[:@]/.test(caller)) put(found, `No record. The audit log names a caller with a key "key:${visText(caller)}".`);
  if (answer.behind && !older) setTimeout(() => { if (mine === asked && !root.hidden) search(); }, 800);
}

/** What a record says, in one line. */
function summary(r) {
  const f = r.fields;
  const name = f.tool ?? f.name ?? f.server ?? f.srv ?? "";
  const what = [f.out ?? f.dec ?? f.state ?? f.verdict, f.code, f.approval, f.why ?? f.reason ?? f.text].filter((x) => typeof x === "string" && x);
  return { name: String(name), what: what.join(" \u00b7 ") };
}

function makeRow(first) {
  let r = first;
  const time = h("time", {}), ev = h("span", { class: "tag" }), name = h("button", { type: "button", class: "open", on: { click: () => show(r) } }), who = h("span", { class: "dim" }), what = h("span", { class: "dim" });
  const node = h("div", { class: "record" }, time, ev, h("span", {}, name), who, what);
  return { node, update(next) {
    r = next;
    const s = summary(r);
    setTime(time, r.ts, shortTime);
    put(ev, r.event);
    ev.className = "tag " + (r.event === "deny" ? "bad" : r.event === "approval" || r.event === "freeze" || r.event === "reveal" ? "warn" : "");
    put(name, s.name || r.event);
    put(who, r.fields.caller ?? r.fields.who ?? r.fields.by ?? "");
    put(what, s.what);
    attr(node, "data-record", r.seq);
    node.classList.toggle("current", open === r);
  } };
}

function show(r) {
  open = r;
  attr(detail, "hidden", !r);
  panes.classList.toggle("with-detail", Boolean(r));
  for (const part of list.parts()) part.node.classList.toggle("current", part.item === r);
  if (!r) return;
  const call = r.fields.call;
  detail.replaceChildren(button("Close", { class: "quiet close", "data-act": "close" }, () => show(null)), h("article", { class: "card", "aria-label": "Audit record" },
    h("h3", {}, visText(r.event)), h("p", {}, timeTag(r.ts, dateTime), t("span", { class: "dim" }, ` record ${r.seq} of chain ${r.chain}`)),
    call ? h("p", {}, h("a", { href: "#/calls/" + encodeURIComponent(call) }, "The call ", visText(call))) : "",
    h("dl", { class: "facts" }, ...Object.entries(r.fields).filter(([key]) => !["h", "prev", "v", "mono", "boot", "trail", "args", "res"].includes(key)).flatMap(([key, value]) => [t("dt", {}, key), t("dd", {}, typeof value === "string" ? value : JSON.stringify(value), true)])),
    ...(Array.isArray(r.fields.trail) ? [h("h4", {}, "Decisions"), h("table", { class: "steps" }, h("tbody", {}, ...r.fields.trail.map((s) => h("tr", {}, t("th", { scope: "row" }, s.by), h("td", {}, t("span", { class: "tag" }, s.verdict)), t("td", {}, s.why)))))] : []),
    ...["args", "res"].filter((key) => r.fields[key]).map((key) => textBox(key === "args" ? "Arguments" : "Result", r.fields[key])),
    h("details", { class: "fold" }, h("summary", {}, "The record as it is stored"), textBox("Record", r.raw))));
  detail.focus({ preventScroll: true });
}

// Verification -------------------------------------------------------------

async function runVerify() {
  verify.disabled = true;
  verifyBox.replaceChildren(h("p", { class: "dim", role: "status" }, "Verifying every record of the log. This reads all of it."));
  const res = await post("/console/api/audit/verify", {});
  verify.disabled = false;
  verifyBox.replaceChildren(res.ok ? drawVerify(JSON.parse(res.text)) : t("p", { class: "error", role: "alert" }, res.error));
}

const VERDICTS = { intact: ["calm", "intact"], broken: ["bad", "broken"], cannot_tell: ["warn", "not provable"] };

function drawVerify(v) {
  const [level, word] = VERDICTS[v.verdict] ?? ["warn", v.verdict];
  return h("section", { class: "panel-box verify", "data-verdict": v.verdict },
    h("h3", {}, "The log is ", h("span", { class: "tag " + level }, word)),
    v.has_mirror ? "" : h("p", { class: "dim" }, "No checkpoint mirror was compared, so records cut off at the end would not be noticed."),
    ...v.chains.map((c) => drawChain(c, (v.segments ?? []).filter((s) => s.chain === c.chain))));
}

/** A chain: its segments as linked boxes, and how far its records are signed and mirrored. */
function drawChain(c, segments) {
  const SHOWN = 12, W = 66, H = 30;
  const list = segments.slice(-SHOWN), hidden = segments.length - list.length, gone = c.last_retired_segment;
  const boxes = [...(gone ? [{ label: `1\u2013${gone}`, kind: "gone", about: `segments 1 to ${gone} were removed by retention` }] : []), ...(hidden ? [{ label: `+${hidden}`, kind: "ok", about: `${hidden} older segments` }] : []),
    ...list.map((s) => ({ label: String(s.number), kind: c.first_fault && s.number === c.first_fault.segment ? "bad" : s.sealed ? "ok" : "open", about: `segment ${s.number}, ${Math.ceil(s.bytes / 1024)} KiB, ${s.sealed ? "sealed" : "open"}` }))];
  const width = boxes.length * (W + 14), signed = c.records ? Math.min(1, c.signed / c.records) : 0, mirrored = c.mirrored === null ? null : c.records ? Math.min(1, c.mirrored / c.records) : 0;
  const drawing = svg("svg", { class: "chain", width, height: 64, viewBox: `0 0 ${width} 64`, role: "img", "aria-label": `Chain ${visText(c.chain)}: ${boxes.map((b) => b.about).join("; ")}` },
    ...boxes.flatMap((b, i) => [i ? svg("line", { class: "chain-link", x1: i * (W + 14) - 14, x2: i * (W + 14), y1: H / 2 + 2, y2: H / 2 + 2 }) : null,
      svg("g", { class: "chain-box k-" + b.kind }, svg("title", {}, b.about), svg("rect", { x: i * (W + 14) + 1, y: 2, width: W - 2, height: H, rx: 5 }), svg("text", { x: i * (W + 14) + W / 2, y: H / 2 + 6, "text-anchor": "middle" }, b.label))]),
    svg("rect", { class: "chain-all", x: 1, y: 44, width: width - 16, height: 6, rx: 3 }), svg("rect", { class: "chain-signed", x: 1, y: 44, width: (width - 16) * signed, height: 6, rx: 3 }),
    mirrored === null ? null : svg("rect", { class: "chain-mirrored", x: 1, y: 54, width: (width - 16) * mirrored, height: 6, rx: 3 }));
  return h("div", { class: "chain-block", "data-chain": c.chain }, h("p", {}, t("b", {}, c.chain), c.live ? h("span", { class: "tag calm" }, "a running gateway writes it") : "", t("span", { class: "dim" }, ` records ${c.first_record} to ${c.records}, ${plural(c.checkpoints, "checkpoint")}`)),
    h("div", { class: "scroll" }, drawing),
    h("p", { class: "dim" }, `Signed up to record ${c.signed}` + (c.unsigned ? `, ${plural(c.unsigned, "record")} after the last checkpoint` : "") + (c.mirrored === null ? "" : `; mirrored up to record ${c.mirrored}`) + "."),
    c.first_fault ? t("p", { class: "error" }, `First fault: ${Object.entries(c.first_fault).map(([k, x]) => `${k} ${typeof x === "string" ? x : JSON.stringify(x)}`).join(", ")}`) : "",
    ...(c.missing_evidence ?? []).map((m) => t("p", { class: "dim" }, m)));
}

// Export -------------------------------------------------------------------

async function runExport() {
  exportIt.disabled = true;
  const res = await post("/console/api/audit/export", { ...filter(), format: format.value });
  exportIt.disabled = false;
  put(error, res.error ?? "");
  attr(error, "hidden", res.ok);
  if (!res.ok) return;
  const { text, cut } = JSON.parse(res.text);
  const url = URL.createObjectURL(new Blob([text], { type: "application/octet-stream" }));
  const link = h("a", { href: url, download: `toolgate-audit-${new Date(now()).toISOString().slice(0, 19).replace(/:/g, "")}.${format.value === "cef" ? "cef" : "jsonl"}`, class: "sr" });
  root.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
  put(found, cut ? "The export has the newest 32 MiB; use `toolgate audit export` for all of it." : `Exported ${plural(text.split("\n").length - 1, "record")}.`);
}

let began = false;
export const page = {
  id: "audit", label: "Audit", letter: "u", topics: [],
  draw() { if (!began && state.ready) { began = true; search(); } },
  key(pressed) { if (pressed === "/") { fields.text.focus(); return true; } if (pressed === "Escape" && open) { show(null); return true; } return false; },
  /** `find?caller=…&tool=…` as the rest of the address searches at once. */
  show(rest) {
    if (!rest?.startsWith("find?")) return;
    const wanted = new URLSearchParams(rest.slice(5));
    for (const [name, input] of Object.entries(fields)) if (wanted.has(name)) input.value = wanted.get(name);
    began = true;
    search();
  },
};
