//! Places of imported secrets: private files beside the config, or the keyring.

use crate::{config::server_names::normalize_id, config_edit::EntryValue};
use std::path::Path;

/// Directory of the secrets, beside the config.
pub(crate) const SECRETS_DIRECTORY: &str = "secrets";

/// Secret of an imported server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlannedSecret {
    /// Name of the file relative to the directory of the config, or of the keyring entry.
    pub(crate) name: String,
    /// Shown place.
    pub(crate) place: String,
    /// The secret; `None` if the operator has to store it.
    pub(crate) value: Option<String>,
    /// True if the place already has it.
    pub(crate) exists: bool,
    /// Command that stores it.
    pub(crate) how_to_store: String,
}

/// Chooses places for secrets.
pub(crate) struct SecretPlaces<'a> {
    /// Directory of the config.
    pub(crate) directory: &'a Path,
    /// The same, as shown.
    pub(crate) shown: &'a str,
    /// True for the keyring.
    pub(crate) keyring: bool,
}

impl SecretPlaces<'_> {
    /// Returns the place of a secret, and the reference to it. `others` are the secrets of the same server.
    pub(crate) fn secret(
        &self,
        id: &str,
        name: &str,
        value: Option<String>,
        others: &[PlannedSecret],
    ) -> (PlannedSecret, EntryValue) {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '-'
            }
        };
        let name: String = name.chars().map(plain).collect();
        let base = match self.keyring {
            true => format!("{id}/{name}"),
            false => format!("{SECRETS_DIRECTORY}/{id}-{name}"),
        };
        let names = std::iter::once(base.clone()).chain((2..).map(|n| format!("{base}-{n}")));
        let mut names = names.filter(|name| !others.iter().any(|other| other.name == *name));
        let (name, exists) = match self.keyring {
            true => (names.next().unwrap_or(base), false),
            false => names
                .find_map(|name| Some((self.usable(&name, value.as_deref())?, name)))
                .map_or((base, false), |(exists, name)| (name, exists)),
        };
        let (place, how_to_store, reference) = match self.keyring {
            true => (
                format!("the keyring entry {name:?}"),
                format!("secret-tool store --label=toolgate service toolgate account {name}"),
                EntryValue::Keyring(name.clone()),
            ),
            false => {
                let path = format!("{}/{name}", self.shown);
                let how = format!("install -D -m 600 /dev/stdin {path}");
                (path, how, EntryValue::File(name.clone()))
            }
        };
        let secret = PlannedSecret {
            name,
            place,
            value,
            exists,
            how_to_store,
        };
        (secret, reference)
    }

    /// Returns whether the file already has the value; `None` if it has another one.
    fn usable(&self, name: &str, value: Option<&str>) -> Option<bool> {
        let path = self.directory.join(name);
        match (std::fs::read_to_string(&path), value) {
            (Err(_), _) => (!path.exists()).then_some(false),
            (Ok(_), None) => Some(true),
            (Ok(stored), Some(value)) => {
                (stored.trim_end_matches(['\r', '\n']) == value).then_some(true)
            }
        }
    }
}

/// Returns the ID of a server with this name that no other server has.
pub(crate) fn unique_id(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let base: String = normalize_id(name).chars().take(MAX_ID_BYTES).collect();
    let base = match base.trim_end_matches('-') {
        "" => "server",
        base => base,
    };
    let numbered = |n: usize| {
        let end = format!("-{n}");
        let start: String = base.chars().take(MAX_ID_BYTES - end.len()).collect();
        format!("{start}{end}")
    };
    let mut ids = std::iter::once(base.to_owned()).chain((2..).map(numbered));
    ids.find(|id| !is_taken(id)).unwrap_or_default()
}

/// Maximum length of a server ID.
const MAX_ID_BYTES: usize = 32;
