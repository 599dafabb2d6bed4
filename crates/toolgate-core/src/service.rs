//! The service trait.

use crate::{
    BoxFuture, Call, Catalog, ChangeFilter, ChangeStream, Error, InputRequests, ListRequest,
};
use toolgate_protocol::method::output::Output;

/// Service that offers tools, resources, prompts and skills. Layers, clients and aggregates are services too, so they
/// nest.
///
/// It has three methods, and every effect goes through [`Service::call`].
pub trait Service: Send + Sync + 'static {
    /// Lists the items of one kind that the caller may see, complete and in a stable order.
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>>;

    /// Executes a call. Dropping the future cancels the call, including at the upstream server.
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>>;

    /// Subscribes to changes of lists and resources, reported without the new content.
    fn changes(&self, filter: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>>;
}

/// Outcome of a call without an error: a result, or required input.
#[derive(Debug)]
pub enum Outcome {
    /// Input is required: the caller repeats the call with the answers to these requests.
    InputRequired(InputRequests),
    /// Result of the call. Errors of the tool itself are results too.
    Done(Output),
}
