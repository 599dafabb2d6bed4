//! A second reader of the audit log, with a parser of its own and no code of the journal.
//!
//! It reads a record into a tree, writes that tree anew in the canonical form, and compares: a line that is spelled
//! otherwise is none. The hash is taken of the tree without `h`. The journal's own verifier cuts the text instead, so a
//! fault of one is seen by the other. Its only dependency is `ring`, for SHA-256 and Ed25519.

mod chain;
mod json;
mod kept;
mod segment;

use kept::Kept;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What was found in one chain.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Chain {
    /// The name of the chain.
    pub name: String,
    /// Number of the last good record.
    pub records: u64,
    /// Number of the first record that is there.
    pub first: u64,
    /// Number of the last record that a checkpoint covers.
    pub signed: u64,
    /// Number of the last record that a checkpoint of the second place covers.
    pub kept: u64,
    /// The keys that signed.
    pub keys: BTreeSet<String>,
    /// How many calls began and have no outcome.
    pub open: usize,
    /// The first bad place.
    pub bad: Option<Bad>,
}

/// A bad place.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Bad {
    /// The segment, or the folder of the chain.
    pub file: PathBuf,
    /// The line from 1; 0 where it is about all of it.
    pub line: u64,
    /// What is wrong.
    pub why: String,
}

/// What to compare with.
#[derive(Clone, Debug, Default)]
pub struct Against {
    /// Public keys that may have signed; any key will do where there are none.
    pub keys: Vec<String>,
    /// Files with checkpoints that were kept elsewhere, or folders of such files.
    pub places: Vec<PathBuf>,
    /// Somebody writes the log now: the last line of a chain may be half there.
    pub live: bool,
}

/// Reads every chain of a journal folder. Also says how many whole lines of the second place are not signed by the key.
///
/// # Errors
/// The folder or a second place cannot be read.
pub fn verify(dir: &Path, against: &Against) -> io::Result<(Vec<Chain>, u64)> {
    let mut kept = Kept::read(&against.places, &against.keys)?;
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && !against.places.contains(&entry.path()) {
            names.insert(entry.file_name());
        }
    }
    let mut chains = Vec::new();
    for name in names {
        let marks = kept.of(&name.to_string_lossy());
        chains.push(chain::read(&dir.join(name), against, &marks));
    }
    chains.extend(kept.rest().map(|(name, last)| Chain {
        bad: Some(Bad {
            file: dir.join(&name),
            line: 0,
            why: format!("the chain is gone; a checkpoint elsewhere covers {last} records"),
        }),
        name,
        ..Chain::default()
    }));
    Ok((chains, kept.foreign))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
