//! The audit log at the console: search, verification and export.

use super::{ActionError, ActionResult, OperatorApi, action_input::ActionInput};
use crate::{
    args::ExportFormat,
    audit_index::{AuditIndex, RecordFilter},
    audit_output::{VerifyOutput, format_record},
};
use serde_json::{Value, json};
use std::{
    borrow::Cow,
    io,
    path::Path,
    time::{Duration, Instant},
};
use toolgate_journal::{
    read::{self, SegmentFile, SegmentLine},
    verify::AuditCheck,
};
use toolgate_policy::ContentReader;

/// Maximum number of records in one answer.
const MAX_RECORDS: u64 = 200;
/// Time after which a search stops and says where to go on.
const SEARCH_TIME: Duration = Duration::from_millis(1500);
/// Maximum number of positions that one round of a search takes from the index.
const POSITIONS_PER_ROUND: usize = 1000;
/// Maximum size of an export, in bytes.
const MAX_EXPORT_BYTES: usize = 32 * 1024 * 1024;

/// Filters that only the lines of the log can answer.
#[derive(Clone, Debug, Default)]
struct LineFilter {
    decision: Option<String>,
    text: Option<String>,
}

impl LineFilter {
    fn matches(&self, line: &SegmentLine) -> bool {
        let field = |name: &str| line.fields.get(name).and_then(Value::as_str);
        let decides = |wanted: &String| {
            field("dec") == Some(wanted)
                || field("out") == Some(wanted)
                || field("state") == Some(wanted)
        };
        self.decision.as_ref().is_none_or(decides)
            && self
                .text
                .as_ref()
                .is_none_or(|text| line.raw.contains(text.as_str()))
    }
}

impl OperatorApi {
    /// Executes an action on the audit log; `None` for any other action.
    pub(super) async fn audit_action(&self, action: &str, with: &Value) -> Option<ActionResult> {
        Some(match action {
            "audit/search" => self.search_records(with).await,
            "audit/call" => self.call_records(with).await,
            "audit/verify" => self.verify_audit_log().await,
            "audit/export" => self.export_records(with).await,
            _ => return None,
        })
    }

    /// Returns records that match, newest first, and where to go on.
    async fn search_records(&self, with: &Value) -> ActionResult {
        let (filter, lines) = filters(with);
        let most = ActionInput(with).most(MAX_RECORDS);
        let dir = self.history.audit_dir();
        let contents = ContentReader::new(self.store.clone());
        let answer = self.history.query(move |index| {
            let mut found = Vec::new();
            let end = Instant::now() + SEARCH_TIME;
            let next = each_record(index, &dir, &filter, end, |line| {
                let line = revealed(&contents, line);
                if lines.matches(&line) {
                    found.push(record_json(&line));
                }
                found.len() < most
            })?;
            Ok((found, next))
        });
        let answer = answer.await?;
        let (records, next) = answer.value;
        Ok(json!({"records": records, "next": next, "behind": answer.behind}))
    }

    /// Returns the records of one call: its begin and its end, and those of its approval.
    async fn call_records(&self, with: &Value) -> ActionResult {
        let id = ActionInput(with).text("id").to_owned();
        let dir = self.history.audit_dir();
        let contents = ContentReader::new(self.store.clone());
        let answer = self.history.query({
            let id = id.clone();
            move |index| {
                let Some(call) = index.find_call(&id).map_err(io::Error::other)? else {
                    return Ok(None);
                };
                let files = read::segment_files(&dir)?;
                let mut records = Vec::new();
                for position in &call.records {
                    records.extend(line_at(&files, position)?);
                }
                let approval = records.iter().find_map(|line| {
                    let id = line.fields.get("approval")?.as_str()?;
                    Some(id.to_owned())
                });
                let positions = approval.map(|id| index.approval_records(&id));
                let positions = positions.transpose().map_err(io::Error::other)?;
                let mut approvals = Vec::new();
                for position in positions.iter().flatten() {
                    approvals.extend(line_at(&files, position)?.as_ref().map(record_json));
                }
                let records = records.iter().map(|line| record_json(&revealed(&contents, line)));
                let records: Vec<Value> = records.collect();
                Ok(Some(json!({"call": super::overview::past_call_json(&call), "records": records, "approvals": approvals})))
            }
        });
        let answer = answer.await?;
        answer.value.ok_or_else(|| {
            ActionError::Unknown(match answer.behind {
                0 => format!("the audit log has no call {id} that ended"),
                behind => format!("the index of the audit log has no call {id} yet; it still reads {behind} bytes, try again"),
            })
        })
    }

