//! MCP client: one server as a [`Service`](toolgate_core::Service), in every revision, over a byte stream or HTTP.
//!
//! - [`RemoteServer`]: the service. [`RemoteServer::open`] and [`RemoteServer::connect`] negotiate the revision and perform the
//!   handshake.
//! - `connection`: the requests in flight.
//! - `transport`: the transport trait; `stream` implements it for byte streams, `http` for HTTP.
//! - `incoming`: handling of the server's messages.
//! - `negotiate`: the probe and the handshake. `era`: servers that support legacy and stateless revisions.
//! - `discovery`: what an earlier connection learned. `sending`: sending of calls.
//! - `lists`: the lists, joined from pages and cached.
//! - `log_attribution`: attribution of log messages to calls.
//! - `call`: parameters of a call, and reading of its result.
//! - `parked`: calls whose server waits for input.
//! - `auth_error`: the error of a token source in builds without HTTP.
//! - `keepalive`: keepalive pings.
//! - `client_handler`, `session`: messages outside of calls.
//! - `app`: [`Client`], for an application that has a server to itself.

mod app;
#[cfg(not(feature = "http-client"))]
mod auth_error;
mod call;
mod client_handler;
mod connection;
mod discovery;
mod era;
#[cfg(feature = "http-client")]
pub(crate) mod http;
mod incoming;
mod keepalive;
pub(crate) mod line_codec;
mod lists;
mod log_attribution;
mod negotiate;
mod observed_requests;
mod options;
mod parked;
mod remote;
mod repeated_list;
mod request_meta;
mod resource_subscriptions;
mod sending;
mod session;
mod status;
mod stream;
mod subscription;
mod tasks;
mod transport;
mod unusable_answer;

pub use app::{
    CallConfirmation, CallEvent, CallProgress, CallResult, CallState, Client, ClientBuilder,
    ClientGroup, FormElicitation, InputAnswer, InputKind, InputQuestion, IntoServer, ListedItem,
    ModelCall, ModelFunction, ModelTools, PendingCall, SamplingRequest, SamplingResponse,
    TaskHandle, TaskState, TaskTicket, ToolCallBuilder, ToolCaller, ToolList, UrlElicitation,
};
pub use client_handler::ClientHandler;
pub use discovery::Discovery;
pub use era::{EraPreference, InputByResultError, RevisionSetting};
#[cfg(feature = "http-client")]
pub use http::{HeaderError, HttpOptions, check_url};
pub use negotiate::OpenError;
pub use options::RemoteOptions;
pub use remote::RemoteServer;
pub use status::{ConnectionStatus, ProtocolErrorCounters, sanitize_line};
