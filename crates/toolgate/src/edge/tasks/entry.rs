//! One task: what is known of it, its questions, and its end.

mod ending;
mod questions;

use super::{
    TaskLimits, TaskView,
    kept::{Kept, Left, Row},
    looks::Looks,
};
use ending::{Held, Over, size};
use questions::Open;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::{sync::watch, task::AbortHandle};
use toolgate_core::{Background, BoxFuture, Caller, Error, Event, Report, Reporter, Trail};
use toolgate_wire::{
    json::Json,
    message::RpcError,
    method::tasks::{Detail, Status, Task, Words, iso},
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
    /// Tells apart which was first of those that were created in the same millisecond.
    began: Instant,
    pub(super) life: Duration,
    pub(super) poll: Duration,
    pub(super) looks: Looks,
    /// Whether its questions may leave as the answer of the call, as long as it is no task.
    rounds: bool,
    background: Background,
    /// That of its call.
    trail: Trail,
    /// Where it outlives the process, if it does.
    kept: Option<Arc<Kept>>,
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
    end: Option<Over>,
    work: Option<AbortHandle>,
    /// Whether it stands in the store.
    keeps: bool,
    /// Sealed: how the next process takes its call up, with which somebody else goes on.
    again: Option<String>,
    /// It is to be taken up: it comes from a process that is gone.
    left: Option<Left>,
    /// Since when somebody else goes on with it, in milliseconds since 1970.
    since: Option<u64>,
    /// Stands before the keys of its questions, so that none is used again after it was taken up.
    head: String,
}

impl State {
    fn new(updated: u64) -> State {
        State {
            phase: Phase::Waited,
            updated,
            message: None,
            asks: Vec::new(),
            keys: HashSet::new(),
            end: None,
            work: None,
            keeps: false,
            again: None,
            left: None,
            since: None,
            head: String::new(),
        }
    }
}

/// A task that is being taken up.
pub(super) struct Claimed {
    /// Whether it is ours.
    pub(super) claim: BoxFuture<'static, Result<bool, Error>>,
    pub(super) sealed: String,
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

/// Milliseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

pub(super) fn millis(time: Duration) -> u64 {
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
    pub(super) trail: Trail,
    pub(super) life: Duration,
    pub(super) poll: Duration,
    pub(super) looks: u32,
    pub(super) kept: Option<Arc<Kept>>,
}

impl Entry {
    pub(super) fn new(begin: Begin) -> Entry {
        let created = now();
        // The end of its connection would end it, so nobody could come back for it.
        let kept = begin.kept.filter(|_| begin.link.is_none());
        Entry {
            id: crate::ids::secret(),
            owner: begin.owner,
            link: begin.link,
            words: begin.words,
            call: begin.call,
            tool: begin.tool,
            created,
            began: Instant::now(),
            life: begin.life,
            poll: begin.poll,
            looks: Looks::new(begin.looks),
            rounds: begin.words == Words::Extension,
            background: begin.background,
            trail: begin.trail,
            kept,
            state: Mutex::new(State::new(created)),
            changed: watch::Sender::default(),
        }
    }

    /// What a task is the older by.
    pub(super) fn age(&self) -> (u64, Instant) {
        (self.created, self.began)
    }

    /// A task of a process that is gone, as the store has it.
    pub(super) fn restored(id: String, row: Row, limits: &TaskLimits, kept: Arc<Kept>) -> Entry {
        let mut task = Entry::new(Begin {
            owner: row.owner(),
            link: None,
            words: row.words,
            call: row.call.into(),
            tool: row.tool,
            background: Background::new().0,
            trail: Trail::default(),
            life: Duration::from_millis(row.life),
            poll: limits.poll,
            looks: limits.looks,
            kept: Some(kept),
        });
        (task.id, task.created) = (id, row.created);
        let end = match row.status {
            Status::Working | Status::InputRequired => None,
            Status::Cancelled => Some(Held::None),
            Status::Completed | Status::Failed => Some(Held::Kept(row.size)),
        };
        *task.state() = State {
            phase: Phase::Task,
            message: row.message,
            end: end.map(|answer| Over {
                status: row.status,
                answer,
            }),
            keeps: true,
            ..State::new(row.updated)
        };
        task
    }

    /// The same, with which somebody else goes on.
    pub(super) fn going_on(self, left: Left) -> Entry {
        {
            let mut state = self.state();
            state.again = Some(left.sealed.clone());
            state.left = Some(left);
        }
        self
    }

    /// Whether it is to be taken up.
    pub(super) fn is_left_on(&self) -> bool {
        self.state().left.is_some()
    }

