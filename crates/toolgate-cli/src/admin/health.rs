//! Readiness of the gateway, with the reasons against it.

use crate::runtime::reload::ConfigReloader;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};
use toolgate_journal::{AuditJournal, JournalHealth};
use toolgate_policy::StateStore;

/// Health of the gateway. Its texts contain nothing about files, addresses or servers, because the health pages need no
/// credentials.
pub(crate) struct GatewayHealth {
    journal: Arc<AuditJournal>,
    store: Arc<dyn StateStore>,
    reloader: Arc<ConfigReloader>,
    draining: AtomicBool,
}

impl GatewayHealth {
    pub(crate) fn new(
        journal: Arc<AuditJournal>,
        store: Arc<dyn StateStore>,
        reloader: Arc<ConfigReloader>,
    ) -> GatewayHealth {
        GatewayHealth {
            journal,
            store,
            reloader,
            draining: AtomicBool::new(false),
        }
    }

    /// Marks the gateway as draining: it accepts no new work.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Relaxed);
    }

    /// Returns the reasons for which the gateway cannot serve calls; empty if it is ready.
    pub(crate) fn problems(&self) -> Vec<&'static str> {
        let mut problems = Vec::new();
        if self.draining.load(Relaxed) {
            problems.push("draining: the gateway is shutting down");
        }
        match self.journal.health() {
            JournalHealth::Healthy => {}
            JournalHealth::Failed(_) => problems
                .push("audit log: it cannot be written, so no call can run; see `toolgate status`"),
            _ => problems.push("audit log: it is closed"),
        }
        if self.store.failure().is_some() {
            problems.push("store: it cannot be written; see `toolgate status`");
        }
        if self.store.stale_reason().is_some() {
            problems.push(
                "shared store: it has been away for too long, so API keys cannot be checked; see the log of the gateway",
            );
        }
        problems
    }

    /// Returns what an operator should know although the gateway serves calls.
    pub(crate) fn warnings(&self) -> Vec<&'static str> {
        let mut warnings = Vec::new();
        if self.reloader.is_config_rejected() {
            warnings.push("config: the newest version was rejected, so the one before is in use; see `toolgate status`");
        }
        if self.journal.mirror_error().is_some() {
            warnings
                .push("checkpoint mirror: it lacks the newest checkpoint; see `toolgate status`");
        }
        warnings
    }
}
