//! Where tasks are kept, so that their clients find them after a restart: a store of its own in the data directory.
//!
//! Several gateways may share it. Each holds a lock for as long as it lives, so that the others know whose work is lost.

use crate::config::Limits;
use rustix::fs::{FlockOperation, flock};
use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolgate_journal::state::{State, StateLimits};
use toolgate_policy::{Expect, Store};

/// How much room a task has beside its result, in bytes.
const ABOUT: usize = 64 * 1024;

/// The store of the tasks, and the word that this process lives.
pub(crate) struct KeptTasks {
    pub(crate) store: Arc<dyn Store>,
    /// Names this process in it.
    pub(crate) process: String,
    dir: PathBuf,
    _lock: File,
}

impl KeptTasks {
    /// Opens it, as one more process that uses it. Blocks.
    ///
    /// # Errors
    /// A sentence that says what is in the way.
    pub(crate) fn open(data: &Path, limits: &Limits) -> Result<KeptTasks, String> {
        let dir = data.join("tasks");
        let limits = StateLimits {
            // Three rows a task, and as many again for those that another process left.
            rows: limits.tasks.saturating_mul(6),
            // A result is kept as text in JSON, where quotes take two bytes; so do the bytes of what is sealed.
            row_bytes: limits.task_bytes.saturating_mul(2).saturating_add(ABOUT),
            ..StateLimits::default()
        };
        let store = State::open(&dir, limits);
        let store =
            store.map_err(|e| format!("cannot open the tasks that are kept: {}", e.detail()))?;
        let process = toolgate::ids::secret();
        let lock = lock(&dir, &process);
        let lock = lock.map_err(|e| format!("cannot lock {}: {e}", dir.display()))?;
        Ok(KeptTasks {
            store: Arc::new(store),
            process,
            dir,
            _lock: lock,
        })
    }

    /// Whether a process has ended. Of what cannot be looked at it is said that it lives.
    pub(crate) fn is_gone(&self, process: &str) -> bool {
        let named = process.bytes().all(|b| b.is_ascii_alphanumeric());
        named && process != self.process && is_free(&place(&self.dir, process))
    }

    /// Ends when all that was to be kept is on the disk.
    pub(crate) async fn settle(&self) {
        // What waits is written in its order; what could not be was said where it happened.
        let last = self.store.write("tasks", "", None, Expect::Any);
        let _ = last.await;
    }
}

impl Drop for KeptTasks {
    fn drop(&mut self) {
        let _ = fs::remove_file(place(&self.dir, &self.process));
    }
}

fn place(dir: &Path, process: &str) -> PathBuf {
    dir.join(format!("{process}.lock"))
}

/// Locks a file of that name. It has its name once it is locked, so nobody takes it for that of a process that ended.
fn lock(dir: &Path, process: &str) -> io::Result<File> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let of_process = path.file_name() != Some("state.lock".as_ref());
        if of_process && path.extension().is_some_and(|e| e == "lock") {
            is_free(&path);
        }
    }
    let new = dir.join(format!("{process}.new"));
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    fs::rename(&new, place(dir, process))?;
    Ok(file)
}

/// Whether nobody holds the lock; removes it then.
fn is_free(path: &Path) -> bool {
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
    fn who_lives_is_known() {
        let data = std::env::temp_dir().join(format!("toolgate-kept-{}", std::process::id()));
        let limits = Limits::default();
        let one = KeptTasks::open(&data, &limits).unwrap();
        let two = KeptTasks::open(&data, &limits).unwrap();
        assert!(!one.is_gone(&one.process) && !one.is_gone(&two.process));
        assert!(!two.is_gone("../../etc/passwd"));
        let process = two.process.clone();
        drop(two);
        assert!(one.is_gone(&process), "it ended");
        // As a kill leaves it: the file is there, and nobody holds it.
        fs::write(place(&data.join("tasks"), "killed"), "").unwrap();
        assert!(one.is_gone("killed") && one.is_gone("killed"));
        fs::remove_dir_all(data).unwrap();
    }
}
