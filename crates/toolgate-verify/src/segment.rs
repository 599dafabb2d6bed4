//! Segment files and their lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Maximum size of a record in bytes.
pub(crate) const MAX_RECORD_BYTES: u64 = 1024 * 1024;

/// Reader of lines with their newlines, if they have one.
pub(crate) struct SegmentLines {
    input: BufReader<File>,
    /// Offset of the next line.
    pub(crate) at: u64,
    pub(crate) size: u64,
}

impl SegmentLines {
    pub(crate) fn open(path: &Path) -> io::Result<SegmentLines> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        Ok(SegmentLines {
            input: BufReader::new(file),
            at: 0,
            size,
        })
    }

    /// Returns the next line, or the first bytes of one that is too long; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let read = self.input.by_ref().take(MAX_RECORD_BYTES + 1);
        let count = { read }.read_until(b'\n', &mut line)?;
        Ok((count > 0).then_some(line))
    }
}

/// Returns the segment files of a chain by number.
pub(crate) fn segment_files(home: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(home)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let digits = name.and_then(|name| name.strip_prefix("seg-")?.strip_suffix(".jsonl"));
        if let Some(number) = digits.and_then(|digits| digits.parse().ok()) {
            all.push((number, path));
        }
    }
    all.sort();
    Ok(all)
}
