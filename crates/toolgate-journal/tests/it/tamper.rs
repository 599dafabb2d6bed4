//! Every change of a record is found and named, and the two that cannot be are stated.

use crate::kit::{Scratch, append, begin, end};
use ring::digest;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use toolgate_journal::verify::{FaultPosition, RecordFault};

/// A log of ten records: the second and the last are checkpoints.
struct Log {
    scratch: Scratch,
    file: PathBuf,
    lines: Vec<String>,
}

fn log() -> Log {
    let scratch = Scratch::new();
    let journal = scratch.open();
    for at in 0..3 {
        append(
            &journal,
            begin(&format!("c{at}")).with("args", "{\"a\":\"é\\n\"}"),
        )
        .unwrap();
        append(&journal, end(&format!("c{at}"))).unwrap();
    }
    append(&journal, begin("open")).unwrap();
    let chain = journal.initial_chain().to_owned();
    journal.close();
    Log {
        file: scratch.segment(&chain),
        lines: scratch.lines(&chain),
        scratch,
    }
}

impl Log {
    fn bad(&self, bytes: &[u8]) -> Option<FaultPosition> {
        fs::write(&self.file, bytes).unwrap();
        self.scratch.verify().chains.remove(0).first_fault
    }

    /// Returns the fault that verification finds in these lines.
    fn check(&self, lines: &[&str]) -> Option<FaultPosition> {
        let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        self.bad(text.as_bytes())
    }

    fn lines(&self) -> Vec<&str> {
        self.lines.iter().map(String::as_str).collect()
    }
}

#[test]
fn a_sound_log_is_intact() {
    let log = log();
    assert_eq!(log.check(&log.lines()), None);
    let report = log.scratch.verify();
    assert_eq!(report.chains[0].records, 10);
    assert_eq!(
        (
            report.chains[0].open_calls[0].call.as_str(),
            report.chains[0].open_calls[0].seq
        ),
        ("open", 9)
    );
    assert!(
        report
            .to_string()
            .contains("intact, 10 records, 1 call without an outcome (first: open at record 9)")
    );
}

#[test]
fn every_flipped_byte_names_its_record() {
    let log = log();
    let sound = fs::read(&log.file).unwrap();
    // In place: to write the file anew each time would make the disk the slowest part.
    let file = File::options().write(true).open(&log.file).unwrap();
    for (at, byte) in sound.iter().enumerate() {
        let line = sound[..at].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        for flip in [0x01, 0x20, 0x80, *byte] {
            file.write_all_at(&[byte ^ flip], at as u64).unwrap();
            let bad = log.scratch.verify().chains.remove(0).first_fault;
            let bad = bad.unwrap_or_else(|| panic!("byte {at} flipped by {flip} was not seen"));
            assert_eq!((bad.line, bad.seq), (line, line), "byte {at}: {bad:?}");
            assert_eq!(bad.file, log.file);
        }
        file.write_all_at(&[*byte], at as u64).unwrap();
    }
}

#[test]
fn a_deleted_record_is_a_gap() {
    let log = log();
    for at in 0..log.lines.len() - 1 {
        let mut lines = log.lines();
        lines.remove(at);
        let bad = log.check(&lines).unwrap();
        assert_eq!(
            (bad.seq, bad.fault),
            (
                at as u64 + 1,
                RecordFault::Gap {
                    found: at as u64 + 2
                }
            )
        );
    }
}

#[test]
fn repeated_and_swapped_records_are_gaps() {
    let log = log();
    for at in 0..log.lines.len() {
        let mut lines = log.lines();
        lines.insert(at, lines[at]);
        let bad = log.check(&lines).unwrap();
        assert_eq!(
            (bad.seq, bad.fault),
            (
                at as u64 + 2,
                RecordFault::Gap {
                    found: at as u64 + 1
                }
            )
        );
        for other in at + 1..log.lines.len() {
            let mut lines = log.lines();
            lines.swap(at, other);
            let bad = log.check(&lines).unwrap();
            assert_eq!(
                (bad.seq, bad.fault),
                (
                    at as u64 + 1,
                    RecordFault::Gap {
                        found: other as u64 + 1
                    }
                )
            );
        }
    }
}

/// A record with its hash made anew.
fn rehash(line: &str) -> String {
    let (front, rest) = line.split_once("\"h\":\"").unwrap();
    let back = &rest[64 + 2..];
    let text = format!("toolgate-journal-record-v1\n{front}{back}");
    let hash = digest::digest(&digest::SHA256, text.as_bytes());
    let hash: String = hash
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{front}\"h\":\"{hash}\",{back}")
}

fn hash_of(line: &str) -> &str {
    &line.split_once("\"h\":\"").unwrap().1[..64]
}

