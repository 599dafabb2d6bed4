//! Roles of people at the console, and the rights of each role.

use crate::config::{Config, ConsoleRole, NameGlob};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_core::{Caller, CallerAttributes};
use toolgate_policy::{ApprovalChannel, Approver, ApproverIdentity, CallerMatcher};

/// Right that an action of the operator needs. The roles of a person at the console give rights; the control socket has all
/// of them.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum ActionRight {
    /// See calls, items, servers and requests, without the arguments and results of calls.
    View,
    /// See the arguments of calls that wait for an approval.
    Requests,
    /// See the arguments and results of all calls.
    Contents,
    /// Decide requests for approval, and see the secrets in them.
    Approve,
    /// Read, verify and export the audit log.
    Audit,
    /// Stop calls, freeze, decide on definitions, restart servers, sign in to servers, and call tools.
    Operate,
    /// Change who may do what: keys, rules, settings, and sessions.
    Own,
}

impl ActionRight {
    /// All rights.
    pub(crate) const ALL: [ActionRight; 7] = [
        ActionRight::View,
        ActionRight::Requests,
        ActionRight::Contents,
        ActionRight::Approve,
        ActionRight::Audit,
        ActionRight::Operate,
        ActionRight::Own,
    ];

    /// Returns the name of the right, for the page and for messages.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ActionRight::View => "view",
            ActionRight::Requests => "requests",
            ActionRight::Contents => "contents",
            ActionRight::Approve => "approve",
            ActionRight::Audit => "audit",
            ActionRight::Operate => "operate",
            ActionRight::Own => "own",
        }
    }
}

/// Rights of a person at the console.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ConsoleRights(u8);

impl ConsoleRights {
    /// Returns all rights, which the owner of a link has.
    pub(crate) fn all() -> ConsoleRights {
        ConsoleRights::of(&ActionRight::ALL)
    }

    fn of(rights: &[ActionRight]) -> ConsoleRights {
        let bits = rights.iter().map(|right| 1 << *right as u8);
        ConsoleRights(bits.fold(0, |all, bit: u8| all | bit))
    }

    fn and(self, other: ConsoleRights) -> ConsoleRights {
        ConsoleRights(self.0 | other.0)
    }

    /// Returns whether the person has this right.
    pub(crate) fn allows(self, right: ActionRight) -> bool {
        self.0 & (1 << right as u8) != 0
    }

    /// Returns the names of the rights, for the page.
    pub(crate) fn names(self) -> Vec<&'static str> {
        let all = ActionRight::ALL.into_iter();
        all.filter(|right| self.allows(*right))
            .map(ActionRight::as_str)
            .collect()
    }
}

/// Person whom an issuer signed in, as a session or a push subscription stores them.
#[derive(Clone, Debug)]
pub(crate) struct AttestedPerson {
    /// Name of the person as a caller, with the attributes that the issuer attested at the sign-in.
    pub(crate) caller: Caller,
    /// Name of the issuer in the config.
    pub(crate) issuer: String,
    /// Address of the issuer at the sign-in.
    pub(crate) issuer_url: String,
}

impl AttestedPerson {
    /// Returns the person for the state of the data directory.
    pub(crate) fn to_value(&self) -> Value {
        json!({
            "name": self.caller.name(), "attributes": self.caller.attributes().to_value(), "issuer": self.issuer,
            "issuer_url": self.issuer_url,
        })
    }

    /// Reads a person from the state; `None` if the value is malformed.
    pub(crate) fn from_value(value: &Value) -> Option<AttestedPerson> {
        let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
        let attributes = CallerAttributes::from_value(value.get("attributes")?);
        Some(AttestedPerson {
            caller: Caller::new(text("name")?).with_attributes(attributes),
            issuer: text("issuer")?,
            issuer_url: text("issuer_url")?,
        })
    }

    /// Returns the person as an approver at the console.
    pub(crate) fn approver(&self) -> Approver {
        let attributes = self.caller.attributes();
        let names = |names: &[String]| names.iter().map(|name| name.as_str().into()).collect();
        let mut identity = ApproverIdentity::new(self.issuer.as_str());
        identity.groups = names(&attributes.groups);
        identity.roles = names(&attributes.roles);
        Approver::named(ApprovalChannel::Console, self.caller.name()).with_identity(identity)
    }

    /// Returns the person whom an issuer of the config attested as an approver; `None` if no issuer did.
    pub(crate) fn from_approver(
        approver: &Approver,
        roles: &ConsoleRoles,
    ) -> Option<AttestedPerson> {
        let identity = approver.identity.as_ref()?;
        let names = |names: &[Arc<str>]| names.iter().map(|name| name.to_string()).collect();
        let mut attributes = CallerAttributes::default();
        attributes.groups = names(&identity.groups);
        attributes.roles = names(&identity.roles);
        let name = approver.name.as_deref().unwrap_or_default();
        Some(AttestedPerson {
            caller: Caller::new(name).with_attributes(attributes),
            issuer: identity.issuer.to_string(),
            // A session is valid only while its issuer has this address.
            issuer_url: roles
                .issuer_url(&identity.issuer)
                .unwrap_or_default()
                .to_owned(),
        })
    }
}

/// Roles of people who signed in at an issuer, by the config.
pub(crate) struct ConsoleRoles {
    /// Issuers that can sign people in: the name in the config, and the address.
    issuers: Vec<(String, String)>,
    roles: Vec<(ConsoleRole, CallerMatcher)>,
    /// True if viewers, approvers and operators do not see the contents of calls.
    restrict_contents: bool,
}

