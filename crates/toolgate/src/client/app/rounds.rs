//! Rounds of a call: the server's input requests are answered, and the call is retried until it has an outcome.

use super::{CallProgress, Client, TaskHandle, call_observation::CallObservation, task_handle};
use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};
use toolgate_core::{
    Call, CallReporter, Error, ErrorKind, EventSink, InputRequests, Json, Op, Outcome, Output,
    PendingInputGuard, Progress, ReporterEvent, Round, TaskControl, TaskMode,
};

/// Options of a call besides its arguments.
#[derive(Clone, Default)]
pub(super) struct CallOptions {
    pub(super) progress: Option<super::EventCallback<Progress>>,
    pub(super) timeout: Option<Duration>,
}

impl CallOptions {
    pub(super) fn apply(self, call: &mut Call) {
        call.idle_timeout = self.timeout;
        if let Some(progress) = self.progress {
            call.reporter = CallReporter::new(Arc::new(ProgressReporter(progress)));
        }
    }
}

/// Passes progress to a function of the application.
struct ProgressReporter(super::EventCallback<Progress>);

impl EventSink for ProgressReporter {
    fn report(&self, event: ReporterEvent) {
        if let ReporterEvent::Progress(progress) = event {
            (self.0)(progress);
        }
    }
}

impl Client {
    /// Runs an operation until it has an output.
    pub(super) async fn run(
        &self,
        op: Op,
        name: &str,
        arguments: Json,
        wishes: CallOptions,
    ) -> Result<Output, Error> {
        self.run_observed(self.new_call(op, name, arguments, wishes))
            .await
    }

    /// Runs a call until it has an output, and reports its begin and end.
    pub(super) async fn run_observed(&self, call: Call) -> Result<Output, Error> {
        let observer = self.inner().observe.as_ref();
        let watching = observer.map(|to| CallObservation::begin(to.clone(), &call));
        let outcome = self.run_rounds(call).await;
        if let Some(watching) = watching {
            watching.end(&outcome);
        }
        outcome
    }

    pub(super) fn new_call(
        &self,
        op: Op,
        name: &str,
        arguments: Json,
        wishes: CallOptions,
    ) -> Call {
        let id = crate::ids::call_id();
        let caller = self.inner().caller.clone();
        let mut call = Call::new(id, caller, op, name, arguments);
        wishes.apply(&mut call);
        self.adopt(&mut call);
        call
    }

    /// Sets what this client declares and wants with each of its calls.
    pub(super) fn adopt(&self, call: &mut Call) {
        let inner = self.inner();
        call.capabilities = inner.capabilities.clone();
        let logs = *inner.logs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(least) = logs {
            call.reporter = call.reporter.clone().with_min_log_level(Some(least.word()));
        }
        call.request_info = inner.request_info.clone();
    }

    async fn run_rounds(&self, mut call: Call) -> Result<Output, Error> {
        let mut open = PendingInputGuard::default();
        loop {
            let input = match self.inner().service.call(call.clone()).await? {
                Outcome::Done(output) => return Ok(output),
                Outcome::InputRequired(input) => self.checked_input(&call, input, &mut open)?,
            };
            let mut answers = Vec::new();
            for ask in &input.requests {
                let answer = self.inner().answers.answer_request(&ask.kind).await?;
                answers.push((ask.key.clone(), answer));
            }
            open = next_round(&mut call, answers, input);
        }
    }

    /// Runs a call until it is done, becomes a task, or needs input of the application.
    pub(super) async fn advance(
        &self,
        mut call: Call,
        mut open: PendingInputGuard,
    ) -> Result<CallProgress, Error> {
        loop {
            let input = match self.run_or_start_task(&mut call).await? {
                StartedCall::Outcome(Outcome::Done(output)) => {
                    return Ok(task_handle::done(output));
                }
                StartedCall::Task(task) => return Ok(CallProgress::Task(task)),
                StartedCall::Outcome(Outcome::InputRequired(input)) => {
                    self.checked_input(&call, input, &mut open)?
                }
            };
            match self.collect_answers(&call, input).await? {
                Ok(pending) => return Ok(CallProgress::InputRequired(pending)),
                Err((answers, input)) => open = next_round(&mut call, answers, input),
            }
        }
    }

    /// Runs one round of a call, up to its outcome or to the start of its task.
    async fn run_or_start_task(&self, call: &mut Call) -> Result<StartedCall, Error> {
        let service = &self.inner().service;
        // A call that continues a task follows it to its end.
        if crate::client::tasks::task_id_in(&call.round).is_some() {
            return service.call(call.clone()).await.map(StartedCall::Outcome);
        }
        let (control, mut mode) = TaskControl::new();
        call.task_control = control.clone();
        let mut outcome = service.call(call.clone());
        tokio::select! {
            biased;
            outcome = &mut outcome => outcome.map(StartedCall::Outcome),
            Ok(_) = mode.wait_for(|mode| *mode == TaskMode::Task) => {
                let round = control.resume_round().and_then(|round| round.borrow().clone());
                let task = round.and_then(|round| self.started_task(call, round));
                // From here on, dropping the call leaves the server's task running.
                control.hand_over();
                task.map(StartedCall::Task)
                    .ok_or_else(|| Error::new(ErrorKind::Bug, "the task of the call has no id"))
            }
        }
    }

    /// Returns the input requests of a round, within the limit on rounds, with the guards of the earlier ones.
    fn checked_input(
        &self,
        call: &Call,
        mut input: InputRequests,
        open: &mut PendingInputGuard,
    ) -> Result<InputRequests, Error> {
        input.guard.merge(std::mem::take(open));
        let most = self.inner().max_rounds;
        if call.round.number >= most {
            let text = format!(
                "the server requested input in more than {most} rounds, which is the limit"
            );
            return Err(Error::new(ErrorKind::Upstream, text));
        }
        Ok(input)
    }
}

/// State of a call after one round.
enum StartedCall {
    Outcome(Outcome),
    Task(TaskHandle),
}

/// Prepares the next round of a call. Returns the guard of its open requests.
fn next_round(
    call: &mut Call,
    answers: Vec<(String, Json)>,
    input: InputRequests,
) -> PendingInputGuard {
    let mut round = Round::default();
    round.number = call.round.number + 1;
    round.answers = answers;
    round.slots = input.slots;
    call.round = round;
    input.guard
}
