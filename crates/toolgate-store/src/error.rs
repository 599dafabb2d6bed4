//! Errors of the state store.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolgate_core::{Error, ErrorKind, OperatorDetail, RefusalReason};

/// Reason of a write failure after the writer thread ended, which only a panic can cause.
pub(crate) const WRITER_ENDED: &str = "the writer thread ended because of an internal error";

/// Error of the state store.
///
/// `Display` contains no path, since it may reach a caller. [`StoreError::detail`] is for the operator.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// A file of the store could not be opened, read or written.
    File {
        /// File operation that failed, as a verb phrase.
        doing: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        cause: Arc<io::Error>,
    },
    /// The database refused an operation, but may accept it later: the disk is full, or another process holds the
    /// database for too long.
    Database {
        /// Path of the database file.
        path: PathBuf,
        /// Error of SQLite.
        cause: Arc<rusqlite::Error>,
    },
    /// A file of the store is corrupt, or of an unknown version.
    Damaged {
        /// Path of the corrupt file.
        path: PathBuf,
        /// Where and how the file is corrupt.
        reason: String,
    },
    /// The shared database cannot be reached or does not answer. It may have stored a change whose answer was lost.
    Away(Arc<str>),
    /// A limit of the store would be exceeded; nothing was written.
    Full(String),
    /// The store refuses what was asked for; nothing was written.
    Refused(String),
    /// Too many changes wait for the disk; nothing was written.
    Overloaded,
    /// A write could not be made durable, now or earlier. This process writes nothing more.
    Failed(Arc<str>),
}

impl StoreError {
    pub(crate) fn file(doing: &'static str, path: &Path, cause: io::Error) -> StoreError {
        StoreError::File {
            doing,
            path: path.to_owned(),
            cause: Arc::new(cause),
        }
    }

    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> StoreError {
        StoreError::Damaged {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    /// Returns the refusal of whatever depends on a change that was not stored.
    pub(crate) fn into_refusal(self) -> Error {
        let text = format!("the change was not stored: {self}");
        let detail = OperatorDetail::new(self.detail());
        Error::new(ErrorKind::Refused(RefusalReason::AuditUnavailable), text)
            .with_source(self)
            .with_detail(detail)
    }

    /// Returns the error text for the operator, with paths, the cause, and the remedy.
    pub fn detail(&self) -> String {
        match self {
            StoreError::File { doing, path, cause } => format!(
                "cannot {doing} {}: {cause}{}",
                path.display(),
                remedy(cause)
            ),
            StoreError::Database { path, cause } => {
                format!(
                    "cannot use {}: {cause}{}",
                    path.display(),
                    database_remedy(cause)
                )
            }
            StoreError::Damaged { path, reason } => format!(
                "{} cannot be used: {reason}; restore a backup, or move the file away to start without its contents (such as keys, grants, pins and approvals, or the results of tasks)",
                path.display()
            ),
            StoreError::Failed(reason) if **reason == *WRITER_ENDED => {
                format!("the state cannot be written, because {reason}; restart the program")
            }
            StoreError::Failed(reason) => format!(
                "the state cannot be written ({reason}); free space on the disk or repair it, then restart the program"
            ),
            StoreError::Away(reason) => format!(
                "the shared store cannot be used: {reason}; check PostgreSQL and the network between, or `url` in [store]"
            ),
            StoreError::Full(_) | StoreError::Refused(_) | StoreError::Overloaded => {
                self.to_string()
            }
        }
    }
}

/// Returns the remedy for an error of the operating system, for the end of a message.
fn remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free space on the disk",
        // A thread cannot be started.
        io::ErrorKind::WouldBlock => "; raise the limit on processes of this user",
        _ if cause.raw_os_error().is_none() => "",
        _ => "; check the directory, its owner and its mode",
    }
}

fn database_remedy(cause: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode;
    match cause.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "; free space on the disk",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "; another process has held the database for too long: end it, then try again"
        }
        _ => "; check the directory, its owner, its mode and its free space",
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::File { .. } | StoreError::Database { .. } => f.write_str(
                "the files of the state cannot be used; the operator has to repair them",
            ),
            StoreError::Failed(_) => {
                f.write_str("the state cannot be written; the operator has to repair it")
            }
            StoreError::Away(_) => {
                f.write_str("the shared store cannot be reached; try again later")
            }
            StoreError::Damaged { .. } => {
                f.write_str("the state is damaged; the operator has to repair it")
            }
            StoreError::Full(text) | StoreError::Refused(text) => f.write_str(text),
            StoreError::Overloaded => {
                f.write_str("too many changes are queued for the disk; try again later")
            }
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::File { cause, .. } => Some(cause.as_ref()),
            StoreError::Database { cause, .. } => Some(cause.as_ref()),
            _ => None,
        }
    }
}
