//! One call as the console shows it.

use super::arguments::ShownArguments;
use crate::event_log::GatewayEvent;
use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};
use toolgate_core::{
    Caller, DecisionLog, DecisionStep, Item, ItemKind, Json, Op, Progress, RequestInfo,
};
use toolgate_policy::{CallEnd, CallView};

/// One call as the console shows it.
#[derive(Clone)]
pub(super) struct DisplayedCall {
    pub(super) id: Arc<str>,
    /// Version of the list with the last change of this call.
    pub(super) version: u64,
    pub(super) caller: Caller,
    pub(super) request_info: Arc<RequestInfo>,
    pub(super) started_at: SystemTime,
    pub(super) server: Arc<str>,
    /// Name of the item on its server, prefixed with its kind for a resource or a prompt.
    pub(super) tool: String,
    pub(super) op: Op,
    /// Name as the caller wrote it.
    pub(super) name: String,
    pub(super) state: &'static str,
    pub(super) arguments: ShownArguments,
    pub(super) decision_log: DecisionLog,
    pub(super) outcome: Option<&'static str>,
    /// Error class of a refused call.
    pub(super) code: Option<&'static str>,
    pub(super) detail: Option<String>,
    pub(super) progress: Option<Progress>,
    pub(super) duration_ms: Option<u128>,
    pub(super) approval: Option<Arc<str>>,
    pub(super) times: CallTimes,
    /// Size of the result, in bytes.
    pub(super) result_bytes: usize,
}

/// Time that a call spent in each part, over all its rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTimes {
    /// Begin of the current part.
    since: Instant,
    part: CallPart,
    pub(super) rules: Duration,
    pub(super) waiting: Duration,
    pub(super) server: Duration,
    /// Sanitizers and checks of the result, and the audit records after it.
    pub(super) result: Duration,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CallPart {
    Rules,
    Waiting,
    Server,
    Done,
}

impl CallTimes {
    pub(super) fn begin(now: Instant) -> CallTimes {
        CallTimes {
            since: now,
            part: CallPart::Rules,
            rules: Duration::ZERO,
            waiting: Duration::ZERO,
            server: Duration::ZERO,
            result: Duration::ZERO,
        }
    }

    fn enter(&mut self, part: CallPart, now: Instant) {
        let spent = now.saturating_duration_since(self.since);
        match self.part {
            CallPart::Rules => self.rules += spent,
            CallPart::Waiting => self.waiting += spent,
            CallPart::Server => self.server += spent,
            CallPart::Done => {}
        }
        self.since = now;
        self.part = part;
    }

    /// A further round of a call that waited.
    pub(super) fn resume(&mut self, now: Instant) {
        self.enter(CallPart::Rules, now);
    }

    pub(super) fn run(&mut self, now: Instant) {
        self.enter(CallPart::Server, now);
    }

    /// The end of a round. `answered` is the time of the server's response.
    pub(super) fn end(&mut self, waits: bool, answered: Option<Instant>, now: Instant) {
        if let (CallPart::Server, Some(answered)) = (self.part, answered) {
            self.enter(CallPart::Done, answered.min(now));
            self.result += now.saturating_duration_since(self.since);
        }
        let next = match waits {
            true => CallPart::Waiting,
            false => CallPart::Done,
        };
        self.enter(next, now);
    }
}

impl DisplayedCall {
    pub(super) fn new(view: &CallView, item: Option<&Item>) -> DisplayedCall {
        let tool = item.map_or_else(
            || unresolved_name(view),
            |i| display_name(i, view.op, &view.name),
        );
        DisplayedCall {
            id: view.id.clone(),
            version: 0,
            caller: view.caller.clone(),
            request_info: view.request.clone(),
            started_at: SystemTime::now(),
            server: item.map(|i| i.origin.server.clone()).unwrap_or_default(),
            tool,
            op: view.op,
            name: match view.name.len() <= MAX_UNRESOLVED_NAME_CHARS {
                true => view.name.clone(),
                false => view.name.chars().take(MAX_UNRESOLVED_NAME_CHARS).collect(),
            },
            state: "judging",
            arguments: ShownArguments::new(&view.arguments),
            decision_log: view.trail.clone(),
            outcome: None,
            code: None,
            detail: None,
            progress: None,
            duration_ms: None,
            approval: None,
            times: CallTimes::begin(Instant::now()),
            result_bytes: 0,
        }
    }

    pub(super) fn run(&mut self, item: &Item) {
        self.state = "running";
        self.times.run(Instant::now());
        self.server = item.origin.server.clone();
        self.tool = display_name(item, self.op, &self.name);
    }

