//! Connections of hosts to this gateway: what `toolgate connect` changed in the file of a host, so that `toolgate
//! disconnect` can undo it.

use super::{Host, HostDocument, HostFile, HostPlaces, HostScope, TakenServer};
use crate::atomic_write::{create_directory, write_atomically};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use toolgate_protocol::hex;

/// Maximum size of a host's file in bytes. `~/.claude.json` also holds the history of projects.
const MAX_HOST_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Hexadecimal digits of a path's digest in the name of a record.
const PATH_DIGEST_DIGITS: usize = 16;
/// Directory of the records in the data directory.
const RECORDS_DIRECTORY: &str = "hosts";

/// File of a host on this machine, which `toolgate connect` edits: its servers, or its hooks.
pub(crate) struct EditedFile {
    /// Id of the host.
    pub(crate) host: &'static str,
    /// Path of the file.
    pub(crate) path: PathBuf,
}

impl EditedFile {
    /// Reads the file; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read, is too long, or is not UTF-8.
    pub(crate) fn read(&self) -> Result<Option<String>, String> {
        let wrong = |why: String| format!("{} {why}", self.path.display());
        match fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(format!("cannot be read: {error}"))),
            Ok(found) if !found.is_file() => return Err(wrong("is not a regular file".to_owned())),
            Ok(found) if found.len() > MAX_HOST_FILE_BYTES => {
                let limit = format!("is longer than {MAX_HOST_FILE_BYTES} bytes");
                return Err(wrong(limit));
            }
            Ok(_) => {}
        }
        let bytes = fs::read(&self.path).map_err(|error| wrong(format!("cannot be read: {error}")));
        String::from_utf8(bytes?)
            .map(Some)
            .map_err(|_| wrong("is not UTF-8 text; save it as UTF-8".to_owned()))
    }

    /// Replaces the text of the file, if it is still `before`.
    ///
    /// # Errors
    /// The file was changed in the meantime, or cannot be written.
    pub(crate) fn replace(&self, before: Option<&str>, after: &str) -> Result<(), String> {
        if self.read()?.as_deref() != before {
            return Err(format!(
                "{} was changed in the meantime, and is left as it is; run the command again",
                self.path.display()
            ));
        }
        // The file that a symbolic link names is replaced, and the link stays.
        let target = self.path.canonicalize();
        let target = target.unwrap_or_else(|_| self.path.clone());
        create_directory(&target)?;
        write_atomically(&target, after)
    }
}

/// File with the servers of a host.
pub(crate) struct HostTarget {
    pub(crate) host: &'static Host,
    pub(crate) form: &'static HostFile,
    pub(crate) file: EditedFile,
}

impl HostTarget {
    /// Returns the file of a host in a scope: the first that exists, else the one that the host prefers.
    ///
    /// # Errors
    /// The host has no such file, or its directory is unknown.
    pub(crate) fn find(
        host: &'static Host,
        scope: HostScope,
        places: &HostPlaces,
    ) -> Result<HostTarget, String> {
        let preferred = host.file(scope).ok_or_else(|| match scope {
            HostScope::Project => format!(
                "{} has no file for a project; leave out --project",
                host.name
            ),
            _ => format!("{} has only files for a project; add --project", host.name),
        })?;
        let same_form = |file: &&HostFile| file.scope == scope && file.servers == preferred.servers;
        let mut candidates = host.files.iter().filter(same_form);
        let existing = candidates.find(|file| file.path(places).is_some_and(|path| path.exists()));
        let form = existing.unwrap_or(preferred);
        let path = form.path(places).ok_or_else(|| unknown_home(host.name))?;
        let file = EditedFile {
            host: host.id,
            path,
        };
        Ok(HostTarget { host, form, file })
    }

    /// Returns the file of a record: the file of the user, or of any project.
    pub(crate) fn of_record(record: &ConnectionRecord) -> Option<HostTarget> {
        let host = Host::find(&record.host)?;
        let mut projects = record.file.ancestors().skip(1);
        let form = projects.find_map(|project| {
            let places = HostPlaces::of_this_user(project.to_owned());
            let mut forms = host.files.iter();
            forms.find(|form| form.path(&places).as_ref() == Some(&record.file))
        })?;
        let (host_id, path) = (host.id, record.file.clone());
        let file = EditedFile {
            host: host_id,
            path,
        };
        Some(HostTarget { host, form, file })
    }

    /// Parses the text of the file.
    ///
    /// # Errors
    /// The text is not in the syntax of the host.
    pub(crate) fn parse(&self, text: Option<&str>) -> Result<HostDocument, String> {
        let (syntax, servers) = (self.form.syntax, self.form.servers);
        HostDocument::parse(text.unwrap_or_default(), syntax, servers).map_err(|why| {
            format!(
                "{} {why}; correct it, so that {} and toolgate can read it",
                self.file.path.display(),
                self.host.name
            )
        })
    }
}

/// Returns the error for a home directory that is unknown.
pub(crate) fn unknown_home(host: &str) -> String {
    format!("the file of {host} is unknown, because HOME is not set to an absolute path; set it")
}

