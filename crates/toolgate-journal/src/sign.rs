//! Signed checkpoints: who holds the key says how far the chain had come.

use crate::disk::Disk;
use crate::entry::{Entry, Event};
use crate::error::Error;
use crate::key;
use crate::record::{Tip, hex, utc_us};
use ring::signature::{Ed25519KeyPair, KeyPair};
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

const NAME: &str = "checkpoint.key";

/// Goes before what is signed, so that the signature means nothing anywhere else.
const DOMAIN: &str = "toolgate-journal-checkpoint-v1";

/// The Ed25519 key of a folder, in `checkpoint.key`.
pub(crate) struct Signer {
    pair: Ed25519KeyPair,
    /// The public key, 64 hexadecimal digits.
    pub(crate) public: String,
}

impl Signer {
    /// Reads the key of a folder; the first caller makes it.
    pub(crate) fn of(dir: &Path, disk: &dyn Disk) -> Result<Self, Error> {
        let seed = key::secret(dir, NAME, disk)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| {
            let cause = io::Error::other("it is no Ed25519 key; restore it");
            Error::open("read the key", &dir.join(NAME), cause)
        })?;
        let public = hex(pair.public_key().as_ref());
        Ok(Self { pair, public })
    }

    /// The checkpoint over all records up to the tip.
    pub(crate) fn checkpoint(&self, tip: &Tip) -> Entry {
        let at = utc_us();
        let (chain, last, head) = (&tip.chain, tip.seq, &tip.prev);
        let text = format!("{DOMAIN}\n{chain}\n{last}\n{head}\n{last}\n{at}\n");
        Entry::new(Event::CHECKPOINT)
            .with("at", at)
            .with("count", last)
            .with("head", head.as_str())
            .with("key", self.public.as_str())
            .with("last", last)
            .with("sig", hex(self.pair.sign(text.as_bytes()).as_ref()))
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.public)
    }
}

/// The public key of a journal folder's checkpoints, 64 hexadecimal digits; the key is made if there is none.
///
/// # Errors
/// The folder or the key cannot be read or made.
pub fn public_key(dir: &Path, disk: &dyn Disk) -> Result<String, Error> {
    crate::chain::make_dir(dir, disk)?;
    Signer::of(dir, disk).map(|signer| signer.public)
}

/// The public key of the key that is there, without making one.
pub(crate) fn existing(dir: &Path) -> Option<String> {
    fs::symlink_metadata(dir.join(NAME)).ok()?;
    let signer = Signer::of(dir, &crate::disk::Files).ok()?;
    Some(signer.public)
}
