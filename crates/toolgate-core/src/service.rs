//! The one trait that everything is.

use crate::{BoxFuture, Call, Catalog, Changes, Error, Interest, List, Questions};
use toolgate_wire::method::output::Output;

/// Something that offers things to use. Layers, clients and aggregates are services too, so they nest.
///
/// There are three doors, and every effect goes through [`Service::call`].
pub trait Service: Send + Sync + 'static {
    /// What the asker may see of one kind, whole and in a stable order.
    fn list(&self, ask: List) -> BoxFuture<'_, Result<Catalog, Error>>;

    /// Uses one of them. Dropping the future cancels the call, all the way down.
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>>;

    /// Tells what went stale, never the new content.
    fn changes(&self, want: Interest) -> BoxFuture<'_, Result<Changes, Error>>;
}

/// How a call ended, when it did not fail.
#[derive(Debug)]
pub enum Outcome {
    /// A person has to answer first; then the same call comes again with the answers.
    Ask(Questions),
    /// It is done. An error of the tool itself is done too.
    Done(Output),
}
