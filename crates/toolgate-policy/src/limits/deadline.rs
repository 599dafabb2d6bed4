//! Call timeouts: an idle timeout that progress resets, and a hard cap.

use crate::{PerServer, humanize};
use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use toolgate_core::{
    BoxFuture, Call, CallReporter, CancelReason, DecisionLog, Error, ErrorKind, EventSink, Item,
    Layer, Next, Outcome, ReporterEvent, TaskControl,
};

/// Layer that enforces the deadline of calls: an idle timeout, which progress resets, and a hard cap.
///
/// Stands below `confirm` in the pipeline: the wait for an approver never counts, and each round has its own timeout.
///
/// ```
/// use std::time::Duration;
/// use toolgate_policy::{CallTimeout, PerServer, Policy};
///
/// let mut timeout = CallTimeout::default();
/// timeout.idle = PerServer::all(Duration::from_secs(30)).with("reports", Duration::from_secs(300));
/// timeout.max = Duration::from_secs(3600);
/// let mut policy = Policy::for_program();
/// policy.deadline = timeout;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallTimeout {
    /// Idle timeout of calls by server: maximum time without a progress notification. Default: 60 s.
    pub idle: PerServer<Duration>,
    /// Idle timeout of calls to single tools, by their full names such as `files.search`.
    pub tool_idle: HashMap<String, Duration>,
    /// Maximum duration of a call, regardless of progress. Default: 15 minutes.
    pub max: Duration,
    /// Number of input requests of running calls that await a response. While it is above zero, no timeout runs.
    pub open_input_requests: Option<watch::Receiver<usize>>,
}

impl Default for CallTimeout {
    /// Returns an idle timeout of 60 s and a hard cap of 15 minutes.
    fn default() -> CallTimeout {
        CallTimeout {
            idle: PerServer::all(Duration::from_secs(60)),
            tool_idle: HashMap::new(),
            max: Duration::from_secs(15 * 60),
            open_input_requests: None,
        }
    }
}

/// Reporter that records the time of the last progress.
struct ProgressClock {
    last: Mutex<Instant>,
    to: CallReporter,
}

impl ProgressClock {
    fn last(&self) -> Instant {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressClock {
    fn reset(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// Limits of a running call, its progress, and its decision log.
struct TimeoutClock {
    silence: Duration,
    end: Instant,
    beat: Arc<ProgressClock>,
    background: TaskControl,
    trail: DecisionLog,
}

/// Reports whether an input request is open.
fn has_open_input(paused: &Option<watch::Receiver<usize>>) -> bool {
    paused.as_ref().is_some_and(|paused| *paused.borrow() > 0)
}

/// Waits until no input request is open, and returns the time it took.
async fn wait_for_input(paused: &mut Option<watch::Receiver<usize>>) -> Duration {
    let Some(paused) = paused else {
        return Duration::ZERO;
    };
    let since = Instant::now();
    // An error means that no more input requests can arrive.
    let _ = paused.wait_for(|open| *open == 0).await;
    since.elapsed()
}

/// Waits until an input request opens.
async fn wait_for_request(paused: &mut Option<watch::Receiver<usize>>) {
    let asked = match paused {
        Some(paused) => paused.wait_for(|open| *open > 0).await.is_ok(),
        None => false,
    };
    if !asked {
        std::future::pending().await
    }
}

impl EventSink for ProgressClock {
    fn report(&self, event: ReporterEvent) {
        if matches!(event, ReporterEvent::Progress(_)) {
            self.reset();
        }
        self.to.send(event);
    }
}

impl CallTimeout {
    /// Returns the idle timeout of a call of this item.
    fn idle_of(&self, item: Option<&Item>) -> Duration {
        let Some(item) = item else {
            return self.idle.of("");
        };
        let own = match self.tool_idle.is_empty() {
            true => None,
            false => self.tool_idle.get(&*item.shared_name()),
        };
        own.copied()
            .unwrap_or_else(|| self.idle.of(&item.origin.server))
    }

    fn timeout_error(&self, silence: Duration, end: Instant) -> Error {
        let text = if Instant::now() >= end {
            format!(
                "timed out after {}, the maximum duration of a call",
                humanize::duration(self.max)
            )
        } else {
            format!(
                "timed out after {} without a response or progress",
                humanize::duration(silence)
            )
        };
        Error::new(ErrorKind::TimedOut, text)
    }

    async fn run_with_timeout<'a>(
        &'a self,
        mut call: Call,
        next: Next<'a>,
    ) -> Result<Outcome, Error> {
        let silence = self.idle_of(call.item().map(|item| &**item));
        let silence = call.idle_timeout.unwrap_or(silence).min(self.max);
        let (background, trail) = (call.task_control.clone(), call.decision_log.clone());
        let start = Instant::now();
        let before = call.resumed_after.unwrap_or_default();
        let beat = Arc::new(ProgressClock {
            last: Mutex::new(start),
            to: call.reporter.clone(),
        });
        call.reporter = call.reporter.with_sink(beat.clone());
        let clock = TimeoutClock {
            silence,
            end: start + self.max.saturating_sub(before),
            beat,
            background,
            trail,
        };
        let mut work = next.call(call);
        let mut timeout = None;
        poll_fn(|cx| {
            if let Poll::Ready(outcome) = work.as_mut().poll(cx) {
                return Poll::Ready(outcome);
            }
            // A call that completes at once needs no timer. Returning the error drops `work`, which cancels the call in
            // all layers below.
            // Unconstrained, because a call that is always ready, as with a server that sends without a pause, uses up the
            // budget of the task, and no timer would ever fire.
            let timeout = timeout
                .get_or_insert_with(|| Box::pin(tokio::task::unconstrained(self.time_out(&clock))));
            timeout.as_mut().poll(cx).map(Err)
        })
        .await
    }

    /// Waits until the call times out.
    async fn time_out(&self, clock: &TimeoutClock) -> Error {
        let mut end = clock.end;
        let mut paused = self.open_input_requests.clone();
        let due = |end: Instant| {
            // A task has no waiting caller, so only the hard cap applies.
            let silent = match clock.background.is_task() {
                true => self.max,
                false => clock.silence,
            };
            (clock.beat.last() + silent).min(end)
        };
        loop {
            tokio::select! {
                biased;
                () = sleep_until(due(end)) => {}
                () = wait_for_request(&mut paused) => {}
            }
            if has_open_input(&paused) {
                end += wait_for_input(&mut paused).await;
                clock.beat.reset();
            }
            if due(end) <= Instant::now() {
                clock.trail.set_cancel_reason(CancelReason::TimedOut);
                return self.timeout_error(clock.silence, end);
            }
        }
    }
}

impl Layer for CallTimeout {
    fn name(&self) -> &'static str {
        "deadline"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(self.run_with_timeout(call, next))
    }
}
