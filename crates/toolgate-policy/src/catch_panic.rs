//! Panic isolation: a panic fails only the call in which it happens.

mod panic_hook;

pub(crate) use panic_hook::with_panics_withheld;
pub use panic_hook::withhold_panic_messages;

use futures_util::FutureExt;
use std::{
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::pin,
};
use toolgate_core::{
    BoxFuture, Call, Catalog, ChangeFilter, ChangeStream, Error, ErrorKind, Layer, ListRequest,
    Next, Outcome,
};

/// Layer that turns a panic of a handler or inner layer into an error of the call ([`ErrorKind::Bug`]).
///
/// It writes the location of the panic to standard error. It writes the message only if that is a string literal: a
/// formatted message may contain arguments or secrets. The program's own panic hook does not run for panics in calls.
pub struct CatchPanic;

/// The future is dropped after a panic, so no code can observe its partial state.
async fn catch_panic<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let bug = |_| {
        Err(Error::new(
            ErrorKind::Bug,
            "internal error: a bug in this program stopped the call, which may have taken effect; the operator finds the location of the bug in the standard error output",
        ))
    };
    let quiet = async {
        let mut work = pin!(work);
        poll_fn(|cx| with_panics_withheld(|| work.as_mut().poll(cx))).await
    };
    AssertUnwindSafe(quiet)
        .catch_unwind()
        .await
        .unwrap_or_else(bug)
}

impl Layer for CatchPanic {
    fn name(&self) -> &'static str {
        "contain"
    }

    fn list<'a>(
        &'a self,
        ask: ListRequest,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Catalog, Error>> {
        Box::pin(catch_panic(async move { next.list(ask).await }))
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(catch_panic(async move { next.call(call).await }))
    }

    fn changes<'a>(
        &'a self,
        want: ChangeFilter,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<ChangeStream, Error>> {
        Box::pin(catch_panic(async move { next.changes(want).await }))
    }
}
