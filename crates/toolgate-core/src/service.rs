//! The service trait.

use crate::{
    BoxFuture, Call, Catalog, ChangeFilter, ChangeStream, Error, InputRequests, ListRequest,
};
use toolgate_protocol::method::output::Output;

/// Service that offers items. Layers, clients and aggregates are services too, so they nest.
///
/// It has three methods, and every effect goes through [`Service::call`].
pub trait Service: Send + Sync + 'static {
    /// Lists the items of one kind that the caller may see, complete and in a stable order.
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>>;

    /// Executes a call. Dropping the future cancels the call, including at the upstream server.
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>>;

    /// Subscribes to change notifications, which never contain the new content.
    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>>;
}

/// Outcome of a call that did not fail.
#[derive(Debug)]
pub enum Outcome {
    /// Input is required; the caller repeats the call with the answers.
    InputRequired(InputRequests),
    /// Result of the call. Errors of the tool itself are results too.
    Done(Output),
}