impl ConsoleRoles {
    /// Returns the roles of a config.
    pub(crate) fn new(config: &Config) -> ConsoleRoles {
        let roles = config.console.roles.iter();
        let issuers = config.auth.issuers.iter();
        ConsoleRoles {
            issuers: issuers
                .filter(|issuer| issuer.sign_in.is_some())
                .map(|issuer| (issuer.id.clone(), issuer.url.as_str().to_owned()))
                .collect(),
            roles: roles
                .map(|(role, globs)| (*role, globs.iter().map(NameGlob::as_str).collect()))
                .collect(),
            restrict_contents: config.console.restrict_contents,
        }
    }

    /// Returns whether people can have roles, so that they can sign in.
    pub(crate) fn is_empty(&self) -> bool {
        self.roles.is_empty()
    }

    /// Returns the address of an issuer that can sign people in.
    pub(crate) fn issuer_url(&self, issuer: &str) -> Option<&str> {
        let found = self.issuers.iter().find(|(id, _)| id == issuer);
        found.map(|(_, url)| url.as_str())
    }

    /// Returns the roles of a person. An issuer that the config no longer trusts, or that has another address now, attests
    /// nobody.
    pub(crate) fn roles_of(&self, person: &AttestedPerson) -> Vec<ConsoleRole> {
        if self.issuer_url(&person.issuer) != Some(person.issuer_url.as_str()) {
            return Vec::new();
        }
        let mine = self.roles.iter();
        mine.filter(|(_, people)| people.matches(&person.caller))
            .map(|(role, _)| *role)
            .collect()
    }

    /// Returns the rights of a person: those of all their roles.
    pub(crate) fn rights_of(&self, person: &AttestedPerson) -> ConsoleRights {
        let roles = self.roles_of(person).into_iter();
        roles.fold(ConsoleRights::default(), |all, role| {
            all.and(self.rights(role))
        })
    }

    fn rights(&self, role: ConsoleRole) -> ConsoleRights {
        use ActionRight::{Approve, Audit, Contents, Operate, Requests, View};
        let rights: &[ActionRight] = match role {
            ConsoleRole::Viewer => &[View],
            ConsoleRole::Approver => &[View, Requests, Approve],
            ConsoleRole::Auditor => return ConsoleRights::of(&[View, Requests, Contents, Audit]),
            ConsoleRole::Operator => &[View, Requests, Approve, Operate],
            ConsoleRole::Owner => return ConsoleRights::all(),
        };
        match self.restrict_contents {
            true => ConsoleRights::of(rights),
            false => ConsoleRights::of(rights).and(ConsoleRights::of(&[Requests, Contents])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn roles(issuer: &str, url: &str) -> ConsoleRoles {
        let text = format!(
            "[server.s]\ncommand = [\"true\"]\n[auth]\nresource = \"https://tools.example.com/mcp\"\n\
             [auth.issuer.{issuer}]\nurl = \"{url}\"\ngroups_claim = \"groups\"\nsign_in = {{ client_id = \"app\" }}\n\
             [console.role]\napprover = [\"group:oncall\"]\nauditor = [\"{issuer}:aud\"]"
        );
        ConsoleRoles::new(&Config::parse(Path::new("toolgate.toml"), &text).unwrap())
    }

    fn person(name: &str, groups: &[&str]) -> AttestedPerson {
        let mut attributes = CallerAttributes::default();
        attributes.groups = groups.iter().map(|group| (*group).to_owned()).collect();
        AttestedPerson {
            caller: Caller::new(name).with_attributes(attributes),
            issuer: "corp".to_owned(),
            issuer_url: "https://login.example.com".to_owned(),
        }
    }

    #[test]
    fn only_the_same_issuer_at_the_same_address_gives_rights() {
        let ann = person("corp:ann", &["oncall"]);
        let now = roles("corp", "https://login.example.com");
        assert!(now.rights_of(&ann).allows(ActionRight::Approve));
        assert!(!now.rights_of(&ann).allows(ActionRight::Operate));
        for (issuer, url) in [
            ("corp", "https://login.example.org"),
            ("other", "https://login.example.com"),
        ] {
            let rights = roles(issuer, url).rights_of(&ann);
            assert_eq!(rights, ConsoleRights::default(), "{issuer} {url}");
        }
        assert_eq!(
            now.rights_of(&person("corp:bob", &["oncall2"])),
            ConsoleRights::default()
        );
    }

    #[test]
    fn an_auditor_decides_nothing_and_a_person_with_two_roles_has_the_rights_of_both() {
        let roles = roles("corp", "https://login.example.com");
        let auditor = roles.rights_of(&person("corp:aud", &[]));
        assert_eq!(auditor.names(), ["view", "requests", "contents", "audit"]);
        let both = roles.rights_of(&person("corp:aud", &["oncall"]));
        assert_eq!(
            both.names(),
            ["view", "requests", "contents", "approve", "audit"]
        );
    }

    #[test]
    fn a_stored_person_is_read_unchanged() {
        let ann = person("corp:ann", &["oncall", "staff"]);
        let read = AttestedPerson::from_value(&ann.to_value()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{ann:?}"));
        assert!(AttestedPerson::from_value(&Value::Null).is_none());
    }
}
