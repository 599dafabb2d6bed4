//! Audit records for the end of every call, including rejected, late and canceled ones.

use crate::{
    AuditContents, AuditRecorder, CallEnd, CallObserver, CallView, audit::begin, recorder,
    sanitize::secrets, sanitize::text, sanitize_text,
};
use std::{sync::Arc, time::Instant};
use toolgate_core::{
    BoxFuture, Call, CallReporter, CallSpan, Caller, DecisionLog, Error, ErrorKind, EventSink,
    InputRequestKind, Item, Json, Layer, Next, Outcome, ReporterEvent, SpanEventValue,
};
use toolgate_journal::{AuditEntry as Record, AuditEvent as Happened};

/// Outermost layer: writes the audit record of how each call ended and notifies the observer, before the response is
/// released.
///
/// A call that `AuditBegin` recorded ends with `call.end`, all others with `deny`. A call that waits for an approval has
/// neither: `ApprovalConfirm` recorded the request. If the audit log cannot be written, the response is an error.
pub struct AuditEnd {
    recorder: Arc<AuditRecorder>,
    observer: Arc<dyn CallObserver>,
    policy: Option<Arc<str>>,
    contents: AuditContents,
}

impl AuditEnd {
    /// Creates the layer that records the end of each call, for a recorder and an observer.
    pub fn new(recorder: Arc<AuditRecorder>, observer: Arc<dyn CallObserver>) -> AuditEnd {
        AuditEnd {
            recorder,
            observer,
            policy: None,
            contents: AuditContents::default(),
        }
    }

    /// Sets the hash of the operator's policy in force for audit records of denied calls. For other calls, `AuditBegin`
    /// records it.
    pub fn with_policy(mut self, policy: Arc<str>) -> AuditEnd {
        self.policy = Some(policy);
        self
    }

    /// Sets the form of arguments and results in audit records. Default: digests.
    pub fn with_contents(mut self, contents: AuditContents) -> AuditEnd {
        self.contents = contents;
        self
    }

    async fn run_audited<'a>(&'a self, mut call: Call, next: Next<'a>) -> Result<Outcome, Error> {
        call.decision_log.begin_round();
        let watched = self.observer.is_active();
        if watched {
            self.observer.on_begin(&CallView::of(&call));
        }
        let heard = self.recorder.is_consumed();
        let mut open = OpenAuditCall {
            to: self,
            about: heard.then(|| recorder::call_entry(Happened::CALL_END, &call)),
            arguments: call.arguments().raw().clone(),
            id: call.id.clone(),
            caller: call.caller.clone(),
            trail: call.decision_log.clone(),
            span: call.span.clone(),
            start: Instant::now(),
            closed: false,
        };
        if watched {
            let to = call.reporter.clone();
            let (id, observer) = (call.id.clone(), self.observer.clone());
            let logs = to.min_log_level();
            call.reporter = CallReporter::new(Arc::new(ObservedReporter { id, observer, to }))
                .with_min_log_level(logs);
        }
        let outcome = next.call(call).await;
        open.close(outcome).await
    }
}

impl Layer for AuditEnd {
    fn name(&self) -> &'static str {
        "entry"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(self.run_audited(call, next))
    }
}

/// A call in progress. Dropping it records a cancellation.
struct OpenAuditCall<'a> {
    to: &'a AuditEnd,
    /// `None` if nothing consumes audit records.
    about: Option<Record>,
    arguments: Json,
    id: Arc<str>,
    caller: Caller,
    trail: DecisionLog,
    span: Option<Arc<dyn CallSpan>>,
    start: Instant,
    closed: bool,
}

