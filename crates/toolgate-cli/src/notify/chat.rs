//! Incoming webhooks of chats: Slack with Block Kit, Teams with Adaptive Cards.

use super::{
    message::{Notification, escape_markup},
    webhook,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;
use toolgate::auth::{
    Secret, Url,
    fetch::{FetchLimits, FetchRequest, PeerFetcher},
};

/// Action of the button that approves a request.
pub(super) const APPROVE_ACTION: &str = "toolgate_approve";
/// Action of the button that denies a request.
pub(super) const DENY_ACTION: &str = "toolgate_deny";

/// Maximum time to replace a message after a decision.
const REPLACE_TIMEOUT: Duration = Duration::from_secs(2);

/// Format of a chat's incoming webhook.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ChatFormat {
    Slack,
    Teams,
}

/// Incoming webhook of a chat. Its address is a secret.
pub(super) struct ChatChannel {
    url: Url,
    format: ChatFormat,
    /// True if messages have buttons: the chat signs what they send.
    pub(super) has_buttons: bool,
    fetcher: PeerFetcher,
}

impl ChatChannel {
    /// Creates the channel.
    ///
    /// # Errors
    /// The secret is not an `https` address, or one of this machine.
    pub(super) fn new(
        address: &Secret,
        format: ChatFormat,
        has_buttons: bool,
        limits: FetchLimits,
    ) -> Result<ChatChannel, String> {
        let url = Url::parse(address.reveal()).ok();
        let url = url.filter(|url| url.is_https() || url.is_loopback());
        // The address is a secret and must not be part of the message.
        let url = url.ok_or("the secret is not the https:// address of an incoming webhook")?;
        Ok(ChatChannel {
            fetcher: PeerFetcher::for_operator_url(&url, limits),
            has_buttons,
            format,
            url,
        })
    }

    pub(super) async fn send(&self, notification: &Notification) -> Result<(), String> {
        let body = match self.format {
            ChatFormat::Slack => slack_body(notification, self.has_buttons),
            ChatFormat::Teams => teams_body(notification),
        };
        let request = FetchRequest::json(self.url.clone(), &body);
        // Errors of the fetcher name the origin only, which is no secret.
        webhook::post(&self.fetcher, request, "the chat").await
    }

    /// Replaces a message after a decision in the chat, if the address for that is at the chat.
    pub(super) async fn replace(&self, response_url: &str, text: &str) {
        let url = Url::parse(response_url).ok();
        if let Some(url) = url.filter(|url| url.same_origin(&self.url)) {
            let body = json!({"replace_original": true, "text": escape_markup(text)});
            let replaced = self.fetcher.fetch(FetchRequest::json(url, &body));
            // The decision has taken effect; the message is only for display. Slack waits 3 s for our response.
            let _ = timeout(REPLACE_TIMEOUT, replaced).await;
        }
    }
}

/// Returns the value of a button, which names the exact call.
pub(super) fn button_value(approval: &str, digest: &str) -> String {
    format!("{approval} {digest}")
}

fn slack_body(notification: &Notification, has_buttons: bool) -> Value {
    let (title, text) = (notification.title(), notification.text());
    let mut blocks = vec![
        json!({"type": "section", "text": {"type": "plain_text", "text": format!("{title}\n{text}"), "emoji": false}}),
    ];
    let open = json!({"type": "button", "text": {"type": "plain_text", "text": "Open"}, "url": notification.link()});
    let mut elements = vec![open];
    if let Notification::Request(request) = notification
        && has_buttons
        && request.is_decidable()
    {
        let value = button_value(&request.approval, &request.digest);
        for (action, label, style) in [
            (APPROVE_ACTION, "Approve once", "primary"),
            (DENY_ACTION, "Deny", "danger"),
        ] {
            elements.push(json!({
                "type": "button", "action_id": action, "text": {"type": "plain_text", "text": label},
                "style": style, "value": value,
            }));
        }
    }
    blocks.push(json!({"type": "actions", "elements": elements}));
    json!({"text": escape_markup(&title), "blocks": blocks})
}

fn teams_body(notification: &Notification) -> Value {
    // A rich text block has no Markdown, so untrusted names cannot format the message.
    let run = |text: String, weight: &str| json!({"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, "weight": weight}]});
    let card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
        "body": [run(notification.title(), "Bolder"), run(notification.text(), "Default")],
        "actions": [{"type": "Action.OpenUrl", "title": "Open", "url": notification.link()}],
    });
    json!({
        "type": "message",
        "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": null, "content": card}],
    })
}
