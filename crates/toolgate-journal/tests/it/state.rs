//! The state that outlives a process, on real files.

use crate::kit::{BOUND, Scratch, block_on};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};
use toolgate_journal::state::{
    DurableState, StateError, StateLimits, StateRow, WriteOutcome, WritePrecondition,
};

fn open(scratch: &Scratch) -> DurableState {
    DurableState::open(&scratch.0, StateLimits::default()).unwrap()
}

fn data(scratch: &Scratch) -> PathBuf {
    scratch.0.join("state.jsonl")
}

fn put(
    state: &DurableState,
    key: &str,
    value: Option<Value>,
    expect: WritePrecondition,
) -> WriteOutcome {
    block_on(state.write("grants", key, value, expect)).unwrap()
}

fn done(written: WriteOutcome) -> u64 {
    match written {
        WriteOutcome::Done(version) => version,
        WriteOutcome::Conflict => panic!("a conflict"),
    }
}

fn values(state: &DurableState) -> Vec<(String, Value)> {
    let rows = state.entries("grants").into_iter();
    rows.map(|StateRow { key, value, .. }| (key, value))
        .collect()
}

#[test]
fn it_outlives_the_process() {
    let scratch = Scratch::new();
    let state = open(&scratch);
    put(
        &state,
        "a",
        Some(json!({"uses": 1})),
        WritePrecondition::Any,
    );
    let last = done(put(&state, "b", Some(json!(2)), WritePrecondition::Any));
    put(
        &state,
        "a",
        Some(json!({"uses": 2})),
        WritePrecondition::Any,
    );
    put(&state, "c", Some(json!(3)), WritePrecondition::Any);
    put(&state, "c", None, WritePrecondition::Any);
    drop(state);
    let state = open(&scratch);
    let both = [("a".into(), json!({"uses": 2})), ("b".into(), json!(2))];
    assert_eq!(values(&state), both);
    assert_eq!(state.entries("grants")[1].version, last);
    assert!(done(put(&state, "d", Some(json!(4)), WritePrecondition::Absent)) > last + 3);
}

#[test]
fn one_of_two_processes_wins() {
    let scratch = Scratch::new();
    let (one, other) = (open(&scratch), open(&scratch));
    for round in 0..50 {
        let key = format!("a-{round}");
        let version = WritePrecondition::Version(done(put(
            &one,
            &key,
            Some(json!("open")),
            WritePrecondition::Absent,
        )));
        let (first, second) = block_on(async {
            let spend =
                |state: &DurableState| state.write("grants", &key, Some(json!("spent")), version);
            let second = spend(&other);
            (spend(&one).await.unwrap(), second.await.unwrap())
        });
        let won = [first, second]
            .iter()
            .filter(|w| matches!(w, WriteOutcome::Done(_)))
            .count();
        assert_eq!(won, 1, "{first:?} {second:?}");
    }
}

#[test]
fn others_are_heard() {
    let scratch = Scratch::new();
    let (one, other) = (open(&scratch), open(&scratch));
    let changed = other.changed();
    put(&one, "a", Some(json!(1)), WritePrecondition::Any);
    let until = Instant::now() + BOUND;
    while !changed.has_changed().unwrap() {
        assert!(Instant::now() < until, "nothing was heard");
        std::thread::yield_now();
    }
    assert_eq!(values(&other), [("a".into(), json!(1))]);
}

/// The keys that changed since an earlier count, without repetition; `None` if the table has to be read whole.
fn changed(state: &DurableState, since: Option<u64>) -> (u64, Option<BTreeSet<String>>) {
    let changes = state.changes_since("grants", since);
    let keys = changes.keys.map(|keys| keys.into_iter().collect());
    (changes.count, keys)
}

#[test]
fn the_keys_that_changed_are_known() {
    let scratch = Scratch::new();
    let (state, other) = (open(&scratch), open(&scratch));
    let keys = |keys: &[&str]| Some(keys.iter().map(ToString::to_string).collect());
    let (start, nothing_known) = changed(&state, None);
    assert_eq!(nothing_known, None);
    assert_eq!(changed(&state, Some(start)).1, keys(&[]));
    put(&state, "a", Some(json!(1)), WritePrecondition::Any);
    put(&state, "b", Some(json!(1)), WritePrecondition::Any);
    let (middle, both) = changed(&state, Some(start));
    assert_eq!(both, keys(&["a", "b"]));
    put(&state, "b", None, WritePrecondition::Any);
    // Another process, whose changes this one reads with its next write.
    put(&other, "c", Some(json!(1)), WritePrecondition::Any);
    put(&state, "d", Some(json!(1)), WritePrecondition::Any);
    let (newest, later) = changed(&state, Some(middle));
    assert_eq!(later, keys(&["b", "c", "d"]));
    assert_eq!(changed(&state, Some(newest)).1, keys(&[]));
    assert_eq!(
        changed(&state, Some(newest + 1)).1,
        None,
        "a count of another process"
    );
    // More changes than are remembered.
    for number in 0..1100 {
        put(&state, "a", Some(json!(number)), WritePrecondition::Any);
    }
    assert_eq!(changed(&state, Some(newest)).1, None);
    let (_, last) = changed(&state, Some(changed(&state, None).0 - 10));
    assert_eq!(last, keys(&["a"]));
}