impl OpenAuditCall<'_> {
    async fn close(&mut self, outcome: Result<Outcome, Error>) -> Result<Outcome, Error> {
        let begun = self.trail.any_step(begin::is_begin);
        let end = self.end(&outcome, begun);
        if self.to.contents.keys.is_some() && end.outcome != "waiting" {
            Box::pin(self.prepare_contents(begun)).await;
        }
        self.closed = true;
        if let Some(span) = &self.span {
            self.add_sanitizing_event(span.as_ref());
        }
        let written = if end.outcome == "waiting" || self.is_only_counted(&outcome, begun) {
            None
        } else {
            let record = self.record(&end, begun, Some(&outcome));
            // Queued synchronously: from here on, dropping the call loses nothing.
            record.map(|record| self.to.recorder.append_or_buffer(record))
        };
        if let Ok(Outcome::Done(output)) = &outcome {
            self.to.observer.on_result(&self.id, output);
        }
        self.to.observer.on_end(&self.id, &end);
        if let Some(written) = written {
            written?.await?;
        }
        match self.trail.take_deferred() {
            Some(begin_written) => begin_written.await.and(outcome),
            None => outcome,
        }
    }

    /// Creates the keys that encrypt the contents of the record.
    async fn prepare_contents(&self, begun: bool) {
        let item = self.trail.item();
        let (contents, item) = (&self.to.contents, item.as_deref());
        match begun {
            true => contents.prepare_result(&self.caller, item).await,
            false => contents.prepare_arguments(&self.caller, item).await,
        }
    }

    /// Adds the numbers of what sanitizers changed to the span of the call.
    fn add_sanitizing_event(&self, span: &dyn CallSpan) {
        let counts = self.trail.counts();
        if !counts.is_empty() {
            let sum = counts.values().sum();
            span.add_event(
                "toolgate.sanitized",
                &[("toolgate.changes", SpanEventValue::Count(sum))],
            );
        }
    }

    /// Reports whether a limit rejected the call as one of so many that only their number is recorded.
    fn is_only_counted(&self, outcome: &Result<Outcome, Error>, begun: bool) -> bool {
        let is_limit = |error: &Error| matches!(error.kind(), ErrorKind::Busy(_));
        if begun || !outcome.as_ref().is_err_and(is_limit) {
            return false;
        }
        let by = self.trail.with_steps(|steps| {
            let refusal = steps.iter().rev().find(|step| step.decision == "refuse");
            refusal.map(|step| step.policy)
        });
        // A rejection without a known limit is always recorded.
        by.is_some_and(|by| !self.to.recorder.lists_rejection(self.caller.name(), by))
    }

    fn end(&self, outcome: &Result<Outcome, Error>, begun: bool) -> CallEnd {
        let (mut approvals, mut size) = (Vec::new(), 0);
        let out = match outcome {
            Ok(Outcome::Done(output)) => {
                size = output.size();
                if output.is_error() {
                    "tool_error"
                } else {
                    "ok"
                }
            }
            Ok(Outcome::InputRequired(questions)) => {
                approvals.extend(questions.requests.iter().filter_map(|ask| match &ask.kind {
                    InputRequestKind::Approve(approval) => Some(approval.id.clone()),
                    _ => None,
                }));
                if begun { "input_required" } else { "waiting" }
            }
            Err(error) => outcome_name(error.kind(), begun),
        };
        let public = outcome
            .as_ref()
            .err()
            .map(|error| error.public_message().to_owned());
        let detail = outcome.as_ref().err().and_then(Error::detail).cloned();
        let decided_by = match (begun, outcome) {
            (false, Err(_)) => self.trail.last_policy("refuse"),
            (false, Ok(Outcome::InputRequired(_))) => self.trail.last_policy("ask"),
            _ => None,
        };
        CallEnd {
            item: self.trail.item(),
            caller: self.caller.clone(),
            was_sent: begun,
            decided_by,
            outcome: out,
            code: outcome.as_ref().err().map(|error| error.kind().class()),
            public,
            detail,
            approvals,
            duration: self.start.elapsed(),
            size,
        }
    }

    fn record(
        &mut self,
        end: &CallEnd,
        begun: bool,
        outcome: Option<&Result<Outcome, Error>>,
    ) -> Option<Record> {
        let mut record = self.about.take()?;
        let item = self.trail.item();
        let redactions = secrets::counts(&self.trail);
        if !redactions.is_empty() {
            record = record.with("redactions", redactions);
        }
        match text::removed(&self.trail) {
            0 => {}
            removed => record = record.with("removed_chars", removed),
        }
        if !begun {
            record.event = Happened::DENY;
            record = record.with_trusted_text("dec", "deny");
            record = self
                .trail
                .with_steps(|steps| record.with_objects("trail", begin::decision_log(steps)));
            if let Some(policy) = &self.to.policy {
                record = record.with_trusted_text("policy_hash", policy);
            }
            record = self.add_request(record, item.as_deref());
        }
        if let (true, Some(item)) = (begun, item.as_deref()) {
            record = recorder::with_item_name(record, item);
        }
        if begun {
            record = self
                .trail
                .with_steps(|steps| match begin::steps_after_begin(steps) {
                    [] => record,
                    after => record.with_objects("trail", begin::decision_log(after)),
                });
        }
        record = record
            .with_trusted_text("out", end.outcome)
            .with_number("dur_us", micros(end));
        if end.outcome.starts_with("cancelled") {
            record = add_cancellation(record, &self.trail);
        }
        Some(match outcome {
            Some(Ok(Outcome::Done(output))) => {
                let (recorder, contents) = (&self.to.recorder, &self.to.contents);
                contents.result(recorder, record, (&self.caller, item.as_deref()), output)
            }
            Some(Err(error)) => record.with_trusted_text("code", error.kind().class()),
            _ => record,
        })
    }

    /// Adds the item and arguments of a rejected call. Other calls have them in `call.begin`.
    fn add_request(&self, mut record: Record, item: Option<&Item>) -> Record {
        if let Some(item) = item {
            record = recorder::with_item(record, item);
        }
        let (recorder, contents) = (&self.to.recorder, &self.to.contents);
        contents.arguments(recorder, record, (&self.caller, item), &self.arguments)
    }
}

