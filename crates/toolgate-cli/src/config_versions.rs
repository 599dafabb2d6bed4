//! Versions of the config that were in force, so that an operator can put an earlier one back.

use crate::config_edit::write_private_file;
use ring::digest::{SHA256, digest};
use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};
use toolgate_protocol::hex;

/// Directory in the data directory.
const VERSIONS_DIRECTORY: &str = "config-versions";
/// Maximum number of versions; the oldest ones are removed.
const MAX_VERSIONS: usize = 50;
/// Maximum length of the name of whoever put a version in force.
const MAX_NAME_CHARS: usize = 40;

/// Versions of the config in a data directory. Their files are private, as configs may have secrets.
pub(crate) struct ConfigVersions {
    directory: PathBuf,
}

/// One version.
#[derive(Clone, Debug)]
pub(crate) struct ConfigVersion {
    /// Name of its file without the extension: milliseconds since 1970, and the begin of its digest.
    pub(crate) id: String,
    /// Time since which it was in force, in milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) by: String,
}

impl ConfigVersions {
    pub(crate) fn new(data: &Path) -> ConfigVersions {
        ConfigVersions {
            directory: data.join(VERSIONS_DIRECTORY),
        }
    }

    /// Keeps a config that is in force now, unless it is the last one that was kept: then only a person's name replaces
    /// the name of a trigger.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn keep(&self, text: &str, by: &str) -> Result<(), String> {
        let by: String = by
            .chars()
            .filter(|c| is_plain(*c))
            .take(MAX_NAME_CHARS)
            .collect();
        let known = self.list();
        if let Some(last) = known.first()
            && self.read(&last.id).is_ok_and(|kept| kept == text)
        {
            let is_trigger = matches!(by.as_str(), "start" | "file" | "signal" | "terminal");
            return match is_trigger || last.by == by {
                true => Ok(()),
                false => self.rename(last, &by),
            };
        }
        // The list sorts by this time. So each version gets a later one than the last, even in the same millisecond, or
        // after somebody set the clock back.
        let now = crate::timestamp::millis(SystemTime::now());
        let at = known
            .first()
            .map_or(now, |last| now.max(last.at.saturating_add(1)));
        let digest = hex::encode(&digest(&SHA256, text.as_bytes()).as_ref()[..6]);
        let path = self.path(&format!("{at:014}-{digest}-{by}"));
        write_private_file(&path, text).map_err(|error| error.to_string())?;
        for old in known.iter().skip(MAX_VERSIONS - 1) {
            let _ = fs::remove_file(self.path(&old.id));
        }
        Ok(())
    }

    fn rename(&self, version: &ConfigVersion, by: &str) -> Result<(), String> {
        let id = version
            .id
            .strip_suffix(version.by.as_str())
            .unwrap_or_default();
        let renamed = fs::rename(self.path(&version.id), self.path(&format!("{id}{by}")));
        renamed.map_err(|error| error.to_string())
    }

    /// Returns the versions, newest first.
    pub(crate) fn list(&self) -> Vec<ConfigVersion> {
        let entries = fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten();
        let mut all: Vec<ConfigVersion> = entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let id = name.strip_suffix(".toml")?;
                let mut parts = id.splitn(3, '-');
                let at = parts.next()?.parse().ok()?;
                let by = parts.nth(1)?.to_owned();
                let id = id.to_owned();
                Some(ConfigVersion { id, at, by })
            })
            .collect();
        all.sort_by(|a, b| b.id.cmp(&a.id));
        all
    }

    /// Returns the text of a version.
    ///
    /// # Errors
    /// There is no such version, or it cannot be read.
    pub(crate) fn read(&self, id: &str) -> Result<String, String> {
        if !id.chars().all(is_plain) || !self.list().iter().any(|version| version.id == id) {
            return Err(format!(
                "there is no version {id:?} of the config; reload the page"
            ));
        }
        let path = self.path(id);
        fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))
    }

    fn path(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}.toml"))
    }
}

/// Reports whether a character may be part of the name of a file.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions() -> (PathBuf, ConfigVersions) {
        let name = format!(
            "toolgate-versions-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        );
        let data = std::env::temp_dir().join(name.replace(['(', ')'], ""));
        let _ = fs::remove_dir_all(&data);
        fs::create_dir_all(&data).unwrap();
        let versions = ConfigVersions::new(&data);
        (data, versions)
    }

    #[test]
    fn a_version_is_kept_once_and_has_the_name_of_the_person() {
        let (data, versions) = versions();
        versions.keep("a = 1\n", "start").unwrap();
        versions.keep("a = 1\n", "file").unwrap();
        versions.keep("a = 2\n", "console").unwrap();
        versions.keep("a = 2\n", "ann").unwrap();
        let list = versions.list();
        let by: Vec<&str> = list.iter().map(|version| version.by.as_str()).collect();
        assert_eq!(by, ["ann", "start"]);
        assert_eq!(versions.read(&list[1].id).unwrap(), "a = 1\n");
        for wrong in ["", "../x", "0-0-x", "a/b"] {
            assert!(versions.read(wrong).is_err(), "{wrong}");
        }
        fs::remove_dir_all(data).unwrap();
    }

    #[test]
    fn versions_of_one_millisecond_keep_their_order_and_the_oldest_are_removed() {
        let (data, versions) = versions();
        for n in 0..MAX_VERSIONS + 3 {
            versions.keep(&format!("a = {n}\n"), "file").unwrap();
        }
        let list = versions.list();
        let texts = list.iter().map(|version| versions.read(&version.id));
        let texts: Vec<String> = texts.map(Result::unwrap).collect();
        let expected = (3..MAX_VERSIONS + 3).rev().map(|n| format!("a = {n}\n"));
        assert_eq!(texts, expected.collect::<Vec<_>>());
        fs::remove_dir_all(data).unwrap();
    }
}
