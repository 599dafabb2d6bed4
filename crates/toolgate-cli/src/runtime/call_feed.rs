//! Live feed of calls for the console.

use crate::{
    event_log::{self, EventLevel, GatewayEvent},
    pretty_json,
    timestamp::millis,
};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};
use tokio::sync::broadcast;
use toolgate_core::{
    Caller, Catalog, DecisionLog, Item, ItemKind, Json, Op, OperatorDetail, Progress, RequestInfo,
};
use toolgate_policy::{
    CallCanceller, CallEnd, CallObserver, CallStage, CallView, SecretRedactor, sanitize_text,
};

/// Number of recent calls in the console's list.
const MAX_LISTED_CALLS: usize = 200;
/// Events that a slow subscriber may lag behind before it has to reload the full state.
const MAX_QUEUED_EVENTS: usize = 256;
/// Bytes of a call's arguments in the console's list. An approval shows all of them.
const MAX_SHOWN_ARGUMENT_BYTES: usize = 16 * 1024;

/// Bytes of arguments that are kept as they are until somebody looks at the list.
const MAX_RAW_ARGUMENT_BYTES: usize = 2 * 1024;

/// Event for the console: its name and its JSON data.
pub(crate) type ConsoleEvent = (&'static str, String);

/// Recent calls, and the event feed of the console.
pub(crate) struct CallFeed {
    calls: Mutex<VecDeque<DisplayedCall>>,
    /// Catalog of each item kind, by the names that callers use. It gives a call its full name from the start.
    catalogs: Mutex<[Catalog; ItemKind::ALL.len()]>,
    /// Registry of running calls, through which the operator stops them.
    pub(crate) canceller: CallCanceller,
    feed: broadcast::Sender<ConsoleEvent>,
    /// Details of the failure that was printed last.
    last_printed: Mutex<Option<OperatorDetail>>,
}

/// One call as the console shows it.
struct DisplayedCall {
    id: Arc<str>,
    caller: Caller,
    request_info: Arc<RequestInfo>,
    started_at: SystemTime,
    server: String,
    /// Name of the item on its server, prefixed with its kind for a resource or a prompt.
    tool: String,
    op: Op,
    /// Name as the caller wrote it.
    name: String,
    state: &'static str,
    arguments: ShownArguments,
    decision_log: DecisionLog,
    outcome: Option<&'static str>,
    /// Error class of a refused call.
    code: Option<&'static str>,
    detail: Option<String>,
    progress: Option<Progress>,
    duration_ms: Option<u128>,
    approval: Option<Arc<str>>,
}

/// Arguments of a call as the console shows them.
enum ShownArguments {
    /// Short arguments as compact JSON, which is made presentable once somebody looks at it.
    Raw(Json),
    /// Arguments that were made presentable at once, so that no long ones are kept.
    Presented(PresentedArguments),
}

#[derive(Clone)]
struct PresentedArguments {
    text: String,
    /// Number of masked values.
    masked: usize,
}

impl ShownArguments {
    fn new(arguments: &Json) -> ShownArguments {
        match arguments.as_str().len() <= MAX_RAW_ARGUMENT_BYTES {
            // Detached: a part of a message keeps all of the message in memory.
            true => ShownArguments::Raw(arguments.detached()),
            false => ShownArguments::Presented(PresentedArguments::new(arguments)),
        }
    }

    fn present(&self) -> PresentedArguments {
        match self {
            ShownArguments::Raw(arguments) => PresentedArguments::new(arguments),
            ShownArguments::Presented(presented) => presented.clone(),
        }
    }
}

impl PresentedArguments {
    fn new(arguments: &Json) -> PresentedArguments {
        let (text, masked) = pretty_json::pretty_masked(arguments, MAX_SHOWN_ARGUMENT_BYTES);
        let text = SecretRedactor::redact_for_display(&text).into_owned();
        PresentedArguments { text, masked }
    }
}

impl CallFeed {
    pub(crate) fn new() -> CallFeed {
        CallFeed {
            calls: Mutex::default(),
            catalogs: Mutex::default(),
            canceller: CallCanceller::default(),
            feed: broadcast::Sender::new(MAX_QUEUED_EVENTS),
            last_printed: Mutex::default(),
        }
    }

    /// Prints the details of a failure, unless the last printed failure had the same details.
    fn print_once(&self, detail: &OperatorDetail) {
        let mut said = self
            .last_printed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if said.as_ref() != Some(detail) {
            event_log::emit(GatewayEvent::CallFailed {
                detail: detail.for_operator().to_owned(),
            });
            *said = Some(detail.clone());
        }
    }

    /// Subscribes to events from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<ConsoleEvent> {
        self.feed.subscribe()
    }

    /// Returns whether the feed has a subscriber. Without one, building an event is wasted work.
    pub(crate) fn is_watched(&self) -> bool {
        self.feed.receiver_count() > 0
    }

    /// Sends an event to the console.
    pub(crate) fn send(&self, name: &'static str, value: &Value) {
        // It fails only if there is no subscriber.
        let _ = self.feed.send((name, value.to_string()));
    }

    /// Sends an event to the console. Builds its data only if the feed has a subscriber.
    pub(crate) fn send_with(&self, name: &'static str, value: impl FnOnce() -> Value) {
        if self.is_watched() {
            self.send(name, &value());
        }
    }

    /// Sends the state of a call to the console.
    fn send_call(&self, call: &DisplayedCall) {
        self.send_with("call", || call.json());
    }

    /// Stores the catalog of one item kind.
    pub(crate) fn set_catalog(&self, kind: ItemKind, catalog: Catalog) {
        self.lock_catalogs()[kind as usize] = catalog;
    }

    /// Finds the item that a call uses, if it is known.
    fn find_item(&self, call: &CallView) -> Option<Arc<Item>> {
        let names = self.lock_catalogs();
        let mut kinds = call.op.kinds().iter();
        kinds.find_map(|kind| names[*kind as usize].find(&call.name).cloned())
    }

    /// Returns the full name of a tool, `server.tool`, if its server has listed it; otherwise the name unchanged.
    pub(crate) fn full_name(&self, tool: &str) -> String {
        let found = self.lock_catalogs()[ItemKind::Tool as usize]
            .find(tool)
            .cloned();
        found.map_or_else(|| tool.to_owned(), |item| item.full_name())
    }

    fn lock_catalogs(&self) -> MutexGuard<'_, [Catalog; ItemKind::ALL.len()]> {
        self.catalogs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the calls as JSON, newest first.
    pub(crate) fn json(&self) -> Value {
        self.lock_calls().iter().map(DisplayedCall::json).collect()
    }

    /// Returns the calls that wait for an approval, each with the ID of that approval.
    pub(crate) fn waiting_calls(&self) -> Vec<(Arc<str>, Arc<str>)> {
        let calls = self.lock_calls();
        let waiting = calls.iter().filter(|c| c.state == "waiting");
        waiting
            .filter_map(|c| Some((c.id.clone(), c.approval.clone()?)))
            .collect()
    }

    /// Returns whether a recent call is by this caller.
    pub(crate) fn has_caller(&self, caller: &str) -> bool {
        let calls = self.lock_calls();
        calls.iter().any(|call| call.caller.name() == caller)
    }

    /// Returns the number of running calls of a caller, and the number of its calls that wait for an approval.
    pub(crate) fn open_counts(&self, caller: &str) -> (usize, usize) {
        let calls = self.lock_calls();
        let own = calls.iter().filter(|call| call.caller.name() == caller);
        let (waiting, all) = own
            .filter(|call| call.state != "done")
            .fold((0, 0), |(waiting, all), call| {
                (waiting + usize::from(call.state == "waiting"), all + 1)
            });
        (all - waiting, waiting)
    }

    /// Marks a waiting call as cancelled, because its caller will not retry it.
    pub(crate) fn mark_cancelled(&self, id: &str) {
        self.update(id, |call| {
            call.state = "done";
            call.outcome = Some("cancelled");
        });
    }

    fn update(&self, id: &str, change: impl FnOnce(&mut DisplayedCall)) {
        let mut calls = self.lock_calls();
        if let Some(call) = calls.iter_mut().find(|c| &*c.id == id) {
            change(call);
            self.send_call(call);
        }
    }

    fn lock_calls(&self) -> MutexGuard<'_, VecDeque<DisplayedCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallObserver for CallFeed {
    fn on_begin(&self, call: &CallView) {
        let mut calls = self.lock_calls();
        if let Some(known) = calls.iter_mut().find(|c| c.id == call.id) {
            // A duplicate request of a round does not hide the running one.
            if known.state != "running" {
                known.state = "judging";
                self.send_call(known);
            }
            return;
        }
        let shown = DisplayedCall::new(call, self.find_item(call).as_deref());
        self.send_call(&shown);
        calls.push_front(shown);
        calls.truncate(MAX_LISTED_CALLS);
    }

    fn on_stage(&self, id: &str, stage: &CallStage) {
        let CallStage::Running(item) = stage else {
            return;
        };
        self.update(id, |call| {
            call.state = "running";
            call.server = item.origin.server.to_string();
            call.tool = display_name(item, call.op, &call.name);
        });
    }

    fn on_progress(&self, id: &str, progress: &Progress) {
        self.update(id, |call| call.progress = Some(progress.clone()));
    }

    fn on_end(&self, id: &str, end: &CallEnd) {
        // Duplicate request of a round: the other request still runs, and its end is the one that counts.
        if self.canceller.is_running(id) {
            return;
        }
        if let Some(detail) = &end.detail {
            self.print_once(detail);
        }
        let waits = matches!(end.outcome, "waiting" | "input_required");
        self.update(id, |call| {
            call.state = if waits { "waiting" } else { "done" };
            call.outcome = (!waits).then_some(console_outcome(end.outcome));
            call.code = end.code;
            call.detail = match &end.detail {
                Some(detail) => Some(detail.for_operator().to_owned()),
                None => end.public.clone(),
            };
            call.duration_ms = Some(call.started_at.elapsed().unwrap_or_default().as_millis());
            call.approval = end.approvals.first().cloned();
            if !waits && event_log::prints(EventLevel::Detail) {
                event_log::emit(call.end_event());
            }
        });
    }
}

