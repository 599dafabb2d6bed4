//! Segment rotation: the seal, then the new file, then a checkpoint that signs the seal.

use crate::entry::{AuditEntry, AuditEvent};
use crate::error::Error;
use crate::record::utc_us;
use crate::segment_contents::SegmentContents;
use crate::writer::JournalWriter;

impl JournalWriter {
    /// Returns whether the segment must be sealed before the next write.
    pub(crate) fn is_full(&self) -> bool {
        let options = &self.options;
        let age = utc_us().saturating_sub(self.contents.started_us);
        let old = u128::from(age) >= options.segment_age.as_micros();
        let bytes = options.segment_bytes.clamp(4096, 1 << 30);
        !self.contents.is_empty() && (old || self.contents.bytes >= bytes)
    }

    /// Seals the segment and starts the next one. After a crash at any point, the next start continues from there.
    pub(crate) fn rotate(&mut self) -> Result<(), Error> {
        self.check_displaced()?;
        let mut text = String::new();
        self.tip.push_own(self.seal(), &mut text)?;
        self.append_text(&text)?;
        self.checkpoints.unsigned += 1;
        self.begin_segment()
    }

    /// Creates the file that follows a sealed segment.
    pub(crate) fn begin_segment(&mut self) -> Result<(), Error> {
        let path = self.chain.segment_path(self.tip.seg + 1);
        let disk = self.options.disk.clone();
        let created = disk
            .create(&path)
            .and_then(|segment| disk.sync_dir(&self.chain.dir).map(|()| segment));
        self.segment = created.map_err(|cause| self.fail(&cause))?;
        self.tip.seg += 1;
        self.contents = SegmentContents::new(self.tip.last_seq + 1, utc_us());
        Ok(())
    }

    fn seal(&self) -> AuditEntry {
        let (first, last) = (self.contents.first_seq, self.tip.last_seq);
        let seal = AuditEntry::new(AuditEvent::SEGMENT_SEALED)
            .with("bytes", self.contents.bytes)
            .with("count", last + 1 - first)
            .with("first", first)
            .with("last", last)
            .with("sha256", self.contents.sha256());
        match self.open_calls.oldest_segment() {
            Some(seg) => seal.with("open_from", seg),
            None => seal,
        }
    }
}
