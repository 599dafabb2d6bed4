//! `[[notify]]`: who hears of an approval request, and how.

use super::{
    auth::AuthSettings,
    glob::NameGlob,
    https_url::HttpsUrl,
    network::OriginName,
    reader::{
        ConfigTree, ConfigWord, ExpandedText, IntRange, NamedSettings, SettingError, SettingPath,
        Word,
    },
    smtp_url::{SmtpServer, SmtpUrl},
    time_of_day::DailyHours,
    token::TokenSource,
    tool_targets::ToolTargets,
    value_source::SecretSource,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;
use toolgate::auth::Url;
use toolgate_core::ToolAnnotations;

/// Maximum number of recipients of one e-mail.
const MAX_RECIPIENTS: usize = 50;
/// Maximum number of chat users who may decide.
const MAX_PEOPLE: usize = 200;

/// Notification of approval requests, `[[notify]]`. Each entry sends a message about each request that it matches.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NotifySection {
    /// Channel of the messages.
    #[serde(with = "Word::<ChannelKind>")]
    channel: ChannelKind,
    /// Name of the entry in the audit log and in callback addresses. Default: that of the channel.
    #[schemars(example = &"oncall")]
    name: Option<String>,
    /// Address: of the webhook; of the topic for `ntfy`, such as `https://ntfy.sh/TOPIC`.
    #[schemars(example = &"https://ntfy.sh/TOPIC")]
    url: Option<HttpsUrl>,
    /// Address of the incoming webhook of `slack` or `teams`, which is a secret.
    #[schemars(example = serde_json::json!({"env": "SLACK_URL"}))]
    secret_url: Option<SecretSource>,
    /// Secret that signs the messages of a `webhook`, or verifies the buttons of `slack` (its signing secret).
    #[schemars(example = serde_json::json!({"env": "WEBHOOK_SECRET"}))]
    secret: Option<SecretSource>,
    /// Access token for `ntfy`.
    #[schemars(example = serde_json::json!({"env": "NTFY_TOKEN"}))]
    token: Option<SecretSource>,
    /// Mail server for `email`: `smtps://HOST` or `smtp://HOST`, which requires STARTTLS beyond this machine.
    #[schemars(example = &"smtps://mail.example.com")]
    smtp: Option<SmtpUrl>,
    /// User of the mail server.
    #[schemars(example = &"toolgate")]
    user: Option<ExpandedText>,
    /// Password of that user.
    password: Option<SecretSource>,
    /// Sender of the e-mails.
    #[schemars(example = &"Toolgate <toolgate@example.com>")]
    from: Option<ExpandedText>,
    /// Recipients of the e-mails.
    #[serde(default)]
    #[schemars(example = ["oncall@example.com"])]
    to: Vec<ExpandedText>,
    /// Address at which a push service can reach the operator, for `web_push`: `mailto:` or `https:`.
    #[schemars(example = &"mailto:ops@example.com")]
    contact: Option<ExpandedText>,
    /// Origins of push services of your own, for `web_push`. Public push services need no entry.
    #[serde(default)]
    #[schemars(example = ["https://push.example.com"])]
    push_origins: Vec<OriginName>,
    /// Users of the chat or of the webhook's receiver who may decide there: their id there, and their name as an
    /// approver. Default: nobody, so messages have a link and no buttons.
    #[serde(default)]
    #[schemars(example = serde_json::json!({"U02ABC": "ann"}))]
    people: NamedSettings<ExpandedText>,
    /// Globs over full names of the tools whose requests it sends. Default: every tool.
    #[schemars(example = ["server.*"])]
    tools: Option<Vec<String>>,
    /// Globs over full names that it does not match.
    #[serde(default)]
    #[schemars(example = ["server.*"])]
    except: Vec<String>,
    /// Globs over the callers whose requests it sends, as in rules. Default: every caller.
    #[schemars(example = ["key:ci"])]
    callers: Option<Vec<String>>,
    /// Least risk of the requests that it sends: `any`; `write`, unless a trusted server marks the tool as read-only;
    /// `destructive`, unless it marks the tool as read-only or not destructive.
    #[serde(default, with = "Word::<RequestRisk>")]
    risk: RequestRisk,
    /// Hours of the day in which it sends messages, in the local time of the gateway. Requests of other hours are not sent.
    /// Default: all hours.
    #[schemars(example = &"18:00-08:00")]
    hours: Option<DailyHours>,
    /// Hours of the day in which messages are held back until the end of these hours. Requests that were decided meanwhile
    /// are not sent.
    #[schemars(example = &"22:00-07:00")]
    quiet_hours: Option<DailyHours>,
    /// Seconds after which a request is sent if nobody has decided it by then.
    #[serde(default, with = "IntRange::<0, 604_800>")]
    #[schemars(extend("default" = 0))]
    after_seconds: u64,
    /// Minutes between two digests of the requests that expired without a decision. Default: none are sent.
    #[serde(default, with = "IntRange::<1, 10_080>")]
    digest_minutes: Option<u64>,
    /// True if messages contain the arguments of the call, with known secrets removed.
    #[serde(default)]
    arguments: bool,
}

