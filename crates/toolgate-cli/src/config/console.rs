//! `[console]`: people who sign in to the console, their roles, and what the console may change.

use super::{
    auth::AuthSettings,
    glob::NameGlob,
    reader::{IntRange, SettingError, SettingPath},
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// Default lifetime of the session of a person who signed in, in hours.
const DEFAULT_SESSION_HOURS: u64 = 12;

/// Web console, `[console]`: people who sign in at an issuer, and what the console may change.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ConsoleSection {
    /// True if the console may change every part of the config. Whoever can open the console can then start programs on
    /// this machine. Without it, the console changes only `rule`, `limits`, `pins`, `search` and `tool_names`.
    danger_edit_config: bool,
    /// Hours after which the session of a person ends who signed in at an issuer. The person then signs in again, and
    /// the gateway reads their groups again.
    #[serde(with = "IntRange::<1, 168>")]
    session_hours: u64,
    /// True if only auditors and owners see the arguments and results of calls. Approvers see the arguments of calls that
    /// wait for an approval.
    restrict_contents: bool,
    /// Roles of people who sign in at an issuer. Without roles, the console has links only.
    role: ConsoleRoleSection,
}

/// Roles of people at the console, `[console.role]`. Each is a list of globs over callers, as in rules. A person may
/// have several roles, and has the rights of all of them.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ConsoleRoleSection {
    /// People who see calls, tools, servers and requests.
    #[schemars(example = ["group:staff"])]
    viewer: Vec<String>,
    /// People who also decide requests for approval.
    #[schemars(example = ["group:oncall"])]
    approver: Vec<String>,
    /// People who see the arguments and results of calls, and decide nothing.
    #[schemars(example = ["group:audit"])]
    auditor: Vec<String>,
    /// People who also stop calls, freeze, decide on definitions, restart and sign in to servers, and call tools.
    #[schemars(example = ["group:sre"])]
    operator: Vec<String>,
    /// People with all rights: also keys, reloads and sessions.
    #[schemars(example = ["corp:ann"])]
    owner: Vec<String>,
}

impl Default for ConsoleSection {
    fn default() -> ConsoleSection {
        ConsoleSection {
            danger_edit_config: false,
            session_hours: DEFAULT_SESSION_HOURS,
            restrict_contents: false,
            role: ConsoleRoleSection::default(),
        }
    }
}

/// Role of a person at the console.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum ConsoleRole {
    /// Sees calls and requests.
    Viewer,
    /// Also decides requests for approval.
    Approver,
    /// Sees calls with their contents.
    Auditor,
    /// Also operates servers and calls.
    Operator,
    /// Has all rights.
    Owner,
}

impl ConsoleRole {
    /// All roles.
    pub(crate) const ALL: [ConsoleRole; 5] = [
        ConsoleRole::Viewer,
        ConsoleRole::Approver,
        ConsoleRole::Auditor,
        ConsoleRole::Operator,
        ConsoleRole::Owner,
    ];

    /// Returns the name of the role in the config and in audit records.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ConsoleRole::Viewer => "viewer",
            ConsoleRole::Approver => "approver",
            ConsoleRole::Auditor => "auditor",
            ConsoleRole::Operator => "operator",
            ConsoleRole::Owner => "owner",
        }
    }
}

/// Settings of the console.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ConsoleSettings {
    /// True if the console may change every part of the config.
    pub(crate) danger_edit_config: bool,
    /// Lifetime of the session of a person who signed in.
    pub(crate) session_lifetime: Duration,
    /// True if only auditors and owners see the contents of calls.
    pub(crate) restrict_contents: bool,
    /// People with each role that the config gives to anybody.
    pub(crate) roles: Vec<(ConsoleRole, Vec<NameGlob>)>,
}

impl Default for ConsoleSettings {
    fn default() -> ConsoleSettings {
        ConsoleSettings {
            danger_edit_config: false,
            session_lifetime: Duration::from_secs(DEFAULT_SESSION_HOURS * 3600),
            restrict_contents: false,
            roles: Vec::new(),
        }
    }
}

