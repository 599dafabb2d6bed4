//! Rate limit for polls of one task.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use toolgate_protocol::{
    json::ObjectWriter,
    message::{RpcError, code},
};

/// Token bucket for polls: its capacity is the number of polls per minute.
pub(super) struct PollLimiter {
    per_minute: u32,
    tokens: Mutex<(f64, Instant)>,
}

impl PollLimiter {
    pub(super) fn new(per_minute: u32) -> PollLimiter {
        let left = Mutex::new((f64::from(per_minute), Instant::now()));
        PollLimiter {
            per_minute,
            tokens: left,
        }
    }

    /// Takes one token.
    ///
    /// # Errors
    /// The limit is exceeded. The error gives the wait in its message and in `data.retryAfterMs`.
    pub(super) fn take_token(&self, poll: Duration) -> Result<(), RpcError> {
        let wait = self.time_until_token();
        if wait.is_zero() {
            return Ok(());
        }
        let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
        let (most, poll) = (self.per_minute, poll.as_millis());
        let text = format!(
            "this task was polled too often: the limit is {most} times a minute; poll again in {ms} ms, and then \
             every {poll} ms, the poll interval of the task"
        );
        let mut data = ObjectWriter::new();
        data.int("retryAfterMs", i64::try_from(ms).unwrap_or(i64::MAX));
        Err(RpcError::new(code::INTERNAL_ERROR, text).with_data(data.finish()))
    }

    fn time_until_token(&self) -> Duration {
        let most = f64::from(self.per_minute.max(1));
        let mut left = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let gained = now.saturating_duration_since(left.1).as_secs_f64() * most / 60.0;
        *left = ((left.0 + gained).min(most), now);
        if left.0 >= 1.0 {
            left.0 -= 1.0;
            return Duration::ZERO;
        }
        Duration::from_secs_f64((1.0 - left.0) * 60.0 / most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn limits_the_polls_per_minute() {
        let looks = PollLimiter::new(60);
        let poll = Duration::from_secs(1);
        for _ in 0..60 {
            looks.take_token(poll).unwrap();
        }
        let refused = looks.take_token(poll).unwrap_err();
        let data = refused.data.as_ref().unwrap().to_value();
        assert_eq!(data["retryAfterMs"], 1000, "{}", refused.message);
        // A rejected poll does not extend the wait.
        assert!(looks.take_token(poll).is_err());
        tokio::time::advance(Duration::from_millis(1001)).await;
        looks.take_token(poll).unwrap();
        assert!(looks.take_token(poll).is_err());
        tokio::time::advance(Duration::from_secs(600)).await;
        for _ in 0..60 {
            looks.take_token(poll).unwrap();
        }
        assert!(looks.take_token(poll).is_err());
    }
}
