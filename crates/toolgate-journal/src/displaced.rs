//! Displaced segments: detects that the path no longer leads to the open segment, and restores the segment.
//!
//! A program that renames, deletes or replaces the segment does not disturb the open file, so new records would go to a
//! file that no reader finds. Each checkpoint compares path and open file. The open file still has every record: the
//! repair writes them back to the path and continues the chain, so no acknowledged record is lost.

use crate::chain::{self, LockedChain};
use crate::disk::{OpenSegment, open_private};
use crate::error::Error;
use crate::failure::FailureCause;
use crate::notice;
use crate::writer::JournalWriter;
use ring::digest;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

impl JournalWriter {
    /// Fails if the path of the segment no longer leads to the open file.
    pub(crate) fn check_displaced(&mut self) -> Result<(), Error> {
        let path = self.chain.segment_path(self.tip.seg);
        let Some(why) = displacement(self.segment.as_ref(), &path, self.contents.bytes) else {
            return Ok(());
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let error = self.fail(&io::Error::other(format!("the segment {name} {why}")));
        self.failure = Some(FailureCause::Displaced);
        Err(error)
    }

    /// Creates the directory of the chain again if it is gone.
    pub(crate) fn restore_folder(&mut self) -> Result<(), Error> {
        if self.chain.dir.is_dir() {
            return Ok(());
        }
        let disk = self.options.disk.clone();
        chain::make_dir(&self.chain.dir, disk.as_ref())?;
        if let Some(chain) = LockedChain::lock_existing(&self.options.dir, &self.chain.id)? {
            self.chain = chain;
        }
        Ok(())
    }

    /// Writes the records of the open file back to the path of the segment, and leaves a notice.
    pub(crate) fn restore_segment(&mut self, reason: &str) -> io::Result<()> {
        let path = self.chain.segment_path(self.tip.seg);
        let at_path = fs::symlink_metadata(&path).ok();
        let open = self.segment.file_state()?;
        let same = at_path
            .as_ref()
            .zip(open)
            .is_some_and(|(meta, open)| (meta.dev(), meta.ino()) == (open.device, open.inode));
        let mut said = reason.to_owned();
        if !same {
            if at_path.is_some() {
                preserve_replaced(&path)?;
            }
            self.write_back(&path)?;
            said.push_str("; its records were written back from the open file");
        }
        notice::write_notice(&self.options.dir, &notice::displaced(&self.chain.id), &said)
    }

    fn write_back(&self, path: &Path) -> io::Result<()> {
        let beside = path.with_extension("restored");
        let _ = fs::remove_file(&beside);
        let mut copy = SegmentCopy {
            file: open_private(&beside, true)?,
            left: self.contents.bytes,
            digest: digest::Context::new(&digest::SHA256),
        };
        let copied = self.segment.copy_to(&mut copy).and_then(|()| {
            let digest = toolgate_protocol::hex::encode(copy.digest.clone().finish().as_ref());
            if digest != self.contents.sha256() {
                return Err(io::Error::other(
                    "the original file was changed as well, so its records were not written back",
                ));
            }
            copy.file.sync_all()
        });
        copied.inspect_err(|_| drop(fs::remove_file(&beside)))?;
        fs::rename(&beside, path)?;
        self.options.disk.sync_dir(&self.chain.dir)
    }
}

/// Writer that copies the good part of a segment and computes its digest.
struct SegmentCopy {
    file: fs::File,
    left: u64,
    digest: digest::Context,
}

impl Write for SegmentCopy {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let good = bytes.get(..most.min(bytes.len())).unwrap_or_default();
        self.file.write_all(good)?;
        self.digest.update(good);
        self.left -= good.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns why the path does not lead to the open file of a size; `None` if it does. Additional hard links are
/// permitted, since some backups create them.
fn displacement(segment: &dyn OpenSegment, path: &Path, bytes: u64) -> Option<String> {
    let open = match segment.file_state() {
        Ok(open) => open?,
        Err(e) => return Some(format!("cannot be examined: {e}")),
    };
    let meta = match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Some("was renamed or deleted by another program".to_owned());
        }
        Err(e) => return Some(format!("cannot be examined: {e}")),
        Ok(meta) => meta,
    };
    if open.links == 0 || (meta.dev(), meta.ino()) != (open.device, open.inode) {
        return Some("was replaced by another file".to_owned());
    }
    let found = meta.len();
    (found != bytes).then(|| {
        format!("was changed by another program: it is {found} bytes long instead of {bytes}")
    })
}

/// Renames the file at the path of the segment, so that it is preserved.
fn preserve_replaced(path: &Path) -> io::Result<()> {
    for attempt in 0..1000 {
        let aside = path.with_extension(format!("replaced-{attempt}"));
        if fs::symlink_metadata(&aside).is_err() {
            return fs::rename(path, aside);
        }
    }
    Err(io::Error::other(
        "there are already 1000 files *.replaced-N; find out which program replaces segments of the audit log, and move these files away",
    ))
}
