//! `[auth]`: how callers over HTTP say who they are.

use super::{error::ConfigError, section::Field};

const KEYS: &[&str] = &["required"];

/// How callers over HTTP say who they are.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Auth {
    /// Whether those who do not say so are refused, also where there is no token.
    pub(crate) required: bool,
}

impl Auth {
    /// Reads `[auth]`, which may be absent.
    pub(super) fn read(field: Option<Field<'_>>) -> Result<Auth, ConfigError> {
        let Some(field) = field else {
            return Ok(Auth::default());
        };
        let section = field.section("[auth]", "a section that begins with [auth]", KEYS)?;
        let mut auth = Auth::default();
        if let Some(field) = section.get("required") {
            auth.required = field.boolean()?;
        }
        Ok(auth)
    }
}
