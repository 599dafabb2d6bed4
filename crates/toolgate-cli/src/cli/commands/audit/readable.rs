//! Audit records as readable text, one line each. Long values are truncated.

use crate::{
    audit_output,
    cli::output::{OutputTable, TableColumn},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_core::{visible, visible_line};
use toolgate_journal::read::SegmentLine;
use toolgate_protocol::method::tasks::format_iso8601;

/// Fields that link a record to its chain and process and do not describe the event.
const CHAIN_FIELDS: [&str; 10] = [
    "v", "chain", "seg", "seq", "prev", "h", "ts", "mono", "boot", "ev",
];
/// Fields with their own column.
const COLUMN_FIELDS: [&str; 4] = ["call", "tool", "name", "caller"];
/// Columns: time, event, call ID, tool, caller and outcome.
const COLUMNS: &[TableColumn] = &[
    TableColumn::Whole,
    TableColumn::Whole,
    TableColumn::Whole,
    TableColumn::Whole,
    TableColumn::Cut,
    TableColumn::Wrap,
];
/// Maximum length of a value in characters.
const MAX_VALUE_CHARS: usize = 160;
/// Shown length of a digest in characters.
const SHOWN_DIGEST_CHARS: usize = 12;

/// Record of the audit log: one line of `audit tail --json` and `audit search --json`.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct AuditRecordOutput {
    /// Version of the format.
    v: u64,
    /// ID of the chain.
    chain: String,
    /// Number of the segment.
    seg: u64,
    /// Sequence number in the chain.
    seq: u64,
    /// Hash of the record before it.
    prev: String,
    /// Hash of the record.
    h: String,
    /// Time in microseconds since 1970.
    ts: u64,
    /// Microseconds of a clock that is never set back.
    mono: u64,
    /// ID of the start of the gateway.
    boot: String,
    /// Event, such as `call.end`.
    ev: String,
    /// Fields of the event.
    #[serde(flatten)]
    fields: Map<String, Value>,
}

/// Formats a record as raw JSON or as readable text.
pub(super) fn text(line: &SegmentLine, json: bool) -> String {
    match json {
        true => visible(&line.raw) + "\n",
        false => readable_line(line),
    }
}

/// Formats time, event, call id, tool, caller and outcome.
fn readable_line(line: &SegmentLine) -> String {
    let rest = match line.event.as_str() {
        "unreadable" => "not a valid record; `toolgate audit verify` shows details".to_owned(),
        "call.begin" => decision_and_reason(line, "dec"),
        "deny" => decision_and_reason(line, "code") + &cancelled(line),
        "call.end" => ended(line),
        _ => members(line),
    };
    let tool = match word(line, "tool") {
        tool if tool.is_empty() => word(line, "name"),
        tool => tool,
    };
    let mut table = OutputTable::new(COLUMNS).with_min_widths(&[24, 14, 10, 28, 22]);
    table.add([
        format_iso8601(line.ts / 1000),
        visible_line(&line.event),
        word(line, "call"),
        tool,
        word(line, "caller"),
        rest,
    ]);
    table.text()
}

fn word(line: &SegmentLine, name: &str) -> String {
    truncate_value(audit_output::text(line, name))
}

/// Returns the decision and the reason of the last step that gave one.
fn decision_and_reason(line: &SegmentLine, verdict: &str) -> String {
    let trail = line.fields.get("trail").and_then(Value::as_array);
    let last = trail.and_then(|steps| steps.last());
    let why = last.and_then(|step| step["why"].as_str());
    // Requests rejected at authentication have no decision log.
    let why = why.or_else(|| line.fields.get("why").and_then(Value::as_str));
    match why {
        Some(why) => format!("{}: {}", word(line, verdict), truncate_value(why)),
        None => word(line, verdict),
    }
}

fn ended(line: &SegmentLine) -> String {
    let us = audit_output::number(line, "dur_us");
    let told = format!(
        "{} in {}.{} ms",
        word(line, "out"),
        us / 1000,
        us % 1000 / 100
    );
    told + &cancelled(line)
}

/// Returns who cancelled the call and the reason that the caller gave.
fn cancelled(line: &SegmentLine) -> String {
    match (word(line, "cancel"), word(line, "cancel_reason")) {
        (by, _) if by.is_empty() => by,
        (by, reason) if reason.is_empty() => format!(", by {by}"),
        (by, reason) => format!(", by {by}: {reason}"),
    }
}

/// Formats all fields without a column.
fn members(line: &SegmentLine) -> String {
    let said = line.fields.iter().filter(|(name, _)| {
        let name = name.as_str();
        !CHAIN_FIELDS.contains(&name) && !COLUMN_FIELDS.contains(&name)
    });
    let said = said.map(|(name, value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        format!("{}={}", truncate_value(name), truncate_value(&value))
    });
    said.collect::<Vec<_>>().join(" ")
}

