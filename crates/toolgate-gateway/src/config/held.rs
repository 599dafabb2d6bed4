//! What the record holds of calls: keys of `[audit]`, and of `[server.NAME]` where one has it otherwise.

use super::{error::ConfigError, section::Section};
use toolgate_policy::Held;

/// Words of it.
const WORDS: &[(&str, Held)] = &[("digest", Held::Digest), ("redacted", Held::Redacted)];

/// What the record holds of arguments and results of all servers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct HeldContents {
    /// Of arguments.
    pub(crate) arguments: Held,
    /// Of results.
    pub(crate) results: Held,
    /// Longer ones are omitted.
    pub(crate) bytes: usize,
}

impl Default for HeldContents {
    fn default() -> HeldContents {
        HeldContents {
            arguments: Held::Digest,
            results: Held::Digest,
            bytes: 16 * 1024,
        }
    }
}

impl HeldContents {
    /// Reads its keys of `[audit]`.
    pub(super) fn read(section: &Section<'_>) -> Result<HeldContents, ConfigError> {
        let mut held = HeldContents::default();
        if let Some(field) = section.get("arguments") {
            held.arguments = field.word(WORDS)?;
        }
        if let Some(field) = section.get("results") {
            held.results = field.word(WORDS)?;
        }
        if let Some(field) = section.get("contents_bytes") {
            held.bytes = usize::try_from(field.number(64..=49_152)?).unwrap_or(64);
        }
        Ok(held)
    }
}

/// What a server has otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnContents {
    /// Of its arguments.
    pub(crate) arguments: Option<Held>,
    /// Of its results.
    pub(crate) results: Option<Held>,
}

impl OwnContents {
    /// Reads its keys of a server.
    pub(super) fn read(section: &Section<'_>) -> Result<OwnContents, ConfigError> {
        let word = |key| section.get(key).map(|field| field.word(WORDS)).transpose();
        Ok(OwnContents {
            arguments: word("audit_arguments")?,
            results: word("audit_results")?,
        })
    }
}
