//! Triggers of a reload: SIGHUP, a changed config file, and a changed certificate.

use super::{ConfigReloader, ReloadTrigger};
use crate::config::TlsSettings;
use std::{os::unix::fs::MetadataExt, path::Path, time::Duration};
use tokio::{signal::unix::Signal, time::MissedTickBehavior};

/// Interval at which the file is checked.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Metadata by which a change of the file is detected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct FileFingerprint {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileFingerprint {
    /// Reads the metadata; `None` if there is no file.
    fn read(path: &Path) -> Option<FileFingerprint> {
        let meta = path.metadata().ok()?;
        Some(FileFingerprint {
            device: meta.dev(),
            inode: meta.ino(),
            length: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    }
}

impl ConfigReloader {
    /// Reloads the config after each trigger, without end. Errors are reported where they occur.
    pub(crate) async fn watch(&self, mut hangup: Signal) {
        let mut looks = tokio::time::interval(FILE_CHECK_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let look = || self.file().ok().and_then(FileFingerprint::read);
        // The file may have changed since it was read at the start, so its metadata counts as unknown. The same
        // content is no change.
        let (mut known, mut seen) = (None, look());
        let look_tls = || self.certificate_files();
        let (mut known_tls, mut seen_tls) = (Vec::new(), look_tls());
        loop {
            tokio::select! {
                told = hangup.recv() => {
                    if told.is_none() {
                        std::future::pending::<()>().await;
                    }
                    known = look();
                    let _ = self.reload(ReloadTrigger::Requested("signal")).await;
                }
                _ = looks.tick() => {
                    let now = look();
                    // An editor may be in the middle of writing. Only a file that is unchanged between two checks is
                    // read. An editor that removes the file first creates it again.
                    if now.is_some() && now != known && now == seen {
                        known = now;
                        let _ = self.reload(ReloadTrigger::File).await;
                    }
                    seen = now;
                    let now = look_tls();
                    if now != known_tls && now == seen_tls {
                        known_tls.clone_from(&now);
                        self.reload_certificate();
                    }
                    seen_tls = now;
                }
            }
        }
    }
}

impl ConfigReloader {
    /// Reads the metadata of the listener's certificate files; none without TLS.
    fn certificate_files(&self) -> Vec<Option<FileFingerprint>> {
        let settings = self.resources.tls.as_ref().map(|tls| tls.settings());
        let settings = settings.iter().flat_map(TlsSettings::files);
        settings.map(FileFingerprint::read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_a_replaced_file() {
        let folder = std::env::temp_dir().join(format!("toolgate-mark-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (one, two) = (folder.join("one"), folder.join("two"));
        assert_eq!(FileFingerprint::read(&one), None);
        std::fs::write(&one, "same").unwrap();
        std::fs::write(&two, "same").unwrap();
        let before = FileFingerprint::read(&one);
        assert_eq!(before, FileFingerprint::read(&one));
        std::fs::rename(&two, &one).unwrap();
        assert_ne!(before, FileFingerprint::read(&one));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
