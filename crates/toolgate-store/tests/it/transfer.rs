//! Check, export and import of a store.

use crate::kit::{Scratch, put, values};
use serde_json::json;
use toolgate_policy::{StateStore, WritePrecondition};
use toolgate_store::{check, export, import};

fn filled() -> (Scratch, Vec<u8>) {
    let scratch = Scratch::new();
    let state = scratch.open();
    for n in 0..30 {
        let value = Some(json!({"n": n, "text": "a line\nand \u{1F600}"}));
        put(&state, &format!("g-{n}"), value, WritePrecondition::Absent);
    }
    put(&state, "g-7", None, WritePrecondition::Any);
    // It can be exported while a gateway runs.
    let mut out = Vec::new();
    let entries = export(&scratch.0, &mut out).unwrap();
    assert_eq!(entries, 30, "29 grants and the clock");
    (scratch, out)
}

#[test]
fn an_export_is_imported_whole() {
    let (scratch, out) = filled();
    let other = Scratch::new();
    assert_eq!(import(&other.0, &mut &out[..]).unwrap(), 30);
    let (from, to) = (scratch.open(), other.open());
    assert_eq!(values(&from), values(&to));
    assert_eq!(from.versions("grants"), to.versions("grants"));
    drop(to);
    let mut again = Vec::new();
    export(&other.0, &mut again).unwrap();
    assert!(again == out, "the export of the copy differs");
    let report = check(&other.0).unwrap();
    let grants = report.tables.iter().find(|table| table.name == "grants");
    assert_eq!(grants.map(|table| table.entries), Some(29));
}

#[test]
fn a_cut_or_changed_export_is_refused() {
    let (_scratch, out) = filled();
    let lines: Vec<&[u8]> = out.split_inclusive(|byte| *byte == b'\n').collect();
    let mut bad: Vec<Vec<u8>> = (0..lines.len()).map(|n| lines[..n].concat()).collect();
    bad.extend((0..lines.len()).map(|n| {
        let mut others = lines.clone();
        others.remove(n);
        others.concat()
    }));
    bad.push(
        String::from_utf8(out.clone())
            .unwrap()
            .replacen("a line", "A line", 1)
            .into(),
    );
    for text in bad {
        let other = Scratch::new();
        assert!(
            import(&other.0, &mut &text[..]).is_err(),
            "{} bytes",
            text.len()
        );
        assert!(!other.database().exists());
    }
}

#[test]
fn nothing_is_imported_over_entries() {
    let (scratch, out) = filled();
    let before = values(&scratch.open());
    let error = import(&scratch.0, &mut &out[..]).unwrap_err();
    assert!(
        error.detail().contains("already has entries"),
        "{}",
        error.detail()
    );
    assert_eq!(values(&scratch.open()), before);
}
