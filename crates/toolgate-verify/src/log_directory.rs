//! Files beside the chains: the keys, and the locations of checkpoint mirrors.

use crate::bounds::StatedTerms;
use crate::{checkpoints, hex, json, segment};
use ring::digest::{self, SHA256};
use ring::signature::{Ed25519KeyPair, KeyPair};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the public key of `checkpoint.key`, if it exists.
pub(crate) fn public_key(dir: &Path) -> Option<String> {
    let seed = secret(&dir.join("checkpoint.key"))?;
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).ok()?;
    Some(hex(pair.public_key().as_ref()))
}

/// Returns the digest of `mac.key`, if it exists.
pub(crate) fn mac_key(dir: &Path) -> Option<String> {
    let text = [
        b"toolgate-journal-key-id\n",
        &secret(&dir.join("mac.key"))?[..],
    ]
    .concat();
    Some(hex(digest::digest(&SHA256, &text).as_ref()))
}

fn secret(path: &Path) -> Option<Vec<u8>> {
    let text = fs::read_to_string(path).ok()?;
    checkpoints::unhex(text.trim()).filter(|bytes| bytes.len() == 32)
}

/// Returns the default mirrors: `checkpoints` beside the directory, and those that chains name.
pub(crate) fn mirrors(dir: &Path, chains: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    add(&mut all, &dir.join("..").join("checkpoints"));
    for home in chains {
        if let Some(mirror) = named(home) {
            add(&mut all, &mirror);
        }
    }
    all
}

/// Adds an existing mirror. Returns whether it is new.
pub(crate) fn add(all: &mut Vec<PathBuf>, mirror: &Path) -> bool {
    let path = resolved(mirror);
    let new = (path.is_dir() || path.is_file()) && !all.contains(&path);
    if new {
        all.push(path);
    }
    new
}

/// Returns the canonical path.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the mirror that the first record of a chain names.
fn named(home: &Path) -> Option<PathBuf> {
    let (_, first) = segment::segment_files(home).ok()?.into_iter().next()?;
    let line = segment::SegmentLines::open(&first).ok()?.next().ok()??;
    StatedTerms::of(&json::read(line.strip_suffix(b"\n")?)?).mirror
}
