//! Calls of the past, from the index.

use super::{AuditIndex, CallClass, condition::SqlConditions, signed, unsigned};
use rusqlite::{Row, params_from_iter, types::Value as SqlValue};

/// Filter of calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallFilter {
    /// Begin and end of the time in microseconds since 1970; the end is not included.
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) caller: Option<String>,
    pub(crate) server: Option<String>,
    /// Full name of the tool, or the name that the caller used if there is no such tool.
    pub(crate) tool: Option<String>,
    /// Rule that decided, as the audit log names it.
    pub(crate) rule: Option<String>,
    /// Classes; empty for all.
    pub(crate) classes: Vec<String>,
    /// Part of a name of the tool or caller, or of the id.
    pub(crate) text: Option<String>,
}

/// Call that ended, as the index has it.
#[derive(Clone, Debug)]
pub(crate) struct IndexedCall {
    pub(crate) id: String,
    /// Time of its end in microseconds since 1970.
    pub(crate) ts: u64,
    pub(crate) caller: String,
    pub(crate) server: Option<String>,
    pub(crate) tool: String,
    pub(crate) class: CallClass,
    pub(crate) rule: Option<String>,
    pub(crate) micros: u64,
    /// Chains, numbers of segments and offsets of its records: that of its begin, if there is one, and that of its end.
    pub(crate) records: Vec<(String, u64, u64)>,
}

const SELECT_CALL: &str = "SELECT call.call, call.ts, caller.text, srv.text, tool.text, class.text, outcome.text, rule.text, call.us,
        segment.chain, segment.number, call.at, begun.chain, begun.number, call.begin_at
    FROM call JOIN segment ON segment.id = call.segment
        LEFT JOIN segment begun ON begun.id = call.begin_segment
        LEFT JOIN name caller ON caller.id = call.caller LEFT JOIN name srv ON srv.id = call.srv
        LEFT JOIN name tool ON tool.id = call.tool LEFT JOIN name class ON class.id = call.class
        LEFT JOIN name outcome ON outcome.id = call.outcome LEFT JOIN name rule ON rule.id = call.rule";

impl AuditIndex {
    /// Returns the latest calls that the filter matches, newest first. `before` is the position after which to go on.
    pub(crate) fn calls(
        &self,
        filter: &CallFilter,
        before: Option<u64>,
        most: usize,
    ) -> rusqlite::Result<Vec<IndexedCall>> {
        let to = filter.to.min(before.unwrap_or(u64::MAX));
        let mut query = SqlConditions::new(
            format!("{SELECT_CALL} WHERE call.ts >= ?1 AND call.ts < ?2"),
            &[signed(filter.from), signed(to)],
        );
        query.require_name(&["call.caller"], filter.caller.as_deref());
        query.require_name(&["call.srv"], filter.server.as_deref());
        query.require_name(&["call.tool"], filter.tool.as_deref());
        query.require_name(&["call.rule"], filter.rule.as_deref());
        if !filter.classes.is_empty() {
            query.push(
                " AND instr(char(10) || # || char(10), char(10) || class.text || char(10)) > 0",
                SqlValue::Text(filter.classes.join("\n")),
            );
        }
        if let Some(text) = &filter.text {
            query.push(
                " AND (instr(lower(tool.text), #) > 0 OR instr(lower(caller.text), #) > 0 OR instr(lower(call.call), #) > 0)",
                SqlValue::Text(text.to_lowercase()),
            );
        }
        query.push(
            " ORDER BY call.ts DESC LIMIT #",
            SqlValue::Integer(signed(most as u64)),
        );
        let mut asked = self.connection.prepare_cached(&query.sql)?;
        asked
            .query_map(params_from_iter(&query.values), read_call)?
            .collect()
    }

    /// Returns the last call with that id.
    pub(crate) fn find_call(&self, id: &str) -> rusqlite::Result<Option<IndexedCall>> {
        let sql = format!("{SELECT_CALL} WHERE call.call = ?1 ORDER BY call.ts DESC LIMIT 1");
        let mut asked = self.connection.prepare_cached(&sql)?;
        let mut found = asked.query_map([id], read_call)?;
        found.next().transpose()
    }
}

fn read_call(row: &Row<'_>) -> rusqlite::Result<IndexedCall> {
    let text = |at: usize| row.get::<_, Option<String>>(at);
    let mut records = Vec::new();
    if let (Some(chain), Some(number), Some(at)) = (
        text(12)?,
        row.get::<_, Option<i64>>(13)?,
        row.get::<_, Option<i64>>(14)?,
    ) {
        records.push((chain, unsigned(number), unsigned(at)));
    }
    records.push((row.get(9)?, unsigned(row.get(10)?), unsigned(row.get(11)?)));
    Ok(IndexedCall {
        id: row.get(0)?,
        ts: unsigned(row.get(1)?),
        caller: text(2)?.unwrap_or_default(),
        server: text(3)?,
        tool: text(4)?.unwrap_or_default(),
        class: CallClass {
            class: text(5)?.unwrap_or_default(),
            outcome: text(6)?.unwrap_or_default(),
        },
        rule: text(7)?,
        micros: unsigned(row.get(8)?),
        records,
    })
}
