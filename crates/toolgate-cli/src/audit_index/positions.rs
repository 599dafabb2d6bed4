//! Positions of records by tool, caller and server.

use super::{condition::SqlConditions, unsigned};
use rusqlite::{Connection, Row, params_from_iter};
use std::io;
use toolgate_journal::read::SegmentFile;

/// Filters that the index knows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PositionFilter<'a> {
    /// Full name of the tool, or the name that the caller used.
    pub(crate) tool: Option<&'a str>,
    pub(crate) caller: Option<&'a str>,
    pub(crate) server: Option<&'a str>,
}

/// Position of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordPosition {
    /// Time in microseconds; never less than that of an earlier record in the chain.
    pub(crate) ts: u64,
    /// Index of its segment in the list of files.
    pub(crate) file: usize,
    /// Byte offset of its line.
    pub(crate) offset: u64,
}

/// Returns the positions that match the filters; the search checks the lines themselves.
pub(super) fn query(
    connection: &Connection,
    id: i64,
    file: usize,
    wanted: &PositionFilter<'_>,
) -> rusqlite::Result<Vec<RecordPosition>> {
    let mut query = SqlConditions::new("SELECT ts, at FROM record WHERE segment = ?1", &[id]);
    query.require_name(&["tool", "name"], wanted.tool);
    query.require_name(&["caller"], wanted.caller);
    query.require_name(&["srv"], wanted.server);
    query.sql.push_str(" ORDER BY at");
    let mut asked = connection.prepare(&query.sql)?;
    let hit = |row: &Row<'_>| {
        Ok(RecordPosition {
            ts: unsigned(row.get(0)?),
            file,
            offset: unsigned(row.get(1)?),
        })
    };
    asked
        .query_map(params_from_iter(&query.values), hit)?
        .collect()
}

/// Checks that records begin at the first and last position, to detect an index of other files.
pub(super) fn check(
    hits: Vec<RecordPosition>,
    segment: &SegmentFile,
) -> rusqlite::Result<Vec<RecordPosition>> {
    for hit in hits.first().into_iter().chain(hits.last()) {
        let line = segment.line_at(hit.offset).map_err(read_error)?;
        if line.is_none_or(|line| line.ts != hit.ts) {
            return Err(rusqlite::Error::InvalidQuery);
        }
    }
    Ok(hits)
}

pub(super) fn read_error(error: io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}
