//! `revision` of `[server.NAME]`: protocol revision.

use super::{error::ConfigError, section::ConfigSection};
use toolgate_protocol::dialect::{self, Dialect};

/// Choice of the protocol revision for a server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum RevisionChoice {
    /// A session if the server offers one, until it returns input-required results; then the newest revision.
    #[default]
    Auto,
    /// The newest revision that both sides support.
    Newest,
    /// Only this revision.
    Only(&'static Dialect),
}

impl RevisionChoice {
    /// Reads `revision`; the default is `auto`.
    pub(super) fn read(section: &ConfigSection<'_>) -> Result<RevisionChoice, ConfigError> {
        let Some(field) = section.get("revision") else {
            return Ok(RevisionChoice::Auto);
        };
        let only = |dialect: &&'static Dialect| (dialect.revision, RevisionChoice::Only(dialect));
        let mut words = vec![
            ("auto", RevisionChoice::Auto),
            ("newest", RevisionChoice::Newest),
        ];
        words.extend(dialect::ALL.iter().map(only));
        field.one_of(&words)
    }

    /// Returns the hint how to set the revision in the config.
    pub(crate) fn config_hint(server: &str, revision: &str) -> String {
        format!("set revision = {revision:?} in [server.{server}]")
    }

    fn name(self) -> &'static str {
        match self {
            RevisionChoice::Auto => "auto",
            RevisionChoice::Newest => "newest",
            RevisionChoice::Only(dialect) => dialect.revision,
        }
    }
}

impl PartialEq for RevisionChoice {
    fn eq(&self, other: &RevisionChoice) -> bool {
        self.name() == other.name()
    }
}
