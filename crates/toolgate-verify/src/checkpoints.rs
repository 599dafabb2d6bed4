//! Checkpoint signatures, and the checkpoints of mirrors.

use crate::json::{self, RecordValue};
use ring::signature::{ED25519, UnparsedPublicKey};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Checkpoint with a valid signature.
pub(crate) struct VerifiedHead {
    pub(crate) last: u64,
    pub(crate) head: String,
    pub(crate) key: String,
}

/// Verifies a checkpoint; without keys, any key is accepted.
pub(crate) fn verify_checkpoint(
    record: &RecordValue,
    keys: &[String],
) -> Result<VerifiedHead, &'static str> {
    read(record, keys).unwrap_or(Err(
        "the checkpoint lacks a field: it was changed or damaged",
    ))
}

fn read(record: &RecordValue, keys: &[String]) -> Option<Result<VerifiedHead, &'static str>> {
    let (chain, head) = (record.str("chain")?, record.str("head")?);
    let (key, sig) = (record.str("key")?, record.str("sig")?);
    let (last, count, at) = (record.num("last")?, record.num("count")?, record.num("at")?);
    if !keys.is_empty() && !keys.iter().any(|known| known == key) {
        return Some(Err(
            "the checkpoint is signed with another key than the expected one",
        ));
    }
    let lines = [
        chain,
        &last.to_string(),
        head,
        &count.to_string(),
        &at.to_string(),
    ]
    .join("\n");
    let text = format!("toolgate-journal-checkpoint-v1\n{lines}\n");
    let public = UnparsedPublicKey::new(&ED25519, unhex(key)?);
    Some(match public.verify(text.as_bytes(), &unhex(sig)?) {
        Ok(()) => Ok(VerifiedHead {
            last,
            head: head.to_owned(),
            key: key.to_owned(),
        }),
        Err(_) => Err(
            "the signature of the checkpoint does not match: the checkpoint was changed or damaged",
        ),
    })
}

/// Hashes of one chain by sequence number.
pub(crate) type ChainHeads = BTreeMap<u64, String>;

/// Checkpoints of the mirrors.
#[derive(Default)]
pub(crate) struct MirrorHeads {
    chains: BTreeMap<String, ChainHeads>,
    /// Number of complete lines that are not signed by the key.
    pub(crate) foreign: u64,
}

impl MirrorHeads {
    pub(crate) fn read(places: &[PathBuf], keys: &[String]) -> io::Result<MirrorHeads> {
        let mut kept = MirrorHeads::default();
        for place in places {
            if !place.is_dir() {
                kept.file(place, keys)?;
                continue;
            }
            for entry in fs::read_dir(place)? {
                let path = entry?.path();
                if path.extension().is_some_and(|ending| ending == "jsonl") {
                    kept.file(&path, keys)?;
                }
            }
        }
        Ok(kept)
    }

    fn file(&mut self, path: &Path, keys: &[String]) -> io::Result<()> {
        // A line that is not a record was left by a crash.
        let bytes = fs::read(path)?;
        for record in bytes.split(|b| *b == b'\n').filter_map(json::read) {
            match (verify_checkpoint(&record, keys), record.str("chain")) {
                (Ok(mark), Some(chain)) => {
                    let heads = self.chains.entry(chain.to_owned()).or_default();
                    heads.insert(mark.last, mark.head);
                }
                _ => self.foreign += 1,
            }
        }
        Ok(())
    }

    /// Removes and returns the checkpoints of a chain.
    pub(crate) fn of(&mut self, chain: &str) -> ChainHeads {
        self.chains.remove(chain).unwrap_or_default()
    }

    /// Returns the remaining chains, and the last record that is covered of each.
    pub(crate) fn rest(&self) -> impl Iterator<Item = (String, u64)> {
        let chains = self.chains.iter();
        chains.map(|(name, heads)| (name.clone(), last(heads)))
    }
}

/// Returns the sequence number of the last covered record.
pub(crate) fn last(heads: &ChainHeads) -> u64 {
    heads.keys().next_back().copied().unwrap_or(0)
}

pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let small = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    if text.len() % 2 == 1 || !text.chars().all(small) {
        return None;
    }
    let byte = |at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(byte).collect()
}
