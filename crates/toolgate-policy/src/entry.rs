//! Audit records for the end of every call, including rejected, late and canceled ones.

use crate::{CallView, Contents, End, Observer, Recorder, clean, intent, record, secrets, text};
use std::{sync::Arc, time::Instant};
use toolgate_core::{
    AskKind, BoxFuture, Call, Error, Event, Item, Json, Kind, Layer, Next, Outcome, Report,
    Reporter, Trail,
};
use toolgate_journal::{Entry as Record, Event as Happened};

/// Outermost layer: notifies the observer and records how each call ended, before the response is released.
///
/// A call that `Intent` recorded ends with `call.end`, all others with `deny`. A call that waits for an approval has
/// neither: `Confirm` recorded the request. If the audit log cannot be written, the response is an error.
pub struct Entry {
    recorder: Arc<Recorder>,
    observer: Arc<dyn Observer>,
    policy: Option<Arc<str>>,
    contents: Contents,
}

impl Entry {
    /// Creates the layer for a recorder and an observer.
    pub fn new(recorder: Arc<Recorder>, observer: Arc<dyn Observer>) -> Entry {
        Entry {
            recorder,
            observer,
            policy: None,
            contents: Contents::default(),
        }
    }

    /// Sets the hash of the policy in force for `deny` records. For other calls, `Intent` records it.
    pub fn under(mut self, policy: Arc<str>) -> Entry {
        self.policy = Some(policy);
        self
    }

    /// Sets how arguments and results are recorded. Default: digests.
    pub fn holding(mut self, contents: Contents) -> Entry {
        self.contents = contents;
        self
    }

    async fn traced<'a>(&'a self, mut call: Call, next: Next<'a>) -> Result<Outcome, Error> {
        call.trail.clear();
        let watched = self.observer.watches();
        if watched {
            self.observer.began(&CallView::of(&call));
        }
        let heard = self.recorder.listens();
        let mut open = Open {
            to: self,
            about: heard.then(|| record::about(Happened::CALL_END, &call)),
            arguments: call.arguments().raw().clone(),
            id: call.id.clone(),
            trail: call.trail.clone(),
            start: Instant::now(),
            closed: false,
        };
        if watched {
            let to = call.reporter.clone();
            let (id, observer) = (call.id.clone(), self.observer.clone());
            let logs = to.logs();
            call.reporter = Reporter::new(Arc::new(Told { id, observer, to })).with_logs(logs);
        }
        let outcome = next.call(call).await;
        open.close(outcome).await
    }
}

impl Layer for Entry {
    fn name(&self) -> &'static str {
        "entry"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(self.traced(call, next))
    }
}

/// A call in progress. Dropping it records a cancellation.
struct Open<'a> {
    to: &'a Entry,
    /// `None` if nothing consumes audit records.
    about: Option<Record>,
    arguments: Json,
    id: Arc<str>,
    trail: Trail,
    start: Instant,
    closed: bool,
}

impl Open<'_> {
    async fn close(&mut self, outcome: Result<Outcome, Error>) -> Result<Outcome, Error> {
        let begun = self.trail.any(intent::begins);
        let end = self.end(&outcome, begun);
        self.closed = true;
        let written = if end.out == "waiting" {
            None
        } else {
            let record = self.record(&end, begun, Some(&outcome));
            // Queued synchronously: from here on, dropping the call loses nothing.
            record.map(|record| self.to.recorder.append_surely(record))
        };
        self.to.observer.ended(&self.id, &end);
        match written {
            Some(written) => written?.await.and(outcome),
            None => outcome,
        }
    }

    fn end(&self, outcome: &Result<Outcome, Error>, begun: bool) -> End {
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
            Ok(Outcome::Ask(questions)) => {
                approvals.extend(questions.asks.iter().filter_map(|ask| match &ask.kind {
                    AskKind::Approve(approval) => Some(approval.id.clone()),
                    _ => None,
                }));
                if begun { "input_required" } else { "waiting" }
            }
            Err(error) => word(error.kind(), begun),
        };
        let public = outcome
            .as_ref()
            .err()
            .map(|error| error.public().to_owned());
        let detail = outcome.as_ref().err().and_then(Error::detail).cloned();
        End {
            out,
            code: outcome.as_ref().err().map(|error| code(error.kind())),
            public,
            detail,
            approvals,
            took: self.start.elapsed(),
            size,
        }
    }

    fn record(
        &mut self,
        end: &End,
        begun: bool,
        outcome: Option<&Result<Outcome, Error>>,
    ) -> Option<Record> {
        let mut record = self.about.take()?;
        let steps = &self.trail.steps();
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
            record = record
                .with("dec", "deny")
                .with("trail", intent::trail(steps));
            if let Some(policy) = &self.to.policy {
                record = record.with("policy_hash", policy.as_ref());
            }
            record = self.asked_for(record, item.as_deref());
        }
        if let (true, Some(item)) = (begun, item.as_deref()) {
            record = record::named(record, item);
        }
        let after = intent::after(steps);
        if begun && !after.is_empty() {
            record = record.with("trail", intent::trail(after));
        }
        record = record.with("out", end.out).with("dur_us", micros(end));
        if end.out.starts_with("cancelled") {
            record = given_up(record, &self.trail);
        }
        Some(match outcome {
            Some(Ok(Outcome::Done(output))) => {
                let (recorder, contents) = (&self.to.recorder, &self.to.contents);
                contents.result(recorder, record, item.as_deref(), output)
            }
            Some(Err(error)) => record.with("code", code(error.kind())),
            _ => record,
        })
    }

    /// Adds the item and arguments of a rejected call. Other calls have them in `call.begin`.
    fn asked_for(&self, mut record: Record, item: Option<&Item>) -> Record {
        if let Some(item) = item {
            record = record::of_item(record, item);
        }
        let (recorder, contents) = (&self.to.recorder, &self.to.contents);
        contents.arguments(recorder, record, item, &self.arguments)
    }
}

