//! Layers: work around calls, lists and subscriptions. [`from_fn`] makes a layer of a function.

use crate::{
    BoxFuture, Call, Catalog, ChangeFilter, ChangeStream, Error, ListRequest, Outcome, Service,
};
use std::sync::Arc;

/// Layer around a [`Service`]: observes, changes or rejects lists, calls and subscriptions.
///
/// A layer forwards a call at most once, or several times with [`Next::attempt`], one after the other. It never spawns
/// tasks, and releases its resources in `Drop`.
pub trait Layer: Send + Sync + 'static {
    /// Name of the layer's policy in decision logs, one word.
    fn name(&self) -> &'static str;

    /// Returns the names of the layer's policies from the caller to the service, if it combines several.
    fn policy_names(&self) -> Vec<&'static str> {
        vec![self.name()]
    }

    /// Handles a list request; forwards it by default.
    fn list<'a>(
        &'a self,
        request: ListRequest,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Catalog, Error>> {
        next.list(request)
    }

    /// Handles a call; forwards it by default.
    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        next.call(call)
    }

    /// Handles a subscription to changes; forwards it by default.
    fn changes<'a>(
        &'a self,
        filter: ChangeFilter,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<ChangeStream, Error>> {
        next.changes(filter)
    }
}

impl Layer for Arc<dyn Layer> {
    fn name(&self) -> &'static str {
        self.as_ref().name()
    }

    fn policy_names(&self) -> Vec<&'static str> {
        self.as_ref().policy_names()
    }

    fn list<'a>(
        &'a self,
        ask: ListRequest,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Catalog, Error>> {
        self.as_ref().list(ask, next)
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        self.as_ref().call(call, next)
    }

    fn changes<'a>(
        &'a self,
        want: ChangeFilter,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<ChangeStream, Error>> {
        self.as_ref().changes(want, next)
    }
}

/// Creates a layer from an async function around each call, like a middleware function of a web framework. Lists and
/// subscriptions pass unchanged.
///
/// The name is one word, for the list of policies. The function gets the call and [`Next`], the rest of the pipeline.
/// It may change the call, forward it at most once with [`Next::call`], and change the outcome or replace it.
///
/// ```
/// use toolgate_core::layer;
///
/// let slow = layer::from_fn("slow", |call, next| {
///     Box::pin(async move {
///         let name = call.name().to_owned();
///         let started = std::time::Instant::now();
///         let outcome = next.call(call).await;
///         if started.elapsed().as_secs() > 5 {
///             eprintln!("{name} is slow");
///         }
///         outcome
///     })
/// });
/// # let _ = toolgate_core::Pipeline::new().layer(slow);
/// ```
pub fn from_fn<F>(name: &'static str, call: F) -> FnLayer<F>
where
    F: for<'a> Fn(Call, Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> + Send + Sync + 'static,
{
    FnLayer { name, call }
}

/// Layer that [`from_fn`] creates from an async function around each call.
#[derive(Clone, Copy, Debug)]
pub struct FnLayer<F> {
    name: &'static str,
    call: F,
}

impl<F> Layer for FnLayer<F>
where
    F: for<'a> Fn(Call, Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> + Send + Sync + 'static,
{
    fn name(&self) -> &'static str {
        self.name
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        (self.call)(call, next)
    }
}

/// Remaining layers of the pipeline and the service behind them. Not `Clone`: a layer forwards at most once, except for
/// retries with [`Next::attempt`].
pub struct Next<'a> {
    layers: &'a [Arc<dyn Layer>],
    service: &'a dyn Service,
}

impl<'a> Next<'a> {
    /// Creates the rest of a pipeline: layers, the first outermost, over a service.
    pub fn new(rest: &'a [Arc<dyn Layer>], end: &'a dyn Service) -> Next<'a> {
        Next {
            layers: rest,
            service: end,
        }
    }

    /// Lists items through the remaining layers, without using up the layer's one forward.
    pub fn lookup(&self, request: ListRequest) -> BoxFuture<'a, Result<Catalog, Error>> {
        self.fork_for_lookup().list(request)
    }

    /// Forwards a call that a retry may forward again. Use it only for calls that are safe to repeat: what follows acts
    /// for each attempt.
    pub fn attempt(&self, call: Call) -> BoxFuture<'a, Result<Outcome, Error>> {
        self.fork_for_lookup().call(call)
    }

    /// Forwards a list request to the next layer.
    pub fn list(self, request: ListRequest) -> BoxFuture<'a, Result<Catalog, Error>> {
        match self.layers.split_first() {
            Some((layer, rest)) => layer.list(
                request,
                Next {
                    layers: rest,
                    service: self.service,
                },
            ),
            None => self.service.list(request),
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

    /// Forwards a subscription to changes to the next layer.
    pub fn changes(self, filter: ChangeFilter) -> BoxFuture<'a, Result<ChangeStream, Error>> {
        match self.layers.split_first() {
            Some((layer, rest)) => layer.changes(
                filter,
                Next {
                    layers: rest,
                    service: self.service,
                },
            ),
            None => self.service.changes(filter),
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
