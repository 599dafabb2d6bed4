//! How calls are recorded: keys of `[audit]`, and of `[server.NAME]` where one has it otherwise.

use super::{error::ConfigError, section::Section};
use toolgate_policy::{Held, Waits};

/// What a call waits for.
const MODES: &[(&str, Waits)] = &[
    ("auto", Waits::Auto),
    ("strict", Waits::Strict),
    ("end", Waits::End),
];

/// What the audit log holds of arguments.
const ARGUMENTS: &[(&str, Held)] = &[
    ("rules", Held::RuleInputs),
    ("digest", Held::Digest),
    ("redacted", Held::Redacted),
];

/// What the audit log holds of results.
const RESULTS: &[(&str, Held)] = &[("digest", Held::Digest), ("redacted", Held::Redacted)];

/// How calls of all servers are recorded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Recorded {
    /// What a call waits for.
    pub(crate) mode: Waits,
    /// Of arguments.
    pub(crate) arguments: Held,
    /// Of results.
    pub(crate) results: Held,
    /// Longer ones are omitted.
    pub(crate) bytes: usize,
}

impl Default for Recorded {
    fn default() -> Recorded {
        Recorded {
            mode: Waits::Auto,
            arguments: Held::RuleInputs,
            results: Held::Digest,
            bytes: 16 * 1024,
        }
    }
}

impl Recorded {
    /// Reads its keys of `[audit]`.
    pub(super) fn read(section: &Section<'_>) -> Result<Recorded, ConfigError> {
        let mut recorded = Recorded::default();
        if let Some(field) = section.get("mode") {
            recorded.mode = field.word(MODES)?;
        }
        if let Some(field) = section.get("arguments") {
            recorded.arguments = field.word(ARGUMENTS)?;
        }
        if let Some(field) = section.get("results") {
            recorded.results = field.word(RESULTS)?;
        }
        if let Some(field) = section.get("contents_bytes") {
            recorded.bytes = usize::try_from(field.number(64..=49_152)?).unwrap_or(64);
        }
        Ok(recorded)
    }
}

/// What a server has otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnRecorded {
    /// What its calls wait for.
    pub(crate) mode: Option<Waits>,
    /// Of its arguments.
    pub(crate) arguments: Option<Held>,
    /// Of its results.
    pub(crate) results: Option<Held>,
}

impl OwnRecorded {
    /// Reads its keys of a server.
    pub(super) fn read(section: &Section<'_>) -> Result<OwnRecorded, ConfigError> {
        let word = |key, words| section.get(key).map(|field| field.word(words)).transpose();
        let mode = section.get("audit_mode");
        Ok(OwnRecorded {
            mode: mode.map(|field| field.word(MODES)).transpose()?,
            arguments: word("audit_arguments", ARGUMENTS)?,
            results: word("audit_results", RESULTS)?,
        })
    }
}
