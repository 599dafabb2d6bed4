//! Browsers that subscribed to push messages.

use super::{
    encryption::{AUTH_SECRET_BYTES, PUBLIC_KEY_BYTES, SubscriptionKeys},
    vapid::VapidKey,
};
use crate::timestamp::millis;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_auth::{Url, jose};
use toolgate_policy::{StateRow, StateStore, WritePrecondition};
use toolgate_protocol::hex;

/// Table of the subscriptions in the state of the data directory.
const SUBSCRIPTIONS_TABLE: &str = "push_subscriptions";
/// Maximum number of subscriptions; the oldest is removed.
const MAX_SUBSCRIPTIONS: usize = 100;
/// Maximum length of the address of a push service in bytes.
const MAX_ENDPOINT_BYTES: usize = 2048;

/// Push subscriptions of a data directory.
pub(crate) struct PushSubscriptions {
    store: Arc<dyn StateStore>,
}

/// Push subscription of a browser.
#[derive(Clone, Debug)]
pub(super) struct PushSubscription {
    /// Key of its row: a digest of the endpoint.
    pub(super) id: String,
    /// Address at the push service, which is a secret of the browser.
    pub(super) endpoint: String,
    pub(super) keys: SubscriptionKeys,
    /// Person whom an issuer signed in at the console; null for the session of a link.
    pub(super) attested: Value,
}

impl PushSubscriptions {
    /// Returns the subscriptions of a store.
    pub(crate) fn new(store: Arc<dyn StateStore>) -> PushSubscriptions {
        PushSubscriptions { store }
    }

    /// Returns the public key with which browsers subscribe.
    ///
    /// # Errors
    /// The key cannot be created, read or stored.
    pub(crate) async fn public_key(&self) -> Result<String, String> {
        Ok(self.vapid_key().await?.public().to_owned())
    }

    pub(super) async fn vapid_key(&self) -> Result<VapidKey, String> {
        VapidKey::open(self.store.as_ref()).await
    }

    /// Adds the subscription of a person's browser, as its `PushSubscription.toJSON()` states it. `attested` is
    /// the person whom an issuer signed in, for [`RecipientCheck`](super::RecipientCheck).
    ///
    /// # Errors
    /// The subscription is malformed, or cannot be stored.
    pub(crate) async fn add(
        &self,
        subscription: &Value,
        (person, attested): (&str, Value),
    ) -> Result<(), String> {
        let wrong =
            || "the browser's push subscription is malformed; use a current browser".to_owned();
        let row = json!({
            "endpoint": subscription["endpoint"], "p256dh": subscription["keys"]["p256dh"],
            "auth": subscription["keys"]["auth"], "person": person, "attested": attested,
            "created": millis(self.store.clock().now()),
        });
        let subscription = read(&row).ok_or_else(wrong)?;
        self.evict_oldest().await;
        self.write(&subscription.id, Some(row)).await
    }

    /// Removes the subscription with this address at a push service.
    ///
    /// # Errors
    /// The state cannot be written.
    pub(crate) async fn remove_endpoint(&self, endpoint: &str) -> Result<(), String> {
        self.write(&id_of(endpoint), None).await
    }

    /// Returns the subscribed browsers, oldest first, without their secrets: the address at the push service is one.
    pub(crate) fn summaries(&self) -> Value {
        let mut rows = self.store.entries(SUBSCRIPTIONS_TABLE);
        rows.sort_by_key(|row| row.value["created"].as_u64());
        let rows = rows.iter().filter_map(|row| {
            let endpoint = Url::parse(&read(&row.value)?.endpoint).ok()?;
            json!({"id": row.key, "person": row.value["person"], "issuer": row.value["attested"]["issuer"],
                "service": endpoint.origin(), "created": row.value["created"]})
            .into()
        });
        rows.collect::<Value>()
    }

    /// Removes the subscription with this id of the list.
    ///
    /// # Errors
    /// No subscription has the id, or the state cannot be written.
    pub(crate) async fn remove_listed(&self, id: &str) -> Result<(), String> {
        match self.store.row(SUBSCRIPTIONS_TABLE, id) {
            Some(_) => self.write(id, None).await,
            None => Err("there is no such subscription; it may have ended".to_owned()),
        }
    }

    /// Returns all subscriptions; malformed rows count as none.
    pub(super) fn list(&self) -> Vec<PushSubscription> {
        let rows = self.store.entries(SUBSCRIPTIONS_TABLE);
        rows.iter().filter_map(|row| read(&row.value)).collect()
    }

    /// Removes a subscription that ended. If that fails, the next message tries again.
    pub(super) async fn remove(&self, id: &str) {
        let _ = self.write(id, None).await;
    }

    async fn evict_oldest(&self) {
        let mut rows = self.store.entries(SUBSCRIPTIONS_TABLE);
        rows.sort_by_key(|row: &StateRow| row.value["created"].as_u64());
        let surplus = (rows.len() + 1).saturating_sub(MAX_SUBSCRIPTIONS);
        for row in rows.iter().take(surplus) {
            self.remove(&row.key).await;
        }
    }

    async fn write(&self, id: &str, row: Option<Value>) -> Result<(), String> {
        let written = self
            .store
            .write(SUBSCRIPTIONS_TABLE, id, row, WritePrecondition::Any);
        written
            .await
            .map(drop)
            .map_err(|e| e.public_message().to_owned())
    }
}

fn read(row: &Value) -> Option<PushSubscription> {
    let endpoint = row["endpoint"].as_str()?;
    let bytes = |key: &str| {
        // Some browsers pad the values.
        jose::decode(row[key].as_str()?.trim_end_matches('='))
    };
    let public: [u8; PUBLIC_KEY_BYTES] = bytes("p256dh")?.try_into().ok()?;
    let auth: [u8; AUTH_SECRET_BYTES] = bytes("auth")?.try_into().ok()?;
    (endpoint.len() <= MAX_ENDPOINT_BYTES).then(|| PushSubscription {
        id: id_of(endpoint),
        endpoint: endpoint.to_owned(),
        keys: SubscriptionKeys { public, auth },
        attested: row["attested"].clone(),
    })
}

fn id_of(endpoint: &str) -> String {
    hex::encode(&digest(&SHA256, endpoint.as_bytes()).as_ref()[..16])
}
