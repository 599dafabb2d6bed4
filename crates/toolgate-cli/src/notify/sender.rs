//! Sender of messages: a few attempts, and a record of each message in the audit log.

use super::{
    CALLBACK_PATH, Notifier, PushSubscriptions, RecipientCheck, message::Notification,
    notifier::NotifierResources, webhook,
};
use crate::{
    event_log::{self, GatewayEvent},
    timestamp::millis,
};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use toolgate_core::visible_line;
use toolgate_guardian::Guardian;
use toolgate_journal::{AuditEntry, AuditEvent, AuditJournal};
use toolgate_policy::{ApprovalService, ApprovalStatus, sanitize_entry};

/// Waits before the second and the third attempt to send a message.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(15)];

/// Sends messages by the channels of `[[notify]]` entries.
pub(crate) struct NotificationSender {
    pub(crate) approvals: Arc<ApprovalService>,
    pub(crate) journal: Arc<AuditJournal>,
    pub(crate) guardian: Arc<Guardian>,
    /// Browsers that get push messages.
    pub(crate) subscriptions: Arc<PushSubscriptions>,
    /// Check of people who subscribed to push messages: a person may have lost the right to hear of requests.
    pub(crate) may_hear: RecipientCheck,
    /// Returns the address of the console, for links.
    pub(crate) console: Box<dyn Fn() -> String + Send + Sync>,
    /// Outcome of the last message of each entry since the start, by its name.
    pub(crate) last_messages: Mutex<HashMap<String, Value>>,
}

/// Message on its way.
pub(crate) struct OutgoingMessage {
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) notification: Notification,
    /// Address for decisions that the receiver sends back.
    callback: Option<String>,
}

impl NotificationSender {
    /// Returns a message of an entry, ready to be sent.
    pub(crate) fn outgoing(
        &self,
        notifier: &Arc<Notifier>,
        notification: Notification,
    ) -> OutgoingMessage {
        let console = (self.console)();
        let callback = console
            .strip_suffix('/')
            .map(|base| format!("{base}{CALLBACK_PATH}{}", notifier.settings.name));
        OutgoingMessage {
            notifier: notifier.clone(),
            notification,
            callback,
        }
    }

    /// Sends a test message of an entry, in one attempt.
    ///
    /// # Errors
    /// The message could not be sent.
    pub(crate) async fn send_test(&self, notifier: &Arc<Notifier>) -> Result<(), String> {
        let notification = Notification::Test {
            entry: notifier.settings.name.clone(),
            link: (self.console)(),
        };
        let message = self.outgoing(notifier, notification);
        let sent = self.attempt(&message, &webhook::message_id()).await;
        match &sent {
            Ok(()) => self.record(&message, "sent", None),
            Err(why) => self.record(&message, "failed", Some(why)),
        }
        sent
    }

    /// Returns the outcome of the last message of an entry since the start, for the page.
    pub(crate) fn last_message(&self, entry: &str) -> Value {
        self.last_messages().get(entry).cloned().unwrap_or_default()
    }

    fn last_messages(&self) -> MutexGuard<'_, HashMap<String, Value>> {
        self.last_messages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message, with a few attempts. A request that is decided meanwhile is not tried again.
    pub(crate) async fn send(&self, message: OutgoingMessage) {
        let id = webhook::message_id();
        let mut delays = RETRY_DELAYS.into_iter();
        loop {
            let why = match self.attempt(&message, &id).await {
                Ok(()) => return self.record(&message, "sent", None),
                Err(why) => why,
            };
            if let Some(delay) = delays
                .next()
                .filter(|_| self.is_current(&message.notification))
            {
                tokio::time::sleep(delay).await;
                if self.is_current(&message.notification) {
                    continue;
                }
            }
            // Also for a request that was decided meanwhile: the channel needs a repair before the next one.
            return self.report_failure(&message, &why);
        }
    }

    async fn attempt(&self, message: &OutgoingMessage, id: &str) -> Result<(), String> {
        let with = NotifierResources {
            guardian: &self.guardian,
            subscriptions: &self.subscriptions,
            may_hear: &self.may_hear,
            callback: message.callback.clone(),
        };
        message.notifier.send(&message.notification, id, with).await
    }

    /// Returns whether the request of a message still waits for a decision.
    fn is_current(&self, notification: &Notification) -> bool {
        let Some(id) = notification.approval() else {
            return true;
        };
        let view = self.approvals.find(id);
        view.is_some_and(|view| view.status == ApprovalStatus::Pending)
    }

    /// Reports a message that was not sent in the event log and the audit log.
    pub(crate) fn report_failure(&self, message: &OutgoingMessage, why: &str) {
        let name = &message.notifier.settings.name;
        event_log::emit(GatewayEvent::Problem {
            text: format!(
                "the notification {name} was not sent: {}",
                visible_line(why)
            ),
        });
        self.record(message, "failed", Some(why));
    }

    fn record(&self, message: &OutgoingMessage, state: &str, why: Option<&str>) {
        let name = &message.notifier.settings.name;
        let outcome = json!({"state": state, "at": millis(self.approvals.now()), "why": why.map(visible_line)});
        self.last_messages().insert(name.clone(), outcome);
        let entry = AuditEntry::new(AuditEvent::from("notify"))
            .with("state", state)
            .with("name", name.as_str())
            .with("channel", message.notifier.settings.channel_name);
        let entry = match &message.notification {
            Notification::Request(request) => entry.with("approval", &*request.approval),
            Notification::Digest { expired, .. } => entry.with("expired", expired.len()),
            Notification::Test { .. } => entry.with("test", true),
        };
        let entry = match why {
            Some(why) => entry.with("why", why),
            None => entry,
        };
        // The message is sent or not; a failing audit log is shown elsewhere.
        let _ = self.journal.enqueue(sanitize_entry(entry));
    }
}
