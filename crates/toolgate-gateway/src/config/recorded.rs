//! Audit content settings: keys of `[audit]`, and overrides in `[server.NAME]`.

use super::{error::ConfigError, section::Section};
use toolgate_policy::{Held, Waits};

/// Values of the durability mode.
const MODES: &[(&str, Waits)] = &[
    ("auto", Waits::Auto),
    ("strict", Waits::Strict),
    ("end", Waits::End),
];

/// Values of the setting for arguments in audit records.
const ARGUMENTS: &[(&str, Held)] = &[
    ("rules", Held::RuleInputs),
    ("digest", Held::Digest),
    ("redacted", Held::Redacted),
];

/// Values of the setting for results in audit records.
const RESULTS: &[(&str, Held)] = &[("digest", Held::Digest), ("redacted", Held::Redacted)];

/// Default audit content settings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Recorded {
    /// Audit writes that a call waits for.
    pub(crate) mode: Waits,
    /// Form of arguments in audit records.
    pub(crate) arguments: Held,
    /// Form of results in audit records.
    pub(crate) results: Held,
    /// Maximum bytes of one recorded content, from 64 to 49,152; default 16 KiB. Longer ones are omitted.
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
    /// Reads the keys of `[audit]`.
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

/// Audit content settings of one server that differ from `[audit]`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnRecorded {
    /// Audit writes that a call waits for.
    pub(crate) mode: Option<Waits>,
    /// Form of arguments in audit records.
    pub(crate) arguments: Option<Held>,
    /// Form of results in audit records.
    pub(crate) results: Option<Held>,
}

impl OwnRecorded {
    /// Reads the keys of a server's section.
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
