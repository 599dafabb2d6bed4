//! A panic below is an error of the one call in which it happened.

mod words;

pub(crate) use words::withheld;
pub use words::withhold_panic_words;

use futures_util::FutureExt;
use std::{
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::pin,
};
use toolgate_core::{
    BoxFuture, Call, Catalog, Changes, Error, Interest, Kind, Layer, List, Next, Outcome,
};

/// Turns a panic into [`Kind::Bug`].
///
/// Where it happened is told on standard error. What it said is told there only if it is fixed in the code: words that
/// were put together may hold arguments or secrets. The panic hook of the program is not asked about panics in calls.
pub struct Contain;

/// The future is gone after a panic, so nobody sees what it left half done.
async fn contained<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let bug = |_| {
        Err(Error::new(
            Kind::Bug,
            "internal error: this is a fault of the gateway; its log says more",
        ))
    };
    let quiet = async {
        let mut work = pin!(work);
        poll_fn(|cx| withheld(|| work.as_mut().poll(cx))).await
    };
    AssertUnwindSafe(quiet)
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
