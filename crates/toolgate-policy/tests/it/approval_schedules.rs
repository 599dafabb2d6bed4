//! The approval code over a model of a shared store that delays, reorders and loses, with gateways that crash.
//!
//! A schedule is a random sequence of steps from a seed. After each one, all calls go on as far as they can. Whatever
//! happens, an approval has at most one use, a grant at most as many as it allows, and each use is committed.

use crate::pipeline_fixture::item;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};
use tokio::sync::{oneshot, watch};
use toolgate_core::{
    ApprovalOutcome, ApprovalStep, BoxFuture, Call, Caller, DecisionLog, Error, ErrorKind, Item,
    Json, RefusalReason,
};
use toolgate_policy::{
    ApprovalChannel, ApprovalConfirm, ApprovalLimits, ApprovalService, ApprovalTerms, Approver,
    AuditRecorder, ClientApprovals, GrantTerms, StateClock, StateRow, StateStore, WriteOutcome,
    WritePrecondition,
};

/// Gateways of a schedule.
const GATEWAYS: usize = 3;
/// Steps of a schedule, before everything is delivered.
const STEPS: u32 = 60;
/// Calls of a schedule.
const MAX_CALLS: u32 = 12;

/// Small generator of pseudo-random numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(high).unwrap() % bound
    }
}

type EntryName = (String, String);

/// Committed change.
#[derive(Clone)]
struct Commit {
    name: EntryName,
    value: Option<Value>,
    version: u64,
}

/// The database: what is committed, in one order.
#[derive(Default)]
struct ModelDatabase {
    entries: BTreeMap<EntryName, (Value, u64)>,
    log: Vec<Commit>,
}

impl ModelDatabase {
    fn apply(&mut self, write: &ModelWrite) -> WriteOutcome {
        let there = self.entries.get(&write.name).map(|(_, version)| *version);
        let fits = match write.expect {
            WritePrecondition::Any => true,
            WritePrecondition::Absent => there.is_none(),
            WritePrecondition::Version(version) => there == Some(version),
        };
        if !fits {
            return WriteOutcome::Conflict;
        }
        let version = self.log.len() as u64 + 1;
        match &write.value {
            Some(value) => self
                .entries
                .insert(write.name.clone(), (value.clone(), version)),
            None => self.entries.remove(&write.name),
        };
        self.log.push(Commit {
            name: write.name.clone(),
            value: write.value.clone(),
            version,
        });
        WriteOutcome::Done(version)
    }
}

/// Write on its way to the database, or its answer on the way back.
struct ModelWrite {
    name: EntryName,
    value: Option<Value>,
    expect: WritePrecondition,
    outcome: Option<WriteOutcome>,
    /// `None` once the gateway was told of a failure. The write may still arrive.
    waiter: Option<oneshot::Sender<Result<WriteOutcome, Error>>>,
}

/// Store of one gateway: its copy, which lags behind, and its writes.
#[derive(Default)]
struct ModelStore {
    state: Mutex<ModelStoreState>,
    changed: watch::Sender<u64>,
    clock: Arc<StateClock>,
}

#[derive(Default)]
struct ModelStoreState {
    copy: BTreeMap<EntryName, (Value, u64)>,
    /// Number of commits that the copy has.
    known: usize,
    writes: Vec<ModelWrite>,
    is_away: bool,
}

fn away() -> Error {
    Error::new(
        ErrorKind::Refused(RefusalReason::AuditUnavailable),
        "the shared store cannot be reached",
    )
}

impl ModelStore {
    /// Reads the first commits that the copy lacks, in order.
    fn catch_up(&self, database: &ModelDatabase, count: usize) {
        let mut state = self.state.lock().unwrap();
        for commit in database.log.iter().skip(state.known).take(count) {
            match &commit.value {
                Some(value) => state
                    .copy
                    .insert(commit.name.clone(), (value.clone(), commit.version)),
                None => state.copy.remove(&commit.name),
            };
        }
        state.known = database.log.len().min(state.known.saturating_add(count));
        drop(state);
        self.changed.send_modify(|count| *count += 1);
    }
}

impl StateStore for ModelStore {
    fn entries(&self, table: &str) -> Vec<StateRow> {
        let state = self.state.lock().unwrap();
        let of_table = state.copy.iter().filter(|((of, _), _)| of == table);
        let row = |((_, key), (value, version)): (&EntryName, &(Value, u64))| StateRow {
            key: key.clone(),
            value: value.clone(),
            version: *version,
        };
        of_table.map(row).collect()
    }

