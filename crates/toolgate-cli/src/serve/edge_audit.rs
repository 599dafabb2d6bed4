//! Audit of requests that the edges reject. More than 100 in 10 s are counted instead of listed.

use crate::telemetry::GatewayTelemetry;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use toolgate::edge::{MissedPings, Rejection, RejectionLog};
use toolgate_core::{BoxFuture, Caller};
use toolgate_journal::{AuditEntry, AuditEvent, AuditJournal};
use toolgate_policy::sanitize_entry;

/// Rejections within [`FLOOD_WINDOW`] that are audited one by one.
const MAX_AUDITED_REJECTIONS: u32 = 100;
/// Period in which rejections are counted.
const FLOOD_WINDOW: Duration = Duration::from_secs(10);

/// Audits the requests that the edges reject.
pub(crate) struct EdgeAudit {
    journal: Arc<AuditJournal>,
    telemetry: Arc<GatewayTelemetry>,
    flood: Mutex<RejectionWindow>,
}

/// Counter of recent rejections, and of those that were not audited one by one.
struct RejectionWindow {
    since: Instant,
    count: u32,
    skipped: u64,
}

impl RejectionWindow {
    /// Returns the number of rejections skipped before this one; `None` if this one is skipped too.
    fn count_rejection(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.since) > FLOOD_WINDOW {
            (self.since, self.count) = (now, 0);
        }
        self.count = self.count.saturating_add(1);
        if self.count > MAX_AUDITED_REJECTIONS {
            self.skipped += 1;
            return None;
        }
        Some(std::mem::take(&mut self.skipped))
    }
}

impl EdgeAudit {
    pub(crate) fn new(journal: Arc<AuditJournal>, telemetry: Arc<GatewayTelemetry>) -> EdgeAudit {
        let flood = RejectionWindow {
            since: Instant::now(),
            count: 0,
            skipped: 0,
        };
        EdgeAudit {
            journal,
            telemetry,
            flood: Mutex::new(flood),
        }
    }
}

impl RejectionLog for EdgeAudit {
    fn rejected(&self, refused: Rejection) -> BoxFuture<'_, ()> {
        self.telemetry
            .edge_rejections
            .increment(&[refused.transport]);
        let mut flood = self.flood.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = flood.count_rejection(Instant::now());
        drop(flood);
        Box::pin(async move {
            let Some(skipped) = taken else { return };
            if skipped > 0 {
                let entry = AuditEntry::new(AuditEvent::OVERLOAD).with("by", "edge");
                let _ = self.journal.enqueue(entry.with("skipped", skipped));
            }
            // The request is rejected whether or not the record can be written. An unhealthy journal is reported
            // elsewhere.
            let _ = self
                .journal
                .append(sanitize_entry(rejection_record(refused)))
                .await;
        })
    }

    fn missed_pings(&self, caller: &Caller, transport: &'static str, unheard: MissedPings) {
        // An unhealthy journal is reported elsewhere.
        let _ = self
            .journal
            .enqueue(client_gone_record(caller, transport, unheard));
    }
}

/// Builds the audit record of a client that stopped answering pings, with what ends for it.
fn client_gone_record(
    caller: &Caller,
    transport: &'static str,
    unheard: MissedPings,
) -> AuditEntry {
    AuditEntry::new("client.unheard")
        .with("caller", caller.name())
        .with("transport", transport)
        .with("pings", unheard.consecutive)
        .with("ended", unheard.disconnects)
}

fn rejection_record(refused: Rejection) -> AuditEntry {
    let entry = AuditEntry::new(AuditEvent::DENY);
    let entry = match refused.address {
        Some(address) => entry.with("addr", address.to_canonical().to_string()),
        None => entry,
    };
    entry
        .with("caller", refused.caller.name())
        .with("transport", refused.transport)
        .with("method", refused.method.unwrap_or_default())
        .with("name", refused.tool.unwrap_or_default())
        .with("dec", "deny")
        .with("out", "refused")
        .with("code", "edge")
        .with("why", refused.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_a_flood_and_reports_it_afterwards() {
        let start = Instant::now();
        let mut flood = RejectionWindow {
            since: start,
            count: 0,
            skipped: 0,
        };
        assert!((0..MAX_AUDITED_REJECTIONS).all(|_| flood.count_rejection(start) == Some(0)));
        assert!((0..7).all(|_| flood.count_rejection(start).is_none()));
        let later = start + FLOOD_WINDOW + Duration::from_secs(1);
        assert_eq!(flood.count_rejection(later), Some(7));
        assert_eq!(flood.count_rejection(later), Some(0));
    }
}
