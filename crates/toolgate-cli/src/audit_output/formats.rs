//! Audit records in the formats of other systems.

use serde_json::{Value, json};
use toolgate_core::visible;
use toolgate_journal::read::SegmentLine;

/// Returns a text field of a record; empty if absent.
pub(crate) fn text<'a>(line: &'a SegmentLine, name: &str) -> &'a str {
    let value = line.fields.get(name);
    value.and_then(Value::as_str).unwrap_or_default()
}

/// Returns a number field of a record; 0 if absent.
pub(crate) fn number(line: &SegmentLine, name: &str) -> u64 {
    let value = line.fields.get(name);
    value.and_then(Value::as_u64).unwrap_or_default()
}

/// Returns true if a record states the outcome of a call.
fn is_outcome(line: &SegmentLine) -> bool {
    matches!(line.event.as_str(), "call.end" | "call.unknown" | "deny")
}

fn is_failure(line: &SegmentLine) -> bool {
    line.event != "call.end" || text(line, "out") != "ok"
}

/// Formats a record as an OTLP log export request in JSON.
pub(super) fn otlp(line: &SegmentLine) -> String {
    let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let mut attributes = vec![
        attribute("event.name", &line.event),
        attribute("toolgate.chain", &line.chain),
        attribute("toolgate.seq", &line.seq.to_string()),
    ];
    let names = [
        ("method", "mcp.method.name"),
        ("name", "gen_ai.tool.name"),
        ("era", "mcp.protocol.version"),
        ("rid", "jsonrpc.request.id"),
        ("caller", "user.name"),
        ("srv", "toolgate.server"),
    ];
    let said = names
        .iter()
        .filter(|(name, _)| !text(line, name).is_empty());
    attributes.extend(said.map(|(name, key)| attribute(key, text(line, name))));
    if is_outcome(line) && is_failure(line) {
        let out = text(line, "out");
        attributes.push(attribute(
            "error.type",
            if out.is_empty() { "unknown" } else { out },
        ));
    }
    let (severity, word) = match is_outcome(line) && is_failure(line) {
        true => (13, "WARN"),
        false => (9, "INFO"),
    };
    json!({"resourceLogs": [{
        "resource": {"attributes": [attribute("service.name", "toolgate")]},
        "scopeLogs": [{"scope": {"name": "toolgate.audit"}, "logRecords": [{
            "timeUnixNano": format!("{}000", line.ts),
            "severityNumber": severity, "severityText": word,
            "body": {"stringValue": line.raw},
            "attributes": attributes,
        }]}],
    }]})
    .to_string()
}

/// Formats a record as an OCSF API Activity; `None` for records without an outcome.
pub(super) fn ocsf(line: &SegmentLine) -> Option<String> {
    if !is_outcome(line) {
        return None;
    }
    let good = !is_failure(line);
    let mut attestation = json!({
        "chain_uid": line.chain,
        "fingerprint": {"algorithm_id": 3, "algorithm": "SHA-256", "value": text(line, "h")},
    });
    if line.seq > 1 {
        attestation["prev_event"] = json!({"uid": text(line, "prev")});
    }
    let event = json!({
        "class_uid": 6003, "class_name": "API Activity",
        "category_uid": 6, "category_name": "Application Activity",
        "activity_id": 99, "activity_name": text(line, "method"), "type_uid": 600_399,
        "severity_id": if good { 1 } else { 3 },
        "status_id": if good { 1 } else { 2 }, "status_detail": text(line, "out"),
        "time": line.ts / 1000,
        "duration": number(line, "dur_us") / 1000,
        "actor": {"user": {"name": text(line, "caller")}},
        "api": {"operation": text(line, "name"), "request": {"uid": text(line, "call")}},
        "src_endpoint": {"name": text(line, "transport")},
        "metadata": {
            "uid": format!("{}:{}", line.chain, line.seq), "version": "1.9.0-dev",
            "product": {"name": "Toolgate", "vendor_name": "Toolgate"},
            "profiles": ["record_integrity"],
        },
        "attestation": attestation,
    });
    Some(event.to_string())
}

