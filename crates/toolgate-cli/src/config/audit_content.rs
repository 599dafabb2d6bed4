//! Audit content settings: keys of `[audit]`, and overrides in `[server.NAME]`.

use super::reader::ConfigWord;
use toolgate_policy::{AuditContentForm, AuditDurability};

impl ConfigWord for AuditDurability {
    const WORDS: &'static [(&'static str, AuditDurability)] = &[
        ("auto", AuditDurability::Auto),
        ("strict", AuditDurability::Strict),
        ("end", AuditDurability::End),
    ];
}

/// Form of arguments in audit records, as the config names it.
#[derive(Clone, Copy)]
pub(super) struct ArgumentForm(AuditContentForm);

impl ConfigWord for ArgumentForm {
    const WORDS: &'static [(&'static str, ArgumentForm)] = &[
        ("rules", ArgumentForm(AuditContentForm::RuleInputs)),
        ("digest", ArgumentForm(AuditContentForm::Digest)),
        ("redacted", ArgumentForm(AuditContentForm::Redacted)),
    ];
}

/// Form of results in audit records, as the config names it.
#[derive(Clone, Copy)]
pub(super) struct ResultForm(AuditContentForm);

impl ConfigWord for ResultForm {
    const WORDS: &'static [(&'static str, ResultForm)] = &[
        ("digest", ResultForm(AuditContentForm::Digest)),
        ("redacted", ResultForm(AuditContentForm::Redacted)),
    ];
}

impl From<ArgumentForm> for Option<AuditContentForm> {
    fn from(form: ArgumentForm) -> Option<AuditContentForm> {
        Some(form.0)
    }
}

impl From<ArgumentForm> for AuditContentForm {
    fn from(form: ArgumentForm) -> AuditContentForm {
        form.0
    }
}

impl From<ResultForm> for Option<AuditContentForm> {
    fn from(form: ResultForm) -> Option<AuditContentForm> {
        Some(form.0)
    }
}

impl From<ResultForm> for AuditContentForm {
    fn from(form: ResultForm) -> AuditContentForm {
        form.0
    }
}

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
    /// True if recorded contents are encrypted.
    pub(crate) encrypt: bool,
}

impl Default for AuditContentSettings {
    fn default() -> AuditContentSettings {
        AuditContentSettings {
            durability: AuditDurability::Auto,
            arguments: AuditContentForm::RuleInputs,
            results: AuditContentForm::Digest,
            max_content_bytes: 16 * 1024,
            encrypt: false,
        }
    }
}

/// Audit content settings of one server that differ from `[audit]`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AuditContentOverride {
    /// Audit writes that a call waits for.
    pub(crate) durability: Option<AuditDurability>,
    /// Form of arguments in audit records.
    pub(crate) arguments: Option<AuditContentForm>,
    /// Form of results in audit records.
    pub(crate) results: Option<AuditContentForm>,
}
