//! Arguments of a call with its secrets masked, as the console shows them before somebody asks to see them.

use toolgate_core::{Item, Json};
use toolgate_policy::masked_arguments;

/// Prefix of the placeholders that replace secrets.
pub(super) const PLACEHOLDER_PREFIX: &str = "[redacted:";

/// Arguments with secrets replaced by placeholders.
pub(crate) struct MaskedArguments {
    /// JSON text; the exact text of the call if nothing is masked.
    pub(crate) text: String,
    /// Number of masked values.
    pub(crate) masked: usize,
}

impl MaskedArguments {
    /// Masks what the secret rules find, and what the schema of the item marks as secret.
    pub(crate) fn new(item: &Item, arguments: &Json) -> MaskedArguments {
        let count = |text: &str| text.matches(PLACEHOLDER_PREFIX).count();
        let Some(masked) = masked_arguments(item, arguments) else {
            // The schema marks something that has no name: it may be any part.
            return MaskedArguments {
                text: format!("\"{PLACEHOLDER_PREFIX}schema]\""),
                masked: 1,
            };
        };
        MaskedArguments {
            masked: count(masked.as_str()).saturating_sub(count(arguments.as_str())),
            text: masked.as_str().to_owned(),
        }
    }
}
