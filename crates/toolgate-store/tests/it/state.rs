//! The state that outlives a process, on real files.

use crate::kit::{BOUND, Scratch, block_on, done, put, values};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant, SystemTime};
use toolgate_policy::{StateStore, WriteOutcome, WritePrecondition};
use toolgate_store::{DatabaseStore, StoreError, StoreLimits};

#[test]
fn it_outlives_the_process() {
    let scratch = Scratch::new();
    let state = scratch.open();
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
    let state = scratch.open();
    let both = [("a".into(), json!({"uses": 2})), ("b".into(), json!(2))];
    assert_eq!(values(&state), both);
    assert_eq!(state.entries("grants")[1].version, last);
    assert!(done(put(&state, "d", Some(json!(4)), WritePrecondition::Absent)) > last + 3);
}

#[test]
fn one_of_two_processes_wins() {
    let scratch = Scratch::new();
    let (one, other) = (scratch.open(), scratch.open());
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
                |state: &DatabaseStore| state.write("grants", &key, Some(json!("spent")), version);
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
    let (one, other) = (scratch.open(), scratch.open());
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
fn changed(state: &DatabaseStore, since: Option<u64>) -> (u64, Option<BTreeSet<String>>) {
    let changes = state.changes_since("grants", since);
    let keys = changes.keys.map(|keys| keys.into_iter().collect());
    (changes.count, keys)
}

#[test]
fn the_keys_that_changed_are_known() {
    let scratch = Scratch::new();
    let (state, other) = (scratch.open(), scratch.open());
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
fn whoever_missed_too_many_changes_reads_everything() {
    let scratch = Scratch::new();
    let (state, other) = (scratch.open(), scratch.open());
    put(&other, "gone", Some(json!(1)), WritePrecondition::Any);
    put(&state, "a", Some(json!(0)), WritePrecondition::Any);
    let (start, _) = changed(&state, None);
    // The other process writes all at once, so that this one cannot follow in between.
    put(&other, "gone", None, WritePrecondition::Any);
    for part in 0..50 {
        let writes: Vec<_> = (0..100)
            .map(|n| {
                let value = Some(json!([part, n]));
                other.write("grants", "b", value, WritePrecondition::Any)
            })
            .collect();
        block_on(async {
            for write in writes {
                write.await.unwrap();
            }
        });
    }
    put(&state, "c", Some(json!(1)), WritePrecondition::Any);
    let keys: Vec<String> = values(&state).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["a", "b", "c"]);
    assert_eq!(changed(&state, Some(start)).1, None);
}

#[test]
fn a_replaced_file_ends_all_writes() {
    let scratch = Scratch::new();
    let state = scratch.open();
    put(&state, "a", Some(json!(1)), WritePrecondition::Any);
    let copy = scratch.0.join("copy");
    fs::copy(scratch.database(), &copy).unwrap();
    fs::rename(&copy, scratch.database()).unwrap();
    let write = || block_on(state.write("grants", "b", Some(json!(1)), WritePrecondition::Any));
    for _ in 0..2 {
        let error = write().unwrap_err();
        let detail = error
            .detail()
            .map(|detail| detail.for_operator().to_owned());
        let detail = detail.unwrap_or_default();
        assert!(
            detail.contains("was replaced while the program ran"),
            "{detail}"
        );
    }
    assert_eq!(values(&state), [("a".into(), json!(1))]);
}

#[test]
fn a_changed_entry_is_not_read() {
    let scratch = Scratch::new();
    let state = scratch.open();
    put(&state, "a", Some(json!("deny")), WritePrecondition::Any);
    drop(state);
    let bytes = fs::read(scratch.database()).unwrap();
    let place = bytes.windows(4).position(|part| part == b"deny").unwrap();
    let mut changed = bytes.clone();
    changed[place..place + 4].copy_from_slice(b"done");
    fs::write(scratch.database(), &changed).unwrap();
    match DatabaseStore::open(&scratch.0, StoreLimits::default()) {
        Err(error @ StoreError::Damaged { .. }) => {
            assert!(error.detail().contains("grants/a"), "{}", error.detail());
        }
        other => panic!("{other:?}"),
    }
    fs::write(scratch.database(), &bytes).unwrap();
    assert_eq!(values(&scratch.open()).len(), 1);
}

#[test]
fn a_damaged_or_foreign_file_is_not_used() {
    let scratch = Scratch::new();
    let state = scratch.open();
    for n in 0..200 {
        let value = Some(json!("x".repeat(1000)));
        put(&state, &format!("a-{n}"), value, WritePrecondition::Any);
    }
    drop(state);
    let bytes = fs::read(scratch.database()).unwrap();
    let open = || DatabaseStore::open(&scratch.0, StoreLimits::default());
    let mut damaged = bytes.clone();
    damaged[8192..16384].fill(7);
    for bad in [&damaged[..], &bytes[..bytes.len() / 2], b"not a database at all, but a long text, long enough for a header of SQLite, which has a hundred bytes"] {
        fs::write(scratch.database(), bad).unwrap();
        assert!(matches!(open(), Err(StoreError::Damaged { .. })), "{} bytes", bad.len());
    }
    // A database of a later version.
    let mut later = bytes.clone();
    later[60..64].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(scratch.database(), &later).unwrap();
    let error = open().unwrap_err();
    assert!(error.detail().contains("version 99"), "{}", error.detail());
    fs::write(scratch.database(), &bytes).unwrap();
    assert_eq!(values(&open().unwrap()).len(), 200);
}

#[test]
fn the_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let state = scratch.open();
    put(&state, "a", Some(json!(1)), WritePrecondition::Any);
    let files: Vec<_> = fs::read_dir(&scratch.0)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file:?}");
    }
    let mode = fs::metadata(&scratch.0).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn limits() {
    let scratch = Scratch::new();
    let mut limits = StoreLimits::default();
    limits.max_rows = 2;
    limits.max_row_bytes = 100;
    let state = DatabaseStore::open(&scratch.0, limits).unwrap();
    let write = |key: &str, value| {
        block_on(state.write("grants", key, Some(value), WritePrecondition::Any))
            .map_err(|error| error.to_string())
    };
    assert!(write("a", json!("x".repeat(97))).is_ok());
    let long = write("a", json!("x".repeat(98))).unwrap_err();
    assert!(long.contains("the limit is 100"), "{long}");
    assert!(write("b", json!(1)).is_ok());
    let full = write("c", json!(1)).unwrap_err();
    assert!(full.contains("already has 2 entries"), "{full}");
    assert!(write("b", json!(2)).is_ok());
}

#[test]
fn the_clock_of_a_folder_never_goes_back() {
    let hour = Duration::from_secs(3600);
    let scratch = Scratch::new();
    let state = scratch.open();
    let ahead = SystemTime::now() + hour;
    state.clock().raise(ahead);
    put(&state, "a", Some(json!(1)), WritePrecondition::Any);
    // Another process sees it while it runs, and so does each one that starts.
    let other = scratch.open();
    assert!(other.clock().now() >= ahead && other.clock().ahead() > hour / 2);
    let later = SystemTime::now() + 2 * hour;
    drop(state);
    other.clock().raise(later);
    put(&other, "a", Some(json!(2)), WritePrecondition::Any);
    drop(other);
    assert!(scratch.open().clock().now() >= later);
    // A folder in which nothing was ever written has the time of the system.
    assert!(Scratch::new().open().clock().ahead() < hour);
}
