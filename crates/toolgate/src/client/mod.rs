//! One server as a service: both eras, a byte stream or HTTP, one way to call.
//!
//! - [`Remote`]: the service. [`Remote::open`] and [`Remote::connect`] find out what the server speaks and shake hands.
//! - `link`: the requests in flight.
//! - `transport`: what carries them: `stream` is a stream of bytes, `http` is HTTP.
//! - `incoming`: what a line of the server means.
//! - `open`: the probe and the handshake. `era`: servers that offer both eras.
//! - `sending`: a call on its way out.
//! - `lists`: the lists, joined and cached.
//! - `logs`: whose a log message is.
//! - `call`: the words of a call and what its answer means.
//! - `parked`: calls whose server waits for an answer.
//! - `pinging`: whether it is there while nobody asks.
//! - `answerer`, `session`: what belongs to no call.
//! - `app`: [`Client`], for an application that uses a server alone.

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

pub use answerer::Answerer;
pub use app::{
    CallEvent, CallResult, CallState, Calling, Client, ClientBuilder, Confirming, Form, IntoServer,
    Listed, Page, Sampled, Sampling,
};
pub use era::{AsksByResult, EraPreference, RevisionSetting};
pub use http::{BadHeader, HttpOptions, check_url};
pub use open::OpenError;
pub use options::RemoteOptions;
pub use remote::Remote;
pub use status::{Counters, Status, harmless};
