//! Changes to a data directory without a running gateway, with the same audit records as a gateway would write.

use super::{Failed, Place, Result, explain::runtime};
use crate::serve::warn_of_damage;
use std::{path::Path, sync::Arc};
use toolgate_journal::{
    Entry, Journal,
    state::{State, StateLimits},
};
use toolgate_policy::{Recorder, for_record, keys::Keys};

/// Opens the API keys and runs the given work.
pub(super) fn keys<T>(
    place: &Place<'_>,
    data: &Path,
    work: impl AsyncFnOnce(&Keys, &Journal) -> std::result::Result<T, String>,
) -> Result<T> {
    let state = state(data)?;
    let journal = Arc::new(journal(place, data)?);
    let recorder = Arc::new(Recorder::new(journal.clone()));
    let keys = Keys::new(recorder, Arc::new(state));
    let done = runtime()?.block_on(work(&keys, &journal));
    journal.close();
    done.map_err(Failed::Work)
}

/// Opens the stored state of keys, approvals and freezes.
pub(super) fn state(data: &Path) -> Result<State> {
    let state = State::open(data.join("state"), StateLimits::default());
    state.map_err(|e| Failed::Work(format!("cannot open the state: {}", e.detail())))
}

/// Appends an audit record.
pub(super) fn record(place: &Place<'_>, data: &Path, entry: Entry) -> Result<()> {
    let journal = journal(place, data)?;
    let written = runtime()?.block_on(journal.append(for_record(entry)));
    journal.close();
    written.map(drop).map_err(|e| Failed::Work(e.to_string()))
}

/// Opens the audit log with the options of the config, or with the defaults if the config cannot be read.
fn journal(place: &Place<'_>, data: &Path) -> Result<Journal> {
    let config = place.config().ok();
    let audit = config.as_ref().map(|config| config.audit.clone());
    let mut options = audit.unwrap_or_default().options(data);
    options.product = format!("toolgate {}", env!("CARGO_PKG_VERSION"));
    options.config_hash = config.and_then(|config| config.hash).unwrap_or_default();
    let journal = Journal::open(options);
    let journal = journal.map_err(|e| format!("cannot open the audit log: {e}"))?;
    warn_of_damage(&journal);
    Ok(journal)
}
