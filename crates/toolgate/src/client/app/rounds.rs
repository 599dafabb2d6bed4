//! Rounds of a call: the server's input requests are answered, and the call is retried until it has an outcome.

use super::{Client, call_observation::CallObservation};
use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};
use toolgate_core::{
    Call, CallReporter, Error, ErrorKind, EventSink, Json, Op, Outcome, Output, PendingInputGuard,
    Progress, ReporterEvent, Round,
};

/// Options of a call besides its arguments.
#[derive(Clone, Default)]
pub(super) struct CallOptions {
    pub(super) progress: Option<super::EventCallback<Progress>>,
    pub(super) timeout: Option<Duration>,
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
        let call = self.new_call(op, name, arguments, wishes);
        let observer = self.inner().observe.as_ref();
        let watching = observer.map(|to| CallObservation::begin(to.clone(), &call));
        let outcome = self.run_rounds(call).await;
        if let Some(watching) = watching {
            watching.end(&outcome);
        }
        outcome
    }

    fn new_call(&self, op: Op, name: &str, arguments: Json, wishes: CallOptions) -> Call {
        let inner = self.inner();
        let id = crate::ids::call_id();
        let mut call = Call::new(id, inner.caller.clone(), op, name, arguments);
        call.capabilities = inner.capabilities.clone();
        call.idle_timeout = wishes.timeout;
        if let Some(progress) = wishes.progress {
            call.reporter = CallReporter::new(Arc::new(ProgressReporter(progress)));
        }
        let logs = *inner.logs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(least) = logs {
            call.reporter = call.reporter.clone().with_min_log_level(Some(least.word()));
        }
        call.request_info = inner.request_info.clone();
        call
    }

    async fn run_rounds(&self, mut call: Call) -> Result<Output, Error> {
        let inner = self.inner();
        let mut open = PendingInputGuard::default();
        loop {
            let mut questions = match inner.service.call(call.clone()).await? {
                Outcome::Done(output) => return Ok(output),
                Outcome::InputRequired(questions) => questions,
            };
            questions.guard.merge(std::mem::take(&mut open));
            if call.round.number >= inner.max_rounds {
                let text = format!(
                    "the server requested input in more than {} rounds, which is the limit",
                    inner.max_rounds
                );
                return Err(Error::new(ErrorKind::Upstream, text));
            }
            let mut answers = Vec::new();
            for ask in &questions.requests {
                answers.push((
                    ask.key.clone(),
                    inner.answers.answer_request(&ask.kind).await?,
                ));
            }
            call.round = Round {
                number: call.round.number + 1,
                answers,
                slots: questions.slots,
            };
            open = questions.guard;
        }
    }
}