/// Channel of notifications, as written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ChannelKind {
    Desktop,
    WebPush,
    Webhook,
    Ntfy,
    Slack,
    Teams,
    Email,
}

impl ConfigWord for ChannelKind {
    const WORDS: &'static [(&'static str, ChannelKind)] = &[
        ("desktop", ChannelKind::Desktop),
        ("web_push", ChannelKind::WebPush),
        ("webhook", ChannelKind::Webhook),
        ("ntfy", ChannelKind::Ntfy),
        ("slack", ChannelKind::Slack),
        ("teams", ChannelKind::Teams),
        ("email", ChannelKind::Email),
    ];
}

impl ChannelKind {
    fn word(self) -> &'static str {
        let found = ChannelKind::WORDS.iter().find(|(_, kind)| *kind == self);
        found.map_or("", |(word, _)| word)
    }

    /// Returns the keys of the channel: those that it needs, and those that it may have.
    fn keys(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            ChannelKind::Desktop => (&[], &[]),
            ChannelKind::WebPush => (&["contact"], &["push_origins"]),
            ChannelKind::Webhook => (&["url", "secret"], &["people"]),
            ChannelKind::Ntfy => (&["url"], &["token"]),
            ChannelKind::Slack => (&["secret_url"], &["secret", "people"]),
            ChannelKind::Teams => (&["secret_url"], &[]),
            ChannelKind::Email => (&["smtp", "from", "to"], &["user", "password"]),
        }
    }
}

/// Risk of an approval request, by the annotations of trusted servers.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum RequestRisk {
    /// Every request.
    #[default]
    Any,
    /// Requests of tools that may change something.
    Write,
    /// Requests of tools that may destroy something.
    Destructive,
}

impl RequestRisk {
    /// Returns the risk of a tool by its annotations, which count only if the operator trusts its server.
    pub(crate) fn of(hints: ToolAnnotations) -> RequestRisk {
        match (hints.read_only, hints.destructive) {
            (true, _) => RequestRisk::Any,
            (false, false) => RequestRisk::Write,
            (false, true) => RequestRisk::Destructive,
        }
    }
}

impl ConfigWord for RequestRisk {
    const WORDS: &'static [(&'static str, RequestRisk)] = &[
        ("any", RequestRisk::Any),
        ("write", RequestRisk::Write),
        ("destructive", RequestRisk::Destructive),
    ];
}

