//! A second reader of the audit log, with a parser of its own and no code of the journal.
//!
//! It reads a record into a tree, writes that tree anew in the canonical form, and compares: a line that is spelled
//! otherwise is none. The hash is taken of the tree without `h`. The journal's own verifier cuts the text instead, so a
//! fault of one is seen by the other. Its only dependency is `ring`, for SHA-256 and Ed25519.

mod bounds;
mod chain;
mod folder;
mod json;
mod kept;
mod segment;

use bounds::Stated;
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
    /// How many checkpoints it has.
    pub checkpoints: u64,
    /// How many records follow the last checkpoint.
    pub unsigned: u64,
    /// The first bad place.
    pub bad: Option<Bad>,
    /// What is missing that could show that something is wrong.
    pub doubts: Vec<String>,
    stated: Stated,
    /// Nothing that is signed says how many records may follow the last checkpoint.
    unbounded: bool,
    /// A mirror has a checkpoint of it.
    covered: bool,
}

/// What was found in a folder.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Found {
    /// One for each chain.
    pub chains: Vec<Chain>,
    /// How many whole lines of the mirrors are not signed by the key.
    pub foreign: u64,
    /// No chain names the `mac.key` that is there.
    pub mac_key_exchanged: bool,
    /// The mirrors that were compared.
    pub mirrors: Vec<PathBuf>,
    /// The keys that were compared.
    pub keys: Vec<String>,
}

impl Found {
    /// The exit code: 0 intact, 1 broken, 3 cannot tell.
    pub fn code(&self) -> u8 {
        let bad = self.chains.iter().any(|chain| chain.bad.is_some());
        if bad || self.foreign > 0 || self.mac_key_exchanged {
            1
        } else if self.chains.is_empty() || self.chains.iter().any(|c| !c.doubts.is_empty()) {
            3
        } else {
            0
        }
    }
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
    /// Public keys that may have signed; where there are none, that of `checkpoint.key` in the folder.
    pub keys: Vec<String>,
    /// Checkpoint mirrors, files or folders of files; where there are none, `checkpoints` beside the folder and those
    /// that the chains name.
    pub places: Vec<PathBuf>,
    /// Somebody writes the log now: the last line of a chain may be half there.
    pub live: bool,
}

/// Reads every chain of a journal folder.
///
/// # Errors
/// The folder or a mirror cannot be read.
pub fn verify(dir: &Path, against: &Against) -> io::Result<Found> {
    let mut against = against.clone();
    if against.keys.is_empty() {
        against.keys.extend(folder::public_key(dir));
    }
    let given = !against.places.is_empty();
    if given {
        against.places = against.places.iter().map(|p| folder::resolved(p)).collect();
    } else {
        against.places = folder::mirrors(dir, &homes(dir, &[])?);
    }
    loop {
        let found = compare(dir, &against)?;
        let mut more = false;
        for mirror in found
            .chains
            .iter()
            .filter_map(|chain| chain.stated.mirror.as_ref())
        {
            more |= !given && folder::add(&mut against.places, mirror);
        }
        if !more {
            return Ok(found);
        }
    }
}

fn compare(dir: &Path, against: &Against) -> io::Result<Found> {
    let mut kept = Kept::read(&against.places, &against.keys)?;
    let mut found = Found {
        mirrors: against.places.clone(),
        keys: against.keys.clone(),
        ..Found::default()
    };
    for home in homes(dir, &against.places)? {
        let marks = kept.of(&home.file_name().unwrap_or_default().to_string_lossy());
        let mut chain = chain::read(&home, against, &marks);
        if chain.bad.is_none() {
            chain.doubts = doubts(&chain, against);
        }
        found.chains.push(chain);
    }
    if let Some(digest) = folder::mac_key(dir) {
        let stated = found
            .chains
            .iter()
            .filter_map(|c| c.stated.mac_key.as_deref());
        let stated: Vec<&str> = stated.collect();
        found.mac_key_exchanged =
            !stated.is_empty() && !stated.iter().any(|one| digest.starts_with(one));
    }
    found.chains.extend(kept.rest().map(|(name, last)| Chain {
        bad: Some(Bad {
            file: dir.join(&name),
            line: 0,
            why: format!("the chain is gone; a checkpoint elsewhere covers {last} records"),
        }),
        name,
        ..Chain::default()
    }));
    found.foreign = kept.foreign;
    Ok(found)
}

/// The folders of the chains.
fn homes(dir: &Path, mirrors: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut homes = BTreeSet::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && !mirrors.contains(&folder::resolved(&entry.path())) {
            homes.insert(entry.path());
        }
    }
    Ok(homes.into_iter().collect())
}

fn doubts(chain: &Chain, against: &Against) -> Vec<String> {
    let mut doubts = Vec::new();
    if against.keys.is_empty() {
        doubts.push("there is no public key to compare with; pass it with --key".to_owned());
    }
    if chain.unbounded {
        doubts.push(format!(
            "{} records after the last checkpoint are unsigned, and no signed record states how many may be",
            chain.unsigned
        ));
    }
    let expected = match &chain.stated.mirror {
        Some(_) => true,
        None => !chain.stated.is_new() && !against.places.is_empty(),
    };
    // The mirror is read before the chains: one that begins in between has its first checkpoint there later.
    let begins = against.live && chain.checkpoints <= 1;
    if expected && !chain.covered && !begins && chain.records > 0 {
        let named = chain.stated.mirror.as_ref();
        let named = named.map_or(String::new(), |path| format!(" {}", path.display()));
        doubts.push(format!(
            "the chain has a checkpoint mirror{named}, and no checkpoint of the chain was found in a mirror: it was removed, or it is elsewhere; pass it with --checkpoints"
        ));
    }
    doubts
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
