//! The calls as they happen, for the console.

use crate::show;
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::sync::broadcast;
use toolgate::{Caller, Catalog, Item, ItemKind, Op, OperatorDetail, Progress, Seen, Trail};
use toolgate_policy::{CallView, End, Observer, Secrets, Stage, Stop, clean};

/// Calls that are kept for the console.
const KEPT: usize = 200;
/// Events that a slow reader may lie behind before it gets everything anew.
const BEHIND: usize = 256;
/// Bytes of a call's arguments that are kept for the list. An approval shows all of them.
const SHOWN: usize = 16 * 1024;

/// An event for the console: its name and its JSON.
pub(crate) type Told = (&'static str, String);

/// The calls as they happen.
pub(crate) struct Board {
    calls: Mutex<VecDeque<Shown>>,
    /// All things by the names that callers use, to show a call under its full name from the start.
    names: Mutex<[Catalog; ItemKind::ALL.len()]>,
    /// What runs, and the hand on it.
    pub(crate) stop: Stop,
    feed: broadcast::Sender<Told>,
    /// The details of a failure that were printed last.
    said: Mutex<Option<OperatorDetail>>,
}

/// One call as the console shows it.
struct Shown {
    id: Arc<str>,
    caller: Caller,
    seen: Arc<Seen>,
    at: SystemTime,
    server: String,
    /// The name behind the server, also of a resource or a prompt.
    tool: String,
    op: Op,
    /// As the caller wrote it.
    name: String,
    state: &'static str,
    arguments: String,
    masked: usize,
    trail: Trail,
    outcome: Option<&'static str>,
    /// Of what is refused, the kind of the error.
    code: Option<&'static str>,
    detail: Option<String>,
    progress: Option<Progress>,
    took: Option<u128>,
    approval: Option<Arc<str>>,
}

impl Board {
    pub(crate) fn new() -> Board {
        Board {
            calls: Mutex::default(),
            names: Mutex::default(),
            stop: Stop::default(),
            feed: broadcast::Sender::new(BEHIND),
            said: Mutex::default(),
        }
    }

    /// Prints the details of a failure, unless they are those that were printed last.
    fn say_once(&self, detail: &OperatorDetail) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.as_ref() != Some(detail) {
            let text = Secrets::without(detail.for_operator());
            eprintln!("toolgate: a call failed: {}", toolgate::visible_line(&text));
            *said = Some(detail.clone());
        }
    }

    /// What happens from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Told> {
        self.feed.subscribe()
    }

    /// Whether anybody looks; where nobody does, making an event is wasted work.
    pub(crate) fn is_watched(&self) -> bool {
        self.feed.receiver_count() > 0
    }

    /// Tells the console something.
    pub(crate) fn tell(&self, name: &'static str, value: &Value) {
        // Nobody may be looking.
        let _ = self.feed.send((name, value.to_string()));
    }

    /// Learns what there is of one kind.
    pub(crate) fn know(&self, kind: ItemKind, catalog: Catalog) {
        self.names()[kind as usize] = catalog;
    }

    /// The thing that a call is about, where it is known.
    fn find(&self, call: &CallView) -> Option<Arc<Item>> {
        let names = self.names();
        let mut kinds = call.op.kinds().iter();
        kinds.find_map(|kind| names[*kind as usize].find(&call.name).cloned())
    }

    /// A tool by its full name, `server.tool`, where its server has told of it; else as the caller named it.
    pub(crate) fn full_name(&self, tool: &str) -> String {
        let found = self.names()[ItemKind::Tool as usize].find(tool).cloned();
        found.map_or_else(|| tool.to_owned(), |item| item.full_name())
    }

    fn names(&self) -> MutexGuard<'_, [Catalog; ItemKind::ALL.len()]> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest calls first.
    pub(crate) fn json(&self) -> Value {
        self.calls().iter().map(Shown::json).collect()
    }

    /// The calls that wait, each with the approval that it waits for.
    pub(crate) fn waiting(&self) -> Vec<(Arc<str>, Arc<str>)> {
        let calls = self.calls();
        let waiting = calls.iter().filter(|c| c.state == "waiting");
        waiting
            .filter_map(|c| Some((c.id.clone(), c.approval.clone()?)))
            .collect()
    }

    /// How many calls of a caller run, and how many wait for a person.
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

    /// A call that waited will not come back.
    pub(crate) fn gone(&self, id: &str) {
        self.update(id, |call| {
            call.state = "done";
            call.outcome = Some("cancelled");
        });
    }

    fn update(&self, id: &str, change: impl FnOnce(&mut Shown)) {
        let mut calls = self.calls();
        if let Some(call) = calls.iter_mut().find(|c| &*c.id == id) {
            change(call);
            if self.is_watched() {
                self.tell("call", &call.json());
            }
        }
    }

    fn calls(&self) -> MutexGuard<'_, VecDeque<Shown>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Board {
    fn began(&self, call: &CallView) {
        let mut calls = self.calls();
        if let Some(known) = calls.iter_mut().find(|c| c.id == call.id) {
            // A round that was sent twice does not hide the one that runs.
            if known.state != "running" {
                known.state = "judging";
                self.tell("call", &known.json());
            }
            return;
        }
        let shown = Shown::new(call, self.find(call).as_deref());
        self.tell("call", &shown.json());
        calls.push_front(shown);
        calls.truncate(KEPT);
    }

    fn changed(&self, id: &str, stage: &Stage) {
        let Stage::Running(item) = stage;
        self.update(id, |call| {
            call.state = "running";
            call.server = item.origin.server.to_string();
            let name = shown_name(item, call.op, &call.name);
            call.tool = Secrets::without(&name).into_owned();
        });
    }

    fn progress(&self, id: &str, progress: &Progress) {
        self.update(id, |call| call.progress = Some(progress.clone()));
    }

    fn ended(&self, id: &str, end: &End) {
        // The same round, sent twice: the other one still runs, and its end is the one that counts.
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

/// The word of the console for a word of the record.
fn word(out: &'static str) -> &'static str {
    if out == "cancelled_unknown" {
        "cancelled"
    } else {
        out
    }
}

impl Shown {
    fn new(view: &CallView, item: Option<&Item>) -> Shown {
        let (arguments, masked) = show::masked(&view.arguments, SHOWN);
        let tool = item.map_or_else(|| name(view), |i| shown_name(i, view.op, &view.name));
        Shown {
            id: view.id.clone(),
            caller: view.caller.clone(),
            seen: view.seen.clone(),
            at: SystemTime::now(),
            server: item.map_or(String::new(), |i| i.origin.server.to_string()),
            tool: Secrets::without(&tool).into_owned(),
            op: view.op,
            name: view.name.chars().take(LONGEST).collect(),
            state: "judging",
            arguments: Secrets::without(&arguments).into_owned(),
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

    /// Who cancelled it, and why.
    fn given_up(&self) -> Option<Value> {
        let cancelled = self.outcome == Some("cancelled");
        let why = self.trail.given_up().filter(|_| cancelled)?;
        let reason = why.reason().map(clean);
        Some(json!({"by": why.by(), "reason": reason.as_deref().map(Secrets::without)}))
    }

    /// Why it was refused, as the console tells reasons apart; `None` if it was not.
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
            .map(|s| json!({"by": s.by, "verdict": s.verdict, "why": Secrets::without(&s.why)}))
            .collect();
        let progress = self
            .progress
            .as_ref()
            .map(|p| json!({"progress": p.progress, "total": p.total, "message": p.message}));
        json!({
            "id": self.id, "at": millis(self.at), "caller": self.caller.name(),
            "client": self.seen.client.as_deref().map(Secrets::without), "server": self.server, "tool": self.tool, "method": self.op.method(),
            "revision": self.seen.revision, "transport": self.seen.transport, "state": self.state,
            "arguments": self.arguments, "masked": self.masked, "verdict": verdict,
            "rule": rule.map(|s| Secrets::without(&s.why)), "trail": trail, "outcome": self.outcome, "refusal": self.refusal(),
            "detail": self.detail.as_deref().map(Secrets::without), "progress": progress, "took_ms": self.took,
            "approval": self.approval, "cancel": self.given_up(),
        })
    }
}

/// How long a name may be that nobody knows.
const LONGEST: usize = 2048;

/// The name as the caller wrote it, as long as names may be, with what it is of.
fn name(view: &CallView) -> String {
    let kind = match view.op.kinds().first() {
        Some(ItemKind::Resource | ItemKind::Template | ItemKind::Skill) => Item::RESOURCE,
        Some(ItemKind::Prompt) => Item::PROMPT,
        Some(ItemKind::Tool) | None => "",
    };
    kind.chars().chain(view.name.chars().take(128)).collect()
}

/// The name of a thing behind its server; where a template is read, the URI, which says more.
fn shown_name(item: &Item, op: Op, name: &str) -> String {
    match op {
        Op::Resource => format!("{}{name}", Item::RESOURCE),
        _ => item.own_name(),
    }
}

/// Milliseconds since 1970.
pub(crate) fn millis(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}
