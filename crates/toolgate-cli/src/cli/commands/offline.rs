//! Changes to a data directory without a running gateway, with the same audit records as a gateway would write.

use super::{CommandError, DataLocation, Result, explain::runtime};
use crate::serve::warn_of_damage;
use std::{path::Path, sync::Arc};
use toolgate_journal::{AuditEntry, AuditJournal};
use toolgate_policy::{AuditRecorder, keys::ApiKeys, sanitize_entry};
use toolgate_store::{DatabaseStore, StoreLimits};

/// Opens the API keys and runs the given work.
pub(super) fn keys<T>(
    place: &DataLocation<'_>,
    data: &Path,
    work: impl AsyncFnOnce(&ApiKeys, &AuditJournal) -> std::result::Result<T, String>,
) -> Result<T> {
    let state = state(data)?;
    let journal = Arc::new(journal(place, data)?);
    let recorder = Arc::new(AuditRecorder::new(journal.clone()));
    let keys = ApiKeys::new(recorder, Arc::new(state));
    let done = runtime()?.block_on(work(&keys, &journal));
    journal.close();
    done.map_err(CommandError::Failure)
}

/// Opens the stored state of keys, approvals and freezes.
pub(super) fn state(data: &Path) -> Result<DatabaseStore> {
    let state = DatabaseStore::open(data.join("state"), StoreLimits::default());
    state.map_err(|e| {
        CommandError::Failure(format!(
            "cannot open the stored keys, approvals and pins: {}",
            e.detail()
        ))
    })
}

/// Appends an audit record.
pub(super) fn record(place: &DataLocation<'_>, data: &Path, entry: AuditEntry) -> Result<()> {
    let journal = journal(place, data)?;
    let written = runtime()?.block_on(journal.append(sanitize_entry(entry)));
    journal.close();
    written
        .map(drop)
        .map_err(|e| CommandError::Failure(e.to_string()))
}

/// Opens the audit log with the options of the config, or with the defaults if the config cannot be read.
pub(super) fn journal(place: &DataLocation<'_>, data: &Path) -> Result<AuditJournal> {
    let config = place.config().ok();
    let audit = config.as_ref().map(|config| config.audit.clone());
    let mut options = audit.unwrap_or_default().journal_options(data);
    options.product = format!("toolgate {}", env!("CARGO_PKG_VERSION"));
    options.config_hash = config.and_then(|config| config.hash).unwrap_or_default();
    let journal = AuditJournal::open(options);
    let journal = journal.map_err(|e| e.to_string())?;
    warn_of_damage(&journal);
    Ok(journal)
}