    fn write(
        &self,
        table: &str,
        key: &str,
        value: Option<Value>,
        expect: WritePrecondition,
    ) -> BoxFuture<'static, Result<WriteOutcome, Error>> {
        let mut state = self.state.lock().unwrap();
        if state.is_away {
            return Box::pin(async { Err(away()) });
        }
        let (waiter, answer) = oneshot::channel();
        state.writes.push(ModelWrite {
            name: (table.to_owned(), key.to_owned()),
            value,
            expect,
            outcome: None,
            waiter: Some(waiter),
        });
        Box::pin(async move { answer.await.unwrap_or_else(|_| Err(away())) })
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn clock(&self) -> &Arc<StateClock> {
        &self.clock
    }
}

type Running = Pin<Box<dyn Future<Output = (Call, Result<ApprovalOutcome, Error>)> + Send>>;
type Deciding = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Gateway {
    store: Arc<ModelStore>,
    service: Arc<ApprovalService>,
    confirm: Arc<ApprovalConfirm>,
    calls: Vec<Running>,
    decisions: Vec<Deciding>,
}

impl Gateway {
    /// Starts with all that is committed.
    fn start(database: &ModelDatabase) -> Gateway {
        let store = Arc::new(ModelStore::default());
        store.catch_up(database, usize::MAX);
        let recorder = Arc::new(AuditRecorder::log());
        let service = ApprovalService::new(recorder, store.clone(), ApprovalLimits::default());
        let confirm = ApprovalConfirm::new(service.clone(), "p1".into(), ClientApprovals::Never);
        Gateway {
            store,
            service,
            confirm: Arc::new(confirm),
            calls: Vec::new(),
            decisions: Vec::new(),
        }
    }
}

/// Uses so far, which must be justified by what is committed.
#[derive(Default)]
struct Uses {
    /// Call and last round of each approval.
    by_approval: HashMap<String, (Arc<str>, u32)>,
    by_grant: HashMap<String, u64>,
    refusals: u64,
}

struct Schedule {
    seed: u64,
    random: Random,
    database: ModelDatabase,
    gateways: Vec<Gateway>,
    /// Writes of gateways that crashed. They may still arrive.
    orphans: Vec<ModelWrite>,
    item: Arc<Item>,
    started: u32,
    /// Calls that were asked to wait, with the slots for their next round.
    retries: Vec<Call>,
    uses: Uses,
}

impl Schedule {
    fn new(seed: u64, item: Arc<Item>) -> Schedule {
        let database = ModelDatabase::default();
        Schedule {
            seed,
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            gateways: (0..GATEWAYS).map(|_| Gateway::start(&database)).collect(),
            database,
            orphans: Vec::new(),
            item,
            started: 0,
            retries: Vec::new(),
            uses: Uses::default(),
        }
    }

    fn run(mut self) -> Uses {
        for _ in 0..STEPS {
            self.step();
            self.go_on();
        }
        // All that is on its way arrives, so that every call ends.
        for _ in 0..40 {
            for at in 0..GATEWAYS {
                self.gateways[at].store.state.lock().unwrap().is_away = false;
                while self.commit(at, 0) {}
                while self.answer(at, 0) {}
                self.gateways[at].store.catch_up(&self.database, usize::MAX);
            }
            self.go_on();
        }
        for gateway in &self.gateways {
            assert!(gateway.calls.is_empty(), "seed {}: a call hangs", self.seed);
        }
        self.uses
    }

    fn step(&mut self) {
        let at = self.random.below(GATEWAYS);
        let some = self.random.below(8);
        match self.random.below(20) {
            0..4 => self.call(at),
            4..6 => self.decide(at),
            6..10 => drop(self.commit(at, some)),
            10..14 => drop(self.answer(at, some)),
            14..16 => {
                let count = 1 + self.random.below(4);
                self.gateways[at].store.catch_up(&self.database, count);
            }
            16 => self.lose_answer(at, some),
            17 => self.lose_write(at, some),
            18 => self.arrive_late(),
            _ if self.random.below(3) == 0 => self.crash(at),
            _ => self.toggle_outage(at),
        }
    }

    /// Starts a call, or the next round of one that had to wait. Most are identical, so that they compete.
    fn call(&mut self, at: usize) {
        let call = match self.random.below(3) {
            0 if !self.retries.is_empty() => {
                let one = self.random.below(self.retries.len());
                // The same round may be repeated, also at two gateways. Each time it is a request with a log of its own.
                let mut again = self.retries[one].clone();
                again.decision_log = DecisionLog::default();
                again
            }
            _ if self.started < MAX_CALLS => {
                self.started += 1;
                let path = self.random.below(2);
                let arguments = Json::from_value(&json!({"path": path}));
                let id = format!("call-{}", self.started);
                Call::tool(id, Caller::new("key:test"), "add", arguments)
            }
            _ => return,
        };
        let (confirm, item) = (self.gateways[at].confirm.clone(), self.item.clone());
        self.gateways[at].calls.push(Box::pin(async move {
            let asked = confirm.request_approval(&call, &item, vec!["a rule".to_owned()]);
            let outcome = asked.await;
            (call, outcome)
        }));
    }

