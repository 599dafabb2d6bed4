//! Positions of records by time, newest first.

use super::{AuditIndex, signed, unsigned};
use rusqlite::ToSql;

/// Filter of records.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordFilter {
    /// Begin and end of the time in microseconds since 1970; the end is not included.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Time of the last record of the page before, which is not included.
    pub(crate) before: Option<u64>,
    pub(crate) tool: Option<String>,
    pub(crate) caller: Option<String>,
    pub(crate) server: Option<String>,
    /// Name of the event.
    pub(crate) event: Option<String>,
}

/// Chain, number of the segment, offset and time of a record.
pub(crate) type TimedPosition = (String, u64, u64, u64);

impl AuditIndex {
    /// Returns the positions of the latest records that the filter matches, newest first.
    pub(crate) fn records(
        &self,
        filter: &RecordFilter,
        most: usize,
    ) -> rusqlite::Result<Vec<TimedPosition>> {
        let to = filter.to.min(filter.before.unwrap_or(u64::MAX));
        let mut sql = "SELECT segment.chain, segment.number, record.at, record.ts FROM record
             JOIN segment ON segment.id = record.segment WHERE record.ts >= ?1 AND record.ts < ?2"
            .to_owned();
        let mut with: Vec<Box<dyn ToSql>> =
            vec![Box::new(signed(filter.from)), Box::new(signed(to))];
        let columns: [(&[&str], &Option<String>); 4] = [
            (&["tool", "name"], &filter.tool),
            (&["caller"], &filter.caller),
            (&["srv"], &filter.server),
            (&["ev"], &filter.event),
        ];
        for (names, value) in columns {
            let Some(value) = value else { continue };
            with.push(Box::new(value.clone()));
            let n = with.len();
            let is =
                |name: &&str| format!("record.{name} = (SELECT id FROM name WHERE text = ?{n})");
            let is: Vec<String> = names.iter().map(is).collect();
            sql.push_str(&format!(" AND ({})", is.join(" OR ")));
        }
        with.push(Box::new(signed(most as u64)));
        sql.push_str(&format!(" ORDER BY record.ts DESC LIMIT ?{}", with.len()));
        let values: Vec<&dyn ToSql> = with.iter().map(AsRef::as_ref).collect();
        let mut asked = self.connection.prepare_cached(&sql)?;
        let rows = asked.query_map(values.as_slice(), |row| {
            Ok((
                row.get(0)?,
                unsigned(row.get(1)?),
                unsigned(row.get(2)?),
                unsigned(row.get(3)?),
            ))
        })?;
        rows.collect()
    }

    /// Returns the positions of the records of an approval, oldest first: chain, number of the segment, and offset.
    pub(crate) fn approval_records(&self, id: &str) -> rusqlite::Result<Vec<(String, u64, u64)>> {
        let mut asked = self.connection.prepare_cached(
            "SELECT segment.chain, segment.number, approval.at FROM approval
             JOIN segment ON segment.id = approval.segment WHERE approval.id = ?1 ORDER BY approval.ts",
        )?;
        let rows = asked.query_map([id], |row| {
            Ok((row.get(0)?, unsigned(row.get(1)?), unsigned(row.get(2)?)))
        })?;
        rows.collect()
    }
}
