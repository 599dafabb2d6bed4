//! One server on a byte stream, as a service: both eras, one way to call.
//!
//! - [`Remote`]: the service. [`Remote::open`] finds out what the server speaks and shakes hands.
//! - `link`: the requests in flight and the two tasks that read and write.
//! - `incoming`: what a line of the server means.
//! - `open`: the probe and the handshake.
//! - `lists`: the lists, joined and cached.
//! - `call`: the words of a call and what its answer means.

mod call;
mod hearing;
mod incoming;
mod lines;
mod link;
mod lists;
mod open;
mod options;
mod remote;
mod status;
mod subscription;

pub use open::OpenError;
pub use options::RemoteOptions;
pub use remote::Remote;
pub use status::{Counters, LeftOut, Status, harmless};