impl Drop for OpenAuditCall<'_> {
    /// Records the cancellation. If the call was already sent, its outcome is unknown.
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        let begun = self.trail.any_step(begin::is_begin);
        let out = if begun {
            "cancelled_unknown"
        } else {
            "cancelled"
        };
        let end = CallEnd {
            item: self.trail.item(),
            caller: self.caller.clone(),
            was_sent: begun,
            decided_by: None,
            outcome: out,
            code: None,
            public: None,
            detail: None,
            approvals: Vec::new(),
            duration: self.start.elapsed(),
            size: 0,
        };
        if let Some(record) = self.record(&end, begun, None) {
            self.to.recorder.note(record);
        }
        self.to.observer.on_end(&self.id, &end);
    }
}

/// Adds the canceling party and the caller's reason, with secrets redacted as elsewhere in audit records.
fn add_cancellation(record: Record, trail: &DecisionLog) -> Record {
    let Some(why) = trail.cancel_reason() else {
        return record;
    };
    let record = record.with("cancel", why.audit_name());
    match why.reason() {
        Some(reason) => record.with("cancel_reason", sanitize_text(reason).into_owned()),
        None => record,
    }
}

/// Returns the outcome of an error in audit records.
fn outcome_name(kind: &ErrorKind, begun: bool) -> &'static str {
    match kind {
        ErrorKind::TimedOut => "timeout",
        ErrorKind::Cancelled if begun => "cancelled_unknown",
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::JsonRpc(_) => "rpc_error",
        ErrorKind::BadResponse => "bad_answer",
        ErrorKind::Upstream => "upstream_lost",
        ErrorKind::Bug => "bug",
        ErrorKind::NotFound
        | ErrorKind::InvalidArguments(_)
        | ErrorKind::MissingCapability(_)
        | ErrorKind::Busy(_)
            if begun =>
        {
            "rpc_error"
        }
        _ => "refused",
    }
}

fn micros(end: &CallEnd) -> u64 {
    u64::try_from(end.duration.as_micros())
        .unwrap_or(u64::MAX)
        .min(1 << 52)
}

/// Reporter that also passes progress to the observer.
struct ObservedReporter {
    id: Arc<str>,
    observer: Arc<dyn CallObserver>,
    to: CallReporter,
}

impl EventSink for ObservedReporter {
    fn report(&self, event: ReporterEvent) {
        if let ReporterEvent::Progress(progress) = &event {
            self.observer.on_progress(&self.id, progress);
        }
        self.to.send(event);
    }
}
