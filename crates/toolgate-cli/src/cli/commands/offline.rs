//! Changes to a data directory without a running gateway, with the same audit records as a gateway would write.

use super::{CommandError, DataLocation, Result, explain::runtime};
use crate::{runtime::store_location::StoreLocation, serve::warn_of_damage};
use std::{path::Path, sync::Arc};
use toolgate_journal::{AuditEntry, AuditJournal};
use toolgate_policy::{AuditRecorder, StateStore, keys::ApiKeys, sanitize_entry};

/// Opens the API keys and runs the given work.
pub(super) fn keys<T>(
    place: &DataLocation<'_>,
    data: &Path,
    work: impl AsyncFnOnce(&ApiKeys, &AuditJournal) -> std::result::Result<T, String>,
) -> Result<T> {
    let state = state(&location(place, data)?)?;
    let journal = Arc::new(journal(place, data)?);
    let recorder = Arc::new(AuditRecorder::new(journal.clone()));
    let keys = ApiKeys::new(recorder, state);
    let done = runtime()?.block_on(work(&keys, &journal));
    journal.close();
    done.map_err(CommandError::Failure)
}

/// Returns the location of the stored state. A config that cannot be read does not hide a shared store.
pub(super) fn location(place: &DataLocation<'_>, data: &Path) -> Result<StoreLocation> {
    let found = match place.config() {
        Ok(config) if config.store.url.is_some() => StoreLocation::of(&config, data),
        _ => StoreLocation::without_config(data),
    };
    found.map_err(CommandError::Failure)
}

/// Opens the stored state of keys, approvals and freezes.
pub(super) fn state(location: &StoreLocation) -> Result<Arc<dyn StateStore>> {
    let state = location.open().map(|opened| opened.store);
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
