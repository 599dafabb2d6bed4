//! Notifications of a running request or of a list.

use super::meta;
use crate::{
    json::{Json, ObjectWriter},
    message::Id,
};

/// Method name of the notification that cancels a request.
pub const CANCELLED: &str = "notifications/cancelled";
/// Method name of the notification of a request's progress.
pub const PROGRESS: &str = "notifications/progress";
/// Method name of the log message notification.
pub const MESSAGE: &str = "notifications/message";
/// Severity levels of MCP log messages, least severe first.
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
/// Method name of the notification that a URL elicitation completed; its parameter is `elicitationId` (2025-11-25).
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
/// Method name of the notification that a server's list of tools changed.
pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// Method name of the notification that a server's lists of resources and templates changed.
pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
/// Method name of the notification that one resource was updated; its parameter is `uri`.
pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
/// Method name of the notification that a server's list of prompts changed.
pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
/// Method name of the notification that the client's roots changed (revisions up to 2025-11-25).
pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
/// Method name of the notification that opens a `subscriptions/listen` stream (2026-07-28).
pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// Progress of a request, as a `notifications/progress` message reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Completed amount; it grows with each notification.
    pub progress: f64,
    /// Total amount, if known.
    pub total: Option<f64>,
    /// Message for people (since 2025-03-26).
    pub message: Option<String>,
}

impl Progress {
    /// Reads the parameters of `notifications/progress`: the progress token, and the progress.
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

    /// Writes the parameters of `notifications/progress`.
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

/// Writes whole numbers without a fraction, as most peers do.
fn number(n: f64) -> Json {
    let whole = n.fract() == 0.0 && n.abs() < 9e15;
    Json::from_value(&if whole {
        serde_json::json!(n as i64)
    } else {
        serde_json::json!(n)
    })
}

/// Writes the parameters of `notifications/cancelled`.
pub fn cancelled(id: &Id, reason: &str) -> Json {
    let mut o = ObjectWriter::new();
    o.raw("requestId", id.json());
    o.str("reason", reason);
    o.finish()
}

/// Returns the `reason` in the parameters of `notifications/cancelled`, as the peer wrote it.
pub fn cancelled_reason(params: Option<&Json>) -> Option<String> {
    params?.get("reason")?.string()
}

/// Returns the `requestId` in the parameters of `notifications/cancelled`; `None` if it is malformed.
pub fn cancelled_id(params: Option<&Json>) -> Option<Id> {
    Id::read(&params?.get("requestId")?)
}
