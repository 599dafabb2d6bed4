//! Message transports: connections that carry whole JSON-RPC messages, such as WebSocket, for servers and clients.
//!
//! Any `Stream` and `Sink` of messages is a [`MessageTransport`]. [`serve`] serves a server over one, and
//! [`ClientBuilder::open_transport`](crate::client::ClientBuilder::open_transport) connects a client over one. The
//! combinators of `futures` adapt most connections:
//!
//! ```
//! use futures_util::{SinkExt, StreamExt, future::ready};
//! use std::io;
//! use tokio::io::{AsyncRead, AsyncWrite};
//! use tokio_tungstenite::{WebSocketStream, tungstenite::Message};
//! use toolgate::transport::MessageTransport;
//!
//! /// Makes a WebSocket connection a transport: one JSON-RPC message is one text message.
//! fn transport<S>(socket: WebSocketStream<S>) -> impl MessageTransport
//! where
//!     S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
//! {
//!     socket
//!         .sink_map_err(io::Error::other)
//!         .with(|text: String| ready(Ok::<_, io::Error>(Message::text(text))))
//!         .filter_map(|message| {
//!             ready(match message {
//!                 Ok(Message::Text(text)) => Some(Ok(text.into())),
//!                 Ok(Message::Binary(bytes)) => Some(Ok(bytes)),
//!                 Ok(_) => None, // pings, and the frame that closes the connection
//!                 Err(error) => Some(Err(io::Error::other(error))),
//!             })
//!         })
//! }
//! ```
//!
//! The transport carries messages and decides nothing. Sizes, nesting, memory, requests in flight and rates are limited
//! on this side of it, as over stdio. Limit the size of a message in the transport too, because a message arrives here
//! only when it is complete. The example `websocket` is a complete server and client.
//!
//! A transport that is a byte stream with one message a line needs none of this: see [`edge::stdio::serve`] and
//! [`ClientBuilder::open`](crate::client::ClientBuilder::open).

pub use crate::edge::MessageTransport;
use crate::edge::{self, ProtocolServer};
use std::{io, sync::Arc};
use toolgate_core::Caller;

/// Serves one MCP client over a transport until its stream ends, which cancels its requests in flight. `name` is the
/// name of the transport in the audit log. After [`ProtocolServer::close`] new requests are rejected, and serving ends
/// when the requests in flight have ended.
///
/// ```
/// # use std::sync::Arc;
/// # use toolgate::{core::Caller, edge::ProtocolServer, transport::{self, MessageTransport}};
/// # async fn f(socket: impl MessageTransport) -> Result<(), Box<dyn std::error::Error>> {
/// let server: Arc<ProtocolServer> = toolgate::Server::new("clock", "1.0.0").build()?;
/// transport::serve(server, Caller::new("anna"), "websocket", socket).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// An error of the transport.
pub async fn serve(
    server: Arc<ProtocolServer>,
    caller: Caller,
    name: &'static str,
    transport: impl MessageTransport,
) -> io::Result<()> {
    edge::serve_transport(server, (caller, name), transport).await
}

/// Serves one MCP client like [`serve`], and ends when `stop` completes, as
/// [`edge::stdio::serve_until`] does.
///
/// # Errors
/// An error of the transport.
pub async fn serve_until(
    server: Arc<ProtocolServer>,
    caller: Caller,
    name: &'static str,
    transport: impl MessageTransport,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    edge::serve_transport_until(server, (caller, name), transport, stop).await
}
