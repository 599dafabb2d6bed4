//! Data directory of a config that may otherwise be invalid. A misspelled rule must not prevent an operator from
//! freezing or denying something.

use super::{
    error::{ConfigError, ConfigText},
    file::{self, FilePrivacy},
    reader::{ConfigPath, ConfigTree, toml_syntax_error},
    schema::config_schema,
};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Part of a config file that is read even if the rest is invalid.
#[derive(Deserialize)]
struct DataSection {
    data: Option<ConfigPath>,
}

/// Returns the directory of the `data` key, if the file has one.
///
/// # Errors
/// The file cannot be read or is writable by others, or its `data` key cannot be determined.
pub(super) fn data_directory(path: &Path) -> Result<Option<PathBuf>, ConfigError> {
    let text = file::read(path, file::MAX_CONFIG_BYTES, FilePrivacy::Config);
    let text = text.map_err(|text| ConfigError::new(path.display(), text))?;
    read(path, &text)
}

fn read(path: &Path, text: &str) -> Result<Option<PathBuf>, ConfigError> {
    let name = path.display().to_string();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // The JSON of a host has no data directory.
    if text.trim_start().starts_with('{') {
        return Ok(None);
    }
    let doc = |text| ConfigText { name: &name, text };
    let tree = match ConfigTree::parse(doc(text)) {
        Ok(tree) => tree,
        // Top-level keys precede the first section, so a syntax error in a section does not affect them.
        Err(error) => match ConfigTree::parse(doc(before_sections(text))) {
            Ok(tree) => tree,
            Err(_) => return Err(toml_syntax_error(doc(text), &error)),
        },
    };
    let section: Result<DataSection, _> = tree.read(&file::config_directory(path));
    let section = section.map_err(|error| tree.error(error, config_schema()))?;
    Ok(section.data.map(PathBuf::from))
}

/// Returns the lines before the first section.
fn before_sections(text: &str) -> &str {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with('[') {
            break;
        }
        end += line.len();
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Option<PathBuf>, String> {
        read(Path::new("/etc/t.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn reads_the_data_directory_despite_other_errors() {
        for text in [
            "data = \"d\"",
            "lisen = 1\ndata = \"d\"\n",
            "data = \"d\"\n[server.a]\nurl = 7\n",
            "data = \"d\"\n[[rule]]\ntools = [\"a\n",
            "data = \"d\"\n[server.a\n",
            "\u{feff}data = '/etc/d'\n[a]\ndata = \"other\"\n",
        ] {
            assert_eq!(of(text), Ok(Some("/etc/d".into())), "{text}");
        }
        for text in ["", "[server.a]\ndata = \"d\"\n", "{\"mcpServers\": 1"] {
            assert_eq!(of(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn rejects_an_unclear_data_directory() {
        for (text, told) in [
            ("data = \"d\nlisten = 1\n", "/etc/t.toml:1:"),
            ("data = 7", "\"data\""),
            ("data = \"\"", "is empty"),
            ("data = \"${TOOLGATE_TEST_UNSET}\"", "which is not set"),
            ("data = \"a\"\ndata = \"b\"\n", "not valid TOML"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