#[test]
fn the_hash_is_the_documented_one() {
    for line in log().lines {
        assert_eq!(rehash(&line), line);
    }
}

#[test]
fn a_replaced_record_with_a_good_hash_breaks_the_next() {
    let log = log();
    let forged = rehash(&log.lines[4].replace("\"c1\"", "\"cX\""));
    let mut lines = log.lines();
    lines[4] = &forged;
    let bad = log.check(&lines).unwrap();
    assert_eq!((bad.seq, bad.fault), (6, RecordFault::Prev));
}

#[test]
fn an_inserted_record_with_a_good_hash_breaks_the_next() {
    let log = log();
    let after = hash_of(&log.lines[3]);
    let forged = log.lines[2]
        .replace("\"seq\":3", "\"seq\":5")
        .replace(hash_of(&log.lines[1]), after);
    let forged = rehash(&forged);
    let mut lines = log.lines();
    lines.insert(4, &forged);
    let bad = log.check(&lines).unwrap();
    assert_eq!(
        (bad.line, bad.seq, bad.fault),
        (6, 6, RecordFault::Gap { found: 5 })
    );
}

#[test]
fn a_record_of_another_chain_is_named() {
    let (log, other) = (log(), log());
    let mut lines = log.lines();
    lines[4] = &other.lines[4];
    let bad = log.check(&lines).unwrap();
    assert_eq!(
        (bad.seq, bad.fault),
        (
            5,
            RecordFault::Head("it belongs to another chain: it was copied here")
        )
    );
}

#[test]
fn a_segment_out_of_order_is_named() {
    let log = log();
    fs::rename(&log.file, log.file.with_file_name("seg-00000002.jsonl")).unwrap();
    let bad = log.scratch.verify().chains.remove(0).first_fault.unwrap();
    assert_eq!(
        bad.fault,
        RecordFault::Head("it belongs to another segment: it was moved")
    );
}

#[test]
fn an_emptied_chain_is_named() {
    let log = log();
    assert_eq!(log.check(&[]).unwrap().fault, RecordFault::Empty);
    fs::remove_file(&log.file).unwrap();
    let bad = log.scratch.verify().chains.remove(0).first_fault.unwrap();
    assert_eq!((bad.seq, bad.fault), (1, RecordFault::Empty));
}

#[test]
fn the_report_is_readable() {
    let log = log();
    let mut lines = log.lines();
    let changed = lines[3].replace("ok", "no");
    lines[3] = &changed;
    log.check(&lines).unwrap();
    let text = log.scratch.verify().to_string();
    let place = format!(
        "BAD at record 4 ({} line 4): its hash does not match its contents",
        log.file.display()
    );
    assert!(
        text.contains(&place) && text.ends_with("NOT INTACT: 1 of 1 chain"),
        "{text}"
    );
}

/// Each record with a change, and all hashes made anew.
fn rechained(lines: &[String]) -> Vec<String> {
    let mut prev = "0".repeat(64);
    let mut forged = Vec::new();
    for line in lines {
        let old = &line.split_once("\"prev\":\"").unwrap().1[..64];
        let line = line.replace("\"c1\"", "\"cX\"").replace(old, &prev);
        forged.push(rehash(&line));
        prev = hash_of(&forged[forged.len() - 1]).to_owned();
    }
    forged
}

// T67
#[test]
fn a_chain_made_anew_without_the_key_is_found_by_its_signature() {
    let log = log();
    let forged = rechained(&log.lines);
    let lines: Vec<&str> = forged.iter().map(String::as_str).collect();
    let bad = log.check(&lines).unwrap();
    assert_eq!(bad.seq, 10, "the first checkpoint after the change");
    assert!(
        matches!(bad.fault, RecordFault::Signature(_)),
        "{:?}",
        bad.fault
    );
    // Without its checkpoints it is not signed at all.
    let bare: Vec<String> = log
        .lines
        .iter()
        .enumerate()
        .filter(|(_, line)| !line.contains("checkpoint\""))
        .map(|(at, line)| {
            let seq = format!("\"seq\":{}", at + 1);
            line.replace(&seq, &format!("\"seq\":{}", at + usize::from(at == 0)))
        })
        .collect();
    let bare = rechained(&bare);
    let lines: Vec<&str> = bare.iter().map(String::as_str).collect();
    assert_eq!(log.check(&lines).unwrap().fault, RecordFault::Unsigned);
}

// Stated in the documentation: without a checkpoint elsewhere, this leaves no trace in the files.
#[test]
fn a_cut_end_is_not_found_without_a_second_place() {
    let log = log();
    assert_eq!(log.check(&log.lines()[..6]), None);
}
