use super::*;
use std::{fs, path::PathBuf};
use toolgate_journal::{AuditEntry, AuditEvent, AuditJournal, JournalOptions, read::segment_files};

/// Audit log with a copy of it in memory.
struct CopiedLog {
    dir: PathBuf,
    chain: String,
    end: Option<CopiedChain>,
    pieces: Vec<AuditPiece>,
}

impl CopiedLog {
    /// Writes a log of several segments. `keep_bytes` lets retention remove the oldest.
    fn write(name: &str, keep_bytes: Option<u64>) -> CopiedLog {
        let dir = std::env::temp_dir().join(format!("toolgate-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        let mut log = CopiedLog {
            dir,
            chain: String::new(),
            end: None,
            pieces: Vec::new(),
        };
        log.append(60, keep_bytes);
        log.chain = log.files()[0].chain.clone();
        log
    }

    fn append(&self, records: usize, keep_bytes: Option<u64>) {
        let mut options = JournalOptions::new(&self.dir);
        options.segment_bytes = 4096;
        options.retain_bytes = keep_bytes;
        let journal = AuditJournal::open(options).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        for n in 0..records {
            let entry = AuditEntry::new(AuditEvent::from("test")).with("n", n as u64);
            runtime.block_on(journal.append(entry)).unwrap();
        }
        journal.close();
    }

    fn files(&self) -> Vec<SegmentFile> {
        segment_files(&self.dir).unwrap()
    }

    /// Copies until nothing is new, or returns why the log does not continue its copy.
    fn copy(&mut self) -> Result<(), String> {
        loop {
            match next_step(&self.chain, self.end.as_ref(), &self.files()).unwrap() {
                CopyStep::Append(after, piece) => {
                    self.end = Some(after);
                    self.pieces.push(piece);
                }
                CopyStep::Complete => return Ok(()),
                CopyStep::Diverged(why) => return Err(why),
            }
        }
    }

    #[track_caller]
    fn is_copied(&self) {
        for file in self.files() {
            let pieces = self.pieces.iter().filter(|one| one.segment == file.number);
            let mut bytes = Vec::new();
            for piece in pieces {
                assert_eq!(piece.start, bytes.len() as u64);
                bytes.extend_from_slice(&piece.bytes);
            }
            assert!(bytes == fs::read(&file.path).unwrap(), "{file:?}");
        }
    }

    fn last_file(&self) -> PathBuf {
        self.files().pop().unwrap().path
    }
}

impl Drop for CopiedLog {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn a_copy_has_each_byte_once_and_continues_where_it_ended() {
    let mut log = CopiedLog::write("copy-continues", None);
    log.copy().unwrap();
    log.is_copied();
    let pieces = log.pieces.len();
    assert!(pieces > 2, "several segments");
    log.copy().unwrap();
    assert_eq!(log.pieces.len(), pieces, "nothing is copied twice");
    log.append(60, None);
    log.copy().unwrap();
    assert!(log.pieces.len() > pieces);
    log.is_copied();
}

#[test]
fn an_incomplete_line_waits_for_its_end() {
    let mut log = CopiedLog::write("copy-waits", None);
    let file = log.last_file();
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 10]).unwrap();
    log.copy().unwrap();
    let copied: usize = log.pieces.iter().map(|piece| piece.bytes.len()).sum();
    fs::write(&file, &whole).unwrap();
    log.copy().unwrap();
    let all: usize = log.pieces.iter().map(|piece| piece.bytes.len()).sum();
    assert!(all > copied);
    log.is_copied();
}

#[test]
fn a_log_that_was_cut_or_rewritten_does_not_continue_its_copy() {
    let mut log = CopiedLog::write("copy-diverges", None);
    log.copy().unwrap();
    let file = log.last_file();
    let whole = fs::read(&file).unwrap();
    // Cut in a line, and before a line.
    for length in [whole.len() - 1, 0] {
        fs::write(&file, &whole[..length]).unwrap();
        let why = log.copy().unwrap_err();
        assert!(why.contains("removed or changed"), "{why}");
    }
    let mut changed = whole.clone();
    let at = changed.len() - 20;
    changed[at] ^= 1;
    fs::write(&file, changed).unwrap();
    assert!(log.copy().unwrap_err().contains("removed or changed"));
    // Other records follow, whose hashes are right but continue another record.
    let mut longer = whole.clone();
    longer.extend_from_slice(whole.split_inclusive(|byte| *byte == b'\n').next().unwrap());
    fs::write(&file, longer).unwrap();
    let why = log.copy().unwrap_err();
    assert!(why.contains("follows another record"), "{why}");
    fs::remove_file(&file).unwrap();
    assert!(log.copy().unwrap_err().contains("is gone"));
    // Restored, the log continues its copy.
    fs::write(&file, &whole).unwrap();
    log.copy().unwrap();
    log.is_copied();
}

#[test]
fn a_copy_goes_on_after_segments_that_retention_removed_first() {
    let mut log = CopiedLog::write("copy-skips", None);
    log.copy().unwrap();
    let copied = log.end.clone().unwrap();
    log.append(600, Some(1_048_576 / 64));
    let first = log.files()[0].number;
    assert!(first > copied.segment + 1, "retention removed new segments");
    log.copy().unwrap();
    let end = log.end.as_ref().unwrap();
    assert_eq!(end.first_segment, first);
    assert!(end.retired >= first - 1, "the copied records say so");
    log.is_copied();
}
