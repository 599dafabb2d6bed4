//! Migration of the state file of versions before 0.2 (`state.jsonl`), one change per line, into the database.
//!
//! A program of an earlier version must not start with an empty state beside the database, since its freezes and
//! revoked keys would be missing. So a note takes the place of the file, which that version rejects as damaged.

use crate::{
    StoreError,
    change::StoreChange,
    database::Database,
    directory::{DirectoryLock, open_private},
};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

const LEGACY: &str = "state.jsonl";
const MIGRATING: &str = "state.jsonl.migrating";
const MIGRATED: &str = "state.jsonl.migrated";
/// Text in place of the file. It has several lines: an earlier version would cut off a damaged last line.
const NOTE: &str = "The state of this directory is in state.sqlite.\n\
    To use an earlier version of toolgate again, restore a backup, or rename state.jsonl.migrated to state.jsonl.\n\
    The changes since the migration are then missing.\n";

/// Returns whether a directory has a state file of an earlier version.
pub(crate) fn exists(dir: &Path) -> bool {
    dir.join(LEGACY).exists() || dir.join(MIGRATING).exists()
}

/// Moves the entries of an earlier version into the database, and keeps the file as a backup. Each step can be repeated
/// after a crash.
pub(crate) fn migrate(
    dir: &Path,
    database: &mut Database,
    _held: &DirectoryLock,
) -> Result<(), StoreError> {
    let (legacy, migrating, migrated) = (dir.join(LEGACY), dir.join(MIGRATING), dir.join(MIGRATED));
    let is_note = || fs::read(&legacy).map(|text| text == NOTE.as_bytes());
    if !migrating.exists() {
        match is_note() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(StoreError::file("read", &legacy, e)),
            Ok(true) => return Ok(()),
            Ok(false) if database.is_migrated()? => {
                let reason = "it was written after its entries had moved to state.sqlite, so two versions of the program have used this directory; end the earlier version";
                return Err(StoreError::damaged(&legacy, reason));
            }
            Ok(false) => rename(dir, &legacy, &migrating)?,
        }
    }
    if migrating.exists() {
        leave_note(&legacy)?;
        if !database.is_migrated()? {
            let (entries, version) = read(&migrating)?;
            database.begin()?;
            let moved = database.migrate(&entries, version);
            database.end(moved)?;
        }
        rename(dir, &migrating, &migrated)?;
    }
    Ok(())
}

fn rename(dir: &Path, from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to)
        .and_then(|()| File::open(dir)?.sync_all())
        .map_err(|e| StoreError::file("rename", from, e))
}

fn leave_note(legacy: &Path) -> Result<(), StoreError> {
    let written = open_private(legacy).and_then(|mut file| {
        file.set_len(0)?;
        file.write_all(NOTE.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|e| StoreError::file("write", legacy, e))
}

/// Reads the entries of a file, and the version of its last change.
fn read(path: &Path) -> Result<(Vec<StoreChange>, u64), StoreError> {
    let bytes = fs::read(path).map_err(|e| StoreError::file("read", path, e))?;
    let mut entries = BTreeMap::new();
    let mut last = 0;
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
    while let Some((at, line)) = lines.next() {
        let parsed = line.strip_suffix(b"\n").and_then(StoreChange::parse_line);
        let Some(change) = parsed else {
            // A killed process may have left a torn last line, of which nobody was told that it is stored.
            if lines.next().is_none() {
                break;
            }
            let reason = format!("line {} is damaged", at + 1);
            return Err(StoreError::damaged(path, reason));
        };
        last = last.max(change.version);
        let key = (change.table.clone(), change.key.clone());
        match change.value {
            Some(_) => entries.insert(key, change),
            None => entries.remove(&key),
        };
    }
    let mut entries: Vec<StoreChange> = entries.into_values().collect();
    entries.sort_by_key(|change| change.version);
    Ok((entries, last))
}