#[test]
fn a_replaced_file_has_to_be_read_whole() {
    let scratch = Scratch::new();
    let state = open(&scratch);
    put(&state, "a", Some(json!(1)), WritePrecondition::Any);
    let backup = fs::read(data(&scratch)).unwrap();
    put(&state, "b", Some(json!(1)), WritePrecondition::Any);
    let (count, _) = changed(&state, None);
    let restored = scratch.0.join("restored");
    fs::write(&restored, backup).unwrap();
    fs::rename(&restored, data(&scratch)).unwrap();
    put(&state, "c", Some(json!(1)), WritePrecondition::Any);
    let keys: Vec<String> = values(&state).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["a", "c"]);
    assert_eq!(
        changed(&state, Some(count)).1,
        None,
        "b is gone without a change"
    );
}

#[test]
fn a_torn_end_is_cut_off() {
    let scratch = Scratch::new();
    let state = open(&scratch);
    put(&state, "a", Some(json!(1)), WritePrecondition::Any);
    let whole = fs::read(data(&scratch)).unwrap();
    put(&state, "b", Some(json!(2)), WritePrecondition::Any);
    drop(state);
    let longer = fs::read(data(&scratch)).unwrap();
    for length in whole.len()..longer.len() {
        fs::write(data(&scratch), &longer[..length]).unwrap();
        let state = open(&scratch);
        assert_eq!(values(&state), [("a".into(), json!(1))], "{length} bytes");
        put(&state, "c", Some(json!(3)), WritePrecondition::Any);
        drop(state);
        assert_eq!(values(&open(&scratch)).len(), 2, "{length} bytes");
    }
}

#[test]
fn a_damaged_line_is_not_skipped() {
    let scratch = Scratch::new();
    let state = open(&scratch);
    put(&state, "a", Some(json!("deny")), WritePrecondition::Any);
    put(&state, "b", Some(json!(2)), WritePrecondition::Any);
    let text = fs::read_to_string(data(&scratch)).unwrap();
    fs::write(data(&scratch), text.replace("deny", "done")).unwrap();
    match DurableState::open(&scratch.0, StateLimits::default()) {
        Err(StateError::Damaged { line: 1, .. }) => {}
        other => panic!("{other:?}"),
    }
    // The one that runs has read it before; what follows is refused only once it has to read again.
    let mut file = OpenOptions::new()
        .append(true)
        .open(data(&scratch))
        .unwrap();
    file.write_all(b"garbage\nmore\n").unwrap();
    let next = text.lines().count() + 1;
    let answer = block_on(state.write("grants", "c", Some(json!(3)), WritePrecondition::Any));
    assert!(
        matches!(answer, Err(StateError::Damaged { line, .. }) if line == next),
        "{answer:?}"
    );
}

#[test]
fn a_long_file_is_put_in_order() {
    let scratch = Scratch::new();
    let (state, other) = (open(&scratch), open(&scratch));
    let long = "x".repeat(100_000);
    let (start, _) = changed(&other, None);
    let mut last = 0;
    for n in 0..40 {
        last = done(put(
            &state,
            "a",
            Some(json!([n, long])),
            WritePrecondition::Any,
        ));
    }
    let size = fs::metadata(data(&scratch)).unwrap().len();
    assert!(size < 2_200_000, "{size} bytes");
    assert!(done(put(&other, "b", Some(json!(1)), WritePrecondition::Absent)) > last);
    assert_eq!(
        changed(&other, Some(start)).1,
        None,
        "the lines have another order"
    );
    assert_eq!(values(&other)[0].1[0], 39);
    assert_eq!(values(&open(&scratch)).len(), 2);
    put(&state, "c", Some(json!(1)), WritePrecondition::Any);
    assert_eq!(values(&state).len(), 3);
}

#[test]
fn limits() {
    let scratch = Scratch::new();
    let mut limits = StateLimits::default();
    limits.max_rows = 2;
    limits.max_row_bytes = 100;
    let state = DurableState::open(&scratch.0, limits).unwrap();
    let write = |key: &str, value| {
        block_on(state.write("grants", key, Some(value), WritePrecondition::Any))
    };
    assert!(write("a", json!("x".repeat(97))).is_ok());
    assert!(matches!(
        write("a", json!("x".repeat(98))),
        Err(StateError::Full(_))
    ));
    assert!(write("b", json!(1)).is_ok());
    assert!(matches!(write("c", json!(1)), Err(StateError::Full(_))));
    assert!(write("b", json!(2)).is_ok());
}

#[test]
fn the_clock_of_a_folder_never_goes_back() {
    let hour = Duration::from_secs(3600);
    let scratch = Scratch::new();
    let state = open(&scratch);
    let ahead = SystemTime::now() + hour;
    state.clock().raise(ahead);
    put(&state, "a", Some(json!(1)), WritePrecondition::Any);
    // Another process sees it while it runs, and so does each one that starts.
    let other = open(&scratch);
    assert!(other.clock().now() >= ahead && other.clock().ahead() > hour / 2);
    let later = SystemTime::now() + 2 * hour;
    drop(state);
    other.clock().raise(later);
    put(&other, "a", Some(json!(2)), WritePrecondition::Any);
    drop(other);
    assert!(open(&scratch).clock().now() >= later);
    // A folder in which nothing was ever written has the time of the system.
    assert!(open(&Scratch::new()).clock().ahead() < hour);
}
