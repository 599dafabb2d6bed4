//! Layers: work around calls, lists and subscriptions.

use crate::{
    BoxFuture, Call, Catalog, ChangeFilter, ChangeStream, Error, ListRequest, Outcome, Service,
};
use std::sync::Arc;

/// Layer around a service.
///
/// A layer forwards at most once and never spawns tasks. It releases its resources in `Drop`.
pub trait Layer: Send + Sync + 'static {
    /// Name of the layer's policy, one word.
    fn name(&self) -> &'static str;

    /// Names of the layer's policies from the caller to the service, if it combines several.
    fn policy_names(&self) -> Vec<&'static str> {
        vec![self.name()]
    }

    /// Handles a list request; forwards it by default.
    fn list<'a>(
        &'a self,
        ask: ListRequest,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Catalog, Error>> {
        next.list(ask)
    }

    /// Handles a call; forwards it by default.
    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        next.call(call)
    }

    /// Handles a subscription to changes; forwards it by default.
    fn changes<'a>(
        &'a self,
        want: ChangeFilter,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<ChangeStream, Error>> {
        next.changes(want)
    }
}

/// Remaining layers and the service. Not `Clone`: a layer forwards at most once.
pub struct Next<'a> {
    layers: &'a [Arc<dyn Layer>],
    service: &'a dyn Service,
}

impl<'a> Next<'a> {
    pub(crate) fn new(rest: &'a [Arc<dyn Layer>], end: &'a dyn Service) -> Next<'a> {
        Next {
            layers: rest,
            service: end,
        }
    }

    /// Lists items through the remaining layers without using up the one permitted forward.
    pub fn lookup(&self, ask: ListRequest) -> BoxFuture<'a, Result<Catalog, Error>> {
        self.fork_for_lookup().list(ask)
    }

    /// Forwards a list to the next layer.
    pub fn list(self, ask: ListRequest) -> BoxFuture<'a, Result<Catalog, Error>> {
        match self.layers.split_first() {
            Some((layer, rest)) => layer.list(
                ask,
                Next {
                    layers: rest,
                    service: self.service,
                },
            ),
            None => self.service.list(ask),
        }
    }

    /// Forwards a call to the next layer.
    pub fn call(self, call: Call) -> BoxFuture<'a, Result<Outcome, Error>> {
        match self.layers.split_first() {
            Some((layer, rest)) => layer.call(
                call,
                Next {
                    layers: rest,
                    service: self.service,
                },
            ),
            None => self.service.call(call),
        }
    }

    /// Forwards a subscription to the next layer.
    pub fn changes(self, want: ChangeFilter) -> BoxFuture<'a, Result<ChangeStream, Error>> {
        match self.layers.split_first() {
            Some((layer, rest)) => layer.changes(
                want,
                Next {
                    layers: rest,
                    service: self.service,
                },
            ),
            None => self.service.changes(want),
        }
    }

    /// Returns a second handle to the remaining layers, for a lookup before the call.
    pub(crate) fn fork_for_lookup(&self) -> Next<'a> {
        Next {
            layers: self.layers,
            service: self.service,
        }
    }
}
