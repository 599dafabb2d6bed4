// Further decisions about a call: approve with edited arguments, or remember the approval.

import { now } from "./api.js";
import { h, button } from "./dom.js";
import { pretty, valid, members } from "./json.js";

const HOUR = 3600_000;
const SPANS = [["1 hour", HOUR], ["8 hours", 8 * HOUR], ["7 days", 168 * HOUR], ["30 days", 720 * HOUR]];

const panel = (kind, ...kids) => h("div", { class: "panel", hidden: true, "data-panel": kind }, ...kids);

/** Editor for the arguments. The gateway applies the rules to them again. */
export function editPanel(call, run) {
  const text = h("textarea", { rows: "8", spellcheck: "false", autocomplete: "off", "data-field": "edit", "aria-label": "Arguments as JSON" });
  const wrong = h("p", { class: "error", role: "alert", hidden: true }, "This is not a JSON object.");
  const good = () => valid(text.value) && members(text.value) !== null;
  const go = button("Approve with these arguments", { class: "primary", "data-act": "approve-edited" }, () => {
    wrong.hidden = good();
    if (good()) run();
  });
  text.addEventListener("input", () => { if (good()) wrong.hidden = true; });
  const node = panel("edit", h("p", { class: "dim" }, "The call runs once, with these arguments. The audit log records who edited them."), text, wrong, h("div", { class: "row" }, go));
  return { node, go, value: () => ({ edit: text.value }), show(yes) {
    node.hidden = !yes;
    if (!yes) return;
    text.value = pretty(call().arguments_raw);
    text.focus();
  } };
}

/** Form for a remembered approval: duration, number of uses, condition and callers. */
export function rememberPanel(call, run) {
  const long = h("select", { "data-field": "for", "aria-label": "For how long" }, ...SPANS.map(([name, ms], i) => h("option", { value: String(ms), selected: i === 1 }, name)));
  const uses = h("input", { type: "number", min: "1", step: "1", "data-field": "uses", "aria-label": "Maximum number of calls", placeholder: "any number" });
  const when = h("input", { type: "text", maxlength: "4000", spellcheck: "false", autocomplete: "off", "data-field": "when", "aria-label": "Only when (CEL)", placeholder: "args.path.startsWith(\"/srv/\")" });
  const all = h("input", { type: "checkbox", "data-field": "all-callers" });
  const go = button("Approve and remember", { class: "primary", "data-act": "approve-remembered" }, run);
  const node = panel("remember",
    h("div", { class: "row" }, h("label", {}, "For ", long), h("label", {}, "at most ", uses, " times")),
    h("div", { class: "row" }, h("label", { class: "wide" }, "Only when ", when)),
    h("div", { class: "row" }, h("label", {}, all, " for all callers"), go));
  return { node, go, value: () => ({ remember: {
    until: Math.round(now() + Number(long.value)), uses: uses.value ? Math.max(1, Math.floor(Number(uses.value))) : null,
    when: when.value.trim() || null, all_callers: all.checked,
  } }), show(yes) {
    node.hidden = !yes;
    if (yes) (call().may_remember ? long : when).focus();
  } };
}