    /// A person approves, denies or remembers a call that a gateway shows.
    fn decide(&mut self, at: usize) {
        let shown = self.gateways[at].service.list();
        if shown.is_empty() {
            return;
        }
        let id = shown[self.random.below(shown.len())].id.clone();
        let service = self.gateways[at].service.clone();
        let who = Approver::named(ApprovalChannel::Console, "ann");
        let choice = self.random.below(5);
        self.gateways[at].decisions.push(Box::pin(async move {
            let grant = |max_uses| {
                let mut grant = GrantTerms::default();
                grant.max_uses = max_uses;
                ApprovalTerms::with_grant(grant)
            };
            // The uses are judged, not the answers to the person.
            match choice {
                0 => drop(service.deny(&id, who, None).await),
                1 => drop(service.approve(&id, who, grant(Some(2))).await),
                2 => drop(service.approve(&id, who, grant(None)).await),
                _ => drop(service.approve(&id, who, ApprovalTerms::default()).await),
            }
        }));
    }

    /// Commits a write of a gateway. Another than the first means that the network reorders.
    fn commit(&mut self, at: usize, some: usize) -> bool {
        let mut state = self.gateways[at].store.state.lock().unwrap();
        let open: Vec<usize> = (0..state.writes.len())
            .filter(|at| state.writes[*at].outcome.is_none())
            .collect();
        let Some(at) = open.get(some).or(open.first()) else {
            return false;
        };
        let write = &mut state.writes[*at];
        write.outcome = Some(self.database.apply(write));
        true
    }

    /// Answers a committed write. The copy of the gateway has it by then.
    fn answer(&mut self, at: usize, some: usize) -> bool {
        let store = self.gateways[at].store.clone();
        let write = {
            let mut state = store.state.lock().unwrap();
            let done = |write: &ModelWrite| write.outcome.is_some();
            let all: Vec<usize> = (0..state.writes.len())
                .filter(|at| done(&state.writes[*at]))
                .collect();
            match all.get(some).or(all.first()) {
                Some(at) => state.writes.remove(*at),
                None => return false,
            }
        };
        if let (Some(waiter), Some(outcome)) = (write.waiter, write.outcome) {
            store.catch_up(&self.database, usize::MAX);
            // A call that went away needs no answer.
            let _ = waiter.send(Ok(outcome));
        }
        true
    }

    /// The write is committed, and the connection breaks before the answer.
    fn lose_answer(&mut self, at: usize, some: usize) {
        self.commit(at, some);
        let mut state = self.gateways[at].store.state.lock().unwrap();
        let mut done = state
            .writes
            .iter_mut()
            .filter(|write| write.outcome.is_some());
        if let Some(waiter) = done.next().and_then(|write| write.waiter.take()) {
            let _ = waiter.send(Err(away()));
        }
    }

    /// The gateway gives up a write, which is lost or arrives late.
    fn lose_write(&mut self, at: usize, some: usize) {
        let is_lost = self.random.below(2) == 0;
        let mut state = self.gateways[at].store.state.lock().unwrap();
        let open: Vec<usize> = (0..state.writes.len())
            .filter(|at| state.writes[*at].outcome.is_none())
            .collect();
        let Some(at) = open.get(some).or(open.first()) else {
            return;
        };
        let mut write = state.writes.remove(*at);
        drop(state);
        if let Some(waiter) = write.waiter.take() {
            let _ = waiter.send(Err(away()));
        }
        if !is_lost {
            self.orphans.push(write);
        }
    }

    /// A write arrives whose gateway gave it up or is gone.
    fn arrive_late(&mut self) {
        if !self.orphans.is_empty() {
            let at = self.random.below(self.orphans.len());
            let write = self.orphans.remove(at);
            self.database.apply(&write);
        }
    }

    /// A gateway ends with all its calls, and starts again.
    fn crash(&mut self, at: usize) {
        let old = std::mem::replace(&mut self.gateways[at], Gateway::start(&self.database));
        let writes = std::mem::take(&mut old.store.state.lock().unwrap().writes);
        self.orphans
            .extend(writes.into_iter().filter(|write| write.outcome.is_none()));
    }

    fn toggle_outage(&mut self, at: usize) {
        let mut state = self.gateways[at].store.state.lock().unwrap();
        state.is_away = !state.is_away;
    }

    /// Polls everything that runs, and judges the calls that ended.
    fn go_on(&mut self) {
        let mut ended = Vec::new();
        let cx = &mut Context::from_waker(Waker::noop());
        for gateway in &mut self.gateways {
            gateway
                .decisions
                .retain_mut(|decision| decision.as_mut().poll(cx).is_pending());
            gateway
                .calls
                .retain_mut(|call| match call.as_mut().poll(cx) {
                    Poll::Ready(done) => {
                        ended.push(done);
                        false
                    }
                    Poll::Pending => true,
                });
        }
        for (call, outcome) in ended {
            self.judge(call, outcome);
        }
    }

