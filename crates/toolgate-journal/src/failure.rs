//! Causes of write failures.

use std::io;

/// Cause of a failure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FailureCause {
    /// The disk is full.
    DiskFull,
    /// The file must not be used again.
    FileUnusable,
    /// The path no longer leads to the open file.
    Displaced,
}

impl FailureCause {
    /// Classifies a write error. `FileTooLarge` is a limit of the single file, so a new chain can continue.
    pub(crate) fn of(cause: &io::Error) -> Self {
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull,
            _ => Self::FileUnusable,
        }
    }
}
