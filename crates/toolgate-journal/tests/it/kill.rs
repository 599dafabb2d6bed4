//! SIGKILL at any moment: what was answered is in the log.

use crate::kit::{Scratch, append, begin, block_on, elsewhere, end};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use toolgate_journal::verify::verify;
use toolgate_journal::{AuditJournal, JournalOptions};

const DIR: &str = "TOOLGATE_JOURNAL_TEST_DIR";

// Not a test of its own: the process that is killed. Without the variable it does nothing.
#[test]
fn victim() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let journal = AuditJournal::open(options(Path::new(&dir))).unwrap();
    thread::scope(|scope| {
        for name in 0..4 {
            let journal = &journal;
            scope.spawn(move || record_for_ever(journal, name));
        }
    });
}

fn record_for_ever(journal: &AuditJournal, name: u32) {
    for number in 0_u64.. {
        let call = format!("{}-{name}-{number}", std::process::id());
        for entry in [begin(&call), end(&call)] {
            let event = entry.event.as_str();
            let receipt = block_on(journal.append(entry)).unwrap();
            let line = format!("receipt {receipt} {event} {call}\n");
            std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
        }
    }
}

/// Segments of a few records, so that kills come in rotations, too.
fn options(dir: &Path) -> JournalOptions {
    let mut options = JournalOptions::new(dir);
    options.segment_bytes = 8192;
    options.checkpoint_mirror = Some(elsewhere(dir));
    options
}

struct Victim {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Victim {
    #[allow(
        clippy::disallowed_methods,
        reason = "a test needs a process that it can kill"
    )]
    fn start(dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["kill::victim", "--exact", "--nocapture"])
            .env(DIR, dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next receipt; `None` when the process is gone.
    fn receipt(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // The test harness prints before us, sometimes on the same line; a killed writer leaves no newline.
            if let (Some(at), true) = (line.find("receipt "), line.ends_with('\n')) {
                return Some(line[at + 8..].trim_end().to_owned());
            }
        }
    }

    /// Kills it and returns all receipts that it gave from now on.
    fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::from_fn(|| self.receipt()).collect()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Checks that the record of a receipt `CHAIN:SEQ EVENT CALL` exists at that position.
fn check(lines: &[String], receipt: &str) {
    let (place, rest) = receipt.split_once(' ').unwrap();
    let (event, call) = rest.split_once(' ').unwrap();
    let (_, seq) = place.split_once(':').unwrap();
    let line = lines
        .get(seq.parse::<usize>().unwrap() - 1)
        .unwrap_or_else(|| panic!("{receipt} is lost"));
    assert!(
        line.contains(&format!("\"call\":\"{call}\"")),
        "{receipt}: {line}"
    );
    assert!(
        line.contains(&format!("\"ev\":\"{event}\"")),
        "{receipt}: {line}"
    );
}

// T63 and T70: twenty kills while four threads record and segments rotate.
#[test]
fn answered_records_survive_twenty_kills_under_load() {
    let scratch = Scratch::new();
    let (mut answered, mut slowest, mut in_time) = (0, Duration::ZERO, 0);
    for round in 1..=20 {
        let mut victim = Victim::start(&scratch.0);
        let count = RandomState::new().build_hasher().finish() % 200 + 100;
        let mut receipts: Vec<String> = (0..count).map(|_| victim.receipt().unwrap()).collect();
        receipts.extend(victim.kill());
        let start = Instant::now();
        let journal = AuditJournal::open(options(&scratch.0)).unwrap();
        let took = start.elapsed();
        slowest = slowest.max(took);
        in_time += u32::from(took <= Duration::from_secs(1));
        let lines = scratch.lines(journal.initial_chain());
        receipts.iter().for_each(|receipt| check(&lines, receipt));
        answered += receipts.len();
        append(&journal, begin("after")).unwrap();
        append(&journal, end("after")).unwrap();
        journal.close();
        let report = crate::rotation::check(&scratch);
        assert!(report.is_intact(), "round {round}: {report}");
        assert_eq!(report.chains.len(), 1, "each start continues the chain");
        assert_eq!(report.chains[0].open_calls, [], "every begin is closed");
    }
    let found = crate::rotation::check(&scratch).chains.remove(0);
    assert!(found.segments >= 100, "only {} segments", found.segments);
    // Ten times what is promised: a start waits for the disk, and others may use that.
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
    println!(
        "T63: 20 kills under load, {answered} answered records, none lost, {} calls closed as unknown, {in_time} restarts within 1 s, the slowest {slowest:?}",
        found.unknown_calls
    );
    println!(
        "T70: {} segments of {} records rotated under load and kills, intact",
        found.segments, found.records
    );
}

#[test]
fn a_chain_is_taken_over_only_from_a_dead_process() {
    let scratch = Scratch::new();
    let mut victim = Victim::start(&scratch.0);
    let receipt = victim.receipt().unwrap();
    let theirs = receipt.split_once(':').unwrap().0;
    let ours = scratch.open();
    assert_ne!(ours.initial_chain(), theirs);
    let live = verify(&scratch.0).unwrap();
    assert!(
        live.is_intact() && live.chains.iter().all(|chain| chain.live),
        "{live}"
    );
    victim.kill();
    assert_eq!(scratch.open().initial_chain(), theirs);
    drop(ours);
    assert!(scratch.verify().is_intact());
}
