//! Retries of calls that are safe to repeat.

use std::time::Duration;
use tokio::time::sleep;
use toolgate_core::{BoxFuture, Call, Error, ErrorKind, Layer, Next, Op, Outcome};

/// Retries of failed calls that are safe to repeat, with exponential backoff.
///
/// A call is safe to repeat if it reads a resource or a prompt, if its tool is annotated as read-only or idempotent (a
/// client has to trust the annotations of its server), or if it was never sent. It is repeated after errors of the
/// upstream server and when the server is busy, never after a refusal, invalid arguments or a result that reports an
/// error. All attempts share the call timeout and one audit record.
///
/// ```
/// use std::time::Duration;
/// use toolgate_policy::layers::RetryLayer;
///
/// let retries = RetryLayer::new(3).backoff(Duration::from_millis(200));
/// # let _ = retries;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RetryLayer {
    attempts: u32,
    backoff: Duration,
}

impl RetryLayer {
    /// Creates a layer with this many attempts in total, at least one, and a backoff of 100 ms.
    pub fn new(attempts: u32) -> RetryLayer {
        RetryLayer {
            attempts: attempts.max(1),
            backoff: Duration::from_millis(100),
        }
    }

    /// Sets the time before the second attempt; it doubles before each further one.
    pub fn backoff(mut self, first: Duration) -> RetryLayer {
        self.backoff = first;
        self
    }
}

/// Returns true if repeating the call has no further effect.
fn is_repeatable(call: &Call) -> bool {
    match (call.op, call.item()) {
        (Op::Tool, Some(item)) => {
            let annotations = item.annotations();
            annotations.read_only || annotations.idempotent
        }
        (Op::Tool, None) => false,
        _ => true,
    }
}

/// Returns true if another attempt may succeed.
fn is_transient(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Upstream | ErrorKind::Busy(_) | ErrorKind::BadResponse
    )
}

impl Layer for RetryLayer {
    fn name(&self) -> &'static str {
        "retry"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let repeatable = is_repeatable(&call);
            let mut wait = self.backoff;
            for _ in 1..self.attempts {
                let error = match next.attempt(call.clone()).await {
                    Err(error) if is_transient(&error) => error,
                    done => return done,
                };
                if !repeatable && !error.was_not_sent() {
                    return Err(error);
                }
                call.decision_log
                    .add("retry", "again", error.public_message());
                sleep(wait).await;
                wait = wait.saturating_mul(2);
            }
            next.call(call).await
        })
    }
}
