//! The notifications that belong to a running request or to a list.

use super::meta;
use crate::{
    json::{Json, ObjectWriter},
    message::Id,
};

/// A request is no longer wanted.
pub const CANCELLED: &str = "notifications/cancelled";
/// How far a request is.
pub const PROGRESS: &str = "notifications/progress";
/// A log message.
pub const MESSAGE: &str = "notifications/message";
/// The levels of log messages, the least grave first.
pub const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];
/// The user is done with a page; its parameter is `elicitationId` (2025-11-25).
pub const ELICITATION_DONE: &str = "notifications/elicitation/complete";
/// The list of tools went stale.
pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// The lists of resources and templates went stale.
pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
/// One resource went stale; its parameter is `uri`.
pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
/// The list of prompts went stale.
pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
/// The list of the client's roots went stale (revisions up to 2025-11-25).
pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
/// The first message of a subscription (2026-07-28).
pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// How far a request is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What is done; grows with each notification.
    pub progress: f64,
    /// What there is to do, where that is known.
    pub total: Option<f64>,
    /// For a person (since 2025-03-26).
    pub message: Option<String>,
}

impl Progress {
    /// Reads a notification: the token it names, and how far it is.
    pub fn read(params: &Json) -> Option<(Json, Progress)> {
        let token = params.get(meta::PROGRESS)?;
        let progress = params.get("progress")?.f64()?;
        let total = params.get("total").and_then(|t| t.f64());
        let message = params.get("message").and_then(|m| m.string());
        Some((
            token,
            Progress {
                progress,
                total,
                message,
            },
        ))
    }

    /// Writes the parameters of a notification.
    pub fn json(&self, token: &Json) -> Json {
        let mut o = ObjectWriter::new();
        o.raw(meta::PROGRESS, token);
        o.raw("progress", &number(self.progress));
        if let Some(total) = self.total {
            o.raw("total", &number(total));
        }
        if let Some(message) = &self.message {
            o.str("message", message);
        }
        o.finish()
    }
}

/// Whole numbers are written without a fraction, as most peers write them.
fn number(n: f64) -> Json {
    let whole = n.fract() == 0.0 && n.abs() < 9e15;
    Json::from_value(&if whole {
        serde_json::json!(n as i64)
    } else {
        serde_json::json!(n)
    })
}

/// The parameters of a cancellation.
pub fn cancelled(id: &Id, reason: &str) -> Json {
    let mut o = ObjectWriter::new();
    o.raw("requestId", id.json());
    o.str("reason", reason);
    o.finish()
}

/// The reason that a cancellation gives, as the peer wrote it.
pub fn cancelled_reason(params: Option<&Json>) -> Option<String> {
    params?.get("reason")?.string()
}

/// Which request a cancellation names; `None` where it is malformed.
pub fn cancelled_id(params: Option<&Json>) -> Option<Id> {
    Id::read(&params?.get("requestId")?)
}
