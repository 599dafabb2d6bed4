//! Backoff between the starts of a server.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// First wait.
const FIRST_RESTART_WAIT: Duration = Duration::from_millis(500);
/// Maximum wait.
const MAX_RESTART_WAIT: Duration = Duration::from_secs(60);
/// Run time of a server that undoes one doubling.
const BACKOFF_DECAY: Duration = Duration::from_secs(5);
/// Number of doublings after which the wait no longer grows.
const MAX_DOUBLINGS: u32 = 7;

/// Exponential backoff between the starts of a server, up to one minute.
///
/// A run undoes one doubling for each 5 s, so a server that works most of the time restarts soon after each crash.
#[derive(Debug, Default)]
pub(super) struct RestartBackoff {
    failures: u32,
}

impl RestartBackoff {
    /// Returns the next wait, after the server ran for that time.
    pub(super) fn next(&mut self, ran: Duration) -> Duration {
        let taken_back = ran.as_secs() / BACKOFF_DECAY.as_secs();
        let taken_back = u32::try_from(taken_back).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_sub(taken_back);
        let whole = FIRST_RESTART_WAIT
            .saturating_mul(1 << self.failures)
            .min(MAX_RESTART_WAIT);
        self.failures = (self.failures + 1).min(MAX_DOUBLINGS);
        whole.mul_f64(0.8 + 0.2 * fraction())
    }
}

/// Returns a random number from 0 to 1, so that servers that crashed together do not restart together.
fn fraction() -> f64 {
    f64::from(RandomState::new().hash_one(0) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_crashes_once_a_minute_is_back_at_once_each_time() {
        let mut backoff = RestartBackoff::default();
        for _ in 0..40 {
            backoff.next(Duration::ZERO);
        }
        let ran = Duration::from_secs(50);
        let waits: Vec<Duration> = (0..20).map(|_| backoff.next(ran)).collect();
        assert!(
            waits[2..].iter().all(|wait| *wait <= FIRST_RESTART_WAIT),
            "{waits:?}"
        );
    }

    #[test]
    fn a_run_takes_back_as_much_as_it_lasted() {
        let mut backoff = RestartBackoff::default();
        let last = |backoff: &mut RestartBackoff, ran| (0..20).map(|_| backoff.next(ran)).last();
        let crashing = last(&mut backoff, Duration::from_secs(2));
        assert!(
            crashing >= Some(MAX_RESTART_WAIT.mul_f64(0.8)),
            "{crashing:?}"
        );
        let working = last(&mut backoff, Duration::from_secs(12));
        assert!(working <= Some(FIRST_RESTART_WAIT), "{working:?}");
    }

    #[test]
    fn waits_grow_to_a_minute_and_reset_after_a_good_run() {
        let mut backoff = RestartBackoff::default();
        let mut waits: Vec<Duration> = (0..40).map(|_| backoff.next(Duration::ZERO)).collect();
        assert!(waits[0] >= Duration::from_millis(400) && waits[0] <= FIRST_RESTART_WAIT);
        assert!(waits.iter().all(|wait| *wait <= MAX_RESTART_WAIT));
        assert!(
            waits
                .split_off(10)
                .iter()
                .all(|wait| *wait >= MAX_RESTART_WAIT.mul_f64(0.8))
        );
        assert!(backoff.next(BACKOFF_DECAY * 7) <= FIRST_RESTART_WAIT);
    }
}
