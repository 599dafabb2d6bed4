//! Repair after a disk failure: immediate rejections, then new records once the disk works.

use crate::kit::{BOUND, FaultyDisk, Scratch, Write, append, begin, end};
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use toolgate_journal::{AuditJournal, Error, JournalHealth, JournalOptions};

fn soon(disk: &FaultyDisk, scratch: &Scratch) -> JournalOptions {
    let mut options = disk.options(scratch);
    options.repair_interval = Duration::from_millis(10);
    options
}

fn wait_for_health(journal: &AuditJournal) {
    let start = Instant::now();
    while journal.health() != JournalHealth::Healthy {
        assert!(start.elapsed() < BOUND, "{:?}", journal.health());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_full_disk_is_gone_on_from_in_a_new_segment() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let journal = AuditJournal::open(soon(&disk, &scratch)).unwrap();
    append(&journal, begin("c1")).unwrap();
    disk.plan([Write::Short(100), Write::Fail(ErrorKind::StorageFull)]);
    // The call happened, so its end is owed.
    assert!(matches!(append(&journal, end("c1")), Err(Error::Failed(_))));
    wait_for_health(&journal);
    let receipt = append(&journal, begin("c2")).unwrap();
    assert_eq!(receipt.chain.as_ref(), journal.initial_chain());
    append(&journal, end("c2")).unwrap();
    drop(journal);
    let report = scratch.verify();
    assert!(report.is_intact() && report.chains.len() == 1, "{report}");
    let found = &report.chains[0];
    assert_eq!((found.segments, found.torn_bytes), (2, 100));
    assert_eq!(
        (found.open_calls.len(), found.unknown_calls),
        (0, 0),
        "every begin is closed by its own end"
    );
}

#[test]
fn a_disk_that_stays_full_is_tried_again() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let journal = AuditJournal::open(soon(&disk, &scratch)).unwrap();
    for _ in 0..3 {
        disk.plan([Write::Short(50), Write::Fail(ErrorKind::StorageFull)]);
    }
    append(&journal, begin("c1")).unwrap_err();
    wait_for_health(&journal);
    append(&journal, begin("c2")).unwrap();
    drop(journal);
    let report = scratch.verify();
    assert!(report.is_intact(), "{report}");
}

#[test]
fn after_a_failed_sync_a_new_chain_says_what_it_follows() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let journal = AuditJournal::open(soon(&disk, &scratch)).unwrap();
    append(&journal, begin("c1")).unwrap();
    disk.fail_sync(ErrorKind::Other);
    append(&journal, end("c1")).unwrap_err();
    wait_for_health(&journal);
    let receipt = append(&journal, begin("c2")).unwrap();
    assert_ne!(receipt.chain.as_ref(), journal.initial_chain());
    let lines = scratch.lines(&receipt.chain);
    assert!(lines[0].contains(&format!("\"after\":\"{}\"", journal.initial_chain())));
    let owed = lines.iter().find(|line| line.contains("call.end")).unwrap();
    assert!(owed.contains("\"call\":\"c1\""));
    let old = journal.initial_chain().to_owned();
    drop(journal);
    let report = scratch.verify();
    assert!(report.is_intact() && report.chains.len() == 2, "{report}");
    assert_ne!(scratch.open().initial_chain(), old, "it is never continued");
}

/// The calls that began, and those that were closed, in all chains.
fn begun_and_closed(scratch: &Scratch) -> (Vec<String>, Vec<String>) {
    let (mut begun, mut closed) = (Vec::new(), Vec::new());
    for line in toolgate_journal::read::tail(&scratch.0, 10_000).unwrap() {
        let call = || line.fields["call"].as_str().unwrap().to_owned();
        match line.event.as_str() {
            "call.begin" => begun.push(call()),
            "call.end" | "call.unknown" => closed.push(call()),
            _ => {}
        }
    }
    // What was written once more may stand in both chains.
    for calls in [&mut begun, &mut closed] {
        calls.sort();
        calls.dedup();
    }
    (begun, closed)
}

#[test]
fn calls_that_were_open_when_a_sync_failed_are_closed_in_the_chain_that_follows() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let journal = AuditJournal::open(soon(&disk, &scratch)).unwrap();
    for call in ["ends-now", "ends-later", "never-ends"] {
        append(&journal, begin(call)).unwrap();
    }
    disk.fail_sync(ErrorKind::Other);
    append(&journal, end("ends-now")).unwrap_err();
    wait_for_health(&journal);
    append(&journal, end("ends-later")).unwrap();
    let old = journal.initial_chain().to_owned();
    drop(journal);
    // Nothing is open in what is continued, though the process that ran the third call is gone.
    let next = scratch.open();
    assert_ne!(next.initial_chain(), old);
    let carried = scratch.lines(next.initial_chain());
    let carried = carried.iter().filter(|line| line.contains("call.begin"));
    assert_eq!(carried.clone().count(), 2, "{carried:?}");
    assert!(carried.clone().all(|line| line.contains(&old)));
    drop(next);
    let report = scratch.verify();
    assert!(report.is_intact(), "{report}");
    let found = report.chains.iter().find(|chain| chain.chain != old);
    assert_eq!(
        (
            found.unwrap().open_calls.len(),
            found.unwrap().unknown_calls
        ),
        (0, 1)
    );
    let (begun, closed) = begun_and_closed(&scratch);
    assert_eq!(begun, closed);
}

