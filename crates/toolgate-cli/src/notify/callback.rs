//! Decisions that a chat or the receiver of a webhook sends back, each with a signature that the gateway verifies.

use super::{
    Notifier,
    chat::{APPROVE_ACTION, DENY_ACTION},
    signature,
};
use http::HeaderMap;
use serde_json::Value;
use std::time::SystemTime;

/// Beginning of the paths to which decisions are sent; the name of the `[[notify]]` entry follows.
pub(crate) const CALLBACK_PATH: &str = "/notify/";

/// Decision of a person in a chat or at the receiver of a webhook.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct CallbackDecision {
    /// Id of the approval.
    pub(crate) approval: String,
    /// Digest of the arguments of the call that the person saw.
    pub(crate) digest: String,
    pub(crate) approves: bool,
    /// Reason of a denial.
    pub(crate) reason: Option<String>,
    /// Name of the person as an approver.
    pub(crate) person: String,
    /// Address with which the message can be replaced.
    pub(crate) response_url: Option<String>,
}

/// Reason for which a decision is not accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CallbackRejection {
    /// The signature is missing or invalid, or too old.
    Signature,
    /// The message is malformed.
    Malformed,
    /// The sender is none of the `people` of the entry.
    UnknownPerson,
}

impl CallbackRejection {
    /// Returns the text for the sender and the audit log.
    pub(crate) fn text(self) -> &'static str {
        match self {
            CallbackRejection::Signature => {
                "the signature of the decision is missing, invalid or older than 5 minutes"
            }
            CallbackRejection::Malformed => "the decision is malformed",
            CallbackRejection::UnknownPerson => {
                "this person is none of the people of the [[notify]] entry, and may not decide here"
            }
        }
    }
}

/// Verifies and reads a decision that was sent to a `[[notify]]` entry.
///
/// # Errors
/// The decision is not signed by the receiver, is malformed, or its person may not decide here.
pub(crate) fn read_callback(
    notifier: &Notifier,
    headers: &HeaderMap,
    body: &[u8],
    now: SystemTime,
) -> Result<CallbackDecision, CallbackRejection> {
    let text = |name: &str| {
        let mut values = headers.get_all(name).iter();
        let value = values.next().and_then(|value| value.to_str().ok());
        // Two values could be read differently by two readers.
        value
            .filter(|_| values.next().is_none())
            .unwrap_or_default()
    };
    let decision = if let Some((_, secret)) = notifier.chat_with_buttons() {
        let signed = (text("x-slack-request-timestamp"), text("x-slack-signature"));
        if !signature::is_from_slack(secret, signed, body, now) {
            return Err(CallbackRejection::Signature);
        }
        read_slack(body)
    } else if let Some(secret) = notifier.webhook_secret() {
        let signed = (
            text("webhook-id"),
            text("webhook-timestamp"),
            text("webhook-signature"),
        );
        if !secret.verify(signed, body, now) {
            return Err(CallbackRejection::Signature);
        }
        read_webhook(body)
    } else {
        return Err(CallbackRejection::Signature);
    };
    let (user, mut decision) = decision.ok_or(CallbackRejection::Malformed)?;
    let mut people = notifier.settings.people.iter();
    let person = people.find(|(id, _)| *id == user);
    let (_, name) = person.ok_or(CallbackRejection::UnknownPerson)?;
    decision.person.clone_from(name);
    Ok(decision)
}

/// Reads a button of Slack: a form with a JSON payload. Also returns the id of the user.
fn read_slack(body: &[u8]) -> Option<(String, CallbackDecision)> {
    let mut pairs = form_urlencoded::parse(body).filter(|(key, _)| key == "payload");
    let (_, payload) = pairs.next()?;
    let payload: Value = serde_json::from_str(&payload).ok()?;
    if payload["type"] != "block_actions" || pairs.next().is_some() {
        return None;
    }
    let [action] = payload["actions"].as_array()?.as_slice() else {
        return None;
    };
    let (approval, digest) = action["value"].as_str()?.split_once(' ')?;
    let approves = match action["action_id"].as_str()? {
        APPROVE_ACTION => true,
        DENY_ACTION => false,
        _ => return None,
    };
    let decision = CallbackDecision {
        approval: approval.to_owned(),
        digest: digest.to_owned(),
        approves,
        reason: (!approves).then(|| "denied in the chat".to_owned()),
        person: String::new(),
        response_url: payload["response_url"].as_str().map(str::to_owned),
    };
    Some((payload["user"]["id"].as_str()?.to_owned(), decision))
}

/// Reads `{"approval", "digest", "decision": "approve" | "deny", "reason", "user"}`. Also returns the user.
fn read_webhook(body: &[u8]) -> Option<(String, CallbackDecision)> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let text = |key: &str| body[key].as_str().map(str::to_owned);
    let decision = CallbackDecision {
        approval: text("approval")?,
        digest: text("digest")?,
        approves: match body["decision"].as_str()? {
            "approve" => true,
            "deny" => false,
            _ => return None,
        },
        reason: text("reason"),
        person: String::new(),
        response_url: None,
    };
    Some((text("user")?, decision))
}
