//! Segment rotation: the seal, then the new file, then a checkpoint that signs the seal.

use crate::contents::SegmentContents;
use crate::entry::{AuditEntry, AuditEvent};
use crate::error::Error;
use crate::record::utc_us;
use crate::writer::JournalWriter;

impl JournalWriter {
    /// Returns whether the segment must be sealed before the next write.
    pub(crate) fn is_full(&self) -> bool {
        let options = &self.options;
        let age = utc_us().saturating_sub(self.file.since);
        let old = u128::from(age) >= options.segment_age.as_micros();
        let bytes = options.segment_bytes.clamp(4096, 1 << 30);
        !self.file.is_empty() && (old || self.file.bytes >= bytes)
    }

    /// Seals the segment and starts the next one. After a crash at any point, the next start continues from there.
    pub(crate) fn rotate(&mut self) -> Result<(), Error> {
        self.check_in_place()?;
        let mut text = String::new();
        self.tip.push_own(self.seal(), &mut text)?;
        self.put(&text)?;
        self.marks.unsigned += 1;
        self.begin_segment()
    }

    /// Creates the file that follows a sealed segment.
    pub(crate) fn begin_segment(&mut self) -> Result<(), Error> {
        let path = self.chain.segment(self.tip.seg + 1);
        let disk = self.options.disk.clone();
        let created = disk
            .create(&path)
            .and_then(|segment| disk.sync_dir(&self.chain.dir).map(|()| segment));
        self.segment = created.map_err(|cause| self.fail(&cause))?;
        self.tip.seg += 1;
        self.file = SegmentContents::new(self.tip.seq + 1, utc_us());
        Ok(())
    }

    fn seal(&self) -> AuditEntry {
        let (first, last) = (self.file.first, self.tip.seq);
        let seal = AuditEntry::new(AuditEvent::SEGMENT_SEALED)
            .with("bytes", self.file.bytes)
            .with("count", last + 1 - first)
            .with("first", first)
            .with("last", last)
            .with("sha256", self.file.sha256());
        match self.open.oldest_segment() {
            Some(seg) => seal.with("open_from", seg),
            None => seal,
        }
    }
}
