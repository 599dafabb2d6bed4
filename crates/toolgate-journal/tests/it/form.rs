//! Format of the records.

use crate::kit::{Scratch, append, begin};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate_journal::{
    AuditEntry, AuditEvent, AuditJournal, Error, JournalOptions, MAX_RECORD_BYTES,
};

fn parse(line: &str) -> Map<String, Value> {
    serde_json::from_str(line).unwrap()
}

#[test]
fn the_first_record_introduces_the_writer() {
    let scratch = Scratch::new();
    let mut options = JournalOptions::new(&scratch.0);
    options.product = "toolgate 9.9".to_owned();
    options.config_hash = "abc".to_owned();
    options.extra_fields.insert("host".to_owned(), json!("h1"));
    let journal = AuditJournal::open(options).unwrap();
    let record = parse(&scratch.lines(journal.initial_chain())[0]);
    let names: Vec<&str> = record.keys().map(String::as_str).collect();
    let mut expected = vec![
        "batch_records",
        "boot",
        "chain",
        "checkpoint_key",
        "checkpoint_records",
        "checkpoint_seconds",
        "config_hash",
        "ev",
        "h",
        "host",
        "key_id",
        "mac_key",
        "mono",
        "pid",
        "prev",
    ];
    expected.extend(["product", "seg", "seq", "ts", "v"]);
    assert_eq!(names, expected);
    assert_eq!(
        (&record["ev"], &record["product"]),
        (&json!("genesis"), &json!("toolgate 9.9"))
    );
    assert_eq!(
        (&record["v"], &record["seg"], &record["seq"]),
        (&json!(1), &json!(1), &json!(1))
    );
    assert_eq!(record["prev"], json!("0".repeat(64)));
    assert!(record["ts"].as_u64().unwrap() > 1_600_000_000_000_000);
}

#[test]
fn records_are_chained() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    append(&journal, begin("c1")).unwrap();
    let lines = scratch.lines(journal.initial_chain());
    assert_eq!(parse(&lines[1])["prev"], parse(&lines[0])["h"]);
}

#[test]
fn long_records_are_shortened_and_still_recorded() {
    let scratch = Scratch::new();
    for (limit, size) in [
        (64 * 1024, 100_000),
        (usize::MAX, 3 * MAX_RECORD_BYTES),
        (0, 2000),
    ] {
        let mut options = JournalOptions::new(&scratch.0);
        options.max_record_bytes = limit;
        let journal = AuditJournal::open(options).unwrap();
        let entry = begin("c1")
            .with("args", "\u{1}".repeat(size))
            .with("args_len", size);
        append(&journal, entry).unwrap();
        let line = scratch.lines(journal.initial_chain()).pop().unwrap();
        assert!(
            line.len() < limit.clamp(1024, MAX_RECORD_BYTES),
            "{}",
            line.len()
        );
        let record = parse(&line);
        assert_eq!(
            record["args"],
            json!(format!("[omitted: {} bytes]", size * 6 + 2))
        );
        assert_eq!(record["args_len"], json!(size));
    }
    assert!(scratch.verify().is_intact());
}

#[test]
fn what_cannot_be_recorded_is_refused_and_nothing_is_written() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let bad = [
        AuditEntry::new(AuditEvent::DENY).with("cost", 0.5),
        AuditEntry::new(AuditEvent::DENY).with("seq", 7),
        AuditEntry::new(AuditEvent::DENY).with("who", Value::Null),
        AuditEntry::new("genesis"),
        AuditEntry::new(AuditEvent::CALL_BEGIN),
    ];
    for entry in bad {
        assert!(
            matches!(append(&journal, entry.clone()), Err(Error::Entry(_))),
            "{entry:?}"
        );
    }
    assert_eq!(scratch.lines(journal.initial_chain()).len(), 2);
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::collection::vec(any::<char>(), 0..9)
            .prop_map(|c| c.into_iter().collect::<String>().into()),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key(), inner, 0..4)
                .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![any::<char>(), prop::char::range('a', 'z')],
        0..6,
    )
    .prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    // The verifier accepts only canonical lines, so `intact` says that all of them are.
    #[test]
    fn any_fields_are_recorded_in_canonical_form(
        entries in prop::collection::vec(prop::collection::hash_map(key(), value(), 0..6), 1..20)
    ) {
        const OWN: [&str; 10] = ["boot", "chain", "ev", "h", "mono", "prev", "seg", "seq", "ts", "v"];
        let scratch = Scratch::new();
        let journal = scratch.open();
        let mut expected = Vec::new();
        for mut fields in entries {
            fields.retain(|name, _| !OWN.contains(&name.as_str()));
            let fields: serde_json::Map<String, Value> = fields.into_iter().collect();
            let entry = fields
                .iter()
                .fold(AuditEntry::new(AuditEvent::LIST), |entry, (name, value)| {
                    entry.with(name.clone(), value.clone())
                });
            expected.push(fields);
            journal.enqueue(entry).unwrap();
        }
        journal.close();
        let report = scratch.verify();
        prop_assert!(report.is_intact(), "{}", report);
        prop_assert_eq!(report.chains[0].records, expected.len() as u64 + 3);
        for (line, fields) in scratch.lines(journal.initial_chain())[2..].iter().zip(expected) {
            let mut record = parse(line);
            record.retain(|name, _| !OWN.contains(&name.as_str()));
            prop_assert_eq!(record, fields);
        }
    }
}
