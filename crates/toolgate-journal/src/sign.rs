//! Signed checkpoints: signatures over the position and hash of the last record.

use crate::disk::SegmentDisk;
use crate::entry::{AuditEntry, AuditEvent};
use crate::error::Error;
use crate::key;
use crate::record::{ChainTip, utc_us};
use ring::signature::{Ed25519KeyPair, KeyPair};
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use toolgate_protocol::hex;

const NAME: &str = "checkpoint.key";

/// Domain separator of checkpoint signatures.
const DOMAIN: &str = "toolgate-journal-checkpoint-v1";

/// Ed25519 signing key of a directory, in `checkpoint.key`.
pub(crate) struct CheckpointSigner {
    pair: Ed25519KeyPair,
    /// Public key, 64 hexadecimal digits.
    pub(crate) public: String,
}

impl CheckpointSigner {
    /// Reads the key of a directory, generating it on first use.
    pub(crate) fn read_or_create(dir: &Path, disk: &dyn SegmentDisk) -> Result<Self, Error> {
        let seed = key::secret(dir, NAME, disk)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| {
            let cause = io::Error::other("it is not an Ed25519 key; restore the file");
            Error::open("read the key", &dir.join(NAME), cause)
        })?;
        let public = hex::encode(pair.public_key().as_ref());
        Ok(Self { pair, public })
    }

    /// Returns the signed checkpoint over all records so far.
    pub(crate) fn checkpoint(&self, tip: &ChainTip) -> AuditEntry {
        let at = utc_us();
        let (chain, last, head) = (&tip.chain, tip.last_seq, &tip.last_hash);
        let text = format!("{DOMAIN}\n{chain}\n{last}\n{head}\n{last}\n{at}\n");
        AuditEntry::new(AuditEvent::CHECKPOINT)
            .with("at", at)
            .with("count", last)
            .with("head", head.as_str())
            .with("key", self.public.as_str())
            .with("last", last)
            .with("sig", hex::encode(self.pair.sign(text.as_bytes()).as_ref()))
    }
}

impl fmt::Debug for CheckpointSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CheckpointSigner({})", self.public)
    }
}

/// Returns the public key that verifies the checkpoints of an audit log directory, 64 hexadecimal digits. Generates the
/// key if there is none.
///
/// # Errors
/// The directory or the key cannot be read or created.
pub fn public_key(dir: &Path, disk: &dyn SegmentDisk) -> Result<String, Error> {
    crate::chain::make_dir(dir, disk)?;
    CheckpointSigner::read_or_create(dir, disk).map(|signer| signer.public)
}

/// Returns the public key of the existing key; `None` if there is none.
pub(crate) fn existing_public_key(dir: &Path) -> Option<String> {
    fs::symlink_metadata(dir.join(NAME)).ok()?;
    let signer = CheckpointSigner::read_or_create(dir, &crate::disk::FileDisk).ok()?;
    Some(signer.public)
}
