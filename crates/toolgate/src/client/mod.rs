//! MCP client: one server as a [`Service`](toolgate_core::Service), in every revision, over a byte stream or HTTP.
//!
//! - [`RemoteServer`]: the service. [`RemoteServer::open`] and [`RemoteServer::connect`] negotiate the revision and perform the
//!   handshake.
//! - `link`: the requests in flight.
//! - `transport`: the transport trait; `stream` implements it for byte streams, `http` for HTTP.
//! - `incoming`: handling of the server's messages.
//! - `open`: the probe and the handshake. `era`: servers that support legacy and stateless revisions.
//! - `sending`: sending of calls.
//! - `lists`: the lists, joined from pages and cached.
//! - `logs`: attribution of log messages to calls.
//! - `call`: parameters of a call, and reading of its result.
//! - `parked`: calls whose server waits for input.
//! - `pinging`: keepalive pings.
//! - `answerer`, `session`: messages outside of calls.
//! - `app`: [`Client`], for an application that has a server to itself.

mod answerer;
mod app;
mod call;
mod era;
mod hearing;
pub(crate) mod http;
mod incoming;
pub(crate) mod lines;
mod link;
mod lists;
mod logs;
mod open;
mod options;
mod parked;
mod pinging;
mod remote;
mod sending;
mod session;
mod stamp;
mod status;
mod stream;
mod subscription;
mod tasks;
mod transport;
mod unusable;

pub use answerer::ClientHandler;
pub use app::{
    CallConfirmation, CallEvent, CallResult, CallState, Client, ClientBuilder, FormElicitation,
    IntoServer, ListedItem, SamplingRequest, SamplingResponse, ToolCallBuilder, UrlElicitation,
};
pub use era::{EraPreference, InputByResultError, RevisionSetting};
pub use http::{HeaderError, HttpOptions, check_url};
pub use open::OpenError;
pub use options::RemoteOptions;
pub use remote::RemoteServer;
pub use status::{ConnectionStatus, ProtocolErrorCounters, sanitize_line};
