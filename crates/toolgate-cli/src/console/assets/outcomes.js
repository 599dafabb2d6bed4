// Outcomes of calls: their words, levels, and the classes by which charts color them.

const WORDS = { ok: "ok", tool_error: "tool error", rpc_error: "protocol error", timeout: "timed out", bad_answer: "unusable answer", cancelled: "cancelled", upstream_lost: "server lost", refused: "refused", denied: "denied", bug: "internal error", unknown: "unknown" };
/** Text for each class of refusal. The first five are those that people mix up: who or what said no. */
const REFUSED = { rule: "denied by a rule", person: "denied by a person", expired: "approval expired", frozen: "frozen", invalid: "invalid arguments", rate: "rate limited", busy: "too many calls", not_found: "unknown or hidden item", scope: "scope missing", unsupported: "capability missing in the client", record: "audit log unavailable", result: "result blocked" };
const REFUSED_LEVEL = { person: "bad", rule: "warn", frozen: "frozen", expired: "idle", invalid: "mark", not_found: "idle" };
const LEVEL = { ok: "calm", tool_error: "bad", rpc_error: "bad", timeout: "bad", bad_answer: "bad", upstream_lost: "bad", bug: "bad", cancelled: "idle", refused: "warn", denied: "warn" };
const STATES = { judging: "checking rules", waiting: "waiting for approval", running: "running" };

/** Text of the outcome of a call that is done. */
export const outcomeOf = (c) => REFUSED[c.refusal] ?? WORDS[c.outcome] ?? c.outcome ?? "done";
export const stateText = (c) => (c.state && c.state !== "done" ? STATES[c.state] ?? c.state : outcomeOf(c));
export const stateLevel = (c) => (c.state && c.state !== "done" ? c.state : REFUSED_LEVEL[c.refusal] ?? LEVEL[c.outcome] ?? "idle");

/** Classes of calls in charts, from the bottom of a bar to its top. */
export const CLASSES = [
  { id: "allowed", label: "allowed" },
  { id: "approved", label: "approved" },
  { id: "failed", label: "failed" },
  { id: "refused", label: "refused" },
  { id: "cancelled", label: "cancelled" },
];

/** The class of a call that is done. */
export function classOf(c) {
  if (c.outcome === "refused" || c.outcome === "denied") return "refused";
  if (c.outcome === "cancelled") return "cancelled";
  if (c.outcome !== "ok") return "failed";
  return c.approved ? "approved" : "allowed";
}

/** Full name of the item that a call used. */
export const nameOf = (c) => (c.server ? `${c.server}.${c.tool}` : c.tool) + (c.method === "completion/complete" ? " (completion)" : "");

/** Who cancelled a call, with the reason if there is one. */
const BY = { caller: "cancelled by its caller", link: "its caller disconnected", deadline: "the call timed out", operator: "stopped by an operator", stop: "the gateway shut down" };
export const cancelOf = (c) => (c.cancel ? (BY[c.cancel.by] ?? c.cancel.by) + (c.cancel.reason ? `: ${c.cancel.reason}` : "") : null);
