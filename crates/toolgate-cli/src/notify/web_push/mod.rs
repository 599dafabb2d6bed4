//! Web Push (RFC 8030): encrypted messages to the browsers of approvers.
//!
//! - `subscriptions`: the browsers that subscribed. - `vapid`: the key by which push services know the gateway (RFC 8292).
//! - `encryption`: encryption of messages (RFC 8291).

mod encryption;
mod subscriptions;
mod vapid;

pub(crate) use subscriptions::PushSubscriptions;

use super::message::Notification;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use std::sync::Arc;
use subscriptions::PushSubscription;
use toolgate::auth::{
    Url,
    fetch::{AddressPolicy, FetchLimits, FetchRequest, PeerFetcher},
};
use vapid::VapidKey;

/// Time for which a push service keeps a message for a browser that is offline, in seconds.
const MESSAGE_TTL_SECONDS: u64 = 3600;

/// Returns whether a person whom an issuer signed in may still hear of requests. Their roles may have changed since they
/// subscribed.
pub(crate) type RecipientCheck = Arc<dyn Fn(&Value) -> bool + Send + Sync>;

/// Sends push messages to all subscribed browsers.
pub(super) struct WebPushChannel {
    fetcher: PeerFetcher,
    contact: String,
    origins: Vec<Url>,
}

/// Result of a message to one browser.
enum PushOutcome {
    Sent,
    /// The subscription is no longer valid.
    Gone,
    Failed(String),
}

impl WebPushChannel {
    /// Creates the channel. Push services must have public addresses, except those of the operator.
    pub(super) fn new(contact: &str, origins: &[String], limits: FetchLimits) -> WebPushChannel {
        let origins: Vec<Url> = origins
            .iter()
            .filter_map(|origin| Url::parse(origin).ok())
            .collect();
        let fetcher = PeerFetcher::new(AddressPolicy::public(), limits);
        let fetcher = origins.iter().fold(fetcher, PeerFetcher::permit_origin_of);
        WebPushChannel {
            fetcher,
            contact: contact.to_owned(),
            origins,
        }
    }

    /// Returns whether a browser may subscribe with the address of its push service.
    ///
    /// # Errors
    /// The address is not `https`, or is no address of a push service.
    pub(super) fn check_endpoint(&self, endpoint: &str) -> Result<Url, String> {
        let wrong =
            || "the address of the push service cannot be used; use a current browser".to_owned();
        let url = Url::parse(endpoint).map_err(|_| wrong())?;
        let own = self.origins.iter().any(|origin| origin.same_origin(&url));
        match own || (url.is_https() && url.ip().is_none()) {
            true => Ok(url),
            false => Err(wrong()),
        }
    }

    /// Sends a message to all subscribed browsers of people who may hear of it. Subscriptions that ended are removed.
    ///
    /// # Errors
    /// No browser is subscribed, or a message could not be sent to any.
    pub(super) async fn send(
        &self,
        notification: &Notification,
        subscriptions: &PushSubscriptions,
        may_hear: &RecipientCheck,
    ) -> Result<(), String> {
        let mut all = subscriptions.list();
        all.retain(|one| one.attested.is_null() || may_hear(&one.attested));
        if all.is_empty() {
            return Err(
                "no browser is subscribed; open the console on the device, and allow notifications"
                    .to_owned(),
            );
        }
        let key = subscriptions.vapid_key().await?;
        let sends = all.iter().map(|one| self.send_to(one, notification, &key));
        let mut failure = None;
        let mut sent = 0;
        for (one, outcome) in all.iter().zip(futures_util::future::join_all(sends).await) {
            match outcome {
                PushOutcome::Sent => sent += 1,
                PushOutcome::Gone => subscriptions.remove(&one.id).await,
                PushOutcome::Failed(why) => failure = Some(why),
            }
        }
        match failure {
            Some(why) if sent == 0 => Err(why),
            None if sent == 0 => {
                Err("every subscription has ended; allow notifications again".to_owned())
            }
            _ => Ok(()),
        }
    }

    async fn send_to(
        &self,
        subscription: &PushSubscription,
        notification: &Notification,
        key: &VapidKey,
    ) -> PushOutcome {
        match self.post(subscription, notification, key).await {
            Ok(status) if status.is_success() => PushOutcome::Sent,
            Ok(StatusCode::NOT_FOUND | StatusCode::GONE) => PushOutcome::Gone,
            Ok(status) => PushOutcome::Failed(format!(
                "the push service returned HTTP {}",
                status.as_u16()
            )),
            Err(why) => PushOutcome::Failed(why),
        }
    }

    async fn post(
        &self,
        subscription: &PushSubscription,
        notification: &Notification,
        key: &VapidKey,
    ) -> Result<StatusCode, String> {
        let url = self.check_endpoint(&subscription.endpoint)?;
        let text = push_text(notification);
        let body = encryption::encrypt(&subscription.keys, text.as_bytes())?;
        let authorization = key.authorization(&url.origin(), &self.contact)?;
        let mut request = FetchRequest::json(url, &json!({}));
        request.body = body.into();
        let headers = &mut request.headers;
        headers.remove(header::ACCEPT);
        for (name, value) in [
            ("content-type", "application/octet-stream".to_owned()),
            ("content-encoding", "aes128gcm".to_owned()),
            ("ttl", MESSAGE_TTL_SECONDS.to_string()),
            ("urgency", "high".to_owned()),
            ("authorization", authorization),
        ] {
            let value = HeaderValue::from_str(&value)
                .map_err(|_| "internal error: a header of the push message".to_owned())?;
            headers.insert(header::HeaderName::from_static(name), value);
        }
        let response = self.fetcher.fetch(request).await;
        response
            .map(|response| response.status)
            .map_err(|error| error.to_string())
    }
}

/// Returns the text of a push message, which the service worker shows. Long arguments are omitted.
fn push_text(notification: &Notification) -> String {
    let body = notification.text();
    let text = |body: &str| {
        let tag = notification.approval().map(|id| id.to_string());
        json!({"title": notification.title(), "body": body, "url": notification.link(), "tag": tag})
            .to_string()
    };
    let whole = text(&body);
    match whole.len() <= encryption::MAX_PLAINTEXT_BYTES {
        true => whole,
        false => text(body.lines().next().unwrap_or_default()),
    }
}
