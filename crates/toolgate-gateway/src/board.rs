//! The calls as they happen, for the console; and the handle by which a running one is stopped.

use crate::show;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::sync::{Notify, broadcast};
use toolgate::{
    BoxFuture, Call, Catalog, Changes, Error, Interest, Item, Kind, List, Outcome, Progress,
    Service, Trail,
};
use toolgate_policy::{CallView, End, Observer, Stage};

/// Calls that are kept for the console.
const KEPT: usize = 200;
/// Events that a slow reader may lie behind before it gets everything anew.
const BEHIND: usize = 256;

/// An event for the console: its name and its JSON.
pub(crate) type Told = (&'static str, String);

/// The calls as they happen.
pub(crate) struct Board {
    calls: Mutex<VecDeque<Shown>>,
    running: Mutex<HashMap<Arc<str>, Running>>,
    /// The tools by the names that callers use, to show a call under its full name from the start.
    names: Mutex<Catalog>,
    feed: broadcast::Sender<Told>,
}

/// What is needed of a call that is in the pipeline right now.
struct Running {
    trail: Trail,
    stop: Arc<Notify>,
}

/// One call as the console shows it.
struct Shown {
    view: CallView,
    at: SystemTime,
    server: String,
    tool: String,
    state: &'static str,
    arguments: String,
    masked: usize,
    trail: Trail,
    outcome: Option<&'static str>,
    detail: Option<String>,
    progress: Option<Progress>,
    took: Option<u128>,
    approval: Option<Arc<str>>,
}

impl Board {
    pub(crate) fn new() -> Board {
        Board {
            calls: Mutex::default(),
            running: Mutex::default(),
            names: Mutex::default(),
            feed: broadcast::Sender::new(BEHIND),
        }
    }

    /// What happens from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Told> {
        self.feed.subscribe()
    }

    /// Tells the console something.
    pub(crate) fn tell(&self, name: &'static str, value: &Value) {
        // Nobody may be looking.
        let _ = self.feed.send((name, value.to_string()));
    }

    /// Learns which tools there are.
    pub(crate) fn know(&self, catalog: Catalog) {
        *self.names.lock().unwrap_or_else(PoisonError::into_inner) = catalog;
    }

    /// The newest calls first.
    pub(crate) fn json(&self) -> Value {
        self.calls().iter().map(Shown::json).collect()
    }

    /// Stops a call that is in the pipeline. `false` where there is none of that id.
    pub(crate) fn stop(&self, id: &str) -> bool {
        let running = self.running();
        let found = running.get(id);
        found.inspect(|running| running.stop.notify_one()).is_some()
    }

    /// The approval that a call waits for.
    pub(crate) fn waits_for(&self, id: &str) -> Option<Arc<str>> {
        let calls = self.calls();
        let call = calls
            .iter()
            .find(|c| &*c.view.id == id && c.state == "waiting")?;
        call.approval.clone()
    }

    fn update(&self, id: &str, change: impl FnOnce(&mut Shown)) {
        let mut calls = self.calls();
        if let Some(call) = calls.iter_mut().find(|c| &*c.view.id == id) {
            change(call);
            self.tell("call", &call.json());
        }
    }

    fn calls(&self) -> MutexGuard<'_, VecDeque<Shown>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Arc<str>, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Board {
    fn began(&self, call: &CallView) {
        let trail = self
            .running()
            .get(&call.id)
            .map(|r| r.trail.clone())
            .unwrap_or_default();
        let mut calls = self.calls();
        if let Some(known) = calls.iter_mut().find(|c| c.view.id == call.id) {
            known.state = "judging";
            self.tell("call", &known.json());
            return;
        }
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = Shown::new(call, names.find(&call.name), trail);
        drop(names);
        self.tell("call", &shown.json());
        calls.push_front(shown);
        calls.truncate(KEPT);
    }

    fn changed(&self, id: &str, stage: &Stage) {
        let Stage::Running(item) = stage;
        self.update(id, |call| {
            call.state = "running";
            call.server = item.origin.server.to_string();
            call.tool.clone_from(&item.local);
        });
    }

    fn progress(&self, id: &str, progress: &Progress) {
        self.update(id, |call| call.progress = Some(progress.clone()));
    }

    fn ended(&self, id: &str, end: &End) {
        let waits = matches!(end.out, "waiting" | "input_required");
        self.update(id, |call| {
            call.state = if waits { "waiting" } else { "done" };
            call.outcome = (!waits).then_some(word(end.out));
            call.detail.clone_from(&end.public);
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
    fn new(view: &CallView, item: Option<&Arc<Item>>, trail: Trail) -> Shown {
        let (arguments, masked) = show::masked(&view.arguments);
        Shown {
            view: view.clone(),
            at: SystemTime::now(),
            server: item.map_or(String::new(), |i| i.origin.server.to_string()),
            tool: item.map_or_else(|| view.name.clone(), |i| i.local.clone()),
            state: "judging",
            arguments,
            masked,
            trail,
            outcome: None,
            detail: None,
            progress: None,
            took: None,
            approval: None,
        }
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
        let rule = steps
            .iter()
            .rev()
            .find(|s| s.by == "access")
            .map(|s| s.why.clone());
        let trail: Vec<Value> = steps
            .iter()
            .map(|s| json!({"by": s.by, "verdict": s.verdict, "why": s.why}))
            .collect();
        let progress = self
            .progress
            .as_ref()
            .map(|p| json!({"progress": p.progress, "total": p.total, "message": p.message}));
        json!({
            "id": self.view.id, "at": millis(self.at), "caller": self.view.caller.name(), "client": self.view.seen.client,
            "server": self.server, "tool": self.tool, "revision": self.view.seen.revision, "transport": self.view.seen.transport,
            "state": self.state, "arguments": self.arguments, "masked": self.masked, "verdict": verdict, "rule": rule,
            "trail": trail, "outcome": self.outcome, "detail": self.detail, "progress": progress, "took_ms": self.took,
            "approval": self.approval,
        })
    }
}

/// Milliseconds since 1970.
pub(crate) fn millis(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

/// Lets the operator stop what runs below it.
pub(crate) struct Stoppable {
    board: Arc<Board>,
    below: Arc<dyn Service>,
}

impl Stoppable {
    pub(crate) fn new(board: Arc<Board>, below: Arc<dyn Service>) -> Stoppable {
        Stoppable { board, below }
    }
}

/// Takes a call off the board's list when it leaves the pipeline, in whatever way.
struct Listed<'a>(&'a Board, Arc<str>);

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.0.running().remove(&self.1);
    }
}

impl Service for Stoppable {
    fn list(&self, ask: List) -> BoxFuture<'_, Result<Catalog, Error>> {
        self.below.list(ask)
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let stop = Arc::new(Notify::new());
            let running = Running {
                trail: call.trail.clone(),
                stop: stop.clone(),
            };
            self.board.running().insert(call.id.clone(), running);
            let _listed = Listed(&self.board, call.id.clone());
            tokio::select! {
                outcome = self.below.call(call) => outcome,
                () = stop.notified() => Err(Error::new(Kind::Cancelled, "the operator stopped this call")),
            }
        })
    }

    fn changes(&self, want: Interest) -> BoxFuture<'_, Result<Changes, Error>> {
        self.below.changes(want)
    }
}
