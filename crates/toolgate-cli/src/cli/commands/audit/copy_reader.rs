//! Reader of the copies of audit logs in the shared store: writes a chain back to files, and compares it with files.

use super::super::{CommandError, DataLocation, Result, explain::runtime, offline};
use crate::fleet::CopiedCheckpoint;
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::runtime::Runtime;
use toolgate_core::visible_line;
use toolgate_journal::{read::segment_files, verify::RecordLink};
use toolgate_store::{
    StoreError,
    postgres::{AuditCopies, AuditPiece, CopiedChain, CopiedSegments, RemovedCopies},
};

/// Maximum time of a request. Sizes of all pieces take longer than a call may wait.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Connection to the copies of audit logs.
pub(super) struct CopyReader {
    runtime: Runtime,
    copies: AuditCopies,
}

impl CopyReader {
    /// Connects to the store of the config.
    pub(super) fn open(place: &DataLocation<'_>, data: &Path) -> Result<CopyReader> {
        let location = offline::location(place, data)?;
        let Some(address) = location.shared() else {
            return Err(CommandError::Failure(
                "the config has no shared store, so there are no copies of audit logs; set url in [store]".to_owned(),
            ));
        };
        let runtime = runtime()?;
        let copies = runtime.block_on(AuditCopies::connect(address, READ_TIMEOUT));
        Ok(CopyReader {
            copies: copies.map_err(failed)?,
            runtime,
        })
    }

    /// Returns how far the copy of each chain reaches.
    pub(super) fn chains(&self) -> Result<Vec<CopiedChain>> {
        self.runtime.block_on(self.copies.chains()).map_err(failed)
    }

    pub(super) fn sizes(&self) -> Result<Vec<CopiedSegments>> {
        self.runtime.block_on(self.copies.sizes()).map_err(failed)
    }

    pub(super) fn remove_retired(&self, before: &str) -> Result<RemovedCopies> {
        let removed = self.copies.remove_retired(before);
        self.runtime.block_on(removed).map_err(failed)
    }

    /// Calls `each` with the pieces of a chain up to an end, in order. No piece may be missing.
    fn pieces(
        &self,
        end: &CopiedChain,
        mut each: impl FnMut(&AuditPiece) -> io::Result<()>,
    ) -> Result<()> {
        let mut place = (end.first_segment, 0);
        let mut is_first = true;
        loop {
            let piece = self.copies.piece_from(&end.chain, place);
            let piece = self.runtime.block_on(piece).map_err(failed)?;
            let piece =
                piece.filter(|piece| (piece.segment, piece.start) < (end.segment, end.bytes));
            let Some(piece) = piece else {
                break;
            };
            let found = (piece.segment, piece.start);
            // Pruning removes the first segments.
            if found != place && found != (place.0 + 1, 0) && !(is_first && found.1 == 0) {
                return Err(missing(end, place));
            }
            is_first = false;
            place = (piece.segment, piece.start + piece.bytes.len() as u64);
            each(&piece).map_err(|e| CommandError::Failure(e.to_string()))?;
        }
        match place == (end.segment, end.bytes) {
            true => Ok(()),
            false => Err(missing(end, place)),
        }
    }

    /// Writes a chain to the directories `audit` and `checkpoints` of a directory. Returns the public keys that its
    /// checkpoints name.
    pub(super) fn restore(
        &self,
        end: &CopiedChain,
        witness: Option<&CopiedCheckpoint>,
        to: &Path,
    ) -> Result<BTreeSet<String>> {
        let (home, mirrors) = (to.join("audit").join(&end.chain), to.join("checkpoints"));
        if !is_chain_id(&end.chain) {
            return Err(CommandError::Failure(format!(
                "the shared store has a copy of \"{}\", which is not the ID of a chain",
                visible_line(&end.chain)
            )));
        }
        for dir in [&home, &mirrors] {
            make_dir(dir).map_err(cannot_write(dir))?;
        }
        let mirror = mirrors.join(format!("{}.jsonl", end.chain));
        let mut restored = RestoredFiles {
            mirror: create(&mirror).map_err(cannot_write(&mirror))?,
            home,
            segment: None,
            partial: Vec::new(),
            keys: BTreeSet::new(),
            has_witness: witness.is_none_or(|witness| witness.last > end.seq),
        };
        self.pieces(end, |piece| restored.write(piece, witness))?;
        restored.finish(witness).map_err(cannot_write(to))
    }

