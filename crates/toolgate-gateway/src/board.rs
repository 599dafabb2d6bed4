//! Live feed of calls for the console.

use crate::show;
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::sync::broadcast;
use toolgate::{
    Caller, Catalog, DecisionLog, Item, ItemKind, Op, OperatorDetail, Progress, RequestInfo,
};
use toolgate_policy::{
    CallCanceller, CallEnd, CallObserver, CallStage, CallView, SecretRedactor, clean,
};

/// Number of recent calls in the console's list.
const MAX_LISTED_CALLS: usize = 200;
/// Events that a slow subscriber may lag behind before it has to reload the full state.
const MAX_QUEUED_EVENTS: usize = 256;
/// Bytes of a call's arguments in the console's list. An approval shows all of them.
const MAX_SHOWN_ARGUMENT_BYTES: usize = 16 * 1024;

/// Event for the console: its name and its JSON data.
pub(crate) type ConsoleEvent = (&'static str, String);

/// Recent calls, and the event feed of the console.
pub(crate) struct CallFeed {
    calls: Mutex<VecDeque<DisplayedCall>>,
    /// Catalog of each item kind, by the names that callers use. It gives a call its full name from the start.
    names: Mutex<[Catalog; ItemKind::ALL.len()]>,
    /// Registry of running calls, through which the operator stops them.
    pub(crate) stop: CallCanceller,
    feed: broadcast::Sender<ConsoleEvent>,
    /// Details of the failure that was printed last.
    said: Mutex<Option<OperatorDetail>>,
}

/// One call as the console shows it.
struct DisplayedCall {
    id: Arc<str>,
    caller: Caller,
    seen: Arc<RequestInfo>,
    at: SystemTime,
    server: String,
    /// Name of the item on its server, prefixed with its kind for a resource or a prompt.
    tool: String,
    op: Op,
    /// Name as the caller wrote it.
    name: String,
    state: &'static str,
    arguments: String,
    masked: usize,
    trail: DecisionLog,
    outcome: Option<&'static str>,
    /// Error class of a refused call.
    code: Option<&'static str>,
    detail: Option<String>,
    progress: Option<Progress>,
    took: Option<u128>,
    approval: Option<Arc<str>>,
}

impl CallFeed {
    pub(crate) fn new() -> CallFeed {
        CallFeed {
            calls: Mutex::default(),
            names: Mutex::default(),
            stop: CallCanceller::default(),
            feed: broadcast::Sender::new(MAX_QUEUED_EVENTS),
            said: Mutex::default(),
        }
    }

    /// Prints the details of a failure to stderr, unless the last printed failure had the same details.
    fn say_once(&self, detail: &OperatorDetail) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.as_ref() != Some(detail) {
            let text = SecretRedactor::without(detail.for_operator());
            eprintln!("toolgate: a call failed: {}", toolgate::visible_line(&text));
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
    pub(crate) fn tell(&self, name: &'static str, value: &Value) {
        // It fails only if there is no subscriber.
        let _ = self.feed.send((name, value.to_string()));
    }

    /// Stores the catalog of one item kind.
    pub(crate) fn know(&self, kind: ItemKind, catalog: Catalog) {
        self.names()[kind as usize] = catalog;
    }

    /// Finds the item that a call uses, if it is known.
    fn find(&self, call: &CallView) -> Option<Arc<Item>> {
        let names = self.names();
        let mut kinds = call.op.kinds().iter();
        kinds.find_map(|kind| names[*kind as usize].find(&call.name).cloned())
    }

    /// Returns the full name of a tool, `server.tool`, if its server has listed it; otherwise the name unchanged.
    pub(crate) fn full_name(&self, tool: &str) -> String {
        let found = self.names()[ItemKind::Tool as usize].find(tool).cloned();
        found.map_or_else(|| tool.to_owned(), |item| item.full_name())
    }

    fn names(&self) -> MutexGuard<'_, [Catalog; ItemKind::ALL.len()]> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the calls as JSON, newest first.
    pub(crate) fn json(&self) -> Value {
        self.calls().iter().map(DisplayedCall::json).collect()
    }

    /// Returns the calls that wait for an approval, each with the ID of that approval.
    pub(crate) fn waiting(&self) -> Vec<(Arc<str>, Arc<str>)> {
        let calls = self.calls();
        let waiting = calls.iter().filter(|c| c.state == "waiting");
        waiting
            .filter_map(|c| Some((c.id.clone(), c.approval.clone()?)))
            .collect()
    }

    /// Returns the number of running calls of a caller, and the number of its calls that wait for an approval.
    pub(crate) fn open_of(&self, caller: &str) -> (usize, usize) {
        let calls = self.calls();
        let own = calls.iter().filter(|call| call.caller.name() == caller);
        let (waiting, all) = own
            .filter(|call| call.state != "done")
            .fold((0, 0), |(waiting, all), call| {
                (waiting + usize::from(call.state == "waiting"), all + 1)
            });
        (all - waiting, waiting)
    }

    /// Marks a waiting call as cancelled, because its caller will not retry it.
    pub(crate) fn gone(&self, id: &str) {
        self.update(id, |call| {
            call.state = "done";
            call.outcome = Some("cancelled");
        });
    }

    fn update(&self, id: &str, change: impl FnOnce(&mut DisplayedCall)) {
        let mut calls = self.calls();
        if let Some(call) = calls.iter_mut().find(|c| &*c.id == id) {
            change(call);
            if self.is_watched() {
                self.tell("call", &call.json());
            }
        }
    }

    fn calls(&self) -> MutexGuard<'_, VecDeque<DisplayedCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallObserver for CallFeed {
    fn began(&self, call: &CallView) {
        let mut calls = self.calls();
        if let Some(known) = calls.iter_mut().find(|c| c.id == call.id) {
            // A duplicate request of a round does not hide the running one.
            if known.state != "running" {
                known.state = "judging";
                self.tell("call", &known.json());
            }
            return;
        }
        let shown = DisplayedCall::new(call, self.find(call).as_deref());
        self.tell("call", &shown.json());
        calls.push_front(shown);
        calls.truncate(MAX_LISTED_CALLS);
    }

    fn changed(&self, id: &str, stage: &CallStage) {
        let CallStage::Running(item) = stage;
        self.update(id, |call| {
            call.state = "running";
            call.server = item.origin.server.to_string();
            let name = shown_name(item, call.op, &call.name);
            call.tool = SecretRedactor::without(&name).into_owned();
        });
    }

    fn progress(&self, id: &str, progress: &Progress) {
        self.update(id, |call| call.progress = Some(progress.clone()));
    }

    fn ended(&self, id: &str, end: &CallEnd) {
        // Duplicate request of a round: the other request still runs, and its end is the one that counts.
        if self.stop.runs(id) {
            return;
        }
        if let Some(detail) = &end.detail {
            self.say_once(detail);
        }
        let waits = matches!(end.out, "waiting" | "input_required");
        self.update(id, |call| {
            call.state = if waits { "waiting" } else { "done" };
            call.outcome = (!waits).then_some(word(end.out));
            call.code = end.code;
            call.detail = match &end.detail {
                Some(detail) => Some(detail.for_operator().to_owned()),
                None => end.public.clone(),
            };
            call.took = Some(call.at.elapsed().unwrap_or_default().as_millis());
            call.approval = end.approvals.first().cloned();
        });
    }
}

/// Converts an outcome of the audit log to the outcome that the console shows.
fn word(out: &'static str) -> &'static str {
    if out == "cancelled_unknown" {
        "cancelled"
    } else {
        out
    }
}

impl DisplayedCall {
    fn new(view: &CallView, item: Option<&Item>) -> DisplayedCall {
        let (arguments, masked) = show::masked(&view.arguments, MAX_SHOWN_ARGUMENT_BYTES);
        let tool = item.map_or_else(|| name(view), |i| shown_name(i, view.op, &view.name));
        DisplayedCall {
            id: view.id.clone(),
            caller: view.caller.clone(),
            seen: view.seen.clone(),
            at: SystemTime::now(),
            server: item.map_or(String::new(), |i| i.origin.server.to_string()),
            tool: SecretRedactor::without(&tool).into_owned(),
            op: view.op,
            name: view.name.chars().take(MAX_UNRESOLVED_NAME_CHARS).collect(),
            state: "judging",
            arguments: SecretRedactor::without(&arguments).into_owned(),
            masked,
            trail: view.trail.clone(),
            outcome: None,
            code: None,
            detail: None,
            progress: None,
            took: None,
            approval: None,
        }
    }

    /// Returns who cancelled the call, and the reason.
    fn given_up(&self) -> Option<Value> {
        let cancelled = self.outcome == Some("cancelled");
        let why = self.trail.given_up().filter(|_| cancelled)?;
        let reason = why.reason().map(clean);
        Some(json!({"by": why.by(), "reason": reason.as_deref().map(SecretRedactor::without)}))
    }

    /// Returns the class of refusal that the console shows; `None` if the call was not refused.
    fn refusal(&self) -> Option<&'static str> {
        let code = self.code.filter(|_| self.outcome == Some("refused"))?;
        let by = |rule: &str| self.trail.any(|s| s.by == rule && s.verdict == "refuse");
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

    fn json(&self) -> Value {
        let steps = self.trail.steps();
        let has = |verdict: &str| steps.iter().any(|s| s.verdict == verdict);
        let verdict = if has("refuse") {
            "deny"
        } else if has("ask") {
            "ask"
        } else {
            "allow"
        };
        let decides = |verdict: &str| !matches!(verdict, "also" | "passed");
        let mut by_access = steps.iter().rev().filter(|s| s.by == "access");
        let rule = by_access.find(|s| decides(s.verdict));
        let trail: Vec<Value> = steps
            .iter()
            .map(|s| json!({"by": s.by, "verdict": s.verdict, "why": SecretRedactor::without(&s.why)}))
            .collect();
        let progress = self
            .progress
            .as_ref()
            .map(|p| json!({"progress": p.progress, "total": p.total, "message": p.message}));
        json!({
            "id": self.id, "at": millis(self.at), "caller": self.caller.name(),
            "client": self.seen.client.as_deref().map(SecretRedactor::without), "server": self.server, "tool": self.tool, "method": self.op.method(),
            "revision": self.seen.revision, "transport": self.seen.transport, "state": self.state,
            "arguments": self.arguments, "masked": self.masked, "verdict": verdict,
            "rule": rule.map(|s| SecretRedactor::without(&s.why)), "trail": trail, "outcome": self.outcome, "refusal": self.refusal(),
            "detail": self.detail.as_deref().map(SecretRedactor::without), "progress": progress, "took_ms": self.took,
            "approval": self.approval, "cancel": self.given_up(),
        })
    }
}

/// Maximum length of the caller's spelling of a name, in characters.
const MAX_UNRESOLVED_NAME_CHARS: usize = 2048;

/// Returns the name of an unresolved item with the prefix of its kind, cut to 128 characters.
fn name(view: &CallView) -> String {
    let kind = match view.op.kinds().first() {
        Some(ItemKind::Resource | ItemKind::Template | ItemKind::Skill) => Item::RESOURCE_PREFIX,
        Some(ItemKind::Prompt) => Item::PROMPT_PREFIX,
        Some(ItemKind::Tool) | None => "",
    };
    kind.chars().chain(view.name.chars().take(128)).collect()
}

/// Returns the name of an item on its server. For a resource it is the requested URI, which says more than a
/// template.
fn shown_name(item: &Item, op: Op, name: &str) -> String {
    match op {
        Op::Resource => format!("{}{name}", Item::RESOURCE_PREFIX),
        _ => item.own_name(),
    }
}

/// Returns the milliseconds since the Unix epoch.
pub(crate) fn millis(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}
