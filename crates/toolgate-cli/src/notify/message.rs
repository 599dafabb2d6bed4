//! Messages of notifications: about one approval request, or a digest of expired ones.

use crate::{
    config::RequestRisk,
    pretty_json,
    timestamp::{format_timestamp, millis},
};
use serde_json::json;
use std::{sync::Arc, time::SystemTime};
use toolgate_core::visible_line;
use toolgate_policy::{ApprovalView, SecretRedactor};

/// Maximum length of the arguments in a message, in characters. A message that omits a part says so.
const MAX_ARGUMENT_CHARS: usize = 2000;
/// Maximum number of requests that a digest names.
const MAX_DIGEST_LINES: usize = 20;

/// Message about one approval request, without arguments unless the operator asks for them.
#[derive(Clone, Debug)]
pub(crate) struct RequestMessage {
    /// Id of the approval.
    pub(crate) approval: Arc<str>,
    /// Digest of the call that a decision must name.
    pub(crate) digest: String,
    /// Full name of the item.
    pub(crate) tool: String,
    pub(crate) caller: String,
    /// True unless a trusted server marks the tool as read-only or not destructive.
    pub(crate) is_destructive: bool,
    /// Number of different approvers that the call needs.
    pub(crate) required_approvers: usize,
    /// True if any single person may approve.
    pub(crate) needs_one_person: bool,
    pub(crate) requested_at: SystemTime,
    pub(crate) expires_at: SystemTime,
    /// Address of the page that shows the request. Opening it decides nothing.
    pub(crate) link: String,
    /// Arguments with known secrets removed, if the operator asks for them.
    pub(crate) arguments: Option<MessageArguments>,
}

/// Arguments in a message.
#[derive(Clone, Debug)]
pub(crate) struct MessageArguments {
    pub(crate) text: String,
    /// True if the text is all of the arguments, without removed secrets.
    pub(crate) is_whole: bool,
}

/// Request that expired without a decision, for a digest.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ExpiredRequest {
    pub(crate) approval: Arc<str>,
    pub(crate) tool: String,
    pub(crate) caller: String,
    pub(crate) expired_at: SystemTime,
}

/// Notification: what a channel sends.
#[derive(Clone, Debug)]
pub(crate) enum Notification {
    /// A request that waits for a decision.
    Request(Box<RequestMessage>),
    /// Requests that expired without a decision.
    Digest {
        expired: Vec<ExpiredRequest>,
        /// Address of the console.
        link: String,
    },
    /// Test message, which a person asked for.
    Test {
        /// Name of the `[[notify]]` entry.
        entry: String,
        /// Address of the console.
        link: String,
    },
}

impl RequestMessage {
    /// Returns the message about a request, with a link below this address of the console.
    pub(crate) fn new(view: &ApprovalView, console: &str, with_arguments: bool) -> RequestMessage {
        RequestMessage {
            approval: view.id.clone(),
            digest: view.binding.arguments.clone(),
            tool: visible_line(&view.item.full_name()),
            caller: visible_line(view.binding.caller.name()),
            is_destructive: RequestRisk::of(view.item.annotations()) == RequestRisk::Destructive,
            required_approvers: view.requirement.approvers(),
            needs_one_person: view.requirement.is_single(),
            requested_at: view.requested_at,
            expires_at: view.expires_at,
            link: format!("{console}#/inbox/{}", view.id),
            arguments: with_arguments.then(|| MessageArguments::of(view)),
        }
    }

    /// Returns whether a person may decide by the message alone: it has all of the call, and one approver suffices.
    pub(crate) fn is_decidable(&self) -> bool {
        let arguments = self.arguments.as_ref();
        self.needs_one_person && arguments.is_some_and(|arguments| arguments.is_whole)
    }
}

impl MessageArguments {
    fn of(view: &ApprovalView) -> MessageArguments {
        let pretty = pretty_json::pretty(&view.arguments);
        let redacted = SecretRedactor::redact_for_display(&pretty);
        let is_redacted = redacted != pretty;
        let text = toolgate_core::visible(&redacted);
        match text.char_indices().nth(MAX_ARGUMENT_CHARS) {
            None => MessageArguments {
                is_whole: !is_redacted,
                text,
            },
            Some((at, _)) => {
                let omitted = text.len() - at;
                MessageArguments {
                    text: format!(
                        "{}\n… ({omitted} more bytes; open the request to see all)",
                        &text[..at]
                    ),
                    is_whole: false,
                }
            }
        }
    }
}

impl Notification {
    /// Returns the id of the approval, for a message about one.
    pub(crate) fn approval(&self) -> Option<&Arc<str>> {
        match self {
            Notification::Request(request) => Some(&request.approval),
            Notification::Digest { .. } | Notification::Test { .. } => None,
        }
    }

    /// Returns the address that the message links to.
    pub(crate) fn link(&self) -> &str {
        match self {
            Notification::Request(request) => &request.link,
            Notification::Digest { link, .. } | Notification::Test { link, .. } => link,
        }
    }

    /// Returns the title, one line.
    pub(crate) fn title(&self) -> String {
        match self {
            Notification::Request(request) => format!("{} asks for approval", request.caller),
            Notification::Digest { expired, .. } => match expired.len() {
                1 => "1 approval request expired".to_owned(),
                count => format!("{count} approval requests expired"),
            },
            Notification::Test { .. } => "Test message".to_owned(),
        }
    }

    /// Returns the text below the title.
    pub(crate) fn text(&self) -> String {
        match self {
            Notification::Request(request) => {
                let mut text = format!("{} calls {}.", request.caller, request.tool);
                if request.is_destructive {
                    text += " The tool may destroy data.";
                }
                if request.required_approvers > 1 {
                    text += &format!(" It needs {} approvers.", request.required_approvers);
                }
                text += &format!(" Expires {}.", time_text(request.expires_at));
                if let Some(arguments) = &request.arguments {
                    text += &format!("\n{}", arguments.text);
                }
                text
            }
            Notification::Digest { expired, .. } => {
                let lines = expired.iter().take(MAX_DIGEST_LINES).map(|request| {
                    format!(
                        "{} called {}, expired {}",
                        request.caller,
                        request.tool,
                        time_text(request.expired_at)
                    )
                });
                let mut lines: Vec<String> = lines.collect();
                if let Some(more @ 1..) = expired.len().checked_sub(MAX_DIGEST_LINES) {
                    lines.push(format!("and {more} more"));
                }
                lines.join("\n")
            }
            Notification::Test { entry, .. } => {
                format!(
                    "Messages of the notification {entry} arrive here. Nothing waits for a decision."
                )
            }
        }
    }
}

/// Escapes `&`, `<` and `>`, with which the markup of Slack and of desktop notifications begins.
pub(super) fn escape_markup(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn time_text(at: SystemTime) -> String {
    format_timestamp(&json!(millis(at)))
}
