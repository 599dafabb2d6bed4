//! Reads new records of a segment into the index.

use super::{call_class::CallClass, positions::read_error, schema, signed, unsigned};
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde_json::{Map, Value};
use std::{collections::HashMap, io, time::Instant};
use toolgate_journal::read::{SegmentFile, SegmentLine};

/// Number of records between two checks of the deadline.
const RECORDS_PER_DEADLINE_CHECK: u32 = 256;

/// Microseconds of a minute.
const MINUTE_MICROS: u64 = 60_000_000;

/// Indexes a segment, up to its end or the deadline. Returns its id, and how many of its bytes are indexed.
pub(super) fn index_segment(
    connection: &mut Connection,
    segment: &SegmentFile,
    deadline: Option<Instant>,
) -> rusqlite::Result<(i64, u64)> {
    let known = connection
        .query_row(
            "SELECT id, done FROM segment WHERE chain = ?1 AND number = ?2",
            params![segment.chain, signed(segment.number)],
            |row| Ok((row.get::<_, i64>(0)?, unsigned(row.get(1)?))),
        )
        .optional()?;
    if let Some((id, done)) = known
        && done == segment.bytes
    {
        return Ok((id, done));
    }
    let making = connection.transaction()?;
    let (id, from) = match known {
        // A file that is shorter than what was read of it is another file.
        Some((id, done)) if done > segment.bytes => {
            schema::drop_segment(&making, id)?;
            (insert_segment(&making, segment)?, 0)
        }
        Some(known) => known,
        None => (insert_segment(&making, segment)?, 0),
    };
    let done = SegmentFill::new(&making, id)?.read(segment, from, deadline)?;
    making.execute(
        "UPDATE segment SET done = ?2 WHERE id = ?1",
        params![id, signed(done)],
    )?;
    making.commit()?;
    Ok((id, done))
}

fn insert_segment(making: &Transaction<'_>, segment: &SegmentFile) -> rusqlite::Result<i64> {
    making.execute(
        "INSERT INTO segment (chain, number, done) VALUES (?1, ?2, 0)",
        params![segment.chain, signed(segment.number)],
    )?;
    Ok(making.last_insert_rowid())
}

/// One pass over new records of a segment.
struct SegmentFill<'t> {
    making: &'t Transaction<'t>,
    segment: i64,
    names: HashMap<String, i64>,
    open: HashMap<String, OpenCall>,
    /// Counts of this pass by minute, written at its end.
    minutes: HashMap<MinuteKey, i64>,
}

/// Call that began and did not end yet.
struct OpenCall {
    segment: i64,
    at: i64,
    approved: bool,
    rule: Option<i64>,
}

#[derive(Eq, Hash, PartialEq)]
struct MinuteKey {
    minute: i64,
    caller: Option<i64>,
    server: Option<i64>,
    tool: Option<i64>,
    class: i64,
    rule: Option<i64>,
    bucket: i64,
}

