//! Positions of records by time, newest first.

use super::{AuditIndex, condition::SqlConditions, signed, unsigned};
use rusqlite::{params_from_iter, types::Value as SqlValue};

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
        let mut query = SqlConditions::new(
            "SELECT segment.chain, segment.number, record.at, record.ts FROM record
             JOIN segment ON segment.id = record.segment WHERE record.ts >= ?1 AND record.ts < ?2",
            &[signed(filter.from), signed(to)],
        );
        query.require_name(&["record.tool", "record.name"], filter.tool.as_deref());
        query.require_name(&["record.caller"], filter.caller.as_deref());
        query.require_name(&["record.srv"], filter.server.as_deref());
        query.require_name(&["record.ev"], filter.event.as_deref());
        query.push(
            " ORDER BY record.ts DESC LIMIT #",
            SqlValue::Integer(signed(most as u64)),
        );
        let mut asked = self.connection.prepare_cached(&query.sql)?;
        let rows = asked.query_map(params_from_iter(&query.values), |row| {
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
