//! Transport trait: byte stream or HTTP, transparent to the rest of the client.

use super::connection::{RequestFailure, ServerConnection};
use crate::param_headers::ParamHeaderList;
use toolgate_core::BoxFuture;
use toolgate_protocol::{
    dialect::Dialect,
    json::Json,
    message::{self, Id},
};

/// Parts of a request that headers repeat, for intermediaries that route by them.
#[derive(Default)]
pub(super) struct MirroredHeaders {
    /// Revision and item name as in the body; if absent, they are read from the body.
    pub(super) revision_and_name: Option<(&'static Dialect, String)>,
    /// Headers that repeat arguments.
    pub(super) arguments: ParamHeaderList,
}

/// Request to be sent.
pub(super) struct OutgoingRequest<'a> {
    pub(super) id: &'a Id,
    pub(super) method: &'a str,
    pub(super) params: Json,
    pub(super) mirrored: &'a MirroredHeaders,
}

impl OutgoingRequest<'_> {
    /// Returns the JSON-RPC message.
    pub(super) fn message(&self) -> String {
        message::request(self.id, self.method, Some(&self.params))
    }
}

/// Transport to a server. Incoming messages go to [`ServerConnection::receive_line`].
pub(super) trait ClientTransport: Send + Sync {
    /// Sends a request. Completes once only the reply is outstanding. Dropping the future closes the connection that it
    /// opened.
    ///
    /// # Errors
    /// No reply will come.
    fn send<'a>(
        &'a self,
        link: &'a ServerConnection,
        request: &'a OutgoingRequest<'a>,
    ) -> BoxFuture<'a, Result<(), RequestFailure>>;

    /// Sends a notification or an answer with priority over queued requests. Never waits; returns false if it is
    /// dropped.
    fn send_priority(&self, line: String) -> bool;

    /// Sends the message that ends a handshake, before any request that follows.
    fn send_initialized<'a>(
        &'a self,
        link: &'a ServerConnection,
        line: String,
    ) -> BoxFuture<'a, ()>;

    /// Returns whether a dropped request of this revision is cancelled by a notification. Otherwise, closing its stream
    /// cancels it.
    fn cancels_by_notification(&self, dialect: &Dialect) -> bool;

    /// Returns whether the transport is HTTP, so that the rules on headers apply.
    fn is_http(&self) -> bool;

    /// Returns whether the server can send requests in a session that the handshake opened. A server without sessions
    /// cannot match our answer to its request.
    fn keeps_session(&self) -> bool;
}
