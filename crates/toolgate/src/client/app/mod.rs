//! [`Client`]: one server for one application, in every revision, with the duties of a client on.
//!
//! - `builder`: what the application brings along. `opening`: the three ways to a server.
//! - `client`, `calling`, `result`: what is done with a server.
//! - `skills`: instructions that are loaded when they are wanted.
//! - `rounds`: a call until it has an outcome. `answers`: the application's functions answer the server.
//! - `form`, `page`, `sampling`: what a server asks.
//! - `child`: the process of a server that was started here.

mod answers;
mod builder;
mod calling;
mod child;
mod client;
mod confirming;
mod errors;
mod form;
mod in_process;
mod listed;
mod observing;
mod opening;
mod page;
mod result;
mod roots;
mod rounds;
mod sampling;
mod skills;
mod unlisted;

pub use builder::ClientBuilder;
pub use calling::Calling;
pub use client::Client;
pub use confirming::Confirming;
pub use form::Form;
pub use in_process::IntoServer;
pub use listed::Listed;
pub use observing::{CallEvent, CallState};
pub use page::Page;
pub use result::CallResult;
pub use sampling::{Sampled, Sampling};

use std::sync::Arc;
use toolgate_core::BoxFuture;

/// A function of the application that takes its time.
type Asked<I, O> = Arc<dyn Fn(I) -> BoxFuture<'static, O> + Send + Sync>;
/// A function of the application that is told something.
type Told<I> = Arc<dyn Fn(I) + Send + Sync>;
