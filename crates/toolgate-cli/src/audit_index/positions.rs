//! Positions of records by tool, caller and server.

use super::unsigned;
use rusqlite::{Connection, Row, ToSql};
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
    let mut sql = "SELECT ts, at FROM record WHERE segment = ?1".to_owned();
    let mut with: Vec<&dyn ToSql> = vec![&id];
    let columns: [(&[&str], &Option<&str>); 3] = [
        (&["tool", "name"], &wanted.tool),
        (&["caller"], &wanted.caller),
        (&["srv"], &wanted.server),
    ];
    for (names, value) in columns {
        if value.is_none() {
            continue;
        }
        with.push(value);
        let n = with.len();
        let is = names
            .iter()
            .map(|name| format!("{name} = (SELECT id FROM name WHERE text = ?{n})"));
        let is: Vec<String> = is.collect();
        sql.push_str(&format!(" AND ({})", is.join(" OR ")));
    }
    sql.push_str(" ORDER BY at");
    let mut asked = connection.prepare(&sql)?;
    let hit = |row: &Row<'_>| {
        Ok(RecordPosition {
            ts: unsigned(row.get(0)?),
            file,
            offset: unsigned(row.get(1)?),
        })
    };
    asked.query_map(with.as_slice(), hit)?.collect()
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
