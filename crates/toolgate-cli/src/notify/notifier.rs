//! One `[[notify]]` entry: its conditions and its channel.

use super::{
    chat::{ChatChannel, ChatFormat},
    desktop,
    email::EmailChannel,
    message::Notification,
    schedule::ScheduleRules,
    signature::WebhookSecret,
    web_push::{PushSubscriptions, RecipientCheck, WebPushChannel},
    webhook::{NtfyChannel, WebhookChannel},
};
use crate::config::{NameGlob, NotifyChannel, NotifySettings, RequestRisk};
use std::time::Duration;
use toolgate::auth::{Secret, fetch::FetchLimits};
use toolgate_guardian::Guardian;
use toolgate_policy::{ApprovalView, CallerMatcher, GlobPattern};

/// Maximum time for one attempt to send a message.
const SEND_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum size of the response to a message in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// A `[[notify]]` entry, with the secrets of its channel.
pub(crate) struct Notifier {
    pub(crate) settings: NotifySettings,
    tools: Vec<GlobPattern>,
    except: Vec<GlobPattern>,
    callers: CallerMatcher,
    channel: Channel,
}

enum Channel {
    Desktop,
    WebPush(WebPushChannel),
    Webhook(Box<WebhookChannel>),
    Ntfy(Box<NtfyChannel>),
    Chat(Box<ChatChannel>, Option<Secret>),
    Email(Box<EmailChannel>),
}

/// Resources of the gateway that channels need to send a message.
pub(crate) struct NotifierResources<'a> {
    pub(crate) guardian: &'a Guardian,
    pub(crate) subscriptions: &'a PushSubscriptions,
    pub(crate) may_hear: &'a RecipientCheck,
    /// Address for decisions that the receiver sends back.
    pub(crate) callback: Option<String>,
}

impl Notifier {
    /// Creates a notifier from its settings and the secrets of its channel, in the order of
    /// [`NotifyChannel::secrets`].
    ///
    /// # Errors
    /// A secret is not valid for the channel, or TLS cannot be set up.
    pub(crate) fn new(settings: NotifySettings, secrets: Vec<Secret>) -> Result<Notifier, String> {
        let mut secrets = secrets.into_iter();
        let channel = channel(&settings, &mut secrets)
            .map_err(|why| format!("the entry {:?} of [[notify]]: {why}", settings.name))?;
        let patterns = |globs: &[NameGlob]| {
            let patterns = globs.iter().map(|glob| GlobPattern::new(glob.as_str()));
            patterns.collect::<Vec<_>>()
        };
        Ok(Notifier {
            tools: patterns(&settings.tools),
            except: patterns(&settings.except),
            callers: settings.callers.iter().map(NameGlob::as_str).collect(),
            channel,
            settings,
        })
    }

    /// Returns when the entry sends messages.
    pub(crate) fn rules(&self) -> ScheduleRules {
        ScheduleRules {
            after: self.settings.after,
            hours: self.settings.hours,
            quiet_hours: self.settings.quiet_hours,
            digest: self.settings.digest,
        }
    }

    /// Returns whether the entry is for a request.
    pub(crate) fn matches(&self, view: &ApprovalView) -> bool {
        let name = view.item.full_name();
        let any = |patterns: &[GlobPattern]| patterns.iter().any(|p| p.matches(&name));
        (self.tools.is_empty() || any(&self.tools))
            && !any(&self.except)
            && self.callers.matches(&view.binding.caller)
            && RequestRisk::of(view.item.annotations()) >= self.settings.risk
    }

    /// Sends a message. Attempts to send the same message have the same id.
    ///
    /// # Errors
    /// The message could not be sent.
    pub(super) async fn send(
        &self,
        notification: &Notification,
        id: &str,
        with: NotifierResources<'_>,
    ) -> Result<(), String> {
        match &self.channel {
            Channel::Desktop => desktop::show(notification, with.guardian).await,
            Channel::WebPush(push) => {
                push.send(notification, with.subscriptions, with.may_hear)
                    .await
            }
            Channel::Webhook(webhook) => {
                let callback = with.callback.filter(|_| !self.settings.people.is_empty());
                webhook.send(notification, id, callback.as_deref()).await
            }
            Channel::Ntfy(ntfy) => ntfy.send(notification).await,
            Channel::Chat(chat, _) => chat.send(notification).await,
            Channel::Email(email) => email.send(notification).await,
        }
    }

    /// Returns the secret that signs webhooks and decisions of their receiver.
    pub(super) fn webhook_secret(&self) -> Option<&WebhookSecret> {
        match &self.channel {
            Channel::Webhook(webhook) => Some(&webhook.secret),
            _ => None,
        }
    }

    /// Returns the chat whose buttons the entry accepts, and the signing secret of the chat.
    pub(super) fn chat_with_buttons(&self) -> Option<(&ChatChannel, &Secret)> {
        match &self.channel {
            Channel::Chat(chat, Some(secret)) => Some((chat, secret)),
            _ => None,
        }
    }

    /// Replaces the message of a chat after a decision there.
    pub(crate) async fn replace_message(&self, response_url: &str, text: &str) {
        if let Some((chat, _)) = self.chat_with_buttons() {
            chat.replace(response_url, text).await;
        }
    }

    /// Checks the push subscription of a browser; `None` if the entry sends no push messages.
    pub(crate) fn check_push_endpoint(&self, endpoint: &str) -> Option<Result<(), String>> {
        match &self.channel {
            Channel::WebPush(push) => Some(push.check_endpoint(endpoint).map(drop)),
            _ => None,
        }
    }
}

fn channel(
    settings: &NotifySettings,
    secrets: &mut impl Iterator<Item = Secret>,
) -> Result<Channel, String> {
    let mut limits = FetchLimits::default();
    limits.timeout = SEND_TIMEOUT;
    limits.max_body_bytes = MAX_RESPONSE_BYTES;
    let mut secret = || secrets.next().ok_or("internal error: a secret is missing");
    Ok(match &settings.channel {
        NotifyChannel::Desktop => Channel::Desktop,
        NotifyChannel::WebPush { contact, origins } => {
            Channel::WebPush(WebPushChannel::new(contact, origins, limits))
        }
        NotifyChannel::Webhook { url, .. } => {
            Channel::Webhook(Box::new(WebhookChannel::new(url, &secret()?, limits)))
        }
        NotifyChannel::Ntfy { url, token } => {
            let token = token.as_ref().map(|_| secret()).transpose()?;
            Channel::Ntfy(Box::new(NtfyChannel::new(url, token, limits)))
        }
        NotifyChannel::Slack {
            secret: signing, ..
        } => {
            let address = secret()?;
            let signing = signing.as_ref().map(|_| secret()).transpose()?;
            let chat = ChatChannel::new(&address, ChatFormat::Slack, signing.is_some(), limits)?;
            Channel::Chat(Box::new(chat), signing)
        }
        NotifyChannel::Teams { .. } => {
            let chat = ChatChannel::new(&secret()?, ChatFormat::Teams, false, limits)?;
            Channel::Chat(Box::new(chat), None)
        }
        NotifyChannel::Email {
            server,
            user,
            from,
            to,
        } => {
            let password = user.as_ref().map(|_| secret()).transpose()?;
            let user = user.as_ref().map(|(user, _)| user.as_str());
            let user = user.zip(password.as_ref());
            let email = EmailChannel::new(server, user, (from, to), SEND_TIMEOUT)?;
            Channel::Email(Box::new(email))
        }
    })
}
