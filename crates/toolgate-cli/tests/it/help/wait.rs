//! Waiting for a condition, and folders that go away.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// For what should be there at once, on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// For what starts programs of others.
pub(crate) const LONG: Duration = Duration::from_secs(90);

/// Asks until there is something, or nothing within `bound`.
pub(crate) fn within<T>(bound: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + bound;
    loop {
        match ask() {
            Some(found) => return Some(found),
            None if Instant::now() >= end => return None,
            None => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Asks until there is something; `what` is said if it never comes.
#[track_caller]
pub(crate) fn until<T>(what: &str, bound: Duration, ask: impl FnMut() -> Option<T>) -> T {
    match within(bound, ask) {
        Some(found) => found,
        None => panic!("{what}: not within {} s", bound.as_secs()),
    }
}

/// A folder of one test, below the target folder; gone with the value.
pub(crate) struct TempDir(PathBuf);

/// Returns another number each time, for names of directories.
fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl TempDir {
    pub(crate) fn new(name: &str) -> TempDir {
        let number = next_number();
        let folder = format!("gate-{}-{number}-{name}", std::process::id());
        TempDir::at(Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder))
    }

    /// One with a short path, wherever the tests are built: in it a gateway has its sockets in the folder itself.
    pub(crate) fn short() -> TempDir {
        let folder = format!("toolgate-it-{}-{}", std::process::id(), next_number());
        TempDir::at(std::env::temp_dir().join(folder))
    }

    fn at(path: PathBuf) -> TempDir {
        std::fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The text in the databases of a store (`state/state` or `state/tasks`), also of changes in its write-ahead log.
    pub(crate) fn stored_text(&self, store: &str) -> String {
        let files = ["state.sqlite", "state.sqlite-wal"].map(|file| self.0.join(store).join(file));
        let texts = files.map(|file| std::fs::read(file).unwrap_or_default());
        String::from_utf8_lossy(&texts.concat()).into_owned()
    }

    /// Writes a file in it.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.file(name);
        std::fs::write(&file, text).unwrap();
        file
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