/// Escapes a value and truncates it for one line.
fn truncate_value(text: &str) -> String {
    let is_digest = text.len() >= 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let most = if is_digest {
        SHOWN_DIGEST_CHARS
    } else {
        MAX_VALUE_CHARS
    };
    match text.char_indices().nth(most) {
        Some((end, _)) => visible_line(&text[..end]) + "…",
        None => visible_line(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolgate_journal::{AuditEntry, AuditEvent, AuditJournal, JournalOptions, read};

    /// Returns the lines of some entries, without their times.
    fn lines(of: &str, entries: Vec<AuditEntry>) -> Vec<String> {
        let dir = format!("toolgate-lines-{}-{of}", std::process::id());
        let dir = std::env::temp_dir().join(dir);
        let journal = AuditJournal::open(JournalOptions::new(&dir)).unwrap();
        for entry in entries {
            journal.enqueue(entry).unwrap();
        }
        drop(journal);
        let lines = read::tail(&dir, 100).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        let ours = lines.iter().filter(|line| line.seq > 2);
        ours.map(|line| {
            let text = text(line, false);
            let (time, rest) = text.split_at(24);
            assert!(time.ends_with('Z') && time.contains('T'), "{time}");
            rest.to_owned()
        })
        .collect()
    }

    fn call(event: AuditEvent) -> AuditEntry {
        let entry = AuditEntry::new(event)
            .with("call", "c-1")
            .with("tool", "files.read");
        entry.with("name", "files_read").with("caller", "ada")
    }

    #[test]
    fn a_line_states_the_outcome_of_a_call() {
        let trail =
            json!([{"by": "access", "why": "a rule"}, {"by": "arguments", "why": "at /a: no"}]);
        let lines = lines(
            "calls",
            vec![
                call(AuditEvent::CALL_BEGIN).with("dec", "allow"),
                call(AuditEvent::CALL_END)
                    .with("out", "ok")
                    .with("dur_us", 3_944),
                call(AuditEvent::CALL_END)
                    .with("out", "cancelled_unknown")
                    .with("cancel", "caller")
                    .with("cancel_reason", "changed my mind")
                    .with("dur_us", 3_944),
                call(AuditEvent::DENY)
                    .with("code", "invalid")
                    .with("trail", trail),
                call(AuditEvent::DENY)
                    .with("code", "edge")
                    .with("why", "a key\nthat was revoked"),
                AuditEntry::new(AuditEvent::KEY)
                    .with("caller", "ada")
                    .with("state", "made")
                    .with("n", 7),
            ],
        );
        let head = |event: &str, call: &str, tool: &str| {
            format!("  {event:<14}  {call:<10}  {tool:<28}  {:<22}", "ada")
        };
        let expected = [
            head("call.begin", "c-1", "files.read") + "  allow\n",
            head("call.end", "c-1", "files.read") + "  ok in 3.9 ms\n",
            head("call.end", "c-1", "files.read")
                + "  cancelled_unknown in 3.9 ms, by caller: changed my mind\n",
            head("deny", "c-1", "files.read") + "  invalid: at /a: no\n",
            head("deny", "c-1", "files.read") + "  edge: a key\\u000athat was revoked\n",
            head("key", "", "") + "  n=7 state=made\n",
        ];
        assert_eq!(lines[..6], expected);
    }

    #[test]
    fn escapes_line_breaks_and_control_characters() {
        let long = "x".repeat(5_000);
        for hostile in ["a\nb", "\u{1b}[2J", "\u{202e}x", &long] {
            let name = || hostile.to_owned();
            let entry = AuditEntry::new(AuditEvent::DENY).with("code", hostile);
            let entry = entry
                .with("tool", hostile)
                .with("caller", hostile)
                .with("why", hostile)
                .with(name(), hostile);
            let other = AuditEntry::new(AuditEvent::KEY).with(name(), hostile);
            for line in &lines("hostile", vec![entry, other])[..2] {
                assert_eq!(line.matches('\n').count(), 1, "{line:?}");
                assert!(!line.contains(['\u{1b}', '\u{202e}']), "{line:?}");
                assert!(line.chars().count() < 1_000, "{line:?}");
            }
        }
    }

    #[test]
    fn truncates_digests() {
        let digest = "0123456789abcdef".repeat(4);
        let entry = AuditEntry::new(AuditEvent::TOOL_PINNED).with("def", digest.as_str());
        let lines = lines("digests", vec![entry]);
        assert!(lines[0].ends_with(" def=0123456789ab…\n"), "{lines:?}");
    }
}
