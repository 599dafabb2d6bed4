//! Segment files of an audit log directory, for an index.

use super::{MAX_LINE_BYTES, SegmentLine, segments};
use crate::chain;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Segment file of an audit log directory: path, size, and position in its chain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentFile {
    /// Id of the hash chain that the segment belongs to.
    pub chain: String,
    /// Number of the segment in its hash chain.
    pub number: u64,
    /// Path of the segment file.
    pub path: PathBuf,
    /// Size of the segment file in bytes.
    pub bytes: u64,
    /// True if the chain has a next segment, so that this one no longer changes.
    pub sealed: bool,
}

impl SegmentFile {
    /// Calls `each` with every complete line of the segment and its offset.
    ///
    /// # Errors
    /// The file cannot be read, or `each` fails.
    pub fn lines(
        &self,
        mut each: impl FnMut(u64, SegmentLine) -> io::Result<()>,
    ) -> io::Result<()> {
        let all = self.lines_from(0, |at, line| each(at, line).map(|()| true));
        all.map(drop)
    }

    /// Calls `each` with every complete line from a byte offset on, at which a line begins, until it returns false.
    /// Returns the offset after the last line that `each` accepted.
    ///
    /// # Errors
    /// The file cannot be read, or `each` fails.
    #[doc(hidden)]
    pub fn lines_from(
        &self,
        from: u64,
        mut each: impl FnMut(u64, SegmentLine) -> io::Result<bool>,
    ) -> io::Result<u64> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut input = BufReader::new(file);
        let mut at = from;
        loop {
            let mut line = Vec::new();
            let length = input
                .by_ref()
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut line)? as u64;
            let Some(whole) = line.strip_suffix(b"\n") else {
                if length < MAX_LINE_BYTES {
                    return Ok(at);
                }
                at += length;
                continue;
            };
            if !each(at, SegmentLine::parse(&self.chain, whole))? {
                return Ok(at);
            }
            at += length;
        }
    }

    /// Returns the line of the segment that begins at a byte offset, if there is one.
    ///
    /// # Errors
    /// The file cannot be read.
    #[doc(hidden)]
    pub fn line_at(&self, at: u64) -> io::Result<Option<SegmentLine>> {
        let mut file = File::open(&self.path)?;
        // A line begins after a newline.
        file.seek(SeekFrom::Start(at.saturating_sub(1)))?;
        let mut input = BufReader::new(file);
        if at > 0 {
            let mut before = [0];
            input.read_exact(&mut before)?;
            if before != *b"\n" {
                return Ok(None);
            }
        }
        let mut line = Vec::new();
        input.take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
        let whole = line.strip_suffix(b"\n");
        Ok(whole.map(|whole| SegmentLine::parse(&self.chain, whole)))
    }
}

/// Returns all segment files of an audit log directory, sorted by chain and number.
///
/// # Errors
/// The directory cannot be read.
pub fn segment_files(dir: &Path) -> io::Result<Vec<SegmentFile>> {
    let mut all = Vec::new();
    for id in chain::ids(dir)? {
        let mut numbers: Vec<u64> = segments(dir, &id).collect();
        numbers.sort_unstable();
        let last = numbers.last().copied();
        for number in numbers {
            let path = dir.join(&id).join(chain::segment_name(number));
            // The segment may have been retired meanwhile.
            let Ok(meta) = path.metadata() else { continue };
            all.push(SegmentFile {
                chain: id.clone(),
                number,
                path,
                bytes: meta.len(),
                sealed: Some(number) != last,
            });
        }
    }
    Ok(all)
}
