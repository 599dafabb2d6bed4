//! Push messages to the browsers of people at the console.

use super::{ActionResult, OperatorApi};
use crate::console_roles::AttestedPerson;
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_core::{Caller, CallerAttributes};
use toolgate_policy::{ApprovalChannel, Approver};

/// Error if the config has no entry for push messages.
const NO_WEB_PUSH: &str =
    "the config sends no push messages; add [[notify]] with channel = \"web_push\"";

impl OperatorApi {
    /// Executes an action on push subscriptions; `None` for any other action.
    pub(super) async fn push_action(
        &self,
        action: &str,
        with: &Value,
        who: &Approver,
    ) -> Option<ActionResult> {
        let done = match action {
            "push/key" => self.push_key().await,
            "push/subscribe" => self.add_push_subscription(with, who).await,
            "push/unsubscribe" => {
                let endpoint = with["endpoint"].as_str().unwrap_or_default();
                self.notification_sender
                    .subscriptions
                    .remove_endpoint(endpoint)
                    .await
            }
            .map(|()| json!({"ok": true})),
            _ => return None,
        };
        Some(done.map_err(Into::into))
    }

    /// Returns the public key with which a browser subscribes.
    async fn push_key(&self) -> Result<Value, String> {
        self.check_endpoint("https://push.invalid/")?;
        Ok(json!({"key": self.notification_sender.subscriptions.public_key().await?}))
    }

    async fn add_push_subscription(&self, with: &Value, who: &Approver) -> Result<Value, String> {
        if who.channel != ApprovalChannel::Console {
            return Err("only a browser can subscribe; open the console".to_owned());
        }
        self.check_endpoint(with["endpoint"].as_str().unwrap_or_default())?;
        let person = who.name.as_deref().unwrap_or_default();
        let attested = self.attested(who).map_or(Value::Null, |one| one.to_value());
        self.notification_sender
            .subscriptions
            .add(with, (person, attested))
            .await?;
        Ok(json!({"ok": true}))
    }

    /// Returns the person of a session that an issuer signed in, as the state stores them.
    fn attested(&self, who: &Approver) -> Option<AttestedPerson> {
        let identity = who.identity.as_ref()?;
        let names = |names: &[Arc<str>]| names.iter().map(|name| name.to_string()).collect();
        let mut attributes = CallerAttributes::default();
        attributes.groups = names(&identity.groups);
        attributes.roles = names(&identity.roles);
        let roles = self.active.snapshot().console_roles.clone();
        Some(AttestedPerson {
            caller: Caller::new(who.name.as_deref().unwrap_or_default())
                .with_attributes(attributes),
            issuer: identity.issuer.to_string(),
            // A session is valid only while its issuer has this address.
            issuer_url: roles
                .issuer_url(&identity.issuer)
                .unwrap_or_default()
                .to_owned(),
        })
    }

    /// Checks that an entry of the config sends push messages to that address.
    fn check_endpoint(&self, endpoint: &str) -> Result<(), String> {
        let notifiers = self.active.snapshot().notifiers.clone();
        let mut checks = notifiers
            .iter()
            .filter_map(|one| one.check_push_endpoint(endpoint));
        let first = checks.next().ok_or(NO_WEB_PUSH)?;
        match first {
            Ok(()) => Ok(()),
            Err(why) => checks.find(Result::is_ok).unwrap_or(Err(why)),
        }
    }
}
