//! Terms of a chain: its own statements by which a verifier judges its unsigned end, its mirror and its key.

use crate::entry::AuditEntry;
use crate::options::JournalOptions;
use std::path::{Path, PathBuf};

/// Largest integer of a record.
const MAX_NUMBER: u64 = (1 << 53) - 1;

/// Number of digits of the digest of `mac.key` in `key_id`.
const KEY_ID_DIGITS: usize = 16;

/// Adds the fields that identify the writing process to an entry.
pub(crate) fn introduce(
    mut entry: AuditEntry,
    options: &JournalOptions,
    mac_key: &str,
) -> AuditEntry {
    for (name, value) in &options.extra_fields {
        // A field of the entry has precedence over an additional field of the same name.
        if entry.raw(name).is_none() {
            entry = entry.with(name.clone(), value.clone());
        }
    }
    let key_id = mac_key.get(..KEY_ID_DIGITS).unwrap_or(mac_key);
    with_terms(entry, options, mac_key)
        .with("product", options.product.as_str())
        .with("config_hash", options.config_hash.as_str())
        .with("key_id", key_id)
        .with("pid", std::process::id())
}

/// Adds the bounds of the unsigned end, the digest of `mac.key` and the path of the checkpoint mirror.
pub(crate) fn with_terms(entry: AuditEntry, options: &JournalOptions, mac_key: &str) -> AuditEntry {
    let micros = options.checkpoint_interval.as_micros();
    let seconds = u64::try_from(micros.div_ceil(1_000_000)).unwrap_or(MAX_NUMBER);
    let batch = u64::try_from(options.max_batch_records.max(1)).unwrap_or(MAX_NUMBER);
    let records = options.checkpoint_records.max(1);
    let entry = entry
        .with("batch_records", batch.min(MAX_NUMBER))
        .with("checkpoint_records", records.min(MAX_NUMBER))
        .with("checkpoint_seconds", seconds.min(MAX_NUMBER))
        .with("mac_key", mac_key);
    match &options.checkpoint_mirror {
        Some(mirror) => entry.with("checkpoint_mirror", &*absolute(mirror).to_string_lossy()),
        None => entry,
    }
}

/// Returns the absolute path, because a verifier may run in another directory.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
