//! Which revision of the protocol is used with a server: `revision` of `[server.NAME]`.

use super::{error::ConfigError, section::Section};
use toolgate_wire::dialect::{self, Dialect};

/// Which revision of the protocol is used with a server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum RevisionChoice {
    /// A session where the server offers one, until it turns out to ask by results; else the newest.
    #[default]
    Auto,
    /// The newest that both sides know.
    Newest,
    /// This one only.
    Only(&'static Dialect),
}

impl RevisionChoice {
    /// Reads `revision`; `auto` where it is absent.
    pub(super) fn read(section: &Section<'_>) -> Result<RevisionChoice, ConfigError> {
        let Some(field) = section.get("revision") else {
            return Ok(RevisionChoice::Auto);
        };
        let only = |dialect: &&'static Dialect| (dialect.revision, RevisionChoice::Only(dialect));
        let mut words = vec![
            ("auto", RevisionChoice::Auto),
            ("newest", RevisionChoice::Newest),
        ];
        words.extend(dialect::ALL.iter().map(only));
        field.word(&words)
    }

    /// The setting as an operator writes it.
    pub(crate) fn setting(server: &str, revision: &str) -> String {
        format!("set revision = {revision:?} in [server.{server}]")
    }

    fn word(self) -> &'static str {
        match self {
            RevisionChoice::Auto => "auto",
            RevisionChoice::Newest => "newest",
            RevisionChoice::Only(dialect) => dialect.revision,
        }
    }
}

impl PartialEq for RevisionChoice {
    fn eq(&self, other: &RevisionChoice) -> bool {
        self.word() == other.word()
    }
}
