//! Causes of write failures.

use std::io;

/// Cause of a failure.
#[cfg(all(feature = "files", unix))]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FailureCause {
    /// The disk is full.
    DiskFull,
    /// The file must not be used again.
    FileUnusable,
    /// The path no longer leads to the open file.
    Displaced,
}

/// Reason of a write failure after the writer thread ended, which only a panic can cause.
pub(crate) const WRITER_ENDED: &str = "the writer thread ended because of an internal error";

/// Returns the remedy for an error of the operating system, for the end of a message. Other errors name their remedy
/// themselves.
pub(crate) fn remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free space on the disk",
        // A thread cannot be started.
        io::ErrorKind::WouldBlock => "; raise the limit on processes of this user",
        _ if cause.raw_os_error().is_none() => "",
        _ => "; check the directory, its owner and its mode",
    }
}

#[cfg(all(feature = "files", unix))]
impl FailureCause {
    /// Classifies a write error. `FileTooLarge` is a limit of the single file, so a new chain can continue.
    pub(crate) fn of(cause: &io::Error) -> Self {
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull,
            _ => Self::FileUnusable,
        }
    }
}
