//! Decisions that the view sends, exactly as the other commands send them.

use crate::{
    args::ApproveOptions,
    cli::commands::decisions::{approve_request, approved_text},
};
use serde_json::{Value, json};
use toolgate_core::visible_line;

/// Decision of the person.
#[derive(Clone, Debug)]
pub(super) enum OperatorDecision {
    /// `toolgate approve`.
    Approve(ApproveOptions),
    /// `toolgate deny`.
    Deny { id: String, reason: String },
    /// `toolgate freeze`.
    Freeze { what: String, reason: String },
    /// `toolgate thaw`.
    Thaw { what: String },
}

impl OperatorDecision {
    /// Returns an approval without further options.
    pub(super) fn approve(id: &str) -> OperatorDecision {
        OperatorDecision::Approve(approve_options(id))
    }

    /// Returns an approval with edited arguments.
    pub(super) fn approve_edited(id: &str, arguments: &str) -> OperatorDecision {
        OperatorDecision::Approve(ApproveOptions {
            edit: Some(arguments.to_owned()),
            ..approve_options(id)
        })
    }

    /// Returns the request whose decision this is.
    pub(super) fn request_id(&self) -> Option<&str> {
        match self {
            OperatorDecision::Approve(options) => Some(&options.id),
            OperatorDecision::Deny { id, .. } => Some(id),
            OperatorDecision::Freeze { .. } | OperatorDecision::Thaw { .. } => None,
        }
    }

    /// Returns the action of the control protocol and its parameters.
    pub(super) fn action(&self) -> (&'static str, Value) {
        match self {
            OperatorDecision::Approve(options) => ("approve", approve_request(options)),
            OperatorDecision::Deny { id, reason } => ("deny", json!({"id": id, "reason": reason})),
            OperatorDecision::Freeze { what, reason } => {
                ("freeze", json!({"what": what, "reason": reason}))
            }
            OperatorDecision::Thaw { what } => ("thaw", json!({"what": what})),
        }
    }

    /// Returns the confirmation, from the response of the gateway.
    pub(super) fn done_text(&self, done: &Value) -> String {
        match self {
            OperatorDecision::Approve(options) => approved_text(options, done),
            OperatorDecision::Deny { id, .. } => visible_line(&format!("denied: {id}")),
            OperatorDecision::Freeze { what, .. } => {
                let note = done["note"].as_str();
                let note = note.map_or(String::new(), |note| format!("; {note}"));
                visible_line(&format!("frozen: {what}{note}"))
            }
            OperatorDecision::Thaw { what } => visible_line(&format!("thawed: {what}")),
        }
    }
}

fn approve_options(id: &str) -> ApproveOptions {
    ApproveOptions {
        id: id.to_owned(),
        edit: None,
        remember: false,
        lasts: None,
        until: None,
        uses: None,
        when: None,
        all_callers: false,
    }
}
