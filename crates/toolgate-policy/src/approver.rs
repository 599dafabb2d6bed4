//! Approver: the channel of a decision, and the person as far as the channel identifies them.

use serde_json::{Value, json};
use std::{fmt, sync::Arc};
use toolgate_core::Caller;
use toolgate_journal::AuditEntry;

/// Channel on which an approver decided about a call: console, terminal, chat or client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ApprovalChannel {
    /// The gateway's console.
    Console,
    /// The command line of the gateway.
    Terminal,
    /// The caller's own MCP client; its agent may have answered instead of the user.
    Client,
    /// A chat or another receiver of notifications, with a verified signature.
    Chat,
}

impl ApprovalChannel {
    /// Returns the name of the approver's channel in audit records.
    pub fn as_str(self) -> &'static str {
        match self {
            ApprovalChannel::Console => "console",
            ApprovalChannel::Terminal => "terminal",
            ApprovalChannel::Client => "client",
            ApprovalChannel::Chat => "chat",
        }
    }

    fn read(word: &str) -> Option<ApprovalChannel> {
        let all = [
            ApprovalChannel::Console,
            ApprovalChannel::Terminal,
            ApprovalChannel::Client,
            ApprovalChannel::Chat,
        ];
        all.into_iter().find(|by| by.as_str() == word)
    }
}

/// Person who approves or denies calls, as identified by a channel. The name is only as reliable as the channel, see
/// `docs/approvals.md`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Approver {
    /// Channel on which the approver decided, for example the console or the command line.
    pub channel: ApprovalChannel,
    /// Name of the approver: the user of a terminal, or the label of a console sign-in.
    pub name: Option<Arc<str>>,
    /// True if the approver is the owner of the gateway, whose own calls carry no name.
    pub is_owner: bool,
    /// Identity that an authorization server attests; `None` for a label or the user of a terminal.
    pub identity: Option<Arc<ApproverIdentity>>,
}

/// Identity of an approver who signed in at an authorization server (OpenID Connect).
///
/// ```
/// use toolgate_policy::{ApprovalChannel, Approver, ApproverIdentity};
///
/// let mut identity = ApproverIdentity::new("corp");
/// identity.groups = vec!["oncall".into()];
/// let ann = Approver::named(ApprovalChannel::Console, "corp:ann").with_identity(identity);
/// assert_eq!(ann.identity.unwrap().issuer.as_ref(), "corp");
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ApproverIdentity {
    /// Name of the issuer in the config.
    pub issuer: Arc<str>,
    /// Groups of the approver, as the config maps them from claims.
    pub groups: Vec<Arc<str>>,
    /// Roles of the approver, as the config maps them from claims.
    pub roles: Vec<Arc<str>>,
}

impl ApproverIdentity {
    /// Creates the identity of an approver who signed in at this issuer of the config, in no group and with no role.
    pub fn new(issuer: impl Into<Arc<str>>) -> ApproverIdentity {
        ApproverIdentity {
            issuer: issuer.into(),
            groups: Vec::new(),
            roles: Vec::new(),
        }
    }

    fn json(&self) -> Value {
        let names = |names: &[Arc<str>]| names.iter().map(|name| json!(&**name)).collect::<Value>();
        json!({"issuer": &*self.issuer, "groups": names(&self.groups), "roles": names(&self.roles)})
    }

    fn read(value: &Value) -> Option<ApproverIdentity> {
        let names = |key: &str| -> Option<Vec<Arc<str>>> {
            let names = value.get(key)?.as_array()?.iter();
            names.map(|name| Some(name.as_str()?.into())).collect()
        };
        Some(ApproverIdentity {
            issuer: value.get("issuer")?.as_str()?.into(),
            groups: names("groups")?,
            roles: names("roles")?,
        })
    }
}

impl Approver {
    /// Creates an approver with this name, which the channel identifies.
    pub fn named(channel: ApprovalChannel, name: impl Into<Arc<str>>) -> Approver {
        Approver {
            channel,
            name: Some(name.into()),
            is_owner: false,
            identity: None,
        }
    }

    /// Sets the identity that an authorization server attests.
    #[must_use]
    pub fn with_identity(self, identity: ApproverIdentity) -> Approver {
        Approver {
            identity: Some(Arc::new(identity)),
            ..self
        }
    }

    /// Returns whether an authorization server attests that the approver is in one of the groups.
    pub(crate) fn is_in_any(&self, groups: &[String]) -> bool {
        let identity = self.identity.iter();
        let mut own = identity.flat_map(|identity| &identity.groups);
        own.any(|own| groups.iter().any(|group| **group == **own))
    }

    /// Adds the approver to an audit record: the channel in `by`, the name, if it is known, in `who`, and the issuer that
    /// attests it in `issuer`.
    #[doc(hidden)]
    pub fn add_to(&self, record: AuditEntry) -> AuditEntry {
        let record = record.with("by", self.channel.as_str());
        let record = match &self.name {
            Some(name) => record.with("who", &**name),
            None => record,
        };
        match &self.identity {
            Some(identity) => record.with("issuer", &*identity.issuer),
            None => record,
        }
    }

    /// Reports whether both may be the same person: the names are equal, or at least one is unknown.
    pub(crate) fn may_be_same(&self, other: &Approver) -> bool {
        match (&self.name, &other.name) {
            (Some(one), Some(other)) => one == other,
            // An approver without a name may be any person.
            _ => true,
        }
    }

    /// Reports whether this approver made the call: compares their name with the caller's (`operator@NAME`, `key:NAME`
    /// or `NAME`). The owner may approve their own calls from a terminal or the console, unless the call needs several
    /// approvers.
    pub(crate) fn made_call(&self, caller: &Caller, approvers: usize) -> bool {
        let Some(name) = &self.name else {
            return false;
        };
        let caller = caller.name();
        if self.is_owner && matches!(caller, "operator@terminal" | "operator@console") {
            return approvers > 1;
        }
        let named = |prefix| caller.strip_prefix(prefix).is_some_and(|n| *n == **name);
        named("operator@") || named("key:") || caller == &**name
    }

    pub(crate) fn json(&self) -> Value {
        let mut value = json!({"by": self.channel.as_str(), "name": self.name.as_deref(), "owner": self.is_owner});
        if let Some(identity) = &self.identity {
            value["identity"] = identity.json();
        }
        value
    }

    pub(crate) fn read(value: &Value) -> Option<Approver> {
        let by = ApprovalChannel::read(value.get("by")?.as_str()?)?;
        let name = match value.get("name")? {
            Value::Null => None,
            name => Some(name.as_str()?.into()),
        };
        let owner = value.get("owner")?.as_bool()?;
        Some(Approver {
            channel: by,
            name,
            is_owner: owner,
            identity: match value.get("identity") {
                Some(identity) => Some(Arc::new(ApproverIdentity::read(identity)?)),
                None => None,
            },
        })
    }
}

impl From<ApprovalChannel> for Approver {
    fn from(by: ApprovalChannel) -> Approver {
        Approver {
            channel: by,
            name: None,
            is_owner: false,
            identity: None,
        }
    }
}

impl fmt::Display for Approver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("a person");
        write!(f, "{name} ({})", self.channel.as_str())
    }
}
