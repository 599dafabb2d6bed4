//! Timeout of what a layer surrounds.

use crate::humanize;
use std::time::Duration;
use toolgate_core::{BoxFuture, Call, Error, ErrorKind, Layer, Next, Outcome};

/// Layer that limits the duration of a call, usually of one tool. Progress does not extend the timeout.
///
/// The server-wide timeout ([`CallTimeout`](crate::CallTimeout)) still applies, so a longer one here has no effect.
///
/// ```
/// use std::time::Duration;
/// use toolgate_policy::layers::TimeoutLayer;
///
/// let quick = TimeoutLayer::new(Duration::from_secs(5));
/// # let _ = quick;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TimeoutLayer(Duration);

impl TimeoutLayer {
    /// Creates the timeout.
    pub fn new(limit: Duration) -> TimeoutLayer {
        TimeoutLayer(limit)
    }
}

impl Layer for TimeoutLayer {
    fn name(&self) -> &'static str {
        "timeout"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            match tokio::time::timeout(self.0, next.call(call)).await {
                Ok(outcome) => outcome,
                Err(_) => Err(Error::new(
                    ErrorKind::TimedOut,
                    format!("timed out after {}", humanize::duration(self.0)),
                )),
            }
        })
    }
}