impl<'t> SegmentFill<'t> {
    fn new(making: &'t Transaction<'t>, segment: i64) -> rusqlite::Result<SegmentFill<'t>> {
        let mut open = HashMap::new();
        let mut all = making.prepare("SELECT call, segment, at, approved, rule FROM open_call")?;
        let mut rows = all.query([])?;
        while let Some(row) = rows.next()? {
            let call = OpenCall {
                segment: row.get(1)?,
                at: row.get(2)?,
                approved: row.get(3)?,
                rule: row.get(4)?,
            };
            open.insert(row.get(0)?, call);
        }
        drop(rows);
        drop(all);
        Ok(SegmentFill {
            making,
            segment,
            names: HashMap::new(),
            open,
            minutes: HashMap::new(),
        })
    }

    /// Reads records from an offset on. Returns the offset after the last one.
    fn read(
        mut self,
        segment: &SegmentFile,
        from: u64,
        deadline: Option<Instant>,
    ) -> rusqlite::Result<u64> {
        let (mut failed, mut count) = (None, 0_u32);
        let read = segment.lines_from(from, |at, line| {
            count += 1;
            let late = deadline
                .is_some_and(|end| count % RECORDS_PER_DEADLINE_CHECK == 0 && Instant::now() > end);
            if late {
                return Ok(false);
            }
            self.add(at, &line).map(|()| true).map_err(|error| {
                failed = Some(error);
                io::ErrorKind::Other.into()
            })
        });
        match (failed, read) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(read_error(error)),
            (None, Ok(done)) => {
                self.finish()?;
                Ok(done)
            }
        }
    }

    fn add(&mut self, at: u64, line: &SegmentLine) -> rusqlite::Result<()> {
        let fields = &line.fields;
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        let (tool, name) = (self.name(text("tool"))?, self.name(text("name"))?);
        let event = self.name(Some(&line.event))?;
        let (caller, server) = (self.name(text("caller"))?, self.name(text("srv"))?);
        self.making
            .prepare_cached(
                "INSERT OR REPLACE INTO record VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                self.segment,
                signed(at),
                signed(line.ts),
                event,
                tool,
                name,
                caller,
                server
            ])?;
        match line.event.as_str() {
            "call.begin" => self.begin(at, fields),
            "call.end" | "deny" | "call.unknown" => {
                let ids = [caller, server, tool.or(name)];
                self.end(at, line, ids)
            }
            "approval" => self.approval(at, line, tool),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, at: u64, fields: &Map<String, Value>) -> rusqlite::Result<()> {
        let Some(call) = fields.get("call").and_then(Value::as_str) else {
            return Ok(());
        };
        let approved = steps(fields)
            .any(|step| matches!(step["verdict"].as_str(), Some("approved" | "granted")));
        let rule = self.rule(fields)?;
        let open = OpenCall {
            segment: self.segment,
            at: signed(at),
            approved,
            rule,
        };
        self.open.insert(call.to_owned(), open);
        Ok(())
    }

    fn end(
        &mut self,
        at: u64,
        line: &SegmentLine,
        [caller, server, tool]: [Option<i64>; 3],
    ) -> rusqlite::Result<()> {
        let fields = &line.fields;
        // A rejection at the edge is no call.
        let Some(call) = fields.get("call").and_then(Value::as_str) else {
            return Ok(());
        };
        let begun = self.open.remove(call);
        let approved = begun.as_ref().is_some_and(|begun| begun.approved);
        let CallClass { class, outcome } = CallClass::of(fields, approved);
        let rule = match &begun {
            Some(begun) => begun.rule,
            None => self.rule(fields)?,
        };
        let (class, outcome) = (self.name(Some(&class))?, self.name(Some(&outcome))?);
        let micros = fields.get("dur_us").and_then(Value::as_u64).unwrap_or(0);
        self.making
            .prepare_cached("INSERT OR REPLACE INTO call VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)")?
            .execute(params![
                self.segment, signed(at), signed(line.ts), call,
                begun.as_ref().map(|begun| begun.segment), begun.as_ref().map(|begun| begun.at),
                caller, server, tool, class, outcome, rule, signed(micros)
            ])?;
        let key = MinuteKey {
            minute: signed(line.ts / MINUTE_MICROS),
            caller,
            server,
            tool,
            class: class.unwrap_or_default(),
            rule,
            bucket: latency_bucket(micros),
        };
        *self.minutes.entry(key).or_default() += 1;
        Ok(())
    }

    fn approval(&mut self, at: u64, line: &SegmentLine, tool: Option<i64>) -> rusqlite::Result<()> {
        let text = |key: &str| line.fields.get(key).and_then(Value::as_str);
        let (Some(id), Some(state)) = (text("approval"), text("state")) else {
            return Ok(());
        };
        self.making
            .prepare_cached("INSERT OR REPLACE INTO approval VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
            .execute(params![
                self.segment,
                signed(at),
                signed(line.ts),
                id,
                state,
                tool
            ])
            .map(drop)
    }

    /// Returns the name of the rule that decided, with the policy that has it.
    fn rule(&mut self, fields: &Map<String, Value>) -> rusqlite::Result<Option<i64>> {
        let decides = |step: &&Value| {
            step["by"] == "access"
                && matches!(
                    step["verdict"].as_str(),
                    Some("allow" | "refuse" | "hide" | "ask")
                )
        };
        let rule = steps(fields).filter(decides).last();
        let Some(why) = rule.and_then(|step| step["why"].as_str()) else {
            return Ok(None);
        };
        let why = why.strip_prefix("refused: ").unwrap_or(why);
        self.name(Some(why))
    }

    /// Returns the id of a name, and adds it if it is new.
    fn name(&mut self, text: Option<&str>) -> rusqlite::Result<Option<i64>> {
        let Some(text) = text else { return Ok(None) };
        if let Some(id) = self.names.get(text) {
            return Ok(Some(*id));
        }
        let known = self
            .making
            .prepare_cached("SELECT id FROM name WHERE text = ?1")?
            .query_row([text], |row| row.get(0))
            .optional()?;
        let id = match known {
            Some(id) => id,
            None => {
                self.making
                    .prepare_cached("INSERT INTO name (text) VALUES (?1)")?
                    .execute([text])?;
                self.making.last_insert_rowid()
            }
        };
        self.names.insert(text.to_owned(), id);
        Ok(Some(id))
    }

    /// Writes the counts of this pass, and the calls that are still open.
    fn finish(self) -> rusqlite::Result<()> {
        let mut find = self.making.prepare_cached(
            "UPDATE minute SET n = n + ?9 WHERE minute = ?1 AND segment = ?2 AND caller IS ?3 AND srv IS ?4 AND tool IS ?5
             AND class = ?6 AND rule IS ?7 AND bucket = ?8",
        )?;
        let mut insert = self
            .making
            .prepare_cached("INSERT INTO minute VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
        for (key, n) in &self.minutes {
            let row = params![
                key.minute,
                self.segment,
                key.caller,
                key.server,
                key.tool,
                key.class,
                key.rule,
                key.bucket,
                n
            ];
            // Unique indexes treat NULL values as different, so an upsert would not find the row.
            if find.execute(row)? == 0 {
                insert.execute(row)?;
            }
        }
        self.making.execute("DELETE FROM open_call", [])?;
        let mut keep = self
            .making
            .prepare_cached("INSERT INTO open_call VALUES (?1, ?2, ?3, ?4, ?5)")?;
        for (call, open) in &self.open {
            keep.execute(params![
                call,
                open.segment,
                open.at,
                open.approved,
                open.rule
            ])?;
        }
        Ok(())
    }
}

fn steps(fields: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let trail = fields.get("trail").and_then(Value::as_array);
    trail.into_iter().flatten()
}

/// Returns the bucket of a duration: four for each doubling.
pub(super) fn latency_bucket(micros: u64) -> i64 {
    match micros {
        0 => 0,
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "a bucket is a small number, and a duration need not be exact"
        )]
        micros => ((micros as f64).log2() * 4.0).floor() as i64,
    }
}

/// Returns a duration within a bucket, in microseconds: its geometric middle.
pub(super) fn bucket_micros(bucket: i64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "a bucket is a small number")]
    let exponent = (bucket as f64 + 0.5) / 4.0;
    exponent.exp2()
}
