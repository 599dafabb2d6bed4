//! Cancellation of a handler's work.

use std::{
    future::pending,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::watch;

/// Cancellation token of a call. Cheap to clone; it may outlive the call.
///
/// It is cancelled when the future of the handler is dropped before it completed: the caller cancels the call, the call
/// times out, the client disconnects, or the handler panics. It stays as it is once the handler returned.
///
/// An async handler does not need it, because dropping its future ends it at the next `await`. Work on other threads
/// does; [`Cx::cancellation`](super::Cx::cancellation) returns the token for it.
///
/// Specification: [cancellation](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/cancellation).
///
/// ```
/// use toolgate::{Cx, ToolError, handlers::CancellationToken, tool};
///
/// /// Finds the primes up to a number.
/// #[tool(read_only)]
/// async fn primes(limit: u64, cx: Cx) -> Result<String, ToolError> {
///     let token = cx.cancellation();
///     let work = tokio::task::spawn_blocking(move || count(limit, &token));
///     match work.await.map_err(ToolError::show_sources)? {
///         Some(count) => Ok(format!("{count} primes")),
///         None => Err(ToolError::new("cancelled")),
///     }
/// }
///
/// /// Runs on a thread of its own, which dropping the handler does not end.
/// fn count(limit: u64, token: &CancellationToken) -> Option<usize> {
///     let mut count = 0;
///     for number in 2..=limit {
///         if token.is_cancelled() {
///             return None;
///         }
///         count += usize::from((2..number).all(|divisor| number % divisor != 0));
///     }
///     Some(count)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct CancellationToken(watch::Receiver<bool>);

impl CancellationToken {
    /// Returns whether the call was cancelled.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the call is cancelled; forever, if it is not.
    pub async fn cancelled(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|cancelled| *cancelled).await.is_err() {
            // The call completed, and nothing can cancel it any more.
            pending().await
        }
    }
}

/// Cancellation state of one call. The channel exists only if the handler has asked for a token.
#[derive(Default)]
pub(super) struct CancellationState {
    is_cancelled: AtomicBool,
    sender: OnceLock<watch::Sender<bool>>,
}

impl CancellationState {
    pub(super) fn token(&self) -> CancellationToken {
        let sender = self.sender.get_or_init(|| watch::Sender::new(false));
        // The call may have been cancelled before the channel existed.
        if self.is_cancelled.load(Ordering::SeqCst) {
            sender.send_replace(true);
        }
        CancellationToken(sender.subscribe())
    }

    pub(super) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        if let Some(sender) = self.sender.get() {
            sender.send_replace(true);
        }
    }
}
