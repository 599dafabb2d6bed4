//! One task: what is known of it, its questions, and its end.

use super::TaskView;
use crate::edge::ask::Asker;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    sync::{oneshot, watch},
    task::AbortHandle,
};
use toolgate_core::{Background, BoxFuture, Caller, Error, Event, Kind, Report, Reporter};
use toolgate_wire::{
    json::Json,
    message::RpcError,
    method::{
        elicitation::Request,
        tasks::{Detail, Status, Task, Words, iso},
    },
};

/// What a call was answered.
pub(super) type Answer = Result<Json, RpcError>;

/// One call that is a task, or may become one.
pub(crate) struct Entry {
    /// Whoever knows it and is the same caller may look: 160 random bits.
    pub(super) id: String,
    pub(super) owner: Caller,
    /// The connection that ends it with itself, where there is one.
    pub(super) link: Option<u64>,
    pub(super) words: Words,
    pub(super) call: Arc<str>,
    pub(super) tool: String,
    pub(super) created: u64,
    pub(super) life: Duration,
    pub(super) poll: Duration,
    /// Whether its questions may leave as the answer of the call, as long as it is no task.
    rounds: bool,
    background: Background,
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

struct State {
    phase: Phase,
    updated: u64,
    message: Option<String>,
    asks: Vec<Open>,
    /// The keys that were used; none is used again.
    keys: HashSet<String>,
    end: Option<End>,
    work: Option<AbortHandle>,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    /// The caller waits.
    Waited,
    /// The caller waits, and there is no room for a task.
    Stays,
    /// The call said that it is a task; its caller does not know yet.
    Begins,
    /// The caller looks.
    Task,
    /// The caller has its answer.
    Answered,
}

/// How a task ended.
#[derive(Clone)]
pub(super) enum End {
    Answered(Answer),
    Cancelled,
}

/// A question that is open.
struct Open {
    ask: Request,
    answer: oneshot::Sender<Json>,
    /// Whether somebody asks it right now (2025-11-25).
    taken: bool,
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What is known of a call when it begins.
pub(super) struct Begin {
    pub(super) owner: Caller,
    pub(super) link: Option<u64>,
    pub(super) words: Words,
    pub(super) call: Arc<str>,
    pub(super) tool: String,
    pub(super) background: Background,
    pub(super) life: Duration,
    pub(super) poll: Duration,
}

impl Entry {
    pub(super) fn new(begin: Begin) -> Entry {
        let created = now();
        Entry {
            id: crate::ids::secret(),
            owner: begin.owner,
            link: begin.link,
            words: begin.words,
            call: begin.call,
            tool: begin.tool,
            created,
            life: begin.life,
            poll: begin.poll,
            rounds: begin.words == Words::Extension,
            background: begin.background,
            state: Mutex::new(State {
                phase: Phase::Waited,
                updated: created,
                message: None,
                asks: Vec::new(),
                keys: HashSet::new(),
                end: None,
                work: None,
            }),
            changed: watch::Sender::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let changed = change(&mut state);
        state.updated = now().max(state.updated);
        drop(state);
        self.changed.send_modify(|n| *n += 1);
        changed
    }

    /// Becomes a task, unless there is an answer already.
    pub(super) fn detach(&self, work: AbortHandle) -> bool {
        let mut state = self.state();
        let waited = matches!(state.phase, Phase::Waited | Phase::Begins);
        if waited {
            state.phase = Phase::Task;
            state.work = Some(work);
        }
        waited
    }

    /// Becomes no task, for want of room.
    pub(super) fn stay(&self) {
        let mut state = self.state();
        if state.phase == Phase::Waited {
            state.phase = Phase::Stays;
        }
    }

    /// Whether its caller waits for the answer. From here on a call that said that it is a task is one.
    fn is_waited_for(&self, state: &mut State) -> bool {
        if state.phase == Phase::Waited && self.background.is_task() {
            state.phase = Phase::Begins;
        }
        !matches!(state.phase, Phase::Begins | Phase::Task)
    }

    /// Takes the answer of the call. Gives it back where the caller still waits.
    pub(super) fn answered(&self, answer: Answer) -> Option<Answer> {
        self.change(|state| {
            if self.is_waited_for(state) {
                state.phase = Phase::Answered;
                return Some(answer);
            }
            state.asks.clear();
            state.end.get_or_insert(End::Answered(answer));
            None
        })
    }

    /// Ends it without a result; false where it is over.
    pub(super) fn cancel(&self) -> bool {
        self.change(|state| {
            if state.end.is_some() {
                return false;
            }
            state.end = Some(End::Cancelled);
            state.asks.clear();
            if let Some(work) = state.work.take() {
                work.abort();
            }
            true
        })
    }

    /// How it ended.
    pub(super) fn end(&self) -> Option<End> {
        self.state().end.clone()
    }

    /// Whether it is over.
    pub(super) fn is_over(&self) -> bool {
        self.state().end.is_some()
    }

    /// Whether its time is over.
    pub(super) fn is_expired(&self) -> bool {
        now() >= self.created.saturating_add(millis(self.life))
    }

    /// Bytes of its result.
    pub(super) fn size(&self) -> usize {
        match &self.state().end {
            Some(End::Answered(Ok(json))) => json.as_str().len(),
            _ => 0,
        }
    }

    /// Tells each change.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// As a message shows it.
    pub(super) fn shown(&self) -> Task {
        let state = self.state();
        let (status, detail) = match &state.end {
            Some(End::Answered(Ok(result))) => (Status::Completed, Detail::Result(result.clone())),
            Some(End::Answered(Err(error))) => (Status::Failed, Detail::Error(error.clone())),
            Some(End::Cancelled) => (Status::Cancelled, Detail::None),
            None if state.asks.is_empty() => (Status::Working, Detail::None),
            None => {
                let asks = state.asks.iter().map(|open| open.ask.clone());
                (Status::InputRequired, Detail::Asks(asks.collect()))
            }
        };
        let failed = match &detail {
            Detail::Error(error) => Some(error.message.clone()),
            _ => None,
        };
        Task {
            id: self.id.clone(),
            status,
            message: failed.or_else(|| state.message.clone()),
            created: iso(self.created),
            updated: iso(state.updated),
            ttl_ms: Some(millis(self.life)),
            poll_ms: Some(millis(self.poll)),
            detail,
        }
    }

    /// As an operator sees it.
    pub(super) fn view(&self) -> TaskView {
        let shown = self.shown();
        TaskView {
            call: self.call.clone(),
            caller: self.owner.clone(),
            tool: self.tool.clone(),
            status: shown.status.word(),
            message: shown.message,
            created: self.created,
        }
    }

    /// Answers open questions; what was not asked, or is answered, is passed over.
    pub(super) fn answer(&self, answers: impl Iterator<Item = (String, Json)>) {
        let mut found = Vec::new();
        self.change(|state| {
            for (key, answer) in answers {
                let at = state.asks.iter().position(|open| open.ask.key == key);
                found.extend(at.map(|at| (state.asks.remove(at), answer)));
            }
        });
        for (open, answer) in found {
            let _ = open.answer.send(answer);
        }
    }

    /// An open question that nobody asks right now.
    pub(super) fn take(self: &Arc<Self>) -> Option<Taken> {
        let mut state = self.state();
        let open = state.asks.iter_mut().find(|open| !open.taken)?;
        open.taken = true;
        Some(Taken {
            task: self.clone(),
            ask: open.ask.clone(),
        })
    }

    /// Ends when a question is no longer open.
    pub(super) async fn settled(&self, key: &str) {
        let mut changes = self.changes();
        while self.state().asks.iter().any(|open| open.ask.key == key) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Puts a question into the task, under a key that was never used in it.
    fn open(&self, method: &str, params: Option<Json>) -> (String, oneshot::Receiver<Json>) {
        let (answer, answered) = oneshot::channel();
        let key = self.change(|state| {
            let key = format!("q{}", state.keys.len() + 1);
            state.keys.insert(key.clone());
            state.asks.push(Open {
                ask: Request {
                    key: key.clone(),
                    method: method.to_owned(),
                    params,
                },
                answer,
                taken: false,
            });
            key
        });
        (key, answered)
    }

    /// Takes a question back.
    fn close(&self, key: &str) {
        let there = self.state().asks.iter().any(|open| open.ask.key == key);
        if there {
            self.change(|state| state.asks.retain(|open| open.ask.key != key));
        }
    }

    /// Says in words how far it is.
    fn say(&self, message: String) {
        self.change(|state| state.message = Some(message));
    }
}

/// A question that is being asked; where that fails, somebody else may ask it.
pub(super) struct Taken {
    task: Arc<Entry>,
    pub(super) ask: Request,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut state = self.task.state();
        for open in &mut state.asks {
            if open.ask.key == self.ask.key {
                open.taken = false;
            }
        }
    }
}

/// Takes a question back when nobody waits for its answer any more.
struct Asked<'a>(&'a Entry, String);

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.close(&self.1);
    }
}

