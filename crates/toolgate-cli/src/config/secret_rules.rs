//! `secret_rules` at the top level: files with the operator's secret rules.

use super::{
    error::{ConfigError, ConfigText},
    file::{self, FilePrivacy},
    reader::{ConfigPath, SettingError, SettingPath},
};
use toolgate_policy::SecretRules;

/// Maximum number of files.
const MAX_SECRET_RULE_FILES: usize = 16;

/// The operator's secret rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct SecretRuleFiles {
    /// Rules of each file, in the order of the list.
    pub(crate) files: Vec<SecretRules>,
    /// Notes on skipped rules, each with its file and the reason.
    pub(super) notes: Vec<String>,
}

impl SecretRuleFiles {
    /// Reads the listed files.
    pub(super) fn read(paths: &[ConfigPath]) -> Result<SecretRuleFiles, SettingError> {
        let mut read = SecretRuleFiles::default();
        if paths.len() > MAX_SECRET_RULE_FILES {
            return Err(SettingError::about(
                SettingPath::new(&["secret_rules"]),
                format!(
                    "lists {} files, but at most {MAX_SECRET_RULE_FILES} are allowed; merge some",
                    paths.len()
                ),
            ));
        }
        for path in paths {
            let path = path.as_path();
            let name = path.display().to_string();
            let text = file::read(path, file::MAX_CONFIG_BYTES, FilePrivacy::Config);
            let text = text.map_err(|why| ConfigError::new(&name, why))?;
            let doc = ConfigText {
                name: &name,
                text: &text,
            };
            let rules = SecretRules::parse(&text);
            let rules = rules.map_err(|wrong| doc.error(wrong.at, wrong.message))?;
            read.notes
                .extend(rules.notes().iter().map(|note| format!("{name}: {note}")));
            read.files.push(rules);
        }
        Ok(read)
    }
}
