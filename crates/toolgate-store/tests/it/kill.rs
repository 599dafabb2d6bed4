//! SIGKILL at any moment, and a sync that fails: what was acknowledged is stored.

use crate::kit::{Scratch, block_on};
use serde_json::json;
use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};
use toolgate_policy::{StateStore, WritePrecondition};
use toolgate_store::{DatabaseStore, StoreLimits};

const DIR: &str = "TOOLGATE_STORE_TEST_DIR";
/// Number of changes after which the process that is killed ends by itself.
const MAX_CHANGES: u32 = 100_000;

// Not a test of its own: the process that is killed. Without the variable it does nothing.
#[test]
fn victim() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let store = DatabaseStore::open(Path::new(&dir), StoreLimits::default()).unwrap();
    thread::scope(|scope| {
        for name in 0..4 {
            let store = &store;
            scope.spawn(move || count_up(store, &format!("k-{name}")));
        }
    });
}

/// Raises a counter by conditional writes, and prints each result.
fn count_up(store: &DatabaseStore, key: &str) {
    for _ in 0..MAX_CHANGES {
        let row = store.row("grants", key);
        let count = row.as_ref().and_then(|row| row.value.as_u64()).unwrap_or(0);
        let expect = row.map_or(WritePrecondition::Absent, |row| {
            WritePrecondition::Version(row.version)
        });
        let written = block_on(store.write("grants", key, Some(json!(count + 1)), expect));
        let line = match written {
            Ok(_) => format!("stored {key} {}\n", count + 1),
            Err(_) => format!("refused {key} {}\n", count + 1),
        };
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a test needs a process that it can kill"
)]
fn start(dir: &Path, before: &[&str]) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut words = before.iter().map(OsStr::new).collect::<Vec<_>>();
    words.extend([program.as_os_str()]);
    words.extend(["kill::victim", "--exact", "--nocapture"].map(OsStr::new));
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env(DIR, dir);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Returns the words after a mark in a whole line.
fn words<'a>(line: &'a str, mark: &str) -> Option<(&'a str, u64)> {
    let at = line.find(mark)?;
    let (key, count) = line.strip_suffix('\n')?[at + mark.len()..].split_once(' ')?;
    Some((key, count.parse().ok()?))
}

#[test]
fn answered_changes_survive_twenty_kills() {
    let scratch = Scratch::new();
    let mut stored = HashMap::<String, u64>::new();
    for round in 0..20 {
        let mut child = start(&scratch.0, &[]);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut seen = 0;
        loop {
            let mut line = String::new();
            if out.read_line(&mut line).unwrap() == 0 {
                break;
            }
            if let Some((key, count)) = words(&line, "stored ") {
                let before = stored.insert(key.to_owned(), count).unwrap_or(0);
                assert!(count > before, "{key} went from {before} to {count}");
                seen += 1;
            }
            // Another moment in each round.
            if seen == 20 + round * 7 {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(seen >= 20, "round {round}: {seen} changes");
        let store = scratch.open();
        for (key, count) in &stored {
            let there = store.row("grants", key).unwrap().value.as_u64().unwrap();
            // A change may be stored whose answer was lost, but none that was answered may be missing.
            assert!(there >= *count, "{key}: {there} instead of {count}");
        }
    }
    let total: u64 = stored.values().sum();
    println!("{total} changes answered in 20 lives");
}

#[test]
fn after_a_failed_sync_nothing_is_written_any_more() {
    let scratch = Scratch::new();
    drop(scratch.open());
    let strace = [
        "strace",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=fsync,fdatasync",
        "-e",
        "inject=fsync,fdatasync:error=EIO:when=30",
    ];
    let mut child = start(&scratch.0, &strace);
    let out = BufReader::new(child.stdout.take().unwrap());
    let mut stored = HashMap::<String, u64>::new();
    let mut refused = 0;
    // Keys that cannot be stored again. A thread prints an answer some time after it got it, so each of the other
    // threads may print one answer from before the failure.
    let mut ended = HashSet::<String>::new();
    for line in out.lines().map(|line| line.unwrap() + "\n") {
        if let Some((key, count)) = words(&line, "stored ") {
            let is_new = refused == 0 || ended.insert(key.to_owned());
            assert!(is_new, "it writes again: {line}");
            stored.insert(key.to_owned(), count);
        }
        if let Some((key, _)) = words(&line, "refused ") {
            ended.insert(key.to_owned());
            refused += 1;
        }
        if refused == 1000 {
            child.kill().unwrap();
            break;
        }
    }
    // strace may be killed before the process that it follows.
    let _ = child.wait();
    assert_eq!(refused, 1000);
    assert!(!stored.is_empty());
    let store = scratch.open();
    for (key, count) in &stored {
        let there = store.row("grants", key).unwrap().value.as_u64().unwrap();
        assert!(there >= *count, "{key}: {there} instead of {count}");
    }
}