impl Asker for Entry {
    fn ask<'a>(
        &'a self,
        method: &'a str,
        params: Option<Json>,
    ) -> BoxFuture<'a, Result<Json, Error>> {
        Box::pin(async move {
            let (key, answered) = self.open(method, params);
            let _asked = Asked(self, key);
            let gone = |_| Error::new(Kind::Cancelled, "the task ended before the answer came");
            answered.await.map_err(gone)
        })
    }

    fn leaves(&self) -> bool {
        let mut state = self.state();
        let leaves = self.rounds && self.is_waited_for(&mut state);
        if leaves {
            state.phase = Phase::Answered;
        }
        leaves
    }

    fn together(&self) -> bool {
        true
    }
}

/// Whatever ends the work of a task ends the task.
pub(super) struct Working(pub(super) Arc<Entry>);

impl Drop for Working {
    fn drop(&mut self) {
        if !self.0.is_over() {
            self.0.cancel();
        }
    }
}

/// Keeps the words of the last progress as those of the task.
pub(super) struct Told {
    pub(super) task: Arc<Entry>,
    pub(super) to: Reporter,
}

impl Report for Told {
    fn report(&self, event: Event) {
        if let Event::Progress(progress) = &event
            && let Some(message) = &progress.message
        {
            self.task.say(message.clone());
        }
        self.to.tell(event);
    }
}
