//! Circuit breaker of each server: stops calls to a server that keeps failing, and tries again after a pause.

use crate::humanize;
use foldhash::HashMap as FoldHashMap;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use toolgate_core::{
    BoxFuture, Call, CancelReason, DecisionLog, Error, ErrorKind, Item, Layer, MaybeReady, Next,
    Outcome, Rule, RuleDecision,
};

/// Circuit breaker: after `failures` failed calls in a row to one server, rejects calls to it for `pause`.
///
/// After the pause one trial call is let through. If it succeeds the circuit closes; if it fails the circuit opens for
/// another pause. A call fails if it times out or the server fails; an error response of the server is not a failure.
/// Clones share the state.
///
/// As a rule it rejects calls before an approval is requested; as a layer it counts their outcomes.
///
/// ```
/// use std::time::Duration;
/// use toolgate_core::Pipeline;
/// use toolgate_policy::CircuitBreaker;
///
/// let mut breaker = CircuitBreaker::default();
/// breaker.failures = 3;
/// breaker.pause = Duration::from_secs(10);
/// // As a rule it rejects calls, and as the innermost layer it counts failures.
/// let pipeline = Pipeline::new().resolve().rule(breaker.clone()).layer(breaker);
/// # drop(pipeline);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct CircuitBreaker {
    /// Failed calls in a row that open the circuit of a server; default 10, 0 never opens it.
    pub failures: u32,
    /// Time for which a server's open circuit rejects calls; default 30 s.
    pub pause: Duration,
    circuits: Arc<Mutex<ServerCircuits>>,
}

type ServerCircuits = FoldHashMap<Arc<str>, CircuitState>;

/// State of a server with failures. A server without an entry has none.
struct CircuitState {
    consecutive_failures: u32,
    /// End of the pause, while the circuit is open.
    open_until: Option<Instant>,
    /// True while the trial call after the pause is running.
    trial: bool,
}

impl Default for CircuitBreaker {
    fn default() -> CircuitBreaker {
        CircuitBreaker {
            failures: 10,
            pause: Duration::from_secs(30),
            circuits: Arc::default(),
        }
    }
}

impl CircuitBreaker {
    /// Returns a circuit breaker with other settings that shares the state of the servers' circuits.
    #[doc(hidden)]
    pub fn with_settings(&self, failures: u32, pause: Duration) -> CircuitBreaker {
        CircuitBreaker {
            failures,
            pause,
            circuits: self.circuits.clone(),
        }
    }

    fn circuits(&self) -> MutexGuard<'_, ServerCircuits> {
        self.circuits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an error while the circuit of this server is open.
    fn check(&self, server: &str, now: Instant) -> Result<(), Error> {
        match self.circuits().get(server) {
            Some(circuit) if self.failures > 0 => circuit.check(server, now),
            _ => Ok(()),
        }
    }

    /// Lets a call through or rejects it. The guard receives the outcome.
    fn enter(
        &self,
        server: &Arc<str>,
        decision_log: DecisionLog,
        now: Instant,
    ) -> Result<CallGuard<'_>, Error> {
        let mut trial = false;
        if self.failures > 0
            && let Some(circuit) = self.circuits().get_mut(server)
        {
            circuit.check(server, now)?;
            trial = circuit.open_until.is_some();
            circuit.trial = trial;
        }
        Ok(CallGuard {
            breaker: self,
            server: server.clone(),
            decision_log,
            trial,
            reported: false,
        })
    }

    fn failed(&self, server: &Arc<str>, now: Instant) {
        let mut circuits = self.circuits();
        let circuit = circuits.entry(server.clone()).or_insert(CircuitState {
            consecutive_failures: 0,
            open_until: None,
            trial: false,
        });
        circuit.consecutive_failures = circuit.consecutive_failures.saturating_add(1);
        if self.failures > 0 && circuit.consecutive_failures >= self.failures {
            circuit.open_until = now.checked_add(self.pause);
        }
    }

    /// Closes the circuit. While it is open, only the trial call does: a success of a call that began before the
    /// failures does not show that the server has recovered.
    fn succeeded(&self, server: &Arc<str>, trial: bool) {
        let mut circuits = self.circuits();
        let is_open = |circuit: &CircuitState| circuit.open_until.is_some();
        if trial || !circuits.get(server).is_some_and(is_open) {
            circuits.remove(server);
        }
    }
}

impl CircuitState {
    fn check(&self, server: &str, now: Instant) -> Result<(), Error> {
        let Some(until) = self.open_until else {
            return Ok(());
        };
        let left = until.saturating_duration_since(now);
        if left.is_zero() && !self.trial {
            return Ok(());
        }
        let (count, again) = (
            self.consecutive_failures,
            match left.is_zero() {
                true => "when the trial call that is running now has completed".to_owned(),
                false => format!("in {}", humanize::duration(left)),
            },
        );
        let failed = match count {
            1 => "a failed call".to_owned(),
            _ => format!("{count} consecutive failed calls"),
        };
        let text =
            format!("calls to the server {server} are paused after {failed}; try again {again}");
        Err(Error::new(
            ErrorKind::Busy((!left.is_zero()).then_some(left)),
            text,
        ))
    }
}

/// A call that was let through. Dropping it ends the trial, if it was one.
struct CallGuard<'a> {
    breaker: &'a CircuitBreaker,
    server: Arc<str>,
    decision_log: DecisionLog,
    /// True for the single trial call after the pause.
    trial: bool,
    reported: bool,
}

