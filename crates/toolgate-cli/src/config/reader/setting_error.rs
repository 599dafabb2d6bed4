//! Errors about a setting, before the text of the file turns their path into line and column.

use super::setting_path::SettingPath;
use crate::config::error::ConfigError;
use serde::de;
use std::fmt;

/// Error about a setting.
#[derive(Debug)]
pub(in crate::config) struct SettingError {
    pub(super) place: Option<SettingPlace>,
    pub(super) problem: SettingProblem,
}

/// Place of an error: the value of a setting, or its key.
#[derive(Debug)]
pub(super) struct SettingPlace {
    pub(super) path: SettingPath,
    pub(super) at_key: bool,
}

/// Problem with a setting.
#[derive(Debug)]
pub(super) enum SettingProblem {
    /// Text that follows the label of the setting.
    About(String),
    /// Whole message.
    Message(String),
    /// Wrong type, word or number; the schema knows what to write instead.
    Mismatch,
    /// Unknown key.
    UnknownKey,
    /// Required key that the section lacks.
    MissingKey(&'static str),
    /// Error about another file.
    OtherFile(ConfigError),
}

impl SettingError {
    /// Creates an error at the value of a setting; the message starts with the label of the setting.
    pub(in crate::config) fn about(path: SettingPath, text: impl fmt::Display) -> SettingError {
        SettingError::at(path, false, SettingProblem::About(text.to_string()))
    }

    /// Creates an error at the value of a setting with a whole message.
    pub(in crate::config) fn message(path: SettingPath, text: impl fmt::Display) -> SettingError {
        SettingError::at(path, false, SettingProblem::Message(text.to_string()))
    }

    /// Creates an error at the key of a setting with a whole message.
    pub(in crate::config) fn at_key(path: SettingPath, text: impl fmt::Display) -> SettingError {
        SettingError::at(path, true, SettingProblem::Message(text.to_string()))
    }

    /// Creates an error about a required key that a section lacks.
    pub(in crate::config) fn missing(section: SettingPath, key: &'static str) -> SettingError {
        SettingError::at(section, false, SettingProblem::MissingKey(key))
    }

    fn at(path: SettingPath, at_key: bool, problem: SettingProblem) -> SettingError {
        SettingError {
            place: Some(SettingPlace { path, at_key }),
            problem,
        }
    }

    /// Sets the place unless an inner value has set it.
    pub(super) fn or_at(mut self, path: &SettingPath, at_key: bool) -> SettingError {
        self.place.get_or_insert_with(|| SettingPlace {
            path: path.clone(),
            at_key,
        });
        self
    }

    fn unplaced(problem: SettingProblem) -> SettingError {
        SettingError {
            place: None,
            problem,
        }
    }

    /// Creates an error for a value that the schema describes better than serde.
    pub(super) fn mismatch() -> SettingError {
        SettingError::unplaced(SettingProblem::Mismatch)
    }
}

impl From<ConfigError> for SettingError {
    fn from(error: ConfigError) -> SettingError {
        SettingError::unplaced(SettingProblem::OtherFile(error))
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.problem)
    }
}

impl std::error::Error for SettingError {}

impl de::Error for SettingError {
    fn custom<T: fmt::Display>(text: T) -> SettingError {
        SettingError::unplaced(SettingProblem::About(text.to_string()))
    }

    fn invalid_type(_: de::Unexpected<'_>, _: &dyn de::Expected) -> SettingError {
        SettingError::mismatch()
    }

    fn invalid_value(_: de::Unexpected<'_>, _: &dyn de::Expected) -> SettingError {
        SettingError::mismatch()
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> SettingError {
        SettingError::mismatch()
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> SettingError {
        SettingError::unplaced(SettingProblem::UnknownKey)
    }

    fn missing_field(key: &'static str) -> SettingError {
        SettingError::unplaced(SettingProblem::MissingKey(key))
    }
}