    /// Begins to take it up, once.
    pub(super) fn left(&self) -> Option<Claimed> {
        let left = self.state().left.take()?;
        let claim = self.kept.as_ref()?.claim(&self.id, &left.row, left.version);
        Some(Claimed {
            claim: Box::pin(claim),
            sealed: left.sealed,
        })
    }

    /// It was taken up in this round of its call.
    pub(super) fn is_taken_up(&self, since: u64, round: u32) {
        let mut state = self.state();
        state.since = Some(since);
        state.head = format!("r{round}");
    }

    /// By what its work is ended.
    pub(super) fn runs_as(&self, work: AbortHandle) {
        let mut state = self.state();
        match state.end {
            // It was ended before it began.
            Some(_) => work.abort(),
            None => state.work = Some(work),
        }
    }

    /// Since when somebody else goes on with it, in milliseconds since 1970.
    pub(super) fn since(&self) -> u64 {
        *self.state().since.get_or_insert_with(now)
    }

    /// What state that is sealed for it is bound to.
    pub(super) fn named(&self) -> [&str; 4] {
        ["task", &self.id, self.owner.name(), &self.tool]
    }

    /// How its call says how it goes on.
    pub(super) fn background(&self) -> &Background {
        &self.background
    }

    /// Somebody else goes on with it: by this the next process takes it up.
    pub(super) fn goes_on(&self, sealed: String) {
        let mut state = self.state();
        if state.end.is_some() || state.again.as_ref() == Some(&sealed) {
            return;
        }
        if let Some(kept) = self.kept.as_ref().filter(|_| state.keeps) {
            // Queued while nobody can end it, or it would be kept after the end.
            drop(kept.write_again(&self.id, &sealed));
        }
        state.again = Some(sealed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let changed = change(&mut state);
        // What is over stays as it is.
        if state.end.is_none() {
            state.updated = now().max(state.updated);
        }
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

    /// Whether its caller waits for the answer, and has it from now on; else it is to be kept for him.
    pub(super) fn is_answered(&self) -> bool {
        let mut state = self.state();
        let waited = self.is_waited_for(&mut state);
        if waited {
            state.phase = Phase::Answered;
        }
        waited
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
        match self.state().end.as_ref().map(|over| &over.answer) {
            Some(Held::Here(answer)) => size(answer),
            Some(Held::Kept(size)) => *size,
            Some(Held::None) | None => 0,
        }
    }

    /// Tells each change.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// As a message shows it.
    pub(super) fn shown(&self) -> Task {
        let (mut task, held) = self.state_of();
        // In 2025-11-25 the result comes by itself.
        if self.words == Words::Extension {
            task.detail = match self.read(held) {
                Some(Ok(result)) => Detail::Result(result),
                Some(Err(error)) => Detail::Error(error),
                None => task.detail,
            };
        }
        task
    }

    /// Its state without its answer, and where that is.
    fn state_of(&self) -> (Task, Held) {
        let state = self.state();
        let (status, held, detail) = match &state.end {
            Some(over) => (over.status, over.answer.clone(), Detail::None),
            None if state.asks.is_empty() => (Status::Working, Held::None, Detail::None),
            None => {
                let asks = state.asks.iter().map(|open| open.ask.clone());
                let asks = Detail::Asks(asks.collect());
                (Status::InputRequired, Held::None, asks)
            }
        };
        let task = Task {
            id: self.id.clone(),
            status,
            message: state.message.clone(),
            created: iso(self.created),
            updated: iso(state.updated),
            ttl_ms: Some(millis(self.life)),
            poll_ms: Some(millis(self.poll)),
            detail,
        };
        (task, held)
    }

    /// Its state.
    pub(super) fn status(&self) -> Status {
        let state = self.state();
        match &state.end {
            Some(over) => over.status,
            None if state.asks.is_empty() => Status::Working,
            None => Status::InputRequired,
        }
    }

    /// As an operator sees it.
    pub(super) fn view(&self) -> TaskView {
        let (task, _) = self.state_of();
        TaskView {
            call: self.call.clone(),
            caller: self.owner.clone(),
            tool: self.tool.clone(),
            status: task.status.word(),
            message: task.message,
            created: self.created,
            life: self.life,
        }
    }

    /// Says in words how far it is.
    fn say(&self, message: String) {
        self.change(|state| {
            if state.end.is_none() {
                state.message = Some(message);
            }
        });
    }
}

/// Whatever ends the work of a task ends the task.
pub(super) struct Working(pub(super) Arc<Entry>);

impl Drop for Working {
    fn drop(&mut self) {
        if !self.0.is_over() && !self.0.background.is_left() {
            self.0.cancel(None);
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