    fn judge(&mut self, call: Call, outcome: Result<ApprovalOutcome, Error>) {
        match outcome {
            Ok(ApprovalOutcome::Approved { slot: Some(slot) }) => {
                self.judge_use(&call, &slot);
                // The server asks something, so that the call goes on with another round.
                if self.random.below(3) == 0 {
                    let mut next = call;
                    next.round.number += 1;
                    next.round.slots.insert("confirm".to_owned(), slot);
                    self.retries.push(next);
                }
            }
            Ok(ApprovalOutcome::Approved { slot: None }) => self.judge_grant(&call),
            Ok(ApprovalOutcome::InputRequired(questions)) => {
                let mut next = call;
                next.round.number += 1;
                next.round.slots = questions.slots.clone();
                self.retries.push(next);
            }
            Ok(other) => panic!("seed {}: {other:?}", self.seed),
            Err(_) => self.uses.refusals += 1,
        }
    }

    /// Exactly one use, which the database has, of an approval that a person gave. Later rounds of the same call
    /// belong to it, if they began after the use.
    fn judge_use(&mut self, call: &Call, slot: &str) {
        let id = slot.trim_end_matches('+').to_owned();
        let before = self.uses.by_approval.get(&id).cloned();
        let round = (call.id.clone(), call.round.number);
        self.uses.by_approval.insert(id.clone(), round.clone());
        if let Some(before) = before {
            let continues = call
                .round
                .slots
                .get("confirm")
                .is_some_and(|known| known == slot);
            assert!(
                continues && before.0 == round.0 && before.1 < round.1,
                "seed {}: {id} was used twice: {before:?} and {round:?}",
                self.seed
            );
            return;
        }
        let commits = self.database.log.iter();
        let states: Vec<(String, Value)> = commits
            .filter(|commit| commit.name == ("approvals".to_owned(), id.clone()))
            .map(|commit| {
                let status = commit.value.as_ref().map(|value| value["standing"].clone());
                let status = status.unwrap_or_default();
                (
                    status["is"].as_str().unwrap_or("removed").to_owned(),
                    status,
                )
            })
            .collect();
        let used = states.iter().position(|(is, _)| is == "spent");
        let used = used.unwrap_or_else(|| panic!("seed {}: {states:?}", self.seed));
        assert_eq!(states[used].1["call"], &*call.id, "seed {}", self.seed);
        assert!(
            used > 0 && states[used - 1].0 == "approved",
            "seed {}: {states:?}",
            self.seed
        );
    }

    /// At most as many uses as the grant allows, each of which the database counted before.
    fn judge_grant(&mut self, call: &Call) {
        let steps = call.decision_log.steps();
        let granted = steps.iter().rev().find(|step| step.decision == "granted");
        let text = granted.map(|step| step.reason.clone()).unwrap_or_default();
        let id = text.split(' ').next().unwrap_or_default().to_owned();
        let uses = self.uses.by_grant.entry(id.clone()).or_default();
        *uses += 1;
        let (grant, _) = &self.database.entries[&("grants".to_owned(), id.clone())];
        let counted = grant["used"].as_u64().unwrap();
        assert!(
            *uses <= counted && grant["uses"].as_u64().is_none_or(|most| counted <= most),
            "seed {}: {id} was used {uses} times, and {counted} are counted",
            self.seed
        );
    }
}

/// `cargo xtask long` tries a million schedules.
#[test]
fn no_schedule_uses_an_approval_twice_or_without_a_person() {
    let count =
        std::env::var("TOOLGATE_APPROVAL_SCHEDULES").map_or(2_000, |count| count.parse().unwrap());
    let seed: u64 = std::env::var("TOOLGATE_SEED").map_or(0, |seed| seed.parse().unwrap());
    let next = AtomicU64::new(seed);
    let totals = Mutex::new((0, 0, 0));
    let definition = json!({"name": "add", "inputSchema": {"type": "object"},
        "annotations": {"destructiveHint": false}});
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        return;
                    }
                    let uses = Schedule::new(seed, item(definition.clone())).run();
                    let mut totals = totals.lock().unwrap();
                    totals.0 += uses.by_approval.len();
                    totals.1 += uses.by_grant.len();
                    totals.2 += uses.refusals;
                }
            });
        }
    });
    let (approvals, grants, refusals) = totals.into_inner().unwrap();
    // Without uses, the test would show nothing.
    assert!(approvals as u64 > count / 10 && grants as u64 > count / 100);
    println!(
        "{count} schedules: {approvals} approvals used once, {grants} grants used, {refusals} calls refused"
    );
}
