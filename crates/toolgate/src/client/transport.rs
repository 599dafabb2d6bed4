//! How messages reach a server: a stream of bytes, or HTTP. Nothing above it knows which.

use super::link::{Failure, Link};
use http::{HeaderName, HeaderValue};
use toolgate_core::BoxFuture;
use toolgate_wire::{
    json::Json,
    message::{self, Id},
};

/// Headers that repeat arguments of a call.
pub(super) type Headers = Vec<(HeaderName, HeaderValue)>;

/// What headers repeat of a request, for those who route by them.
#[derive(Default)]
pub(super) struct Mirrored {
    /// The revision, and the name of what is used, as they will stand in the body; absent, they are read from there.
    pub(super) said: Option<(&'static str, String)>,
    /// Those of its arguments.
    pub(super) arguments: Headers,
}

/// A request on its way out.
pub(super) struct Outgoing<'a> {
    pub(super) id: &'a Id,
    pub(super) method: &'a str,
    pub(super) params: Json,
    pub(super) mirrored: &'a Mirrored,
}

impl Outgoing<'_> {
    /// The message.
    pub(super) fn line(&self) -> String {
        message::request(self.id, self.method, Some(&self.params))
    }
}

/// The way to a server. What comes back goes through [`Link::take`].
pub(super) trait Transport: Send + Sync {
    /// Carries a request. It ends well once nothing but the reply is to be waited for. Dropping the future closes
    /// what it opened.
    ///
    /// # Errors
    /// No reply will come.
    fn carry<'a>(
        &'a self,
        link: &'a Link,
        request: &'a Outgoing<'a>,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Sends a notification or an answer ahead of all requests that wait. Never waits; false where it is lost.
    fn hurry(&self, line: String) -> bool;

    /// Sends the line that ends a handshake, before any request that follows.
    fn ready<'a>(&'a self, link: &'a Link, line: String) -> BoxFuture<'a, ()>;

    /// Whether a dropped request is cancelled by a notification. Else the end of its stream says so.
    fn tells_cancel(&self, stateless: bool) -> bool;

    /// Whether it is HTTP, so that the rules on headers hold.
    fn is_http(&self) -> bool;

    /// Whether the server can send a request in a session that was opened by a handshake: a server without sessions
    /// cannot match our answer to its request.
    fn keeps_session(&self) -> bool;
}