impl Drop for Open<'_> {
    /// Records the cancellation. If the call was already sent, its outcome is unknown.
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        let begun = self.trail.any(intent::begins);
        let out = if begun {
            "cancelled_unknown"
        } else {
            "cancelled"
        };
        let end = End {
            out,
            code: None,
            public: None,
            detail: None,
            approvals: Vec::new(),
            took: self.start.elapsed(),
            size: 0,
        };
        if let Some(record) = self.record(&end, begun, None) {
            self.to.recorder.note(record);
        }
        self.to.observer.ended(&self.id, &end);
    }
}

/// Adds the canceling party and the caller's reason, with secrets redacted as elsewhere in audit records.
fn given_up(record: Record, trail: &Trail) -> Record {
    let Some(why) = trail.given_up() else {
        return record;
    };
    let record = record.with("cancel", why.by());
    match why.reason() {
        Some(reason) => record.with("cancel_reason", clean(reason).into_owned()),
        None => record,
    }
}

/// Returns the outcome of an error in audit records.
fn word(kind: &Kind, begun: bool) -> &'static str {
    match kind {
        Kind::Late => "timeout",
        Kind::Cancelled if begun => "cancelled_unknown",
        Kind::Cancelled => "cancelled",
        Kind::Answered(_) => "rpc_error",
        Kind::BadAnswer => "bad_answer",
        Kind::Upstream => "upstream_lost",
        Kind::Bug => "bug",
        Kind::NotFound | Kind::Invalid(_) | Kind::Unsupported(_) | Kind::Busy(_) if begun => {
            "rpc_error"
        }
        _ => "refused",
    }
}

/// Returns the class of an error in audit records.
fn code(kind: &Kind) -> &'static str {
    use toolgate_core::Refusal;
    match kind {
        Kind::BadAnswer => "bad_answer",
        Kind::Bug => "bug",
        Kind::Busy(_) => "busy",
        Kind::Cancelled => "cancelled",
        Kind::Invalid(_) => "invalid",
        Kind::Late => "late",
        Kind::NotFound => "not_found",
        Kind::Refused(Refusal::Rule) => "refused_rule",
        Kind::Refused(Refusal::Person) => "refused_person",
        Kind::Refused(Refusal::Expired) => "refused_expired",
        Kind::Refused(Refusal::Record) => "refused_record",
        Kind::Refused(Refusal::Result) => "refused_result",
        Kind::Refused(Refusal::Withheld) => "refused_withheld",
        Kind::Scope(_) => "scope",
        Kind::Unsupported(_) => "unsupported",
        Kind::Answered(_) => "answered",
        Kind::Upstream => "upstream",
    }
}

fn micros(end: &End) -> u64 {
    u64::try_from(end.took.as_micros())
        .unwrap_or(u64::MAX)
        .min(1 << 52)
}

/// Reporter that also passes progress to the observer.
struct Told {
    id: Arc<str>,
    observer: Arc<dyn Observer>,
    to: Reporter,
}

impl Report for Told {
    fn report(&self, event: Event) {
        if let Event::Progress(progress) = &event {
            self.observer.progress(&self.id, progress);
        }
        self.to.tell(event);
    }
}