/// Settings of one `[[notify]]` entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct NotifySettings {
    /// Unique name of the entry.
    pub(crate) name: String,
    /// Name of the channel, as written.
    pub(crate) channel_name: &'static str,
    pub(crate) channel: NotifyChannel,
    pub(crate) tools: Vec<NameGlob>,
    pub(crate) except: Vec<NameGlob>,
    pub(crate) callers: Vec<NameGlob>,
    pub(crate) risk: RequestRisk,
    /// Hours in which messages are sent.
    pub(crate) hours: Option<DailyHours>,
    /// Hours in which messages are held back.
    pub(crate) quiet_hours: Option<DailyHours>,
    /// Time after which an undecided request is sent.
    pub(crate) after: Duration,
    /// Interval of the digest of expired requests.
    pub(crate) digest: Option<Duration>,
    /// True if messages contain arguments.
    pub(crate) arguments: bool,
    /// Chat users who may decide: id there, and name as an approver.
    pub(crate) people: Vec<(String, String)>,
}

/// Channel of a `[[notify]]` entry, with its settings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum NotifyChannel {
    /// Notification of the desktop on which the gateway runs.
    Desktop,
    /// Push messages to the browsers of approvers.
    WebPush {
        contact: String,
        origins: Vec<String>,
    },
    /// Signed webhook.
    Webhook { url: Url, secret: TokenSource },
    /// Topic of an ntfy server.
    Ntfy {
        url: Url,
        token: Option<TokenSource>,
    },
    /// Incoming webhook of Slack; with a signing secret, its messages may have buttons.
    Slack {
        url: TokenSource,
        secret: Option<TokenSource>,
    },
    /// Incoming webhook of Teams.
    Teams { url: TokenSource },
    /// E-mail.
    Email {
        server: SmtpServer,
        user: Option<(String, TokenSource)>,
        from: String,
        to: Vec<String>,
    },
}

impl NotifyChannel {
    /// Returns the secrets of the channel.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &TokenSource> {
        let (first, second) = match self {
            NotifyChannel::Desktop | NotifyChannel::WebPush { .. } => (None, None),
            NotifyChannel::Webhook { secret, .. } => (Some(secret), None),
            NotifyChannel::Ntfy { token, .. } => (token.as_ref(), None),
            NotifyChannel::Slack { url, secret } => (Some(url), secret.as_ref()),
            NotifyChannel::Teams { url } => (Some(url), None),
            NotifyChannel::Email { user, .. } => {
                (user.as_ref().map(|(_, password)| password), None)
            }
        };
        first.into_iter().chain(second)
    }
}

impl NotifySettings {
    /// Checks all `[[notify]]` sections, in the order of the file.
    pub(super) fn check_all(
        sections: Vec<NotifySection>,
        tools: ToolTargets<'_>,
        auth: &AuthSettings,
        tree: &ConfigTree<'_>,
    ) -> Result<Vec<NotifySettings>, SettingError> {
        let mut all: Vec<NotifySettings> = Vec::new();
        for (at, section) in sections.into_iter().enumerate() {
            let path = SettingPath::new(&["notify"]).index(at);
            let one = NotifySettings::check(section, tools, auth, (tree, &path))?;
            if all.iter().any(|other| other.name == one.name) {
                return Err(SettingError::message(
                    path,
                    format!(
                        "has the name {:?}, as an entry before it; give each entry a name of its own, such as name = \"oncall\"",
                        one.name
                    ),
                ));
            }
            all.push(one);
        }
        Ok(all)
    }