/// Record of what `toolgate connect` changed in one file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ConnectionRecord {
    /// Id of the host.
    pub(crate) host: String,
    /// File of the host.
    pub(crate) file: PathBuf,
    /// Name of the gateway's entry.
    pub(crate) name: String,
    /// False if `connect` created the file.
    pub(crate) existed: bool,
    /// Number of keys on the path to the servers that `connect` created.
    pub(crate) created_keys: usize,
    /// SHA-256 of the file after `connect`, in hexadecimal. As long as the file has it, the backup can be restored
    /// as it is. `None` if somebody else changed the file between two runs of `connect`.
    pub(crate) digest: Option<String>,
    /// Servers that went behind the gateway.
    pub(crate) replaced: Vec<StoredServer>,
}

impl ConnectionRecord {
    /// Returns the servers that went behind the gateway.
    pub(crate) fn replaced_servers(&self) -> Vec<TakenServer> {
        let server = |stored: &StoredServer| TakenServer {
            name: stored.name.clone(),
            text: stored.text.clone(),
        };
        self.replaced.iter().map(server).collect()
    }
}

/// Server that `toolgate connect --replace` took out of the file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct StoredServer {
    name: String,
    text: String,
}

impl From<TakenServer> for StoredServer {
    fn from(taken: TakenServer) -> StoredServer {
        StoredServer {
            name: taken.name,
            text: taken.text,
        }
    }
}

/// Records and backups of the connected files, in the data directory. Only their owner may read them, since the files
/// of hosts contain secrets.
pub(crate) struct ConnectionStore {
    directory: PathBuf,
}

impl ConnectionStore {
    /// Returns the store of a data directory.
    pub(crate) fn new(data: &Path) -> ConnectionStore {
        ConnectionStore {
            directory: data.join(RECORDS_DIRECTORY),
        }
    }

    /// Returns the path of the backup of a file.
    pub(crate) fn backup_path(&self, file: &EditedFile) -> PathBuf {
        self.path(file, "backup")
    }

    /// Returns the record of a file, if `connect` changed it.
    ///
    /// # Errors
    /// The record cannot be read.
    pub(crate) fn load(&self, file: &EditedFile) -> Result<Option<ConnectionRecord>, String> {
        let path = self.path(file, "json");
        let wrong = |why: String| {
            format!(
                "{} cannot be read: {why}; remove the entry from {} yourself, then delete this file",
                path.display(),
                file.path.display()
            )
        };
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(wrong(error.to_string())),
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| wrong(error.to_string())),
        }
    }

    /// Returns the records of all files that `connect` changed.
    ///
    /// # Errors
    /// A record cannot be read.
    pub(crate) fn records(&self) -> Result<Vec<ConnectionRecord>, String> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries,
        };
        let read = || -> io::Result<Vec<ConnectionRecord>> {
            let mut paths = entries?
                .map(|entry| Ok(entry?.path()))
                .collect::<io::Result<Vec<PathBuf>>>()?;
            paths.retain(|path| path.extension().is_some_and(|kind| kind == "json"));
            paths.sort();
            let records = paths.iter().map(|path| {
                let bytes = fs::read(path)?;
                serde_json::from_slice(&bytes).map_err(io::Error::from)
            });
            records.collect()
        };
        read().map_err(|error| {
            format!(
                "the records of connected hosts in {} cannot be read: {error}",
                self.directory.display()
            )
        })
    }

    /// Stores a record, and with `backup` the file as it was before.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn save(
        &self,
        file: &EditedFile,
        record: &ConnectionRecord,
        backup: Option<&str>,
    ) -> Result<(), String> {
        let path = self.path(file, "json");
        create_directory(&path)?;
        if let Some(text) = backup {
            write_atomically(&self.backup_path(file), text)?;
        }
        let text = serde_json::to_string_pretty(record).map_err(|error| error.to_string())?;
        write_atomically(&path, &format!("{text}\n"))
    }

    /// Returns the file as it was before `connect`.
    ///
    /// # Errors
    /// The backup cannot be read.
    pub(crate) fn backup(&self, file: &EditedFile) -> Result<String, String> {
        let path = self.backup_path(file);
        fs::read_to_string(&path)
            .map_err(|error| format!("{} cannot be read: {error}", path.display()))
    }

    /// Deletes the record of a file, and its backup.
    ///
    /// # Errors
    /// A file cannot be deleted.
    pub(crate) fn remove(&self, file: &EditedFile) -> Result<(), String> {
        for kind in ["json", "backup"] {
            let path = self.path(file, kind);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(format!("{} cannot be deleted: {error}", path.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn path(&self, file: &EditedFile, kind: &str) -> PathBuf {
        let digits = digest_digits(file.path.as_os_str().as_encoded_bytes());
        let digits = &digits[..PATH_DIGEST_DIGITS];
        self.directory
            .join(format!("{}-{digits}.{kind}", file.host))
    }
}

/// Returns the SHA-256 of bytes, in hexadecimal.
pub(crate) fn digest_digits(bytes: &[u8]) -> String {
    hex::encode(digest(&SHA256, bytes).as_ref())
}
