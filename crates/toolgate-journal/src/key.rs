//! Keys of an audit log directory, each in its own file: 64 hexadecimal digits, mode 0600.

use crate::disk::{SegmentDisk, open_private};
use crate::error::Error;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use toolgate_protocol::hex;

const NAME: &str = "mac.key";

/// Length of a key in bytes.
const KEY_BYTES: usize = 32;

/// HMAC-SHA-256 key of 32 random bytes, stored as 64 hexadecimal digits in `mac.key`.
#[derive(Debug)]
pub(crate) struct MacKey {
    mac: hmac::Key,
    /// SHA-256 digest of the key, 64 hexadecimal digits: identifies the key without revealing it.
    pub(crate) digest: String,
}

impl MacKey {
    /// Reads the key of a directory, generating it on first use.
    pub(crate) fn read_or_create(dir: &Path, disk: &dyn SegmentDisk) -> Result<Self, Error> {
        let secret = secret(dir, NAME, disk)?;
        Ok(Self {
            digest: digest_of(&secret),
            mac: hmac::Key::new(hmac::HMAC_SHA256, &secret),
        })
    }

    /// Returns the keyed digest of the pieces that `give` passes on, as 64 hexadecimal digits.
    pub(crate) fn mac(&self, give: impl FnOnce(&mut dyn FnMut(&[u8]))) -> String {
        let mut context = hmac::Context::with_key(&self.mac);
        give(&mut |bytes| context.update(bytes));
        hex::encode(context.sign().as_ref())
    }
}

/// Returns the digest of the existing key of a directory; `None` if there is no readable key.
pub(crate) fn existing_digest(dir: &Path) -> Option<String> {
    read(&dir.join(NAME)).ok().map(|secret| digest_of(&secret))
}

fn digest_of(secret: &[u8]) -> String {
    let text = [b"toolgate-journal-key-id\n", secret].concat();
    hex::encode(digest::digest(&digest::SHA256, &text).as_ref())
}

/// Returns the 32 secret bytes of a key file, generating them on first use.
pub(crate) fn secret(dir: &Path, name: &str, disk: &dyn SegmentDisk) -> Result<Vec<u8>, Error> {
    let path = dir.join(name);
    if !path.exists() {
        make(dir, &path, disk).map_err(|e| Error::open("create the key", &path, e))?;
    }
    read(&path).map_err(|e| Error::open("read the key", &path, e))
}

/// Returns random bytes as hexadecimal digits.
pub(crate) fn random_hex<const N: usize>() -> io::Result<String> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| io::Error::other("the operating system provides no random numbers; check its random device, or restart the machine"))?;
    Ok(hex::encode(&bytes))
}

/// Generates a key in a temporary file and links it to its name, so that concurrent processes agree on one key.
fn make(dir: &Path, path: &Path, disk: &dyn SegmentDisk) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = dir.join(format!("{name}.{}", random_hex::<8>()?));
    let mut file = open_private(&beside, true)?;
    file.write_all(random_hex::<KEY_BYTES>()?.as_bytes())?;
    file.sync_all()?;
    let linked = fs::hard_link(&beside, path);
    fs::remove_file(&beside)?;
    match linked {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => disk.sync_dir(dir),
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if fs::symlink_metadata(path)?.mode() & 0o077 != 0 {
        return Err(io::Error::other(
            "other users can access the file, so the key is not secret; delete the file to get a new key, or set its mode to 0600",
        ));
    }
    let bytes = fs::read(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let secret = hex::decode(text.trim()).filter(|secret| secret.len() == KEY_BYTES);
    secret.ok_or_else(|| {
        io::Error::other(
            "the file does not contain 64 hexadecimal digits; restore it, or delete it to get a new key",
        )
    })
}
