//! Layers around calls: [`from_fn`] makes one of a function, and the others are ready to use.
//!
//! Add a layer to a whole server with [`Server::layer`](crate::Server::layer), to one tool with
//! [`Tool::layer`](crate::Tool::layer), or to a client with
//! [`ClientBuilder::layer`](crate::client::ClientBuilder::layer). The first one added is outermost. Layers see calls that
//! the rules allow, and results after the checks.
//!
//! A layer of your own needs [`Call`](crate::Call), [`Next`], [`Outcome`](crate::Outcome) and [`Error`](crate::Error);
//! implement [`Layer`] to see lists and subscriptions too.

pub use toolgate_core::layer::{FnLayer, Layer, Next, from_fn};
pub use toolgate_policy::layers::{
    CallSpans, ConcurrentCalls, ErrorMask, ResultCache, RetryLayer, TimeoutLayer, ToolMetrics,
    ToolStats,
};
