//! Notices about damage to the audit log, stored beside the chains until an operator acknowledges them.

use crate::disk::open_private;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const OPEN_SUFFIX: &str = "damaged";
const ACKNOWLEDGED_SUFFIX: &str = "acknowledged";

/// Subject of a notice about `mac.key`.
pub(crate) const MAC_KEY: &str = "mac.key";

/// Notice of damage to the audit log that no operator has acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamageNotice {
    /// Damaged part of the log: chain id, `CHAIN.segment` for a displaced segment, or `mac.key`.
    pub subject: String,
    /// Description of the damage and the chain that continues.
    pub description: String,
}

/// Returns the subject of a notice about a displaced segment whose chain continues.
pub(crate) fn displaced(chain: &str) -> String {
    format!("{chain}.segment")
}

/// Damaged chain that cannot be continued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChainDamage {
    pub(crate) chain: String,
    /// Sequence number of its last good record, or of the last one that the checkpoint mirror covers.
    pub(crate) records: u64,
    /// Hash of that record.
    pub(crate) head: String,
    pub(crate) reason: String,
}

/// Writes a notice. The chain that follows states the same, signed.
pub(crate) fn write_notice(dir: &Path, about: &str, why: &str) -> io::Result<()> {
    let path = file(dir, about, OPEN_SUFFIX);
    let mut file = match open_private(&path, true) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => open_private(&path, false)?,
        other => other?,
    };
    writeln!(file, "{why}")?;
    file.sync_all()
}

/// Returns whether damage of a chain was found before, acknowledged or not.
pub(crate) fn is_known(dir: &Path, about: &str) -> bool {
    [OPEN_SUFFIX, ACKNOWLEDGED_SUFFIX].map(|state| file(dir, about, state).exists()) != [false; 2]
}

/// Returns the notices of unacknowledged damage to an audit log directory, sorted by name.
///
/// # Errors
/// The directory or a notice cannot be read.
pub fn notices(dir: &Path) -> io::Result<Vec<DamageNotice>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let about = name.and_then(|name| name.strip_suffix(OPEN_SUFFIX)?.strip_suffix('.'));
        if let Some(about) = about {
            let text = fs::read_to_string(&path)?;
            let why: Vec<&str> = text.lines().collect();
            all.push(DamageNotice {
                subject: about.to_owned(),
                description: why.join("; "),
            });
        }
    }
    all.sort_by(|a, b| a.subject.cmp(&b.subject));
    Ok(all)
}

/// Marks a damage notice as acknowledged by an operator. Verifiers still report the damage.
///
/// # Errors
/// The notice cannot be renamed.
pub fn acknowledge(dir: &Path, notice: &DamageNotice) -> io::Result<()> {
    fs::rename(
        file(dir, &notice.subject, OPEN_SUFFIX),
        file(dir, &notice.subject, ACKNOWLEDGED_SUFFIX),
    )
}

fn file(dir: &Path, about: &str, state: &str) -> PathBuf {
    dir.join(format!("{about}.{state}"))
}
