//! Free space of the disk with the data directory.

use std::path::Path;

/// Returns the free bytes of the file system of a path; `None` if they are unknown.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let free = rustix::fs::statvfs(path).ok()?;
    Some(free.f_bavail.saturating_mul(free.f_frsize))
}