    /// Compares the files of an audit log directory with the copy of a chain. Returns the first difference.
    pub(super) fn difference(&self, end: &CopiedChain, dir: &Path) -> Result<Option<String>> {
        let files = segment_files(dir).map_err(|e| CommandError::Failure(e.to_string()))?;
        let of_chain = files.into_iter().filter(|file| file.chain == end.chain);
        let files: Vec<_> = of_chain.collect();
        let first = files.first().map_or(0, |file| file.number);
        let mut found = None;
        self.pieces(end, |piece| {
            if found.is_some() || piece.segment < first {
                // Retention removed the file. The verification checks that a record says so.
                return Ok(());
            }
            let path = files.iter().find(|file| file.number == piece.segment);
            let is_same = match path {
                Some(file) => has_bytes(&file.path, piece)?,
                None => false,
            };
            if !is_same {
                found = Some(format!(
                    "segment {} differs from its copy within the {} bytes from byte {} on",
                    piece.segment,
                    piece.bytes.len(),
                    piece.start
                ));
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// Files of a chain that is being restored.
struct RestoredFiles {
    home: PathBuf,
    mirror: File,
    segment: Option<(u64, File)>,
    /// Beginning of a line that continues in the next piece.
    partial: Vec<u8>,
    keys: BTreeSet<String>,
    /// True if the mirror needs no further checkpoint.
    has_witness: bool,
}

impl RestoredFiles {
    fn write(&mut self, piece: &AuditPiece, witness: Option<&CopiedCheckpoint>) -> io::Result<()> {
        let mut file = match self.segment.take() {
            Some((segment, file)) if segment == piece.segment => file,
            _ => create(&self.home.join(format!("seg-{:08}.jsonl", piece.segment)))?,
        };
        file.write_all(&piece.bytes)?;
        self.segment = Some((piece.segment, file));
        self.partial.extend_from_slice(&piece.bytes);
        let whole = self.partial.iter().rposition(|byte| *byte == b'\n');
        let rest = self.partial.split_off(whole.map_or(0, |at| at + 1));
        for line in self.partial.split_inclusive(|byte| *byte == b'\n') {
            let bare = line.strip_suffix(b"\n").unwrap_or(line);
            // A broken record stays in the file, for the verification.
            if !RecordLink::read(bare).is_ok_and(|link| link.is_checkpoint) {
                continue;
            }
            self.has_witness |= witness.is_some_and(|witness| witness.line.as_bytes() == bare);
            self.mirror.write_all(line)?;
            let record: Value = serde_json::from_slice(bare).unwrap_or_default();
            let key = record.get("key").and_then(Value::as_str);
            self.keys.extend(key.map(str::to_owned));
        }
        self.partial = rest;
        Ok(())
    }

    /// Adds the checkpoint that the gateway copied by itself, so that the verification compares it with the copy.
    fn finish(mut self, witness: Option<&CopiedCheckpoint>) -> io::Result<BTreeSet<String>> {
        if let Some(witness) = witness.filter(|_| !self.has_witness) {
            writeln!(self.mirror, "{}", witness.line)?;
        }
        if let Some((_, file)) = &self.segment {
            file.sync_all()?;
        }
        self.mirror.sync_all()?;
        Ok(self.keys)
    }
}

/// Creates a directory with mode 0700, and its parents.
pub(super) fn make_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

fn has_bytes(path: &Path, piece: &AuditPiece) -> io::Result<bool> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(piece.start))?;
    let mut bytes = Vec::new();
    file.take(piece.bytes.len() as u64)
        .read_to_end(&mut bytes)?;
    Ok(bytes == piece.bytes)
}

/// Returns whether a name from the database can be the name of a chain's directory.
fn is_chain_id(name: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_hexdigit() || b == b'-';
    !name.is_empty() && name.bytes().all(is_part)
}

fn missing(end: &CopiedChain, (segment, start): (u64, u64)) -> CommandError {
    CommandError::Failure(format!(
        "the copy of the chain {} in the shared store is incomplete: a piece is missing in segment {segment} at byte {start}; restore a backup of the database",
        visible_line(&end.chain)
    ))
}

fn failed(error: StoreError) -> CommandError {
    CommandError::Failure(error.detail())
}

pub(super) fn cannot_write(path: &Path) -> impl Fn(io::Error) -> CommandError + use<'_> {
    |e| {
        CommandError::Failure(format!(
            "cannot write {}: {e}; check the directory and its permissions",
            path.display()
        ))
    }
}
