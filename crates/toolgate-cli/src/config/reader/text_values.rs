//! Text settings whose variables are expanded, and paths.

use super::inline_schema::inline_schema;
use crate::config::expand;
use schemars::json_schema;
use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};
use std::{
    ffi::OsString,
    fmt,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

/// Name by which [`ConfigPath`] asks the deserializer for an absolute path.
pub(super) const CONFIG_PATH: &str = "ConfigPath";

/// Absolute path. In the file it may have variables, begin with `~`, or be relative to the file's directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ConfigPath(PathBuf);

inline_schema!(
    ConfigPath,
    |_| json_schema!({"type": "string", "title": "path"})
);

impl ConfigPath {
    /// Returns the path.
    pub(crate) fn as_path(&self) -> &Path {
        &self.0
    }
}

impl From<ConfigPath> for PathBuf {
    fn from(path: ConfigPath) -> PathBuf {
        path.0
    }
}

impl<'de> Deserialize<'de> for ConfigPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ConfigPath, D::Error> {
        deserializer.deserialize_newtype_struct(CONFIG_PATH, ConfigPathVisitor)
    }
}

struct ConfigPathVisitor;

impl Visitor<'_> for ConfigPathVisitor {
    type Value = ConfigPath;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path")
    }

    fn visit_bytes<E: Error>(self, path: &[u8]) -> Result<ConfigPath, E> {
        Ok(ConfigPath(OsString::from_vec(path.to_vec()).into()))
    }
}

/// Expands variables and `~` of a path.
pub(super) fn expand_path(text: &str) -> Result<PathBuf, String> {
    let text = expand::expand_variables(text, expand::environment)?;
    if text.is_empty() {
        return Err("is empty; write a path or remove the key".to_owned());
    }
    expand::expand_home(&text)
}

/// Text with its variables expanded.
#[derive(Clone)]
pub(in crate::config) struct ExpandedText {
    /// Text as written in the file.
    pub(in crate::config) written: String,
    /// Expanded text.
    pub(in crate::config) text: String,
}

impl<'de> Deserialize<'de> for ExpandedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ExpandedText, D::Error> {
        let written = String::deserialize(deserializer)?;
        let text = expand::expand_variables(&written, expand::environment);
        let text = text.map_err(D::Error::custom)?.into_owned();
        Ok(ExpandedText { written, text })
    }
}

inline_schema!(ExpandedText, String::json_schema);
