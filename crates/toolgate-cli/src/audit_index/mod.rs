//! Index of the audit log: positions of records, the calls, and their counts by minute. A cache, which may be deleted.
//!
//! - `schema`: the file, and what replaces a broken one.
//! - `fill`: reads new records of segments into the index.
//! - `positions`: records by tool, caller and server, for a search.
//! - `calls`, `counts`, `approvals`, `records`: what the console shows of the past.
//!
//! It stores names, numbers and positions, no contents. A broken or foreign file is replaced. A search reads each hit from
//! its segment, so the index can hide a record but not invent one; `--no-index` and `verify` do not use it.

mod approvals;
mod call_class;
mod calls;
mod condition;
mod counts;
mod fill;
mod positions;
mod records;
mod schema;

#[cfg(test)]
mod tests;

pub(crate) use approvals::ApprovalDay;
pub(crate) use call_class::CallClass;
pub(crate) use calls::{CallFilter, IndexedCall};
pub(crate) use counts::{
    CountBucket, CountColumn, CountFilter, FlowCount, GroupCount, RefusalCount,
};
pub(crate) use positions::{PositionFilter, RecordPosition};
pub(crate) use records::RecordFilter;

use rusqlite::Connection;
use std::{
    io,
    path::{Path, PathBuf},
    time::Instant,
};
use toolgate_journal::read::{self, SegmentFile};

/// File name in the data directory.
const INDEX_FILE_NAME: &str = "audit-index.sqlite";

/// Index of the audit log of a data directory.
pub(crate) struct AuditIndex {
    path: PathBuf,
    connection: Connection,
    /// True after one rebuild: the next error disables the index.
    rebuilt: bool,
}

impl AuditIndex {
    /// Opens or creates the index. Returns `None` and prints a note on failure: a search also works without the index.
    pub(crate) fn open(data: &Path) -> Option<AuditIndex> {
        let path = data.join(INDEX_FILE_NAME);
        let (connection, rebuilt) = match schema::connect(&path) {
            Ok(connection) => (connection, false),
            Err(why) => (schema::rebuild(&path, &why)?, true),
        };
        Some(AuditIndex {
            path,
            connection,
            rebuilt,
        })
    }

    /// Returns the positions of possible matches in a sealed segment, in order; `None` if the index cannot be used.
    pub(crate) fn find(
        &mut self,
        file: usize,
        segment: &SegmentFile,
        wanted: &PositionFilter<'_>,
    ) -> Option<Vec<RecordPosition>> {
        loop {
            let found = fill::index_segment(&mut self.connection, segment, None)
                .and_then(|(id, _)| positions::query(&self.connection, id, file, wanted))
                .and_then(|hits| positions::check(hits, segment));
            match found {
                Ok(hits) => return Some(hits),
                // The segment was deleted or is unreadable: a scan reports it.
                Err(rusqlite::Error::ToSqlConversionFailure(_)) => return None,
                Err(_) if self.rebuilt => return None,
                Err(why) => {
                    self.rebuilt = true;
                    self.connection = schema::rebuild(&self.path, &why)?;
                }
            }
        }
    }

    /// Removes deleted segments from the index.
    pub(crate) fn retain_segments(&mut self, files: &[SegmentFile]) {
        // A failure is harmless: the next search removes them.
        let _ = schema::forget_segments(&mut self.connection, files);
    }

    /// Reads new records of the audit log into the index until `deadline`, the newest segments first. Returns how many
    /// bytes are left.
    ///
    /// # Errors
    /// The audit log cannot be read, or the index cannot be written.
    pub(crate) fn catch_up(&mut self, dir: &Path, deadline: Instant) -> io::Result<u64> {
        let mut files = read::segment_files(dir)?;
        self.retain_segments(&files);
        files.sort_by_cached_key(|file| {
            std::cmp::Reverse(file.path.metadata().and_then(|m| m.modified()).ok())
        });
        let mut behind = 0;
        for file in &files {
            behind += match fill::index_segment(&mut self.connection, file, Some(deadline)) {
                Ok((_, done)) => file.bytes.saturating_sub(done),
                // The segment was deleted meanwhile.
                Err(rusqlite::Error::ToSqlConversionFailure(_)) => 0,
                Err(why) if schema::is_broken(&why) && !self.rebuilt => {
                    self.rebuilt = true;
                    self.connection = schema::rebuild(&self.path, &why)
                        .ok_or_else(|| io::Error::other("the index cannot be replaced"))?;
                    file.bytes
                }
                Err(why) => return Err(io::Error::other(why)),
            };
        }
        Ok(behind)
    }
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn unsigned(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}
