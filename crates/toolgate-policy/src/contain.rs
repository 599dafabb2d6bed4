//! A panic below is an error of the one call in which it happened.

use futures_util::FutureExt;
use std::{future::Future, panic::AssertUnwindSafe};
use toolgate_core::{
    BoxFuture, Call, Catalog, Changes, Error, Interest, Kind, Layer, List, Next, Outcome,
};

/// Turns a panic into [`Kind::Bug`]. What the panic said goes to the panic hook, never to the caller.
pub struct Contain;

/// The future is gone after a panic, so nobody sees what it left half done.
async fn contained<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let bug = |_| {
        Err(Error::new(
            Kind::Bug,
            "internal error: this is a fault of the gateway; its log says more",
        ))
    };
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .unwrap_or_else(bug)
}

impl Layer for Contain {
    fn name(&self) -> &'static str {
        "contain"
    }

    fn list<'a>(&'a self, ask: List, next: Next<'a>) -> BoxFuture<'a, Result<Catalog, Error>> {
        Box::pin(contained(async move { next.list(ask).await }))
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(contained(async move { next.call(call).await }))
    }

    fn changes<'a>(
        &'a self,
        want: Interest,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Changes, Error>> {
        Box::pin(contained(async move { next.changes(want).await }))
    }
}
