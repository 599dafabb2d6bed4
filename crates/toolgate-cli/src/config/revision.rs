//! `revision` of `[server.NAME]`: protocol revision.

use super::reader::{WordVisitor, word_schema};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
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

impl JsonSchema for RevisionChoice {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "RevisionChoice".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        word_schema(RevisionChoice::words().into_iter().map(|(word, _)| word))
    }
}
