//! JSON of calls for the console and the terminal.

use super::displayed_call::DisplayedCall;
use crate::timestamp::millis;
use serde_json::{Value, json};
use toolgate_policy::{SecretRedactor, sanitize_text};

/// Characters of the arguments in a row.
const MAX_ROW_ARGUMENT_CHARS: usize = 160;
/// Characters of the detail in a row.
const MAX_ROW_DETAIL_CHARS: usize = 200;

impl DisplayedCall {
    /// Returns the row of the call in a list: what can be seen at a glance.
    pub(super) fn row(&self) -> Value {
        let arguments = self.arguments.present();
        json!({
            "id": self.id, "at": millis(self.started_at), "caller": self.caller.name(), "server": self.server,
            "tool": SecretRedactor::redact_for_display(&self.tool), "method": self.op.method(), "state": self.state,
            "arguments": one_line(&arguments.text, MAX_ROW_ARGUMENT_CHARS), "verdict": self.rule_decision(), "outcome": self.outcome,
            "refusal": self.refusal(), "detail": self.shown_detail().map(|text| one_line(&text, MAX_ROW_DETAIL_CHARS)),
            "progress": self.progress_json(), "took_ms": self.duration_ms, "approval": self.approval, "cancel": self.cancellation(),
            "approved": self.is_approved(),
        })
    }

    /// Returns everything that the console shows of the call, except its result.
    pub(super) fn json(&self) -> Value {
        let (steps, arguments) = (self.decision_log.steps(), self.arguments.present());
        let decides = |verdict: &str| !matches!(verdict, "also" | "passed");
        let mut by_access = steps.iter().rev().filter(|s| s.policy == "access");
        let rule = by_access.find(|s| decides(s.decision));
        let trail: Vec<Value> = steps
            .iter()
            .map(|s| json!({"by": s.policy, "verdict": s.decision, "why": SecretRedactor::redact_for_display(&s.reason)}))
            .collect();
        json!({
            "id": self.id, "at": millis(self.started_at), "caller": self.caller.name(),
            "client": self.request_info.client.as_deref().map(SecretRedactor::redact_for_display), "server": self.server, "tool": SecretRedactor::redact_for_display(&self.tool), "method": self.op.method(),
            "revision": self.request_info.revision, "transport": self.request_info.transport, "state": self.state,
            "arguments": arguments.text, "masked": arguments.masked, "verdict": self.rule_decision(),
            "rule": rule.map(|s| SecretRedactor::redact_for_display(&s.reason)), "trail": trail, "outcome": self.outcome, "refusal": self.refusal(),
            "detail": self.shown_detail(), "progress": self.progress_json(), "took_ms": self.duration_ms,
            "approval": self.approval, "cancel": self.cancellation(), "approved": self.is_approved(),
        })
    }

    /// Returns what the detail page shows beyond [`DisplayedCall::json`].
    pub(super) fn more(&self) -> Value {
        let micros =
            |part: std::time::Duration| u64::try_from(part.as_micros()).unwrap_or(u64::MAX);
        let times = &self.times;
        json!({
            "times": {"rules": micros(times.rules), "waiting": micros(times.waiting), "server": micros(times.server), "result": micros(times.result)},
            "sanitized": self.decision_log.counts(), "result_bytes": self.result_bytes,
        })
    }

    /// Reports whether a person or a remembered approval allowed the call.
    pub(super) fn is_approved(&self) -> bool {
        self.decision_log
            .any_step(|step| matches!(step.decision, "approved" | "granted"))
    }

    fn shown_detail(&self) -> Option<String> {
        let detail = self.detail.as_deref()?;
        Some(SecretRedactor::redact_for_display(detail).into_owned())
    }

    fn progress_json(&self) -> Option<Value> {
        let progress = self.progress.as_ref()?;
        Some(
            json!({"progress": progress.progress, "total": progress.total, "message": progress.message}),
        )
    }

    /// Returns who cancelled the call, and the reason.
    fn cancellation(&self) -> Option<Value> {
        let cancelled = self.outcome == Some("cancelled");
        let why = self.decision_log.cancel_reason().filter(|_| cancelled)?;
        let reason = why.reason().map(sanitize_text);
        Some(
            json!({"by": why.audit_name(), "reason": reason.as_deref().map(SecretRedactor::redact_for_display)}),
        )
    }
}

/// Returns the beginning of a text on one line, with a note about the rest.
fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut chars = text.chars();
    let mut count = 0;
    let mut space = false;
    for c in chars.by_ref() {
        if matches!(c, '\n' | '\r' | '\t' | ' ') {
            space = true;
            continue;
        }
        if space && !line.is_empty() {
            line.push(' ');
            count += 1;
        }
        space = false;
        line.push(c);
        count += 1;
        if count >= most {
            break;
        }
    }
    match chars.count() {
        0 => line,
        rest => format!("{line} \u{2026} and {rest} more characters"),
    }
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_long_text_is_cut_and_says_how_long_the_rest_is() {
        assert_eq!(one_line("{\n  \"a\": 1\n}", 100), "{ \"a\": 1 }");
        let cut = one_line(&"x".repeat(200), 160);
        assert!(cut.ends_with("and 40 more characters"), "{cut}");
    }
}