impl ConsoleSettings {
    /// Checks the settings of the console.
    pub(super) fn check(
        section: ConsoleSection,
        auth: &AuthSettings,
    ) -> Result<ConsoleSettings, SettingError> {
        let lists = [
            section.role.viewer,
            section.role.approver,
            section.role.auditor,
            section.role.operator,
            section.role.owner,
        ];
        let path = SettingPath::new(&["console", "role"]);
        let mut roles = Vec::new();
        for (role, list) in ConsoleRole::ALL.into_iter().zip(lists) {
            let path = path.key(role.as_str());
            if list.is_empty() {
                continue;
            }
            check_people(&list, auth, &path)?;
            roles.push((role, auth.check_callers(Some(&list), &path)?));
        }
        let signs_in = auth.issuers.iter().any(|issuer| issuer.sign_in.is_some());
        if !roles.is_empty() && !signs_in {
            return Err(SettingError::about(
                path,
                "has no effect, because no issuer of this config can sign people in; add [auth.issuer.NAME.sign_in]",
            ));
        }
        Ok(ConsoleSettings {
            danger_edit_config: section.danger_edit_config,
            session_lifetime: Duration::from_secs(section.session_hours * 3600),
            restrict_contents: section.restrict_contents,
            roles,
        })
    }
}

/// Checks that the globs can match people whom an issuer signed in.
fn check_people(
    list: &[String],
    auth: &AuthSettings,
    path: &SettingPath,
) -> Result<(), SettingError> {
    for (at, text) in list.iter().enumerate() {
        let is_fixed = !text.contains(':') && text.contains('@');
        if text.starts_with("key:") || is_fixed {
            return Err(SettingError::message(
                path.index(at),
                format!(
                    "{text:?} is not a person whom an issuer signs in; write \"group:NAME\", \"role:NAME\" or \"ISSUER:NAME\""
                ),
            ));
        }
        let groups = auth
            .issuers
            .iter()
            .any(|issuer| issuer.claims.groups.is_some());
        if text.starts_with("group:") && !groups {
            return Err(SettingError::message(
                path.index(at),
                format!(
                    "nobody who signs in is in {text:?}: no issuer of this config maps groups; set groups_claim in [auth.issuer.NAME]"
                ),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, ConsoleRole};
    use std::path::Path;

    const ISSUER: &str = "[server.s]\ncommand = [\"true\"]\n[auth]\nresource = \"https://tools.example.com/mcp\"\n[auth.issuer.corp]\nurl = \"https://login.example.com\"\n";

    fn read(issuer: &str, console: &str) -> Result<Config, String> {
        let text = format!("{ISSUER}{issuer}\n{console}");
        Config::parse(Path::new("toolgate.toml"), &text).map_err(|error| error.to_string())
    }

    #[test]
    fn roles_need_an_issuer_that_signs_people_in() {
        let sign_in = "groups_claim = \"groups\"\nsign_in = { client_id = \"pages\" }";
        let roles = "[console]\nsession_hours = 1\n[console.role]\nviewer = [\"*\"]\nowner = [\"corp:ann\", \"group:admins\"]";
        let console = read(sign_in, roles).unwrap().console;
        assert_eq!(console.session_lifetime.as_secs(), 3600);
        let given: Vec<ConsoleRole> = console.roles.iter().map(|(role, _)| *role).collect();
        assert_eq!(given, [ConsoleRole::Viewer, ConsoleRole::Owner]);
        for (issuer, role, expected) in [
            ("", "owner = [\"corp:ann\"]", "can sign people in"),
            (
                "sign_in = { client_id = \"pages\" }",
                "owner = [\"group:a\"]",
                "maps groups",
            ),
            (sign_in, "owner = [\"key:ci\"]", "not a person"),
            (sign_in, "owner = [\"operator@ann\"]", "not a person"),
            (sign_in, "owner = [\"crop:ann\"]", "corp:ann"),
        ] {
            let error = read(issuer, &format!("[console.role]\n{role}"));
            let error = error.err().unwrap_or_default();
            assert!(error.contains(expected), "{role}: {error}");
        }
    }
}
