//! Audit content settings: keys of `[audit]`, and overrides in `[server.NAME]`.

use super::{error::ConfigError, section::ConfigSection};
use toolgate_policy::{AuditContentForm, AuditDurability};

/// Values of the durability mode.
const DURABILITY_MODES: &[(&str, AuditDurability)] = &[
    ("auto", AuditDurability::Auto),
    ("strict", AuditDurability::Strict),
    ("end", AuditDurability::End),
];

/// Values of the setting for arguments in audit records.
const ARGUMENT_FORMS: &[(&str, AuditContentForm)] = &[
    ("rules", AuditContentForm::RuleInputs),
    ("digest", AuditContentForm::Digest),
    ("redacted", AuditContentForm::Redacted),
];

/// Values of the setting for results in audit records.
const RESULT_FORMS: &[(&str, AuditContentForm)] = &[
    ("digest", AuditContentForm::Digest),
    ("redacted", AuditContentForm::Redacted),
];

/// Default audit content settings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct AuditContentSettings {
    /// Audit writes that a call waits for.
    pub(crate) durability: AuditDurability,
    /// Form of arguments in audit records.
    pub(crate) arguments: AuditContentForm,
    /// Form of results in audit records.
    pub(crate) results: AuditContentForm,
    /// Maximum bytes of one recorded content, from 64 to 49,152; default 16 KiB. Longer ones are omitted.
    pub(crate) max_content_bytes: usize,
}

impl Default for AuditContentSettings {
    fn default() -> AuditContentSettings {
        AuditContentSettings {
            durability: AuditDurability::Auto,
            arguments: AuditContentForm::RuleInputs,
            results: AuditContentForm::Digest,
            max_content_bytes: 16 * 1024,
        }
    }
}

impl AuditContentSettings {
    /// Reads the keys of `[audit]`.
    pub(super) fn read(section: &ConfigSection<'_>) -> Result<AuditContentSettings, ConfigError> {
        let mut recorded = AuditContentSettings::default();
        if let Some(field) = section.get("mode") {
            recorded.durability = field.one_of(DURABILITY_MODES)?;
        }
        if let Some(field) = section.get("arguments") {
            recorded.arguments = field.one_of(ARGUMENT_FORMS)?;
        }
        if let Some(field) = section.get("results") {
            recorded.results = field.one_of(RESULT_FORMS)?;
        }
        if let Some(field) = section.get("contents_bytes") {
            recorded.max_content_bytes = usize::try_from(field.number(64..=49_152)?).unwrap_or(64);
        }
        Ok(recorded)
    }
}

/// Audit content settings of one server that differ from `[audit]`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AuditContentOverride {
    /// Audit writes that a call waits for.
    pub(crate) durability: Option<AuditDurability>,
    /// Form of arguments in audit records.
    pub(crate) arguments: Option<AuditContentForm>,
    /// Form of results in audit records.
    pub(crate) results: Option<AuditContentForm>,
}

impl AuditContentOverride {
    /// Reads the keys of a server's section.
    pub(super) fn read(section: &ConfigSection<'_>) -> Result<AuditContentOverride, ConfigError> {
        let word = |key, words| {
            section
                .get(key)
                .map(|field| field.one_of(words))
                .transpose()
        };
        let mode = section.get("audit_mode");
        Ok(AuditContentOverride {
            durability: mode
                .map(|field| field.one_of(DURABILITY_MODES))
                .transpose()?,
            arguments: word("audit_arguments", ARGUMENT_FORMS)?,
            results: word("audit_results", RESULT_FORMS)?,
        })
    }
}
