//! Signed webhooks in the format of [Standard Webhooks](https://www.standardwebhooks.com), and ntfy.

use super::{message::Notification, signature::WebhookSecret};
use crate::timestamp::millis;
use http::{HeaderValue, header};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use toolgate::{
    auth::{
        Secret, Url,
        fetch::{FetchLimits, FetchRequest, PeerFetcher},
    },
    ids,
};

/// Sends a request and checks the status of the response.
///
/// # Errors
/// The request failed, or its response is not successful.
pub(super) async fn post(
    fetcher: &PeerFetcher,
    request: FetchRequest,
    receiver: &str,
) -> Result<(), String> {
    let response = fetcher
        .fetch(request)
        .await
        .map_err(|error| error.to_string())?;
    match response.status.is_success() {
        true => Ok(()),
        false => Err(format!(
            "{receiver} returned HTTP {}",
            response.status.as_u16()
        )),
    }
}

/// Webhook whose messages are signed.
pub(super) struct WebhookChannel {
    pub(super) url: Url,
    pub(super) secret: WebhookSecret,
    fetcher: PeerFetcher,
}

impl WebhookChannel {
    pub(super) fn new(url: &Url, secret: &Secret, limits: FetchLimits) -> WebhookChannel {
        WebhookChannel {
            fetcher: PeerFetcher::for_operator_url(url, limits),
            secret: WebhookSecret::new(secret),
            url: url.clone(),
        }
    }

    /// Sends a message. Retries have the same id.
    pub(super) async fn send(
        &self,
        notification: &Notification,
        id: &str,
        callback: Option<&str>,
    ) -> Result<(), String> {
        let body = webhook_body(notification, callback);
        let mut request = FetchRequest::json(self.url.clone(), &body);
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = seconds.unwrap_or_default().as_secs();
        let signature = self.secret.sign(id, seconds, &request.body);
        for (name, value) in [
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", seconds.to_string()),
            ("webhook-signature", signature),
        ] {
            let value = HeaderValue::from_str(&value).map_err(|_| "internal error: a header")?;
            request
                .headers
                .insert(header::HeaderName::from_static(name), value);
        }
        post(&self.fetcher, request, "the webhook").await
    }
}

/// Returns a new id of a message.
pub(super) fn message_id() -> String {
    format!("msg_{}", ids::secret_id())
}

fn webhook_body(notification: &Notification, callback: Option<&str>) -> Value {
    let now = millis(SystemTime::now());
    match notification {
        Notification::Request(request) => json!({
            "type": "approval.requested", "timestamp": now,
            "data": {
                "approval": &*request.approval, "digest": request.digest, "tool": request.tool, "caller": request.caller,
                "destructive": request.is_destructive, "required_approvers": request.required_approvers,
                "requested_at": millis(request.requested_at), "expires_at": millis(request.expires_at),
                "url": request.link, "decide_url": callback.filter(|_| request.is_decidable()),
                "arguments": request.arguments.as_ref().map(|arguments| &arguments.text),
            },
        }),
        Notification::Digest { expired, link } => {
            let expired = expired.iter().map(|request| {
                json!({"approval": &*request.approval, "tool": request.tool, "caller": request.caller,
                    "expired_at": millis(request.expired_at)})
            });
            json!({
                "type": "approval.expired", "timestamp": now,
                "data": {"expired": expired.collect::<Value>(), "url": link},
            })
        }
        Notification::Test { entry, link } => json!({
            "type": "notification.test", "timestamp": now, "data": {"name": entry, "url": link},
        }),
    }
}

/// Topic of an ntfy server, with its JSON form of publishing.
pub(super) struct NtfyChannel {
    server: Url,
    topic: String,
    token: Option<Secret>,
    fetcher: PeerFetcher,
}

impl NtfyChannel {
    pub(super) fn new(url: &Url, token: Option<Secret>, limits: FetchLimits) -> NtfyChannel {
        NtfyChannel {
            fetcher: PeerFetcher::for_operator_url(url, limits),
            topic: url.path().trim_matches('/').to_owned(),
            server: url.with_path("/").unwrap_or_else(|_| url.clone()),
            token,
        }
    }

    pub(super) async fn send(&self, notification: &Notification) -> Result<(), String> {
        let urgent =
            matches!(notification, Notification::Request(request) if request.is_destructive);
        let body = json!({
            "topic": self.topic, "title": notification.title(), "message": notification.text(),
            "priority": if urgent { 4 } else { 3 }, "tags": ["lock"], "click": notification.link(),
            "actions": [{"action": "view", "label": "Open", "url": notification.link()}],
        });
        let mut request = FetchRequest::json(self.server.clone(), &body);
        if let Some(token) = &self.token {
            let value = HeaderValue::from_str(&format!("Bearer {}", token.reveal()));
            let mut value = value.map_err(|_| "the token cannot be sent in a header")?;
            value.set_sensitive(true);
            request.headers.insert(header::AUTHORIZATION, value);
        }
        post(&self.fetcher, request, "the ntfy server").await
    }
}