/// Converts an outcome of the audit log to the outcome that the console shows.
fn console_outcome(out: &'static str) -> &'static str {
    if out == "cancelled_unknown" {
        "cancelled"
    } else {
        out
    }
}

impl DisplayedCall {
    fn new(view: &CallView, item: Option<&Item>) -> DisplayedCall {
        let tool = item.map_or_else(
            || unresolved_name(view),
            |i| display_name(i, view.op, &view.name),
        );
        DisplayedCall {
            id: view.id.clone(),
            caller: view.caller.clone(),
            request_info: view.request.clone(),
            started_at: SystemTime::now(),
            server: item.map_or(String::new(), |i| i.origin.server.to_string()),
            tool,
            op: view.op,
            name: view.name.chars().take(MAX_UNRESOLVED_NAME_CHARS).collect(),
            state: "judging",
            arguments: ShownArguments::new(&view.arguments),
            decision_log: view.trail.clone(),
            outcome: None,
            code: None,
            detail: None,
            progress: None,
            duration_ms: None,
            approval: None,
        }
    }

    /// Returns who cancelled the call, and the reason.
    fn cancellation(&self) -> Option<Value> {
        let cancelled = self.outcome == Some("cancelled");
        let why = self.decision_log.cancel_reason().filter(|_| cancelled)?;
        let reason = why.reason().map(sanitize_text);
        Some(
            json!({"by": why.audit_name(), "reason": reason.as_deref().map(SecretRedactor::redact_for_display)}),
        )
    }

    /// Returns the class of refusal that the console shows; `None` if the call was not refused.
    fn refusal(&self) -> Option<&'static str> {
        let code = self.code.filter(|_| self.outcome == Some("refused"))?;
        let by = |rule: &str| {
            self.decision_log
                .any_step(|s| s.policy == rule && s.decision == "refuse")
        };
        Some(match code {
            "refused_rule" if by("freeze") => "frozen",
            "refused_rule" => "rule",
            "refused_person" => "person",
            "refused_expired" => "expired",
            "refused_record" => "record",
            "refused_result" => "result",
            "busy" if by("rate") => "rate",
            other => other,
        })
    }

    /// Returns what the rules decided: `deny`, `ask` or `allow`.
    fn rule_decision(&self) -> &'static str {
        let has = |verdict: &str| self.decision_log.any_step(|step| step.decision == verdict);
        if has("refuse") {
            "deny"
        } else if has("ask") {
            "ask"
        } else {
            "allow"
        }
    }

    /// Returns the event of its end, without arguments and result.
    fn end_event(&self) -> GatewayEvent {
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

    fn json(&self) -> Value {
        let (steps, arguments) = (self.decision_log.steps(), self.arguments.present());
        let verdict = self.rule_decision();
        let decides = |verdict: &str| !matches!(verdict, "also" | "passed");
        let mut by_access = steps.iter().rev().filter(|s| s.policy == "access");
        let rule = by_access.find(|s| decides(s.decision));
        let trail: Vec<Value> = steps
            .iter()
            .map(|s| json!({"by": s.policy, "verdict": s.decision, "why": SecretRedactor::redact_for_display(&s.reason)}))
            .collect();
        let progress = self
            .progress
            .as_ref()
            .map(|p| json!({"progress": p.progress, "total": p.total, "message": p.message}));
        json!({
            "id": self.id, "at": millis(self.started_at), "caller": self.caller.name(),
            "client": self.request_info.client.as_deref().map(SecretRedactor::redact_for_display), "server": self.server, "tool": SecretRedactor::redact_for_display(&self.tool), "method": self.op.method(),
            "revision": self.request_info.revision, "transport": self.request_info.transport, "state": self.state,
            "arguments": arguments.text, "masked": arguments.masked, "verdict": verdict,
            "rule": rule.map(|s| SecretRedactor::redact_for_display(&s.reason)), "trail": trail, "outcome": self.outcome, "refusal": self.refusal(),
            "detail": self.detail.as_deref().map(SecretRedactor::redact_for_display), "progress": progress, "took_ms": self.duration_ms,
            "approval": self.approval, "cancel": self.cancellation(),
        })
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
