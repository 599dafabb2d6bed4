//! When the config is read again: at SIGHUP, and when its file is another one.

use super::{Because, Reloader};
use std::{os::unix::fs::MetadataExt, path::Path, time::Duration};
use tokio::{signal::unix::Signal, time::MissedTickBehavior};

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// By what one sees that a file was changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Mark {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Mark {
    /// `None` where there is no file.
    fn of(path: &Path) -> Option<Mark> {
        let meta = path.metadata().ok()?;
        Some(Mark {
            device: meta.dev(),
            inode: meta.ino(),
            length: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    }
}

impl Reloader {
    /// Reads the config again whenever there is cause, without end. What goes wrong is told where it happens.
    pub(crate) async fn watch(&self, mut hangup: Signal) {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let look = || self.file().ok().and_then(Mark::of);
        // Nothing is known at first: the file may have changed since it was read for the start. The same text is no change.
        let (mut known, mut seen) = (None, look());
        loop {
            tokio::select! {
                told = hangup.recv() => {
                    if told.is_none() {
                        std::future::pending::<()>().await;
                    }
                    known = look();
                    let _ = self.reload(Because::Wanted("signal")).await;
                }
                _ = looks.tick() => {
                    let now = look();
                    // An editor may be half way: only what stayed the same between two looks is read. One that
                    // removes the file first puts it back.
                    if now.is_some() && now != known && now == seen {
                        known = now;
                        let _ = self.reload(Because::File).await;
                    }
                    seen = now;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_place_of_another_is_seen() {
        let folder = std::env::temp_dir().join(format!("toolgate-mark-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (one, two) = (folder.join("one"), folder.join("two"));
        assert_eq!(Mark::of(&one), None);
        std::fs::write(&one, "same").unwrap();
        std::fs::write(&two, "same").unwrap();
        let before = Mark::of(&one);
        assert_eq!(before, Mark::of(&one));
        std::fs::rename(&two, &one).unwrap();
        assert_ne!(before, Mark::of(&one));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
