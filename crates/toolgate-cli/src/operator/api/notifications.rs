//! Notifications: the entries of the config with a test message each, and the browsers that get push messages.

use super::{ActionResult, OperatorApi, action_input::ActionInput};
use crate::{config::NameGlob, console_roles::AttestedPerson};
use serde_json::{Value, json};
use toolgate_policy::{ApprovalChannel, Approver};

/// Error if the config has no entry for push messages.
const NO_WEB_PUSH: &str =
    "the config sends no push messages; add [[notify]] with channel = \"web_push\"";

impl OperatorApi {
    /// Executes an action on notifications; `None` for any other action.
    pub(super) async fn notification_action(
        &self,
        action: &str,
        with: &Value,
        who: &Approver,
    ) -> Option<ActionResult> {
        let word = |key: &str| ActionInput(with).text(key);
        let done = match action {
            "notifications" => Ok(self.notifications()),
            "notifications/test" => self.send_test(word("name")).await,
            "push/key" => self.push_key().await,
            "push/subscribe" => self.add_push_subscription(with, who).await,
            "push/subscriptions" => Ok(self.notification_sender.subscriptions.summaries()),
            "push/remove" => {
                let removed = self
                    .notification_sender
                    .subscriptions
                    .remove_listed(word("id"));
                removed.await.map(|()| json!({"ok": true}))
            }
            "push/unsubscribe" => {
                let endpoint = word("endpoint");
                let removed = self
                    .notification_sender
                    .subscriptions
                    .remove_endpoint(endpoint);
                removed.await.map(|()| json!({"ok": true}))
            }
            _ => return None,
        };
        Some(done.map_err(Into::into))
    }

    /// Returns the `[[notify]]` entries of the config, with the outcome of the last message of each.
    fn notifications(&self) -> Value {
        let notifiers = self.active.snapshot().notifiers.clone();
        let entries = notifiers.iter().map(|notifier| {
            let settings = &notifier.settings;
            json!({
                "name": settings.name, "channel": settings.channel_name,
                "tools": NameGlob::texts(&settings.tools), "except": NameGlob::texts(&settings.except), "callers": NameGlob::texts(&settings.callers),
                "after_seconds": settings.after.as_secs(), "arguments": settings.arguments,
                "people": settings.people.len(), "last": self.notification_sender.last_message(&settings.name),
            })
        });
        entries.collect()
    }

    async fn send_test(&self, name: &str) -> Result<Value, String> {
        let notifiers = self.active.snapshot().notifiers.clone();
        let notifier = notifiers.iter().find(|one| one.settings.name == name);
        let notifier = notifier.ok_or_else(|| {
            format!("the config has no notification {name:?}; reload the page to see its entries")
        })?;
        self.notification_sender.send_test(notifier).await?;
        Ok(json!({"ok": true}))
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
        let roles = self.active.snapshot().console_roles.clone();
        let attested = AttestedPerson::from_approver(who, &roles);
        let attested = attested.map_or(Value::Null, |one| one.to_value());
        self.notification_sender
            .subscriptions
            .add(with, (person, attested))
            .await?;
        Ok(json!({"ok": true}))
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
