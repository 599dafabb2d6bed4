//! Notifications of approval requests: by desktop, Web Push, webhook, ntfy, chat and e-mail.
//!
//! - `schedule`: when an entry sends a message. - `message`: what it says. - `sender`: attempts, and their records.
//! - `notifier`: one `[[notify]]` entry with its channel: `webhook`, `chat`, `email`, `desktop`, `web_push`.
//! - `callback`: decisions that a chat or a webhook's receiver sends back. - `signature`: their signatures.
//!
//! `serve/notifications.rs` finds the requests that are due. A message never contains a credential of the
//! gateway, and its link decides nothing.

mod callback;
mod chat;
mod desktop;
mod email;
mod message;
mod notifier;
mod schedule;
mod sender;
mod signature;
mod web_push;
mod webhook;

pub(crate) use callback::{CALLBACK_PATH, CallbackDecision, CallbackRejection, read_callback};
pub(crate) use message::{ExpiredRequest, Notification, RequestMessage};
pub(crate) use notifier::Notifier;
pub(crate) use schedule::{LocalMoment, NoticeSchedule};
pub(crate) use sender::{NotificationSender, OutgoingMessage};
pub(crate) use web_push::{PushSubscriptions, RecipientCheck};
