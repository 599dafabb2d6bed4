//! Work around a call.

use crate::{BoxFuture, Call, Catalog, Changes, Error, Interest, List, Outcome, Service};
use std::sync::Arc;

/// Work around a call. Every method passes on unless you say otherwise.
///
/// A layer forwards at most once and never spawns. What it opens, it closes in `Drop`.
pub trait Layer: Send + Sync + 'static {
    /// The duty, one word.
    fn name(&self) -> &'static str;

    /// The duties, from the caller to the service, where it does several.
    fn duties(&self) -> Vec<&'static str> {
        vec![self.name()]
    }

    /// Around a list.
    fn list<'a>(&'a self, ask: List, next: Next<'a>) -> BoxFuture<'a, Result<Catalog, Error>> {
        next.list(ask)
    }

    /// Around a call.
    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        next.call(call)
    }

    /// Around a subscription.
    fn changes<'a>(
        &'a self,
        want: Interest,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Changes, Error>> {
        next.changes(want)
    }
}

/// The rest of the pipeline. Not `Clone`: a layer forwards at most once.
pub struct Next<'a> {
    rest: &'a [Arc<dyn Layer>],
    end: &'a dyn Service,
}

impl<'a> Next<'a> {
    pub(crate) fn new(rest: &'a [Arc<dyn Layer>], end: &'a dyn Service) -> Next<'a> {
        Next { rest, end }
    }

    /// Looks something up below, before anything is passed on.
    pub fn look(&self, ask: List) -> BoxFuture<'a, Result<Catalog, Error>> {
        self.fork().list(ask)
    }

    /// Passes a list on.
    pub fn list(self, ask: List) -> BoxFuture<'a, Result<Catalog, Error>> {
        match self.rest.split_first() {
            Some((layer, rest)) => layer.list(
                ask,
                Next {
                    rest,
                    end: self.end,
                },
            ),
            None => self.end.list(ask),
        }
    }

    /// Passes a call on.
    pub fn call(self, call: Call) -> BoxFuture<'a, Result<Outcome, Error>> {
        match self.rest.split_first() {
            Some((layer, rest)) => layer.call(
                call,
                Next {
                    rest,
                    end: self.end,
                },
            ),
            None => self.end.call(call),
        }
    }

    /// Passes a subscription on.
    pub fn changes(self, want: Interest) -> BoxFuture<'a, Result<Changes, Error>> {
        match self.rest.split_first() {
            Some((layer, rest)) => layer.changes(
                want,
                Next {
                    rest,
                    end: self.end,
                },
            ),
            None => self.end.changes(want),
        }
    }

    /// The rest twice over: only `resolve` looks before it calls.
    pub(crate) fn fork(&self) -> Next<'a> {
        Next {
            rest: self.rest,
            end: self.end,
        }
    }
}