impl CallGuard<'_> {
    fn report(mut self, ended: &Result<Outcome, Error>, now: Instant) {
        self.reported = true;
        match ended {
            Err(error) if is_failure(error) => self.breaker.failed(&self.server, now),
            // The call never reached the server or its caller canceled it, which is no evidence about the server.
            Err(error) if error.was_not_sent() || *error.kind() == ErrorKind::Cancelled => {}
            _ => self.breaker.succeeded(&self.server, self.trial),
        }
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        // The deadline layer is outside: it drops the call after logging the reason.
        if !self.reported && self.decision_log.cancel_reason() == Some(CancelReason::TimedOut) {
            self.breaker.failed(&self.server, Instant::now());
        }
        if self.trial
            && let Some(circuit) = self.breaker.circuits().get_mut(&self.server)
        {
            circuit.trial = false;
        }
    }
}

fn is_failure(error: &Error) -> bool {
    *error.kind() == ErrorKind::Upstream && !error.was_not_sent()
}

impl Rule for CircuitBreaker {
    fn name(&self) -> &'static str {
        "circuit breaker"
    }

    fn may_hide_items(&self) -> bool {
        false
    }

    fn decide<'a>(&'a self, _: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        MaybeReady::Ready(match self.check(&item.origin.server, Instant::now()) {
            Ok(()) => RuleDecision::Allow,
            Err(error) => RuleDecision::Deny(error),
        })
    }
}

impl Layer for CircuitBreaker {
    fn name(&self) -> &'static str {
        "circuit breaker"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let Some(server) = call.item().map(|item| item.origin.server.clone()) else {
                return next.call(call).await;
            };
            let guard = self.enter(&server, call.decision_log.clone(), Instant::now())?;
            let ended = next.call(call).await;
            let now = Instant::now();
            // The innermost layer of a gateway: what follows is the sanitizers' time.
            guard.decision_log.set_answered_at(now.into_std());
            guard.report(&ended, now);
            ended
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::NotSent;

    const TEST_PAUSE: Duration = Duration::from_secs(30);

    fn breaker() -> CircuitBreaker {
        CircuitBreaker::default().with_settings(2, TEST_PAUSE)
    }

    fn failed() -> Result<Outcome, Error> {
        Err(Error::new(ErrorKind::Upstream, "the connection was closed"))
    }

    fn answered() -> Result<Outcome, Error> {
        Err(Error::new(ErrorKind::JsonRpc(-32603), "no such row"))
    }

    fn run(breaker: &CircuitBreaker, ended: Result<Outcome, Error>, now: Instant) -> bool {
        let server = "s".into();
        let Ok(guard) = breaker.enter(&server, DecisionLog::default(), now) else {
            return false;
        };
        guard.report(&ended, now);
        true
    }

    #[test]
    fn opens_after_failures_in_a_row_and_tries_one_call_after_the_pause() {
        let (breaker, now) = (breaker(), Instant::now());
        assert!(run(&breaker, failed(), now) && run(&breaker, failed(), now));
        let refused = breaker.check("s", now).unwrap_err();
        assert_eq!(
            refused.public_message(),
            "calls to the server s are paused after 2 consecutive failed calls; try again in 30 s"
        );
        assert!(breaker.check("other", now).is_ok());
        let later = now + TEST_PAUSE;
        let server = "s".into();
        let trial = breaker
            .enter(&server, DecisionLog::default(), later)
            .unwrap();
        assert!(
            breaker
                .enter(&server, DecisionLog::default(), later)
                .is_err(),
            "one call tries it"
        );
        drop(trial);
        assert!(
            run(&breaker, failed(), later),
            "a trial that was given up decides nothing"
        );
        assert!(breaker.check("s", later).is_err(), "it failed again");
        assert!(run(&breaker, answered(), later + TEST_PAUSE));
        assert!(breaker.check("s", later).is_ok());
    }

    #[test]
    fn calls_from_before_the_circuit_opened_do_not_end_the_trial() {
        let (breaker, now) = (breaker(), Instant::now());
        let server = "s".into();
        let enter = |at| breaker.enter(&server, DecisionLog::default(), at);
        let [dropped, early, late] = [(); 3].map(|()| enter(now).unwrap());
        assert!(run(&breaker, failed(), now) && run(&breaker, failed(), now));
        early.report(&answered(), now);
        assert!(breaker.check("s", now).is_err(), "the pause goes on");
        let later = now + TEST_PAUSE;
        let trial = enter(later).unwrap();
        drop(dropped);
        assert!(enter(later).is_err(), "the trial still runs");
        late.report(&answered(), later);
        assert!(enter(later).is_err(), "only the trial closes the circuit");
        trial.report(&answered(), later);
        assert!(enter(later).is_ok());
    }

    #[test]
    fn counts_only_failures_in_a_row() {
        let (breaker, now) = (breaker(), Instant::now());
        for _ in 0..3 {
            assert!(run(&breaker, failed(), now) && run(&breaker, answered(), now));
        }
        let not_sent =
            || Err(Error::new(ErrorKind::Upstream, "it is not running").with_source(NotSent));
        assert!((0..5).all(|_| run(&breaker, not_sent(), now)));
        assert!(breaker.check("s", now).is_ok());
    }

    #[test]
    fn never_opens_without_a_number_of_failures() {
        let (breaker, now) = (breaker().with_settings(0, TEST_PAUSE), Instant::now());
        assert!((0..20).all(|_| run(&breaker, failed(), now)));
        assert!(breaker.check("s", now).is_ok());
    }
}
