//! Lease on a server.

use super::{LastLists, ServerOutputs, ServerSpec, ServerStatus, SupervisedServer};
use crate::authentication::CallerTokens;
use std::sync::Arc;
use tokio::sync::watch;
use toolgate_core::{
    BoxFuture, Call, Catalog, ChangeFilter, ChangeStream, Error, ItemKind, ListRequest, Outcome,
    Service,
};

/// Lease on a server, shared by the configs that use it.
///
/// The server stops when the last holder drops it. A config that is no longer active drops it when its last call has
/// ended.
pub(crate) struct ServerLease {
    server: Arc<SupervisedServer>,
    stop: watch::Sender<bool>,
}

impl ServerLease {
    pub(super) fn new(
        spec: ServerSpec,
        shown: watch::Sender<u64>,
        last: Option<Arc<dyn LastLists>>,
        bearers: &Arc<CallerTokens>,
        outputs: ServerOutputs,
    ) -> ServerLease {
        ServerLease {
            server: Arc::new(SupervisedServer::new(spec, shown, last, bearers, outputs)),
            stop: watch::Sender::new(false),
        }
    }

    /// Returns the specification of the server.
    pub(super) fn spec(&self) -> &ServerSpec {
        &self.server.spec
    }

    pub(super) fn server(&self) -> Arc<SupervisedServer> {
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
        let shared = !self.server.is_account_specific(kind);
        shared.then(|| self.server.last_known(kind)).flatten()
    }

    /// Returns the status for the console.
    pub(crate) fn status(&self) -> ServerStatus {
        self.server.status()
    }
}

impl Drop for ServerLease {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

impl Service for ServerLease {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        self.server.list(ask)
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        self.server.call(call)
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        self.server.changes(want)
    }
}
