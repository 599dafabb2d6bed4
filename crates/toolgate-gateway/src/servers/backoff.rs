//! How long to wait before a server is started again.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// The first wait.
const FIRST: Duration = Duration::from_millis(500);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(60);
/// A server that ran this long is well again.
const WELL: Duration = Duration::from_secs(60);

/// How long to wait before a server is started again: twice as long each time, up to a minute.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The next wait, after a life in which the server ran for that long.
    pub(super) fn next(&mut self, ran: Duration) -> Duration {
        if ran >= WELL {
            self.failures = 0;
        }
        let whole = FIRST
            .saturating_mul(1 << self.failures.min(16))
            .min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        whole.mul_f64(0.8 + 0.2 * fraction())
    }
}

/// A number from 0 to 1, so that servers that fell together do not rise together.
fn fraction() -> f64 {
    f64::from(RandomState::new().hash_one(0) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_minute_and_start_anew_after_a_good_run() {
        let mut backoff = Backoff::default();
        let mut waits: Vec<Duration> = (0..40).map(|_| backoff.next(Duration::ZERO)).collect();
        assert!(waits[0] >= Duration::from_millis(400) && waits[0] <= FIRST);
        assert!(waits.iter().all(|wait| *wait <= LONGEST));
        assert!(
            waits
                .split_off(10)
                .iter()
                .all(|wait| *wait >= LONGEST.mul_f64(0.8))
        );
        assert!(backoff.next(WELL) <= FIRST);
    }
}
