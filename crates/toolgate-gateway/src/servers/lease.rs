//! Lease on a server.

use super::{LastLists, ServerSpec, ServerStatus, Supervised};
use crate::door::Bearers;
use std::sync::Arc;
use tokio::sync::watch;
use toolgate::{
    BoxFuture, Call, Catalog, Changes, Error, Interest, ItemKind, List, Outcome, Service,
};

/// Lease on a server, shared by the configs that use it.
///
/// The server stops when the last holder drops it. A config that is no longer active drops it when its last call has
/// ended.
pub(crate) struct Lease {
    server: Arc<Supervised>,
    stop: watch::Sender<bool>,
}

impl Lease {
    pub(super) fn new(
        spec: ServerSpec,
        shown: watch::Sender<u64>,
        last: Option<Arc<dyn LastLists>>,
        bearers: &Arc<Bearers>,
    ) -> Lease {
        Lease {
            server: Arc::new(Supervised::new(spec, shown, last, bearers)),
            stop: watch::Sender::new(false),
        }
    }

    /// Returns the specification of the server.
    pub(super) fn spec(&self) -> &ServerSpec {
        &self.server.spec
    }

    pub(super) fn server(&self) -> Arc<Supervised> {
        self.server.clone()
    }

    pub(super) fn stop(&self) -> watch::Sender<bool> {
        self.stop.clone()
    }

    pub(super) fn stopped(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Returns the last known list, without asking the server.
    pub(crate) fn last_known(&self, kind: ItemKind) -> Option<Catalog> {
        // Items that belong to one caller's account are not for others.
        let shared = !self.server.is_of_accounts(kind);
        shared.then(|| self.server.last_known(kind)).flatten()
    }

    /// Returns the status for the console.
    pub(crate) fn status(&self) -> ServerStatus {
        self.server.status()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

impl Service for Lease {
    fn list(&self, ask: List) -> BoxFuture<'_, Result<Catalog, Error>> {
        self.server.list(ask)
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        self.server.call(call)
    }

    fn changes(&self, want: Interest) -> BoxFuture<'_, Result<Changes, Error>> {
        self.server.changes(want)
    }
}