    /// Verifies the audit log, as `toolgate audit verify` does.
    async fn verify_audit_log(&self) -> ActionResult {
        let checked = self.history.read(|dir| AuditCheck::new(dir).run()).await?;
        let report = checked.map_err(|error| {
            format!("cannot read the audit log or a checkpoint mirror: {error}; check the directories and their permissions")
        })?;
        let mut value = serde_json::to_value(VerifyOutput::new(&report)).unwrap_or_default();
        let sizes = self.history.read(read::segment_files).await?;
        let sizes = sizes.unwrap_or_default();
        value["segments"] = sizes
            .iter()
            .map(|file| json!({"chain": file.chain, "number": file.number, "bytes": file.bytes, "sealed": file.sealed}))
            .collect();
        Ok(value)
    }

    /// Returns the matching records in a format for other systems, newest first, up to a maximum size.
    async fn export_records(&self, with: &Value) -> ActionResult {
        let (filter, lines) = filters(with);
        let word = ActionInput(with).filter("format");
        let word = word.as_deref().unwrap_or("jsonl");
        let format = ExportFormat::read(word).ok_or_else(|| {
            format!("there is no export format {word:?}; use jsonl, otlp, ocsf or cef")
        })?;
        let dir = self.history.audit_dir();
        let answer = self.history.query(move |index| {
            let mut text = String::new();
            // A day, so that an export is never cut by the time.
            let end = Instant::now() + Duration::from_secs(24 * 3600);
            let next = each_record(index, &dir, &filter, end, |line| {
                if lines.matches(line) {
                    text.push_str(&format_record(format, line));
                }
                text.len() < MAX_EXPORT_BYTES
            })?;
            Ok((text, next))
        });
        let answer = answer.await?;
        let (text, next) = answer.value;
        Ok(json!({"text": text, "cut": next.is_some(), "behind": answer.behind}))
    }
}

fn filters(with: &Value) -> (RecordFilter, LineFilter) {
    let input = ActionInput(with);
    let (from, to) = input.period();
    let filter = RecordFilter {
        from,
        to,
        before: input.number("before"),
        tool: input.filter("tool"),
        caller: input.filter("caller"),
        server: input.filter("server"),
        event: input.filter("event"),
    };
    let lines = LineFilter {
        decision: input.filter("decision"),
        text: input.filter("text"),
    };
    (filter, lines)
}

/// Returns the line at a position: chain, number of the segment, and offset. `None` if it was deleted.
fn line_at(
    files: &[SegmentFile],
    (chain, number, at): &(String, u64, u64),
) -> io::Result<Option<SegmentLine>> {
    let mut files = files.iter();
    let file = files.find(|file| file.chain == *chain && file.number == *number);
    let line = file.map(|file| file.line_at(*at));
    line.transpose().map(Option::flatten)
}

/// Reads the lines of matching records, newest first, until `each` returns false or the time is over. Returns the time
/// before which to go on, if there may be more.
fn each_record(
    index: &AuditIndex,
    dir: &Path,
    filter: &RecordFilter,
    end: Instant,
    mut each: impl FnMut(&SegmentLine) -> bool,
) -> io::Result<Option<u64>> {
    let files: Vec<SegmentFile> = read::segment_files(dir)?;
    let mut filter = filter.clone();
    // Records of the same microsecond belong to one page.
    let mut stop_at = None;
    loop {
        let mut positions = index
            .records(&filter, POSITIONS_PER_ROUND)
            .map_err(io::Error::other)?;
        let is_last = positions.len() < POSITIONS_PER_ROUND;
        if let (false, Some((.., last))) = (is_last, positions.last().cloned())
            && positions.first().is_some_and(|(.., first)| *first != last)
        {
            positions.retain(|(.., ts)| *ts != last);
            filter.before = Some(last + 1);
        } else {
            filter.before = positions.last().map(|(.., ts)| *ts);
        }
        for (chain, number, at, ts) in positions {
            if stop_at.is_some_and(|stop| stop != ts) {
                return Ok(stop_at);
            }
            let line = match line_at(&files, &(chain, number, at)) {
                Ok(Some(line)) => line,
                // The segment was deleted meanwhile.
                Ok(None) => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if !each(&line) || Instant::now() > end {
                stop_at = Some(ts);
            }
        }
        if is_last {
            return Ok(None);
        }
    }
}

/// Returns a record with its decrypted contents in place of the encrypted ones.
fn revealed<'a>(contents: &ContentReader, line: &'a SegmentLine) -> Cow<'a, SegmentLine> {
    if !ContentReader::is_encrypted(&line.fields) {
        return Cow::Borrowed(line);
    }
    let mut line = line.clone();
    contents.reveal(&mut line.fields);
    line.raw = Value::Object(line.fields.clone()).to_string();
    ContentReader::remove_encrypted(&mut line.fields);
    Cow::Owned(line)
}

fn record_json(line: &SegmentLine) -> Value {
    json!({"chain": line.chain, "seq": line.seq, "ts": line.ts / 1000, "event": line.event, "fields": line.fields, "raw": line.raw})
}
