//! Retention of encrypted contents (`keep_contents_days`): destroys the keys of days that are too old.

use crate::{
    event_log::{self, GatewayEvent},
    runtime::{active::ActiveSnapshot, store_location::StoreLocation},
};
use std::{path::Path, time::Duration};
use toolgate_journal::AuditJournal;
use toolgate_policy::{ContentKeys, ErasureScope};

/// Interval of the checks, also for a changed config.
const CHECK_INTERVAL: Duration = Duration::from_secs(600);
/// Delay of the first check, so that it does not slow the start.
const FIRST_DELAY: Duration = Duration::from_secs(1);

/// Destroys the keys of contents that are older than the config allows. Never returns.
pub(crate) async fn enforce_retention(
    keys: &ContentKeys,
    active: &ActiveSnapshot,
    journal: &AuditJournal,
    (data, location): (&Path, &StoreLocation),
) {
    tokio::time::sleep(FIRST_DELAY).await;
    loop {
        let audit = active.snapshot().config.audit.clone();
        if let Some(days) = audit.keep_contents_days
            && !audit.is_on_hold(data)
            && let Err(why) = erase_old(keys, days, journal, location).await
        {
            event_log::emit(GatewayEvent::Problem {
                text: format!(
                    "cannot erase contents that are older than keep_contents_days: {why}; trying again"
                ),
            });
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

async fn erase_old(
    keys: &ContentKeys,
    days: u64,
    journal: &AuditJournal,
    location: &StoreLocation,
) -> Result<(), String> {
    let scope = ErasureScope::Before(keys.day_before(days));
    let old = keys.entries(&scope);
    // Of several gateways, only that which removes the keys records it.
    let removed = keys.destroy(&old).await;
    let removed = removed.map_err(|error| error.public_message().to_owned())?;
    if removed == 0 {
        return Ok(());
    }
    let entry = scope.record(removed).with("by", "retention");
    let recorded = journal.append(entry).await;
    let location = location.clone();
    let purged = tokio::task::spawn_blocking(move || location.purge()).await;
    purged.map_err(|error| error.to_string())??;
    recorded.map(drop).map_err(|error| error.to_string())
}
