// Further decisions about a call: approve with edited arguments, or remember the approval.

import { now, post } from "./api.js";
import { h, t, button, plural } from "./dom.js";
import { pretty, valid, members } from "./json.js";

const HOUR = 3600_000;
const SPANS = [["1 hour", HOUR], ["8 hours", 8 * HOUR], ["7 days", 168 * HOUR], ["30 days", 720 * HOUR]];

const panel = (kind, ...kids) => h("div", { class: "panel", hidden: true, "data-panel": kind }, ...kids);

/** Editor for the arguments. The gateway applies the rules to them again. */
export function editPanel(raw, run) {
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
    text.value = pretty(raw());
    text.focus();
  } };
}

/** Form for a remembered approval: duration, number of uses, condition and callers. */
export function rememberPanel(call, run) {
  const long = h("select", { "data-field": "for", "aria-label": "For how long" }, ...SPANS.map(([name, ms], i) => h("option", { value: String(ms), selected: i === 1 }, name)));
  const uses = h("input", { type: "number", min: "1", step: "1", "data-field": "uses", "aria-label": "Maximum number of calls", placeholder: "any number" });
  const when = h("input", { type: "text", maxlength: "4000", spellcheck: "false", autocomplete: "off", "data-field": "when", "aria-label": "Only when (CEL)", placeholder: "args.path.startsWith(\"/srv/\")" });
  const all = h("input", { type: "checkbox", "data-field": "all-callers" });
  const proposals = h("ul", { class: "proposals", "data-proposals": "" });
  const go = button("Approve and remember", { class: "primary", "data-act": "approve-remembered" }, run);
  const node = panel("remember",
    h("div", { class: "row" }, h("label", {}, "For ", long), h("label", {}, "at most ", uses, " times")),
    h("div", { class: "row" }, h("label", { class: "wide" }, "Only when ", when)), proposals,
    h("div", { class: "row" }, h("label", {}, all, " for all callers"), go));
  let loaded = false;
  /** Conditions made from the arguments, each with the past calls that it covers. */
  async function load() {
    loaded = true;
    const res = await post("/console/api/requests/conditions", { id: call().id });
    if (!res.ok) return;
    const { past, conditions } = JSON.parse(res.text);
    const covers = (n) => (past ? `covers ${n} of the last ${plural(past, "call")} of this tool that ran` : "no call of this tool ran, so there is none to compare with");
    proposals.replaceChildren(...conditions.map((one) => {
      const use = button("", { class: "quiet", "data-act": "use-condition" }, () => { when.value = one.when; when.focus(); });
      use.append(t("code", {}, one.when));
      return h("li", {}, use, h("small", { class: "dim" }, covers(one.covered)));
    }));
  }
  return { node, go, value: () => ({ remember: {
    until: Math.round(now() + Number(long.value)), uses: uses.value ? Math.max(1, Math.floor(Number(uses.value))) : null,
    when: when.value.trim() || null, all_callers: all.checked,
  } }), show(yes) {
    node.hidden = !yes;
    if (!yes) return;
    if (!loaded) load();
    (call().may_remember ? long : when).focus();
  } };
}
