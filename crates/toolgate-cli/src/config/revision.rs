//! `revision` of `[server.NAME]`: protocol revision.

use super::reader::{WordVisitor, inline_schema, word_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
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
    /// Returns the words of the config and their values.
    fn words() -> Vec<(&'static str, RevisionChoice)> {
        let only = |dialect: &&'static Dialect| (dialect.revision, RevisionChoice::Only(dialect));
        let mut words = vec![
            ("auto", RevisionChoice::Auto),
            ("newest", RevisionChoice::Newest),
        ];
        words.extend(dialect::ALL.iter().map(only));
        words
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

impl<'de> Deserialize<'de> for RevisionChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RevisionChoice, D::Error> {
        deserializer.deserialize_str(WordVisitor(&RevisionChoice::words()))
    }
}

/// Writes the word, for the default of the schema.
impl Serialize for RevisionChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

inline_schema!(RevisionChoice, |_| word_schema(
    RevisionChoice::words().into_iter().map(|(word, _)| word)
));