/// Formats a record as a line of CEF; `None` for records without an outcome.
pub(super) fn cef(line: &SegmentLine) -> Option<String> {
    if !is_outcome(line) {
        return None;
    }
    let head = [
        "Toolgate",
        "toolgate",
        env!("CARGO_PKG_VERSION"),
        &line.event,
        text(line, "name"),
    ];
    let head: Vec<String> = head.iter().map(|text| escape_header(text)).collect();
    let severity = if is_failure(line) { 5 } else { 1 };
    let fields = [
        ("rt", (line.ts / 1000).to_string()),
        ("suser", text(line, "caller").to_owned()),
        ("request", text(line, "method").to_owned()),
        ("act", text(line, "dec").to_owned()),
        ("outcome", text(line, "out").to_owned()),
        ("externalId", format!("{}:{}", line.chain, line.seq)),
        ("cn1Label", "microseconds".to_owned()),
        ("cn1", number(line, "dur_us").to_string()),
    ];
    let said = fields.iter().filter(|(_, value)| !value.is_empty());
    let said: Vec<String> = said
        .map(|(key, value)| format!("{key}={}", escape_field(value)))
        .collect();
    Some(format!(
        "CEF:0|{}|{severity}|{}",
        head.join("|"),
        said.join(" ")
    ))
}

/// Escapes backslash and pipe for a CEF header and replaces line breaks. Other control characters are made visible.
fn escape_header(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('|', "\\|");
    visible(&text.replace(['\r', '\n'], " "))
}

/// Escapes backslash, equals sign and line breaks for a CEF field. Other control characters are made visible.
fn escape_field(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('=', "\\=");
    visible(&text.replace('\r', "\\r").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use toolgate_journal::{AuditEntry, AuditEvent, AuditJournal, JournalOptions, read};

    fn lines(name: &str, caller: &str) -> Vec<SegmentLine> {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let dir = format!("toolgate-forms-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(dir);
        let journal = AuditJournal::open(JournalOptions::new(&dir)).unwrap();
        let entry = AuditEntry::new(AuditEvent::DENY)
            .with("call", "c1")
            .with("name", name);
        journal
            .enqueue(entry.with("caller", caller).with("out", "refused"))
            .unwrap();
        drop(journal);
        let lines = read::tail(&dir, 100).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        lines
    }

    // T45
    #[test]
    #[allow(clippy::print_stdout, reason = "its figure")]
    fn cef_has_one_line_and_one_meaning() {
        let hostile = [
            "a|b",
            "a\\|b",
            "x\nCEF:0|forged",
            "k=v act=allow",
            "\r\n",
            "\\",
            "a\\=b",
            "\\n",
        ];
        for text in hostile {
            let all = lines(text, text);
            let line = all.iter().find_map(cef).unwrap();
            assert!(!line.contains(['\n', '\r']), "{line}");
            // Seven unescaped pipes, then fields.
            let (mut parts, mut escaped) = (vec![String::new()], false);
            for c in line.chars() {
                if c == '|' && !escaped && parts.len() < 8 {
                    parts.push(String::new());
                } else {
                    parts.last_mut().unwrap().push(c);
                }
                escaped = c == '\\' && !escaped;
            }
            assert_eq!(parts.len(), 8, "{line}");
            assert_eq!(
                (parts[0].as_str(), parts[4].as_str(), parts[6].as_str()),
                ("CEF:0", "deny", "5"),
                "{line}"
            );
            let suser = parts[7].split(" request=").next().unwrap();
            let suser = suser.split(" outcome=").next().unwrap();
            let suser = suser.split_once("suser=").unwrap().1;
            assert_eq!(suser, escape_field(text));
        }
        println!(
            "T45: {} hostile names and callers, each one line of CEF with eight parts",
            hostile.len()
        );
    }

    #[test]
    fn ocsf_has_the_names_of_record_integrity() {
        let all = lines("files.read", "me");
        let events: Vec<String> = all.iter().filter_map(ocsf).collect();
        assert_eq!(events.len(), 1, "one for each outcome");
        let event: Value = serde_json::from_str(&events[0]).unwrap();
        assert_eq!(
            (&event["class_uid"], &event["status_id"]),
            (&json!(6003), &json!(2))
        );
        let attestation = &event["attestation"];
        let deny = all.iter().find(|line| line.event == "deny").unwrap();
        assert_eq!(attestation["chain_uid"], json!(deny.chain));
        assert_eq!(attestation["fingerprint"]["value"], deny.fields["h"]);
        assert_eq!(attestation["prev_event"]["uid"], deny.fields["prev"]);
    }

    #[test]
    fn otlp_has_every_record() {
        for line in lines("files.read", "me") {
            let request: Value = serde_json::from_str(&otlp(&line)).unwrap();
            let record = &request["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
            assert_eq!(record["body"]["stringValue"], json!(line.raw));
            assert_eq!(record["timeUnixNano"], json!(format!("{}000", line.ts)));
        }
    }
}
