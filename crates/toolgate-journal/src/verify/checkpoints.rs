//! Checkpoint signatures, and the checkpoints of mirrors.

use super::record_line::RecordLine;
use super::report::RecordFault;
use crate::mirror::mirror_files;
use ring::signature::{ED25519, UnparsedPublicKey};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use toolgate_protocol::hex;

const DOMAIN: &str = "toolgate-journal-checkpoint-v1";

/// Statement of a checkpoint: the chain had this head after this number of records.
#[derive(Clone, Debug)]
pub(super) struct SignedHead {
    pub(super) chain: String,
    pub(super) last: u64,
    pub(super) head: String,
}

/// Parses a checkpoint and verifies its signature. Without `keys`, any key is accepted.
pub(super) fn verify_checkpoint(
    record: &RecordLine,
    keys: &[String],
) -> Result<SignedHead, RecordFault> {
    const INCOMPLETE: RecordFault =
        RecordFault::Signature("it lacks a field, or a field has another type");
    let text = |name| record.text(name).ok_or(INCOMPLETE);
    let number = |name| record.number(name).ok_or(INCOMPLETE);
    let (chain, head, key, sig) = (text("chain")?, text("head")?, text("key")?, text("sig")?);
    let (last, count, at) = (number("last")?, number("count")?, number("at")?);
    if !keys.is_empty() && !keys.contains(&key) {
        return Err(RecordFault::Signature(
            "it is signed with another key than the expected one",
        ));
    }
    let signed = format!("{DOMAIN}\n{chain}\n{last}\n{head}\n{count}\n{at}\n");
    let (key, sig) = (bytes(&key), bytes(&sig));
    let (Some(key), Some(sig)) = (key, sig) else {
        return Err(RecordFault::Signature(
            "its key or its signature is not hexadecimal",
        ));
    };
    UnparsedPublicKey::new(&ED25519, key)
        .verify(signed.as_bytes(), &sig)
        .map_err(|_| {
            RecordFault::Signature("its signature does not match: the checkpoint was changed")
        })?;
    Ok(SignedHead { chain, last, head })
}

/// Checkpoints of mirrors, by chain and sequence number of the last record.
#[derive(Clone, Debug, Default)]
pub(super) struct MirrorCheckpoints {
    pub(super) chains: BTreeMap<String, BTreeMap<u64, String>>,
    /// Number of unreadable lines, as a crash leaves them.
    pub(super) unreadable_lines: u64,
    /// Number of complete lines that are not signed by the key.
    pub(super) foreign_lines: u64,
}

impl MirrorCheckpoints {
    /// Reads mirror files, and the files `*.jsonl` of mirror directories.
    pub(super) fn read(places: &[PathBuf], keys: &[String]) -> io::Result<Self> {
        let mut kept = Self::default();
        for place in places {
            for file in mirror_files(place)? {
                kept.file(&file, keys)?;
            }
        }
        Ok(kept)
    }

    fn file(&mut self, path: &Path, keys: &[String]) -> io::Result<()> {
        for line in fs::read(path)?.split(|b| *b == b'\n') {
            self.line(line, keys);
        }
        Ok(())
    }

    /// Adds the checkpoints of others that a key signed. Without a key, none can be told from those of other logs.
    pub(super) fn add_witnesses(&mut self, lines: &[String], keys: &[String]) {
        let records = lines
            .iter()
            .filter(|_| !keys.is_empty())
            .filter_map(|line| RecordLine::parse(line.as_bytes()).ok());
        for mark in records.filter_map(|record| verify_checkpoint(&record, keys).ok()) {
            let chain = self.chains.entry(mark.chain).or_default();
            chain.insert(mark.last, mark.head);
        }
    }

    pub(super) fn line(&mut self, line: &[u8], keys: &[String]) {
        if line.is_empty() {
            return;
        }
        match RecordLine::parse(line).map(|record| verify_checkpoint(&record, keys)) {
            Ok(Ok(mark)) => {
                let chain = self.chains.entry(mark.chain).or_default();
                chain.insert(mark.last, mark.head);
            }
            Ok(Err(_)) => self.foreign_lines += 1,
            Err(_) => self.unreadable_lines += 1,
        }
    }
}

/// Returns the bytes of lower-case digits, the only spelling of a checkpoint.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    hex::decode(digits).filter(|bytes| hex::encode(bytes) == digits)
}
