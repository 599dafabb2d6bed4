//! Classes of calls, by which the console counts and colors them.

use crate::runtime::call_feed::{console_outcome, refusal_class};
use serde_json::{Map, Value};

/// Class of a call that ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct CallClass {
    /// `allowed`, `approved`, `failed`, `cancelled`, or the class of a refusal: `rule`, `person`, `expired`, `frozen`,
    /// `invalid` and others.
    pub(crate) class: String,
    /// Outcome as the console shows it.
    pub(crate) outcome: String,
}

/// Classes that are not a refusal.
pub(crate) const NO_REFUSAL: [&str; 4] = ["allowed", "approved", "failed", "cancelled"];

impl CallClass {
    /// Returns the class of a call from the record of its end. `approved` says whether its begin has an approval.
    pub(super) fn of(fields: &Map<String, Value>, approved: bool) -> CallClass {
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        let outcome = console_outcome(text("out").unwrap_or("unknown"));
        let by = |policy: &str| {
            let steps = fields.get("trail").and_then(Value::as_array);
            let refuses = |step: &Value| step["by"] == policy && step["verdict"] == "refuse";
            steps.into_iter().flatten().any(refuses)
        };
        let class = match outcome {
            "ok" if approved => "approved",
            "ok" => "allowed",
            "cancelled" => "cancelled",
            "refused" => refusal_class(text("code").unwrap_or("refused"), by("freeze"), by("rate")),
            _ => "failed",
        };
        CallClass {
            class: class.to_owned(),
            outcome: outcome.to_owned(),
        }
    }

    /// Returns the class of refusal; `None` if the call was not refused.
    pub(crate) fn refusal(&self) -> Option<&str> {
        (!NO_REFUSAL.contains(&self.class.as_str())).then_some(&self.class)
    }
}