    fn check(
        mut section: NotifySection,
        tools: ToolTargets<'_>,
        auth: &AuthSettings,
        (tree, path): (&ConfigTree<'_>, &SettingPath),
    ) -> Result<NotifySettings, SettingError> {
        section.check_keys(path)?;
        let name = match section.name.take() {
            Some(name) => check_name(name, &path.key("name"))?,
            None => section.channel.word().replace('_', "-"),
        };
        let people = check_people(std::mem::take(&mut section.people), &path.key("people"))?;
        Ok(NotifySettings {
            tools: match &section.tools {
                Some(globs) => tools.check_required(globs, &path.key("tools"))?,
                None => Vec::new(),
            },
            except: tools.check(&section.except, &path.key("except"))?,
            callers: auth.check_callers(section.callers.as_deref(), &path.key("callers"))?,
            risk: section.risk,
            hours: section.hours,
            quiet_hours: section.quiet_hours,
            after: Duration::from_secs(section.after_seconds),
            digest: section
                .digest_minutes
                .map(|minutes| Duration::from_secs(minutes * 60)),
            arguments: section.arguments,
            channel_name: section.channel.word(),
            channel: section.check_channel(tree, path)?,
            people,
            name,
        })
    }
}

impl NotifySection {
    /// Returns whether each key of a channel is present.
    fn given(&self) -> [(&'static str, bool); 12] {
        [
            ("url", self.url.is_some()),
            ("secret_url", self.secret_url.is_some()),
            ("secret", self.secret.is_some()),
            ("token", self.token.is_some()),
            ("smtp", self.smtp.is_some()),
            ("user", self.user.is_some()),
            ("password", self.password.is_some()),
            ("from", self.from.is_some()),
            ("to", !self.to.is_empty()),
            ("contact", self.contact.is_some()),
            ("push_origins", !self.push_origins.is_empty()),
            ("people", !self.people.0.is_empty()),
        ]
    }

    /// Checks that the section has the keys of its channel and no others.
    fn check_keys(&self, path: &SettingPath) -> Result<(), SettingError> {
        let (needed, optional) = self.channel.keys();
        let channel = self.channel.word();
        let given = self.given();
        let missing = needed
            .iter()
            .find(|key| given.iter().any(|(name, is)| name == *key && !is));
        if let Some(key) = missing {
            return Err(SettingError::missing(path.clone(), key));
        }
        let useless = given
            .iter()
            .find(|(key, is)| *is && !needed.contains(key) && !optional.contains(key));
        if let Some((key, _)) = useless {
            let all: Vec<&str> = needed.iter().chain(optional).copied().collect();
            let has = match all.is_empty() {
                true => "has no keys of its own".to_owned(),
                false => format!("has the keys {}", all.join(", ")),
            };
            return Err(SettingError::about(
                path.key(key),
                format!("has no effect with channel = \"{channel}\", which {has}; remove it"),
            ));
        }
        if !self.people.0.is_empty() && !self.arguments {
            return Err(SettingError::about(
                path.key("people"),
                "needs arguments = true: people decide there only about calls that the message shows",
            ));
        }
        if self.user.is_some() != self.password.is_some() {
            return Err(SettingError::about(
                path.key(if self.user.is_some() {
                    "user"
                } else {
                    "password"
                }),
                "needs the other of \"user\" and \"password\"; write both, or none",
            ));
        }
        if self.channel == ChannelKind::Slack && self.secret.is_some() == self.people.0.is_empty() {
            return Err(SettingError::about(
                path.key(if self.secret.is_some() {
                    "secret"
                } else {
                    "people"
                }),
                "needs the other of \"secret\" (the signing secret of the Slack app) and \"people\"; buttons work with both, and messages without buttons need none",
            ));
        }
        Ok(())
    }

    fn check_channel(
        self,
        tree: &ConfigTree<'_>,
        path: &SettingPath,
    ) -> Result<NotifyChannel, SettingError> {
        let token = |source, key: &str| TokenSource::new(source, tree, &path.key(key));
        let missing = |key: &'static str| SettingError::missing(path.clone(), key);
        Ok(match self.channel {
            ChannelKind::Desktop => NotifyChannel::Desktop,
            ChannelKind::WebPush => NotifyChannel::WebPush {
                contact: check_contact(self.contact.ok_or_else(|| missing("contact"))?, path)?,
                origins: self
                    .push_origins
                    .into_iter()
                    .map(|origin| origin.0)
                    .collect(),
            },
            ChannelKind::Webhook => NotifyChannel::Webhook {
                url: self.url.ok_or_else(|| missing("url"))?.url,
                secret: token(self.secret.ok_or_else(|| missing("secret"))?, "secret"),
            },
            ChannelKind::Ntfy => {
                let url = self.url.ok_or_else(|| missing("url"))?.url;
                if url.path().trim_matches('/').is_empty() || url.path()[1..].contains('/') {
                    return Err(SettingError::about(
                        path.key("url"),
                        "names no topic; write the server and the topic, such as \"https://ntfy.sh/TOPIC\"",
                    ));
                }
                NotifyChannel::Ntfy {
                    url,
                    token: self.token.map(|source| token(source, "token")),
                }
            }
            ChannelKind::Slack => NotifyChannel::Slack {
                url: token(
                    self.secret_url.ok_or_else(|| missing("secret_url"))?,
                    "secret_url",
                ),
                secret: self.secret.map(|source| token(source, "secret")),
            },
            ChannelKind::Teams => NotifyChannel::Teams {
                url: token(
                    self.secret_url.ok_or_else(|| missing("secret_url"))?,
                    "secret_url",
                ),
            },
            ChannelKind::Email => {
                let from = self.from.ok_or_else(|| missing("from"))?.text;
                check_mailbox(&from, &path.key("from"))?;
                if self.to.len() > MAX_RECIPIENTS {
                    return Err(SettingError::about(
                        path.key("to"),
                        format!("has more than {MAX_RECIPIENTS} recipients; use a mailing list"),
                    ));
                }
                for (at, to) in self.to.iter().enumerate() {
                    check_mailbox(&to.text, &path.key("to").index(at))?;
                }
                let password = self.password.map(|source| token(source, "password"));
                NotifyChannel::Email {
                    server: self.smtp.ok_or_else(|| missing("smtp"))?.0,
                    user: self.user.map(|user| user.text).zip(password),
                    from,
                    to: self.to.into_iter().map(|to| to.text).collect(),
                }
            }
        })
    }
}

fn check_name(name: String, path: &SettingPath) -> Result<String, SettingError> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    match (1..=32).contains(&name.len()) && name.bytes().all(plain) {
        true => Ok(name),
        false => Err(SettingError::about(
            path.clone(),
            "must consist of 1 to 32 characters from a-z, 0-9 and \"-\"",
        )),
    }
}

fn check_people(
    people: NamedSettings<ExpandedText>,
    path: &SettingPath,
) -> Result<Vec<(String, String)>, SettingError> {
    if people.0.len() > MAX_PEOPLE {
        return Err(SettingError::about(
            path.clone(),
            format!("has more than {MAX_PEOPLE} entries; let others decide in the console"),
        ));
    }
    let person = |(id, name): (String, ExpandedText)| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '@');
        match (1..=64).contains(&name.text.len()) && name.text.chars().all(plain) {
            true => Ok((id, name.text)),
            false => Err(SettingError::about(
                path.key(&id),
                "is not a name for an approver; write 1 to 64 letters, digits, '.', '-', '_' and '@'",
            )),
        }
    };
    people.0.into_iter().map(person).collect()
}

fn check_contact(contact: ExpandedText, path: &SettingPath) -> Result<String, SettingError> {
    let text = contact.text;
    let is_mail = text
        .strip_prefix("mailto:")
        .is_some_and(|mail| mail.contains('@') && mail.bytes().all(|b| b.is_ascii_graphic()));
    match is_mail || Url::parse(&text).is_ok_and(|url| url.is_https()) {
        true => Ok(text),
        false => Err(SettingError::about(
            path.key("contact"),
            "is neither a mailto: nor an https: address; write one such as \"mailto:ops@example.com\"",
        )),
    }
}

fn check_mailbox(text: &str, path: &SettingPath) -> Result<(), SettingError> {
    match text.parse::<lettre::message::Mailbox>() {
        Ok(_) => Ok(()),
        Err(_) => Err(SettingError::message(
            path.clone(),
            format!(
                "{text:?} is not an e-mail address; write one such as \"oncall@example.com\" or \"Toolgate <toolgate@example.com>\""
            ),
        )),
    }
}