#[test]
fn calls_of_a_chain_that_nothing_followed_are_unknown_at_the_next_start() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    // It never tries to go on before it ends.
    let journal = AuditJournal::open(disk.options(&scratch)).unwrap();
    append(&journal, begin("c1")).unwrap();
    disk.fail_sync(ErrorKind::Other);
    append(&journal, begin("c2")).unwrap_err();
    drop(journal);
    drop(scratch.open());
    let (begun, closed) = begun_and_closed(&scratch);
    assert_eq!(begun, closed);
    // Once is enough.
    drop(scratch.open());
    let lines = toolgate_journal::read::tail(&scratch.0, 10_000).unwrap();
    let unknown = lines.iter().filter(|line| line.event == "call.unknown");
    assert_eq!(unknown.count(), 2);
    assert!(scratch.verify().is_intact());
}

#[test]
fn a_second_failure_while_going_on_loses_no_end() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let journal = AuditJournal::open(soon(&disk, &scratch)).unwrap();
    for call in ["a", "b"] {
        append(&journal, begin(call)).unwrap();
    }
    // The end fails; then the genesis of the next chain is written, and what goes on in it fails.
    disk.fail_sync(ErrorKind::Other);
    disk.fail_sync(ErrorKind::Other);
    append(&journal, end("a")).unwrap_err();
    wait_for_health(&journal);
    append(&journal, end("b")).unwrap();
    drop(journal);
    drop(scratch.open());
    let (begun, closed) = begun_and_closed(&scratch);
    assert_eq!(begun, closed);
    assert!(scratch.verify().is_intact());
}

#[test]
fn an_end_that_is_owed_survives_a_second_failure() {
    let (scratch, disk) = (Scratch::new(), FaultyDisk::default());
    let journal = AuditJournal::open(soon(&disk, &scratch)).unwrap();
    append(&journal, begin("a")).unwrap();
    // The end finds no room; `recovered` does, and then the end does not again.
    let full = || Write::Fail(ErrorKind::StorageFull);
    disk.plan([full(), Write::Short(usize::MAX), full()]);
    append(&journal, end("a")).unwrap_err();
    wait_for_health(&journal);
    drop(journal);
    drop(scratch.open());
    let lines = toolgate_journal::read::tail(&scratch.0, 10_000).unwrap();
    let count = |ev: &str| lines.iter().filter(|line| line.event == ev).count();
    assert_eq!((count("call.end"), count("call.unknown")), (1, 0));
}

const DIR: &str = "TOOLGATE_JOURNAL_FULL_DIR";

// Not a test of its own: it runs in a namespace of its own, over a disk of one mebibyte. T66
#[test]
fn on_a_small_disk() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let dir = Path::new(&dir);
    let ballast = dir.join("ballast");
    std::fs::write(&ballast, vec![b'x'; 512 * 1024]).unwrap();
    let mut options = JournalOptions::new(dir.join("audit"));
    options.repair_interval = Duration::from_millis(50);
    options.segment_bytes = 64 * 1024;
    let journal = AuditJournal::open(options).unwrap();
    let (mut answered, mut start);
    answered = 0;
    let refused = loop {
        assert!(answered < 10_000, "the disk never was full");
        start = Instant::now();
        match append(&journal, begin("c").with("text", "x".repeat(1000))) {
            Ok(_) => answered += 1,
            Err(error) => break error,
        }
    };
    let first = start.elapsed();
    assert!(
        matches!(&refused, Error::Failed(why) if why.contains("No space left")),
        "{refused}"
    );
    start = Instant::now();
    append(&journal, begin("c")).unwrap_err();
    let next = start.elapsed();
    std::fs::remove_file(&ballast).unwrap();
    start = Instant::now();
    wait_for_health(&journal);
    let back = start.elapsed();
    for at in 0..20 {
        append(&journal, begin(&format!("d{at}"))).unwrap();
        append(&journal, end(&format!("d{at}"))).unwrap();
    }
    journal.close();
    let report = toolgate_journal::verify::verify(&dir.join("audit")).unwrap();
    assert!(report.is_intact() && report.chains.len() == 1, "{report}");
    let begun = toolgate_journal::read::tail(&dir.join("audit"), 100_000).unwrap();
    let begun = begun
        .iter()
        .filter(|line| line.event == "call.begin")
        .count();
    assert!(begun >= answered + 20, "{begun} of {answered}");
    assert!(first < Duration::from_secs(1) && next < Duration::from_secs(1));
    println!(
        "T66: a disk of 1 MiB full after {answered} records; refused in {first:?}, then in {next:?}; recorded again {back:?} after there was room, {} segments intact",
        report.chains[0].segments
    );
    std::io::stdout().flush().unwrap();
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "a namespace of its own needs a process"
)]
fn a_real_full_disk_is_refused_at_once_and_gone_on_from() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(&scratch.0).unwrap();
    let script = "mount -t tmpfs -o size=1m none \"$0\" || exit 77; exec \"$@\"";
    let out = Command::new("unshare")
        .args(["-r", "-m", "sh", "-c", script])
        .arg(&scratch.0)
        .arg(std::env::current_exe().unwrap())
        .args(["repair::on_a_small_disk", "--exact", "--nocapture"])
        .env(DIR, &scratch.0)
        .output();
    let Ok(out) = out else {
        return eprintln!("skipped: there is no unshare here");
    };
    let text = String::from_utf8_lossy(&out.stdout);
    if !text.contains("running 1 test") {
        return eprintln!(
            "skipped: no namespace with a disk of its own here: {}",
            String::from_utf8_lossy(&out.stderr)
        );
    }
    assert!(
        out.status.success() && text.contains("T66: "),
        "{text}\n{}",
        String::from_utf8_lossy(&out.stderr)
    );
    print!(
        "{}",
        text.lines()
            .filter(|line| line.contains("T66: "))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    );
}
