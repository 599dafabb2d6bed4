//! Status of the audit log, of the issuers, and of the gateway as a whole.

use super::OperatorApi;
use crate::{
    disk_space,
    event_log::{self, GatewayEvent},
    timestamp::millis,
};
use serde_json::{Value, json};
use std::{path::Path, time::SystemTime};
use toolgate::auth::resource::IssuerStatus;
use toolgate_journal::{AuditEntry, AuditEvent, JournalHealth};
use toolgate_policy::{Approver, sanitize_entry};

impl OperatorApi {
    /// Returns whether audit records can be written, and whether the checkpoint mirror works.
    pub(crate) fn audit_status(&self) -> Value {
        let (state, why) = match self.journal.health() {
            JournalHealth::Healthy => ("written", None),
            JournalHealth::Failed(why) => ("failed", Some(why.to_string())),
            _ => ("closed", None),
        };
        json!({"state": state, "why": why, "checkpoints": self.journal.mirror_error(), "damage": self.damage()})
    }

    /// Returns the damage to the audit log that no operator has acknowledged.
    fn damage(&self) -> Value {
        let one = |about: &str, why: &str| json!({"about": about, "why": why});
        match self.journal.notices() {
            Ok(notices) => notices
                .iter()
                .map(|n| one(&n.subject, &n.description))
                .collect(),
            Err(e) => json!([one(
                "the directory of the audit log",
                &format!("it cannot be read: {e}; check its permissions")
            )]),
        }
    }

    /// Returns the free space of the disk with the data directory, and whether it is below the limit.
    pub(crate) fn disk_status(&self) -> Value {
        let free = disk_space::free_bytes(Path::new(&self.data));
        let least = self.active.snapshot().config.limits.low_disk_bytes;
        json!({"free": free, "low": free.is_some_and(|free| free < least)})
    }

    /// Returns the status of the issuers, as known from past requests to them.
    pub(crate) fn issuers(&self) -> Value {
        let plan = self.active.snapshot();
        let issuers = plan
            .authenticators
            .gateway
            .resource
            .iter()
            .flat_map(|r| r.issuer_status());
        let one = |issuer: IssuerStatus| json!({"id": issuer.id, "url": issuer.url, "error": issuer.error, "since": issuer.since.map(millis)});
        issuers.map(one).collect()
    }

    /// Returns the names and the end of the listener's certificate; null without TLS.
    fn certificate(&self) -> Value {
        self.tls.as_ref().map_or(Value::Null, |tls| {
            let certificate = tls.certificate();
            json!({
                "names": certificate.names, "not_after": millis(certificate.not_after),
                "sha256": certificate.fingerprint, "warning": certificate.expiry_warning(SystemTime::now()),
            })
        })
    }

    /// Returns the short status of the gateway.
    pub(super) fn status(&self) -> Value {
        let open = self.pending_approvals().as_array().map_or(0, Vec::len);
        let plan = self.active.snapshot();
        let disabled = plan.config.disabled_servers.iter().map(|server| &server.id);
        json!({
            "version": env!("CARGO_PKG_VERSION"), "disabled": disabled.collect::<Vec<_>>(), "endpoint": self.endpoint.as_deref().unwrap_or("stdio"),
            "listen": self.listen.map(|listen| listen.to_string()), "certificate": self.certificate(),
            "not_ready": self.health.problems(),
            "data": self.data, "record": self.audit_status(), "servers": self.server_status(), "issuers": self.issuers(),
            "policy": self.reloader.status(), "waiting": open, "keys_ending": self.expiring_keys(),
            "flags": self.flags, "clock_ahead_seconds": self.approvals.clock().ahead().as_secs(),
        })
    }

    /// Audits a sign-in to a server, or a sign-out.
    pub(super) fn record_sign_in(
        &self,
        id: &str,
        caller: Option<&str>,
        state: &'static str,
        who: &Approver,
    ) {
        let entry = sign_in_record(id, caller, state, who);
        // The event has happened already. If the audit log cannot be written, calls are rejected and the console
        // shows it.
        let _ = self.journal.enqueue(sanitize_entry(entry));
    }

    /// Audits that the gateway begins to drain, and signs all records so far.
    pub(crate) fn record_drain(&self) {
        event_log::emit(GatewayEvent::Stopping);
        // If it cannot be written, closing the journal reports that.
        let _ = self
            .journal
            .enqueue_signed(AuditEntry::new(AuditEvent::DRAIN));
    }
}

/// Builds the audit record of a sign-in or sign-out.
pub(crate) fn sign_in_record(
    id: &str,
    caller: Option<&str>,
    state: &'static str,
    who: &Approver,
) -> AuditEntry {
    let entry = AuditEntry::new(AuditEvent::from("sign_in"))
        .with("state", state)
        .with("server", id);
    let entry = match caller {
        Some(caller) => entry.with("caller", caller),
        None => entry,
    };
    who.add_to(entry)
}
