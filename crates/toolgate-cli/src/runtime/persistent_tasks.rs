//! Persistent task store in the data directory, so that clients find their tasks after a restart.
//!
//! Several gateways may share it. Each holds a lock file while it lives, so that the others recognize abandoned
//! tasks.

use crate::config::GatewayLimits;
use rustix::fs::{FlockOperation, flock};
use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolgate_policy::{StateStore, WritePrecondition};
use toolgate_store::{DatabaseStore, StoreLimits};

/// Size of a task's row beyond its result, in bytes.
const TASK_OVERHEAD_BYTES: usize = 64 * 1024;

/// Task store, with the lock file that shows that this process lives.
pub(crate) struct PersistentTasks {
    pub(crate) store: Arc<dyn StateStore>,
    /// ID of this process in the store.
    pub(crate) process: String,
    dir: PathBuf,
    _lock: File,
}

impl PersistentTasks {
    /// Opens the store and locks a file for this process. Blocks.
    ///
    /// # Errors
    /// The store cannot be opened or the file cannot be locked; the message is for the operator.
    pub(crate) fn open(data: &Path, limits: &GatewayLimits) -> Result<PersistentTasks, String> {
        let dir = data.join("tasks");
        let mut state_limits = StoreLimits::default();
        // Three rows for each task, and as many again for tasks that another process left behind.
        state_limits.max_rows = limits.tasks.saturating_mul(6);
        // A result is stored as a JSON string, in which a quote takes two bytes. A sealed byte takes two as well.
        state_limits.max_row_bytes = limits
            .task_bytes
            .saturating_mul(2)
            .saturating_add(TASK_OVERHEAD_BYTES);
        let store = DatabaseStore::open(&dir, state_limits);
        let store = store.map_err(|e| format!("cannot open the task store: {}", e.detail()))?;
        let process = toolgate::ids::secret_id();
        let lock = lock_file(&dir, &process);
        let lock = lock.map_err(|e| {
            format!(
                "cannot lock the task store {}: {e}; check its permissions",
                dir.display()
            )
        })?;
        Ok(PersistentTasks {
            store: Arc::new(store),
            process,
            dir,
            _lock: lock,
        })
    }

    /// Returns whether a process has ended. If its lock cannot be checked, it counts as alive.
    pub(crate) fn has_ended(&self, process: &str) -> bool {
        let named = process.bytes().all(|b| b.is_ascii_alphanumeric());
        named && process != self.process && remove_if_free(&lock_path(&self.dir, process))
    }

    /// Waits until all queued writes are on disk.
    pub(crate) async fn flush(&self) {
        // Writes are executed in order, so this one is the last. Failures were reported where they occurred.
        let last = self.store.write("tasks", "", None, WritePrecondition::Any);
        let _ = last.await;
    }
}

impl Drop for PersistentTasks {
    fn drop(&mut self) {
        let _ = fs::remove_file(lock_path(&self.dir, &self.process));
    }
}

fn lock_path(dir: &Path, process: &str) -> PathBuf {
    dir.join(format!("{process}.lock"))
}

/// Creates and locks the lock file of a process, and removes abandoned ones. The file gets its final name after it is
/// locked, so no other process takes it for abandoned.
fn lock_file(dir: &Path, process: &str) -> io::Result<File> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let of_process = path.file_name() != Some("state.lock".as_ref());
        if of_process && path.extension().is_some_and(|e| e == "lock") {
            remove_if_free(&path);
        }
    }
    let new = dir.join(format!("{process}.new"));
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    fs::rename(&new, lock_path(dir, process))?;
    Ok(file)
}

/// Returns whether no process holds the lock, and removes the file in that case.
fn remove_if_free(path: &Path) -> bool {
    let free = match File::open(path) {
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Err(error) => return error.kind() == io::ErrorKind::NotFound,
    };
    if free {
        let _ = fs::remove_file(path);
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_whether_a_process_has_ended() {
        let data = std::env::temp_dir().join(format!("toolgate-kept-{}", std::process::id()));
        let limits = GatewayLimits::default();
        let one = PersistentTasks::open(&data, &limits).unwrap();
        let two = PersistentTasks::open(&data, &limits).unwrap();
        assert!(!one.has_ended(&one.process) && !one.has_ended(&two.process));
        assert!(!two.has_ended("../../etc/passwd"));
        let process = two.process.clone();
        drop(two);
        assert!(one.has_ended(&process), "it ended");
        // The state after SIGKILL: the file exists, and no process holds its lock.
        fs::write(lock_path(&data.join("tasks"), "killed"), "").unwrap();
        assert!(one.has_ended("killed") && one.has_ended("killed"));
        fs::remove_dir_all(data).unwrap();
    }
}
