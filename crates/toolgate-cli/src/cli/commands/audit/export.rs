//! `toolgate audit export`: the audit log in the formats of other systems, from the position of the last export.

use super::{CommandError, Result, period_start, print, unreadable};
use crate::{args::ExportFormat, audit_output::format_record};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};
use toolgate_journal::read::AuditFollower;

/// Sequence number of the last exported record of each chain.
type ExportCursor = BTreeMap<String, u64>;

/// Prints the records that are not exported yet. The cursor moves after the output: a crash repeats records but loses
/// none.
pub(super) fn run(
    dir: &Path,
    form: ExportFormat,
    back: Option<Duration>,
    cursor: Option<&Path>,
) -> Result<ExitCode> {
    let from = back.map_or(0, period_start);
    let mut places = cursor.map_or(Ok(ExportCursor::new()), read)?;
    let mut follower = AuditFollower::from_start(dir);
    loop {
        let lines = follower.poll().map_err(unreadable(dir))?;
        if lines.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        let mut text = String::new();
        for line in lines.iter().filter(|line| line.ts >= from) {
            let last = places.entry(line.chain.clone()).or_default();
            if line.seq > *last {
                *last = line.seq;
                text.push_str(&format_record(form, line));
            }
        }
        print(&text)?;
        if let Some(cursor) = cursor {
            write(cursor, &places)?;
        }
    }
}

fn read(cursor: &Path) -> Result<ExportCursor> {
    let wrong = |e: &dyn std::fmt::Display| {
        let path = cursor.display();
        CommandError::Failure(format!(
            "cannot read the cursor {path}: {e}; delete it to export all records again"
        ))
    };
    match fs::read(cursor) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(ExportCursor::new()),
        Err(e) => Err(wrong(&e)),
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| wrong(&e)),
    }
}

fn write(cursor: &Path, places: &ExportCursor) -> Result<()> {
    let mut beside = cursor.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let text = serde_json::to_vec(places).unwrap_or_default();
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, cursor));
    written.map_err(|e| {
        CommandError::Failure(format!(
            "cannot write the cursor {}: {e}; check its directory, and that the disk has free space",
            cursor.display()
        ))
    })
}
