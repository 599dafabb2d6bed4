//! Errors of the journal.

use crate::failure::{WRITER_ENDED, remedy};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Error of the audit journal: it could not be opened, or could not record an entry.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file or directory could not be prepared when the journal was opened.
    Open {
        /// File operation that failed, as a verb phrase.
        doing: &'static str,
        /// File or directory that could not be prepared.
        path: PathBuf,
        /// Error of the operating system.
        cause: Arc<io::Error>,
    },
    /// The entry to record is invalid, which is a mistake of the caller.
    Entry(String),
    /// The queue of the journal is full. Nothing was recorded; the caller must reject the call.
    Overloaded,
    /// A write or a sync of the journal failed, now or earlier. Nothing is recorded until a repair succeeds.
    Failed(Arc<str>),
    /// The journal is closed and accepts no entries.
    Closed,
}

impl Error {
    pub(crate) fn open(doing: &'static str, path: &Path, cause: io::Error) -> Self {
        Self::Open {
            doing,
            path: path.to_owned(),
            cause: Arc::new(cause),
        }
    }

    pub(crate) fn entry(text: impl Into<String>) -> Self {
        Self::Entry(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { doing, path, cause } => {
                let remedy = remedy(cause);
                write!(f, "the audit log cannot {doing} {}: {cause}{remedy}", path.display())
            }
            Self::Entry(text) => write!(f, "the audit entry is invalid: {text}"),
            Self::Overloaded => f.write_str("the audit log is overloaded and its queue is full; try again later"),
            Self::Failed(reason) if **reason == *WRITER_ENDED => write!(
                f,
                "the audit log cannot be written, because {reason}; restart the program"
            ),
            Self::Failed(reason) => write!(
                f,
                "the audit log cannot be written ({reason}), so nothing is recorded now; if the disk is full or broken, free space or repair it; recording resumes by itself"
            ),
            Self::Closed => f.write_str("the audit log is closed because the program is shutting down; try again after it has restarted"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open { cause, .. } => Some(cause.as_ref()),
            _ => None,
        }
    }
}
