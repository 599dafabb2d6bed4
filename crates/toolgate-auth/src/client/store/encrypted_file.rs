//! Encrypted file and its key (AES-256-GCM): readable only by their owner, written atomically.

use super::{StoreError, file::MAX_STORE_BYTES};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};
use rustix::fs::{Mode, OFlags, open};
use serde_json::Value;
use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::Path,
};

/// Associated data of the encryption, so that no other file with the same key is accepted.
const ASSOCIATED_DATA: &[u8] = b"toolgate grants 1";

pub(super) fn create_directory(directory: &Path) -> Result<(), StoreError> {
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory);
    made.map_err(|error| StoreError::new(format!("{}: {error}", directory.display())))
}

/// Opens or creates a file with mode 0600. Rejects symbolic links and files that others can access.
pub(super) fn open_private(path: &Path) -> Result<File, StoreError> {
    let failed = |why: String| StoreError::new(format!("{}: {why}", path.display()));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = open(path, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|e| failed(io::Error::from(e).to_string()))?;
    let file = File::from(file);
    let mode = file.metadata().map_err(|e| failed(e.to_string()))?.mode();
    if mode & 0o077 != 0 {
        return Err(failed(format!(
            "other users can access it; restrict it with: chmod 600 {}",
            path.display()
        )));
    }
    Ok(file)
}

/// Reads the encryption key, generating it on first use. Requires the file lock.
pub(super) fn encryption_key(path: &Path) -> Result<LessSafeKey, StoreError> {
    let failed = |why: String| StoreError::new(format!("{}: {why}", path.display()));
    let mut file = open_private(path)?;
    let mut bytes = Vec::new();
    let read = (&mut file).take(64).read_to_end(&mut bytes);
    read.map_err(|e| failed(e.to_string()))?;
    if bytes.is_empty() {
        bytes = vec![0; AES_256_GCM.key_len()];
        let filled = SystemRandom::new().fill(&mut bytes);
        filled.map_err(|_| failed("the operating system provides no random numbers; check its random device, or restart the machine".to_owned()))?;
        let written = file.write_all(&bytes).and_then(|()| file.sync_all());
        written.map_err(|e| failed(e.to_string()))?;
    }
    let key = UnboundKey::new(&AES_256_GCM, &bytes);
    let key = key.map_err(|_| {
        failed(
            "it is not a valid key, so all sign-ins of this data directory are lost; remove it and the file grants.sealed beside it, \
             and sign in again at each server"
                .to_owned(),
        )
    })?;
    Ok(LessSafeKey::new(key))
}

pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let failed = |why: String| StoreError::new(format!("{}: {why}", path.display()));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error.to_string())),
    };
    let mut bytes = Vec::new();
    file.take(MAX_STORE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| failed(e.to_string()))?;
    if bytes.len() as u64 > MAX_STORE_BYTES {
        return Err(failed(format!("it is longer than {MAX_STORE_BYTES} bytes")));
    }
    Ok(Some(bytes))
}

/// Encrypts the contents: nonce, then ciphertext with tag.
pub(super) fn encrypt(key: &LessSafeKey, kept: &Value) -> Result<Vec<u8>, StoreError> {
    let failed = |_| {
        StoreError::new(
            "the credentials cannot be encrypted: the operating system provides no random numbers; check its random device, or restart the machine".to_owned(),
        )
    };
    let mut nonce = [0; NONCE_LEN];
    SystemRandom::new().fill(&mut nonce).map_err(failed)?;
    let mut text = kept.to_string().into_bytes();
    let sealed = key.seal_in_place_append_tag(
        Nonce::assume_unique_for_key(nonce),
        Aad::from(ASSOCIATED_DATA),
        &mut text,
    );
    sealed.map_err(failed)?;
    Ok([&nonce[..], &text].concat())
}

pub(super) fn decrypt(key: &LessSafeKey, mut bytes: Vec<u8>) -> Option<Value> {
    let (nonce, text) = bytes.split_at_mut_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let text = key
        .open_in_place(nonce, Aad::from(ASSOCIATED_DATA), text)
        .ok()?;
    serde_json::from_slice(text).ok().filter(Value::is_object)
}

/// Replaces a file atomically.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let next = path.with_extension("next");
    match fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = open_private(&next).map_err(|error| io::Error::other(error.to_string()))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&next, path)?;
    path.parent()
        .map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}
