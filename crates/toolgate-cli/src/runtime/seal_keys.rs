//! Keys that seal the state that clients hold. They are stored, so that input requests survive a restart, and rotated
//! daily.

use crate::event_log::{self, GatewayEvent};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolgate::edge::ProtocolServer;
use toolgate_policy::{StateRow, StateStore, WritePrecondition};
use toolgate_protocol::hex;

const SEAL_KEYS_TABLE: &str = "seal_keys";
/// Seconds for which a key seals. It unseals for as long again, which is longer than any state is valid.
const SEAL_PERIOD_SECONDS: u64 = 24 * 60 * 60;
/// Interval of the checks for a new key.
const SEAL_KEY_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Returns the current keys, the newest first. Creates the newest if no process of the data directory has.
///
/// # Errors
/// A key cannot be created or stored; the message says why.
pub(crate) async fn current_keys(store: &dyn StateStore) -> Result<Vec<[u8; 32]>, String> {
    keys_at(store, store.clock().now()).await
}

async fn keys_at(store: &dyn StateStore, now: SystemTime) -> Result<Vec<[u8; 32]>, String> {
    let period = now.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()) / SEAL_PERIOD_SECONDS;
    let newest = row_key(period);
    if !store
        .entries(SEAL_KEYS_TABLE)
        .iter()
        .any(|row| row.key == newest)
    {
        let key = json!({ "key": new_key()? });
        // Another process may have created the key first; then that one counts.
        let made = store.write(
            SEAL_KEYS_TABLE,
            &newest,
            Some(key),
            WritePrecondition::Absent,
        );
        made.await.map_err(|e| e.public_message().to_owned())?;
    }
    let mut rows = store.entries(SEAL_KEYS_TABLE);
    rows.sort_by(|a, b| b.key.cmp(&a.key));
    let oldest = row_key(period.saturating_sub(1));
    for over in rows.extract_if(.., |row| row.key < oldest) {
        // A key that cannot be removed now is removed later. It unseals nothing meanwhile.
        let _ = store
            .write(SEAL_KEYS_TABLE, &over.key, None, WritePrecondition::Any)
            .await;
    }
    // A clock that was set back leaves keys of the future. They unseal, and do not seal.
    rows.sort_by_key(|row| row.key > newest);
    let keys: Option<Vec<[u8; 32]>> = rows.iter().map(parse_key).collect();
    keys.ok_or_else(|| "a stored key that encrypts requestState is invalid; stop the gateways, and run: toolgate store clear seal_keys".to_owned())
}

/// Updates the seal keys of a server when a new period begins, or when another process created a key.
pub(crate) async fn refresh_keys(store: Arc<dyn StateStore>, front: Arc<ProtocolServer>) {
    loop {
        tokio::time::sleep(SEAL_KEY_CHECK_INTERVAL).await;
        match current_keys(store.as_ref()).await {
            Ok(keys) => drop(front.set_seal_keys(&keys)),
            Err(why) => event_log::emit(GatewayEvent::Problem {
                text: format!(
                    "cannot renew the keys that encrypt requestState, so the current ones stay in use: {why}"
                ),
            }),
        }
    }
}

/// Returns the row key of a period. Row keys sort by age.
fn row_key(period: u64) -> String {
    format!("k-{period:010}")
}

fn new_key() -> Result<String, String> {
    let mut key = [0; 32];
    let filled = SystemRandom::new().fill(&mut key);
    filled.map_err(|_| "the operating system provides no random numbers; check its random device, or restart the machine".to_owned())?;
    Ok(hex::encode(&key))
}

fn parse_key(row: &StateRow) -> Option<[u8; 32]> {
    let text = row.value.get("key")?.as_str()?;
    hex::decode(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_policy::MemoryStateStore;

    fn day(n: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(n * SEAL_PERIOD_SECONDS + 7)
    }

    #[tokio::test]
    async fn rotates_daily_and_still_unseals_with_the_previous_key() {
        let store = MemoryStateStore::new();
        let first = keys_at(&store, day(100)).await.unwrap();
        assert_eq!(keys_at(&store, day(100)).await.unwrap(), first, "kept");
        let second = keys_at(&store, day(101)).await.unwrap();
        assert_eq!((second.len(), second[1]), (2, first[0]));
        let third = keys_at(&store, day(102)).await.unwrap();
        assert_eq!((third.len(), third[1]), (2, second[0]));
        assert_eq!(
            store.entries(SEAL_KEYS_TABLE).len(),
            2,
            "the oldest is forgotten"
        );
    }

    #[tokio::test]
    async fn a_clock_that_is_set_back_seals_with_the_key_of_its_day() {
        let store = MemoryStateStore::new();
        let later = keys_at(&store, day(101)).await.unwrap();
        let keys = keys_at(&store, day(100)).await.unwrap();
        assert_eq!((keys.len(), keys[1]), (2, later[0]));
    }

    #[tokio::test]
    async fn rejects_an_invalid_key() {
        let store = MemoryStateStore::new();
        let bad = Some(json!({"key": "00"}));
        store
            .write(SEAL_KEYS_TABLE, &row_key(100), bad, WritePrecondition::Any)
            .await
            .unwrap();
        assert!(keys_at(&store, day(100)).await.is_err());
    }
}