    /// Applies the end of a round; `waits` if another one follows.
    pub(super) fn end(&mut self, end: &CallEnd, waits: bool) {
        self.times
            .end(waits, self.decision_log.answered_at(), Instant::now());
        self.state = if waits { "waiting" } else { "done" };
        self.outcome = (!waits).then_some(console_outcome(end.outcome));
        self.code = end.code;
        self.detail = match &end.detail {
            Some(detail) => Some(detail.for_operator().to_owned()),
            None => end.public.clone(),
        };
        self.duration_ms = Some(self.started_at.elapsed().unwrap_or_default().as_millis());
        self.result_bytes = end.size;
        if let Some(approval) = end.approvals.first() {
            self.approval = Some(approval.clone());
        }
    }

    /// Reports whether the call is of that item.
    pub(super) fn is_of(&self, item: &Item) -> bool {
        *self.server == *item.origin.server && self.tool == item.local_key()
    }

    /// Returns the exact arguments, if they are short.
    pub(super) fn exact_arguments(&self) -> Option<Json> {
        match &self.arguments {
            ShownArguments::Raw(json) => Some(json.clone()),
            ShownArguments::Presented(_) => None,
        }
    }

    /// Returns the class of refusal that the console shows; `None` if the call was not refused.
    pub(super) fn refusal(&self) -> Option<&'static str> {
        let code = self.code.filter(|_| self.outcome == Some("refused"))?;
        let by = |rule: &str| {
            self.decision_log
                .any_step(|s| s.policy == rule && s.decision == "refuse")
        };
        Some(refusal_class(code, by("freeze"), by("rate")))
    }

    /// Returns what the rules decided: `deny`, `ask` or `allow`. Others may have refused the call: a person, a freeze, or
    /// the check of its arguments.
    pub(super) fn rule_decision(&self) -> &'static str {
        let has = |verdict: &str| {
            let is_rule = |step: &DecisionStep| step.policy == "access" && step.decision == verdict;
            self.decision_log.any_step(is_rule)
        };
        if has("refuse") {
            "deny"
        } else if has("ask") {
            "ask"
        } else {
            "allow"
        }
    }

    /// Returns the event of its end, without arguments and result.
    pub(super) fn end_event(&self) -> GatewayEvent {
        let tool = match self.server.is_empty() {
            true => self.tool.clone(),
            false => format!("{}.{}", self.server, self.tool),
        };
        GatewayEvent::CallEnded {
            id: self.id.to_string(),
            tool,
            caller: self.caller.name().to_owned(),
            decision: match self.decision_log.any_step(|step| step.decision == "hide") {
                true => "hide",
                false => self.rule_decision(),
            },
            outcome: self.outcome.unwrap_or_default(),
            code: self.code,
            duration: self.started_at.elapsed().unwrap_or_default(),
        }
    }
}

/// Returns the class of a refusal that the console shows, by its error class in the audit log.
pub(crate) fn refusal_class(code: &str, frozen: bool, rate: bool) -> &str {
    match code {
        "refused_rule" if frozen => "frozen",
        "refused_rule" => "rule",
        "refused_person" => "person",
        "refused_expired" => "expired",
        "refused_record" => "record",
        "refused_result" => "result",
        "busy" if rate => "rate",
        other => other,
    }
}

/// Converts an outcome of the audit log to the outcome that the console shows.
pub(crate) fn console_outcome(out: &str) -> &str {
    match out {
        "cancelled_unknown" => "cancelled",
        out => out,
    }
}

/// Maximum length of the caller's spelling of a name, in characters.
const MAX_UNRESOLVED_NAME_CHARS: usize = 2048;

/// Returns the name of an unresolved item with the prefix of its kind, cut to 128 characters.
fn unresolved_name(view: &CallView) -> String {
    let kind = match view.op.kinds().first() {
        Some(ItemKind::Resource | ItemKind::Template | ItemKind::Skill) => Item::RESOURCE_PREFIX,
        Some(ItemKind::Prompt) => Item::PROMPT_PREFIX,
        Some(ItemKind::Tool) | None => "",
    };
    kind.chars().chain(view.name.chars().take(128)).collect()
}

/// Returns the name of an item on its server. For a resource it is the requested URI, which says more than a
/// template.
fn display_name(item: &Item, op: Op, name: &str) -> String {
    match op {
        Op::Resource => format!("{}{name}", Item::RESOURCE_PREFIX),
        _ => item.local_key(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_call_that_waited_add_up() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut times = CallTimes::begin(start);
        times.end(true, None, at(10));
        times.resume(at(1010));
        times.run(at(1015));
        times.end(false, Some(at(1095)), at(1100));
        let ms = |part: Duration| part.as_millis();
        assert_eq!(
            [times.rules, times.waiting, times.server, times.result].map(ms),
            [15, 1000, 80, 5]
        );
    }

    #[test]
    fn a_call_that_was_refused_has_only_rules() {
        let start = Instant::now();
        let mut times = CallTimes::begin(start);
        times.end(false, None, start + Duration::from_millis(3));
        assert_eq!(times.rules, Duration::from_millis(3));
        assert_eq!(times.server + times.waiting + times.result, Duration::ZERO);
    }
}
