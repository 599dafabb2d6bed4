//! Gateways that share a store. Each renews its row while it lives.

use crate::{
    event_log::{self, GatewayEvent},
    timestamp::millis,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolgate_policy::{StateRow, StateStore, WritePrecondition};

/// Table of the gateways.
const GATEWAYS_TABLE: &str = "gateways";
/// Interval at which a gateway renews its row.
const RENEW_INTERVAL: Duration = Duration::from_secs(5);
/// Time after which a row that was not renewed means that its gateway ended.
const LEASE_PERIOD: Duration = Duration::from_secs(15);
/// Time after which the row of an ended gateway is removed.
const FORGET_AFTER: Duration = Duration::from_secs(3600);
/// Length of the tag of a gateway.
const TAG_CHARS: usize = 12;

/// Gateway that shares the store.
#[derive(Clone, Debug)]
pub(crate) struct FleetMember {
    /// Random name of its process.
    pub(crate) tag: String,
    /// Address at which other gateways reach it.
    pub(crate) advertise: Option<String>,
    /// SHA-256 of its config.
    policy: String,
    until: SystemTime,
}

/// Gateways that share the store, as this one sees them.
pub(crate) struct FleetMembers {
    store: Arc<dyn StateStore>,
    tag: String,
    advertise: Option<String>,
    /// Maximum number of gateways, from the config.
    max_gateways: u32,
    warned_of_number: AtomicBool,
    warned_of_policy: Mutex<BTreeSet<String>>,
}

impl FleetMembers {
    /// Creates the membership of this process.
    pub(crate) fn new(
        store: Arc<dyn StateStore>,
        advertise: Option<String>,
        max_gateways: u32,
    ) -> FleetMembers {
        let random = toolgate::ids::secret_id();
        let tag = random.chars().filter(char::is_ascii_alphanumeric);
        FleetMembers {
            store,
            tag: tag.take(TAG_CHARS).collect(),
            advertise,
            max_gateways,
            warned_of_number: AtomicBool::new(false),
            warned_of_policy: Mutex::default(),
        }
    }

    /// Returns the tag of this gateway.
    pub(crate) fn tag(&self) -> &str {
        &self.tag
    }

    /// Returns another gateway, if it lives.
    pub(crate) fn find(&self, tag: &str) -> Option<FleetMember> {
        let row = self.store.row(GATEWAYS_TABLE, tag)?;
        read(&row).filter(|member| member.until > self.store.clock().now())
    }

    /// Returns whether a gateway has the address of this one, so that this one takes over from it.
    pub(crate) fn has_address_of(&self, other: &FleetMember) -> bool {
        self.advertise.is_some() && self.advertise == other.advertise
    }

    /// Returns all gateways that live, also this one.
    fn living(&self) -> Vec<FleetMember> {
        let now = self.store.clock().now();
        let rows = self.store.entries(GATEWAYS_TABLE);
        let members = rows.iter().filter_map(read);
        members.filter(|member| member.until > now).collect()
    }

    /// Writes the row of this gateway, with the digest of its config. A failure is that of the store, which reports it.
    pub(crate) async fn renew(&self, policy: &str) {
        let until = self.store.clock().now() + LEASE_PERIOD;
        let row = json!({
            "advertise": self.advertise, "policy": policy, "until": millis(until),
            "version": env!("CARGO_PKG_VERSION"),
        });
        let written =
            self.store
                .write(GATEWAYS_TABLE, &self.tag, Some(row), WritePrecondition::Any);
        let _ = written.await;
    }

    /// Renews the row of this gateway, and compares it with the others. Never returns.
    pub(crate) async fn follow(&self, policy: impl Fn() -> String) {
        loop {
            let own = policy();
            self.renew(&own).await;
            self.check(&own);
            self.remove_ended().await;
            tokio::time::sleep(RENEW_INTERVAL).await;
        }
    }

    /// Removes the row of this gateway, which stops.
    pub(crate) async fn leave(&self) {
        let removed = self
            .store
            .write(GATEWAYS_TABLE, &self.tag, None, WritePrecondition::Any);
        // Otherwise its lease expires.
        let _ = removed.await;
    }

    /// Warns of more gateways than configured, and of gateways with another config.
    fn check(&self, policy: &str) {
        let living = self.living();
        let too_many = living.len() > self.max_gateways as usize;
        if too_many && !self.warned_of_number.swap(true, Ordering::Relaxed) {
            let text = format!(
                "{} gateways share the store, but gateways = {} in [store]; rate limits allow more while the database is away: raise gateways at all of them, and restart them",
                living.len(),
                self.max_gateways
            );
            event_log::emit(GatewayEvent::Problem { text });
        }
        let mut warned = self
            .warned_of_policy
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for member in living {
            if member.tag != self.tag && member.policy != policy && warned.insert(member.policy) {
                let place = member.advertise.unwrap_or(member.tag);
                let text = format!(
                    "the gateway {place} has another config; approvals of one do not count at the other until both have the same file"
                );
                event_log::emit(GatewayEvent::Problem { text });
            }
        }
    }

    async fn remove_ended(&self) {
        let now = self.store.clock().now();
        for row in self.store.entries(GATEWAYS_TABLE) {
            let ended = read(&row).is_none_or(|member| member.until + FORGET_AFTER < now);
            if ended {
                let expect = WritePrecondition::Version(row.version);
                let removed = self.store.write(GATEWAYS_TABLE, &row.key, None, expect);
                let _ = removed.await;
            }
        }
    }
}

fn read(row: &StateRow) -> Option<FleetMember> {
    let text = |name: &str| row.value.get(name).and_then(Value::as_str);
    let until = Duration::from_millis(row.value.get("until")?.as_u64()?);
    Some(FleetMember {
        tag: row.key.clone(),
        advertise: text("advertise").map(str::to_owned),
        policy: text("policy")?.to_owned(),
        until: UNIX_EPOCH.checked_add(until)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_policy::MemoryStateStore;

    #[tokio::test]
    async fn a_gateway_is_found_until_its_lease_ends() {
        let store = Arc::new(MemoryStateStore::new());
        let member = |advertise: &str| {
            let advertise = Some(advertise.to_owned());
            FleetMembers::new(store.clone(), advertise, 3)
        };
        let (one, other) = (member("a:1"), member("b:1"));
        assert!(one.find(other.tag()).is_none());
        other.renew("p").await;
        let found = one.find(other.tag()).unwrap();
        assert_eq!(found.advertise.as_deref(), Some("b:1"));
        let later = store.clock().now() + LEASE_PERIOD + Duration::from_secs(1);
        store.clock().raise(later);
        assert!(one.find(other.tag()).is_none(), "its lease ended");
        other.renew("p").await;
        assert!(one.find(other.tag()).is_some());
        other.leave().await;
        assert!(one.find(other.tag()).is_none());
    }
}
