//! Interleavings of the steps of an approval, also between two processes. Each has exactly one end.

use crate::pipeline_fixture::{PipelineFixture, again, approval, text};
use futures_util::FutureExt;
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::watch;
use toolgate_core::{
    BoxFuture, Call, Error, ErrorKind, InputRequestKind, InputRequests, Json, Outcome,
    RefusalReason,
};
use toolgate_policy::{
    ApprovalChannel, ApprovalError, ApprovalService, ApprovalStatus, ApprovalTerms, Approver,
    FreezeScope, GrantTerms, MemoryStateStore, StateRow, StateStore, WriteOutcome,
    WritePrecondition,
};

/// Step in the life of an approval.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    Approve,
    Deny,
    Edit,
    Cancel,
    Expire,
    Back,
    Freeze,
}

const STEPS: [Step; 7] = [
    Step::Cancel,
    Step::Approve,
    Step::Deny,
    Step::Edit,
    Step::Expire,
    Step::Back,
    Step::Freeze,
];

/// All orders of these.
fn interleavings(steps: &[Step]) -> Vec<Vec<Step>> {
    if steps.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, first) in steps.iter().enumerate() {
        let mut rest = steps.to_vec();
        rest.remove(at);
        all.extend(interleavings(&rest).into_iter().map(|mut order| {
            order.insert(0, *first);
            order
        }));
    }
    all
}

/// Reference model: the expected state, computed from the order alone.
#[derive(Default)]
struct Model {
    yes: Option<bool>,
    no: bool,
    over: bool,
    frozen: bool,
    ran: Option<bool>,
}

impl Model {
    fn alive(&self) -> bool {
        !self.no && !self.over && self.ran.is_none()
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Approve | Step::Edit if self.alive() && self.yes.is_none() => {
                self.yes = Some(step == Step::Edit);
            }
            Step::Deny if self.alive() => self.no = true,
            Step::Expire => self.over = true,
            Step::Freeze => self.frozen = true,
            Step::Back if self.alive() && !self.frozen => self.ran = self.yes,
            _ => {}
        }
    }
}

async fn play(order: &[Step]) -> (bool, usize) {
    let fixture = PipelineFixture::unrecorded();
    let desk = fixture.approvals();
    let call = fixture.call("wipe", json!({"path": "/x"}));
    let questions = fixture.asked(&call).await;
    let id = approval(&questions);
    let InputRequestKind::Approve(shown) = &questions.requests[0].kind else {
        panic!()
    };
    let waiting = shown.waiter.clone();
    let mut attended = Some(waiting.mark_waiting());
    let mut model = Model::default();
    for step in order {
        let settled = model.yes.is_some() || !model.alive();
        match step {
            Step::Approve | Step::Edit => {
                let yes = match step {
                    Step::Edit => {
                        ApprovalTerms::with_arguments(Json::from_value(&json!({"path": "/edited"})))
                    }
                    _ => ApprovalTerms::default(),
                };
                let said = desk.approve(&id, ApprovalChannel::Console, yes).await;
                assert_eq!(said.is_ok(), !settled, "{order:?} {step:?}");
            }
            Step::Deny => {
                let said = desk.deny(&id, ApprovalChannel::Terminal, None).await;
                assert_eq!(said.is_ok(), model.alive(), "{order:?} {step:?}");
            }
            Step::Cancel => attended = None,
            Step::Expire => tokio::time::advance(Duration::from_secs(601)).await,
            Step::Freeze => {
                let who = Approver::named(ApprovalChannel::Terminal, "ann");
                desk.freezes()
                    .freeze(FreezeScope::All, None, who)
                    .await
                    .unwrap();
            }
            Step::Back => {
                let before = fixture.reached();
                let outcome = fixture.go(again(&call, &questions)).await;
                model.step(*step);
                let ran = matches!(outcome, Ok(Outcome::Done(_)));
                assert_eq!(ran, model.ran.is_some(), "{order:?} {outcome:?}");
                assert_eq!(fixture.reached() - before, usize::from(ran));
                continue;
            }
        }
        model.step(*step);
    }
    // Whoever waits is woken: a second is enough where nothing has to be waited for.
    let woken = tokio::time::timeout(Duration::from_secs(1), waiting.wait_for_decision()).await;
    assert!(woken.is_ok(), "{order:?}: still waits");
    drop(attended);
    assert!(desk.list().iter().all(|view| !view.is_awaited), "{order:?}");
    let text = fixture.script.reached.lock().unwrap().clone();
    match model.ran {
        Some(true) => assert_eq!(text, [r#"{"path":"/edited"}"#], "{order:?}"),
        Some(false) => assert_eq!(text, [r#"{"path":"/x"}"#], "{order:?}"),
        None => assert_eq!(text, [""; 0], "{order:?}"),
    }
    // One end, and nothing left behind once its time is over twice.
    assert!(fixture.watcher.open.lock().unwrap().is_empty(), "{order:?}");
    tokio::time::advance(Duration::from_secs(1300)).await;
    assert_eq!(desk.list().len(), 0, "{order:?}");
    assert!(desk.find(&id).is_none(), "{order:?}");
    assert_eq!(fixture.store.entries("approvals").len(), 0, "{order:?}");
    (model.ran.is_some(), text.len())
}

/// T28, at the desk. Without `TOOLGATE_LONG` each order of the six others is played with one place for the cancel.
#[test]
fn t28_every_order_of_steps_has_one_end() {
    let all = match std::env::var_os("TOOLGATE_LONG") {
        Some(_) => interleavings(&STEPS),
        None => {
            let mut some = interleavings(&STEPS[1..]);
            for (n, order) in some.iter_mut().enumerate() {
                order.insert(n % 7, Step::Cancel);
            }
            some
        }
    };
    let (mut ran, mut uses) = (0, 0);
    for order in &all {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let (one, used) = runtime.block_on(play(order));
        ran += u32::from(one);
        uses += used;
    }
    assert!(matches!(all.len(), 720 | 5040));
    assert_eq!(uses, ran as usize);
    println!(
        "T28 (desk): {} orders of 7 steps, {ran} ran once, {} never, 0 left behind",
        all.len(),
        all.len() as u32 - ran
    );
}

/// A store whose writes happen when a test lets them, in the order that it says.
#[derive(Default)]
struct Slow {
    memory: Arc<MemoryStateStore>,
    /// The table of each write, and what lets it happen.
    held: Mutex<Vec<(String, watch::Sender<bool>)>>,
    broken: std::sync::atomic::AtomicBool,
    /// True if another process wins each write.
    conflicts: std::sync::atomic::AtomicBool,
    /// The table whose writes fail.
    full: Mutex<Option<&'static str>>,
}

impl StateStore for Slow {
    fn entries(&self, table: &str) -> Vec<StateRow> {
        self.memory.entries(table)
    }

    fn write(
        &self,
        table: &str,
        key: &str,
        value: Option<Value>,
        expect: WritePrecondition,
    ) -> BoxFuture<'static, Result<WriteOutcome, Error>> {
        if self.conflicts.load(std::sync::atomic::Ordering::SeqCst) {
            return Box::pin(async { Ok(WriteOutcome::Conflict) });
        }
        let full = *self.full.lock().unwrap() == Some(table);
        if full || self.broken.load(std::sync::atomic::Ordering::SeqCst) {
            let error = Error::new(
                ErrorKind::Refused(RefusalReason::AuditUnavailable),
                "the disk is full",
            );
            return Box::pin(async { Err(error) });
        }
        let (go, mut gone) = watch::channel(false);
        self.held.lock().unwrap().push((table.to_owned(), go));
        let (memory, table, key) = (self.memory.clone(), table.to_owned(), key.to_owned());
        Box::pin(async move {
            // A test that lets go of everything lets it happen.
            let _ = gone.wait_for(|go| *go).await;
            memory.write(&table, &key, value, expect).await
        })
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.memory.changed()
    }

    fn clock(&self) -> &Arc<toolgate_policy::StateClock> {
        self.memory.clock()
    }
}

impl Slow {
    fn held(&self) -> usize {
        self.held.lock().unwrap().len()
    }

    fn release(&self, at: usize) {
        self.held.lock().unwrap().remove(at).1.send_replace(true);
    }

    fn release_all(&self) {
        self.held.lock().unwrap().clear();
    }
}

/// Two processes over one store: each with its own desk.
fn two() -> (PipelineFixture, PipelineFixture, Arc<Slow>) {
    let slow = Arc::new(Slow::default());
    let fixture = |slow: &Arc<Slow>| {
        let mut fixture = PipelineFixture::unrecorded();
        fixture.store = slow.clone();
        let recorder = fixture.route.recorder.clone();
        fixture.operator_mut().approvals =
            ApprovalService::new(recorder, slow.clone(), Default::default());
        fixture
    };
    (fixture(&slow), fixture(&slow), slow)
}

/// Lets both go, whoever writes first by `first`; all writes after that happen at once.
async fn race<A, B>(slow: &Slow, first: usize, a: A, b: B) -> (A::Output, B::Output)
where
    A: Future,
    B: Future,
{
    let release = async {
        while slow.held() < 2 {
            tokio::task::yield_now().await;
        }
        // Nobody else writes before this one has.
        let mut changed = slow.changed();
        changed.mark_unchanged();
        slow.release(first);
        changed.changed().await.unwrap();
        loop {
            tokio::task::yield_now().await;
            slow.release_all();
        }
    };
    tokio::select! {
        both = async { tokio::join!(a, b) } => both,
        () = release => unreachable!("it goes on for ever"),
    }
}

/// Does it while all writes happen at once.
async fn at_once<F: Future>(slow: &Slow, work: F) -> F::Output {
    tokio::select! {
        done = work => done,
        () = async { loop { slow.release_all(); tokio::task::yield_now().await; } } => unreachable!(),
    }
}

async fn approved(a: &PipelineFixture, slow: &Slow) -> (Call, InputRequests) {
    let call = a.call("wipe", json!({}));
    let questions = approve(a, slow, &call, ApprovalTerms::default()).await;
    (call, questions)
}

/// A person approves the call and remembers it for other arguments.
async fn remembered(
    a: &PipelineFixture,
    slow: &Slow,
    max_uses: Option<u64>,
) -> (Call, InputRequests) {
    let call = a.call("add", json!({"a": 1}));
    let mut terms = GrantTerms::default();
    terms.max_uses = max_uses;
    let questions = approve(a, slow, &call, ApprovalTerms::with_grant(terms)).await;
    (call, questions)
}

async fn approve(
    a: &PipelineFixture,
    slow: &Slow,
    call: &Call,
    terms: ApprovalTerms,
) -> InputRequests {
    let questions = at_once(slow, a.asked(call)).await;
    let id = approval(&questions);
    let yes = a.approvals().approve(&id, ApprovalChannel::Console, terms);
    at_once(slow, yes).await.unwrap();
    questions
}

fn ran(outcome: &Result<Outcome, Error>) -> bool {
    matches!(outcome, Ok(Outcome::Done(_)))
}

#[tokio::test]
async fn two_processes_have_one_use() {
    let mut won = [0, 0];
    for first in [0, 1] {
        let (a, b, slow) = two();
        let (call, questions) = approved(&a, &slow).await;
        let again = again(&call, &questions);
        let (one, two) = race(&slow, first, a.go(again.clone()), b.go(again)).await;
        assert_ne!(ran(&one), ran(&two), "{one:?} {two:?}");
        won = [won[0] + a.reached(), won[1] + b.reached()];
    }
    assert_eq!(won, [1, 1], "each order was tried");
    println!("T50: the same approval used by two processes at once: 1 use in each order");
}

#[tokio::test]
async fn a_no_of_one_process_and_a_use_of_another_have_one_winner() {
    let mut uses = 0;
    for first in [0, 1] {
        let (a, b, slow) = two();
        let (call, questions) = approved(&a, &slow).await;
        let (id, again) = (approval(&questions), again(&call, &questions));
        let deny = b.approvals().deny(&id, ApprovalChannel::Terminal, None);
        let (use_, no) = race(&slow, first, a.go(again), deny).await;
        assert_ne!(ran(&use_), no.is_ok(), "{use_:?} {no:?}");
        assert_eq!(a.reached(), usize::from(ran(&use_)));
        uses += a.reached();
    }
    assert_eq!(uses, 1, "each order was tried");
}

#[tokio::test]
async fn the_last_use_of_a_grant_is_one_use() {
    for first in [0, 1] {
        let (a, b, slow) = two();
        let (call, questions) = remembered(&a, &slow, Some(1)).await;
        // The approval itself is for the first call; two others want the grant.
        at_once(&slow, a.go(again(&call, &questions)))
            .await
            .unwrap();
        let (one, two) = (
            a.call("add", json!({"a": 2})),
            b.call("add", json!({"a": 3})),
        );
        let (one, two) = race(&slow, first, a.go(one), b.go(two)).await;
        assert_eq!(usize::from(ran(&one)) + usize::from(ran(&two)), 1);
        assert_eq!(a.approvals().grants()[0].used, 1);
        assert_eq!(
            a.approvals().grants()[0].end_reason(a.approvals().now()),
            Some("used up")
        );
    }
}

/// The first call writes alone; the others, which begin meanwhile, share the second write. A grant that limits its uses has
/// one write for each.
#[tokio::test]
async fn parallel_uses_of_a_grant_share_a_write() {
    for (max_uses, writes) in [(None, 2), (Some(20), 20)] {
        let (a, _, slow) = two();
        remembered(&a, &slow, max_uses).await;
        let calls = (2..22).map(|n| a.go(a.call("add", json!({ "a": n }))));
        let mut written = 0;
        let release = async {
            loop {
                tokio::task::yield_now().await;
                written += slow.held();
                slow.release_all();
            }
        };
        let all = tokio::select! {
            all = futures_util::future::join_all(calls) => all,
            () = release => unreachable!(),
        };
        assert!(all.iter().all(ran), "{all:?}");
        assert_eq!((a.approvals().grants()[0].used, written), (20, writes));
    }
}

/// A call that ends while its use waits for its turn is not counted, and keeps no other call from running.
#[tokio::test]
async fn a_cancelled_use_of_a_grant_leaves_the_others() {
    let (a, _, slow) = two();
    remembered(&a, &slow, None).await;
    let go = |n: u32| Box::pin(a.go(a.call("add", json!({ "a": n }))));
    // The first is being written, and the others wait.
    let (mut first, mut second, mut third) = (go(2), go(3), go(4));
    for one in [&mut first, &mut second, &mut third] {
        assert!(one.now_or_never().is_none());
    }
    assert_eq!(slow.held(), 1);
    drop(second);
    let (one, three) = at_once(&slow, async { tokio::join!(first, third) }).await;
    assert!(ran(&one) && ran(&three), "{one:?} {three:?}");
    assert_eq!(a.approvals().grants()[0].used, 2);
    // The first call ends during its write. The others write for themselves.
    let (mut first, mut second, mut third) = (go(5), go(6), go(7));
    for one in [&mut first, &mut second, &mut third] {
        assert!(one.now_or_never().is_none());
    }
    drop(first);
    let (two, three) = at_once(&slow, async { tokio::join!(second, third) }).await;
    assert!(ran(&two) && ran(&three), "{two:?} {three:?}");
    // The second call ends during a write that counts the use of the third, too.
    let (mut first, mut second, mut third) = (go(8), go(9), go(10));
    for one in [&mut first, &mut second, &mut third] {
        assert!(one.now_or_never().is_none());
    }
    let one = at_once(&slow, first).await;
    assert!(second.as_mut().now_or_never().is_none());
    drop(second);
    let three = at_once(&slow, third).await;
    assert!(ran(&one) && ran(&three), "{one:?} {three:?}");
}

#[tokio::test]
async fn a_revoked_grant_does_not_come_back() {
    let (a, b, slow) = two();
    let (call, questions) = remembered(&a, &slow, None).await;
    at_once(&slow, a.go(again(&call, &questions)))
        .await
        .unwrap();
    let grant = a.approvals().grants()[0].id.clone();
    // The use is on its way while another process withdraws the grant, and wins.
    let used = a.call("add", json!({"a": 2}));
    let (gone, used) = race(
        &slow,
        0,
        b.approvals()
            .revoke(&grant, &ApprovalChannel::Console.into()),
        a.go(used),
    )
    .await;
    gone.unwrap();
    assert!(!ran(&used), "{used:?}");
    assert_eq!(a.approvals().grants().len(), 0);
}

#[tokio::test]
async fn what_cannot_be_kept_does_not_happen() {
    let (a, _, slow) = two();
    let (call, questions) = approved(&a, &slow).await;
    slow.broken.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(
        text(a.go(again(&call, &questions)).await),
        "the disk is full"
    );
    let other = a.call("wipe", json!({"path": "/y"}));
    assert_eq!(text(a.go(other).await), "the disk is full");
    assert_eq!(
        a.approvals().list().len(),
        1,
        "what was not kept is not shown"
    );
    assert_eq!(a.reached(), 0);
    slow.broken
        .store(false, std::sync::atomic::Ordering::SeqCst);
    assert!(ran(&at_once(&slow, a.go(again(&call, &questions))).await));
}

#[tokio::test]
async fn a_yes_that_cannot_be_kept_is_none() {
    let (a, _, slow) = two();
    let call = a.call("wipe", json!({}));
    let questions = at_once(&slow, a.asked(&call)).await;
    let id = approval(&questions);
    slow.broken.store(true, std::sync::atomic::Ordering::SeqCst);
    let yes = a
        .approvals()
        .approve(&id, ApprovalChannel::Console, ApprovalTerms::default())
        .await;
    assert!(matches!(yes, Err(ApprovalError::NotStored(_))), "{yes:?}");
    assert_eq!(
        a.approvals().find(&id).unwrap().status,
        ApprovalStatus::Pending
    );
    // A no that cannot be kept holds all the same, as long as this process runs.
    let no = a
        .approvals()
        .deny(&id, ApprovalChannel::Console, None)
        .await;
    assert!(matches!(no, Err(ApprovalError::NotStored(_))), "{no:?}");
    assert_eq!(
        text(a.go(again(&call, &questions)).await),
        "refused: a person denied this call"
    );
}

#[tokio::test]
async fn what_changes_while_the_yes_is_used_does_not_leave() {
    let (a, _, slow) = two();
    let (call, questions) = approved(&a, &slow).await;
    let go = a.go(again(&call, &questions));
    let meanwhile = async {
        while slow.held() == 0 {
            tokio::task::yield_now().await;
        }
        a.tools(vec![crate::pipeline_fixture::item(
            json!({"name": "wipe", "description": "new", "inputSchema": {"type": "object"}}),
        )]);
        slow.release_all();
    };
    let (outcome, ()) = tokio::join!(go, meanwhile);
    assert_eq!(
        text(outcome),
        "refused: the definition of this tool was changed, withheld or removed after a person approved the call; list the tools again before you repeat the call"
    );
    assert_eq!(a.reached(), 0);
}

#[tokio::test]
async fn a_freeze_while_the_yes_is_used_wins() {
    let (a, b, slow) = two();
    let (call, questions) = approved(&a, &slow).await;
    let who = Approver::named(ApprovalChannel::Terminal, "ann");
    let what = FreezeScope::Server("demo".to_owned());
    let freeze = b
        .approvals()
        .freezes()
        .freeze(what, Some("why".to_owned()), who);
    let (froze, outcome) = race(&slow, 0, freeze, a.go(again(&call, &questions))).await;
    froze.unwrap();
    assert_eq!(
        text(outcome),
        "refused: the operator froze the server demo: why"
    );
    assert_eq!(a.reached(), 0);
}

#[tokio::test]
async fn a_decision_that_is_always_overtaken_says_so() {
    let (a, _, slow) = two();
    let call = a.call("wipe", json!({}));
    let questions = at_once(&slow, a.asked(&call)).await;
    let id = approval(&questions);
    slow.conflicts
        .store(true, std::sync::atomic::Ordering::SeqCst);
    let yes = a
        .approvals()
        .approve(&id, ApprovalChannel::Console, ApprovalTerms::default())
        .await;
    let no = a
        .approvals()
        .deny(&id, ApprovalChannel::Console, None)
        .await;
    for error in [yes.unwrap_err(), no.unwrap_err()] {
        let text = "other processes keep changing the approval; try again";
        assert_eq!(error.to_string(), text, "{error:?}");
    }
}

/// A process with a journal over a slow store.
fn recorded() -> (PipelineFixture, Arc<Slow>) {
    let slow = Arc::new(Slow::default());
    let mut fixture = PipelineFixture::new();
    fixture.store = slow.clone();
    let recorder = fixture.route.recorder.clone();
    fixture.operator_mut().approvals =
        ApprovalService::new(recorder, slow.clone(), Default::default());
    (fixture, slow)
}

/// The states of all approvals in the audit log, with the grant that each names.
fn states(fixture: &PipelineFixture) -> Vec<(String, bool)> {
    let records = fixture.events("approval").into_iter();
    let state = |record: Value| {
        let state = record["state"].as_str().unwrap().to_owned();
        (state, record["grant"].is_string())
    };
    records.map(state).collect()
}

#[tokio::test]
async fn the_audit_log_says_that_an_approval_lost_to_a_denial() {
    let (a, slow) = recorded();
    let call = a.call("add", json!({"a": 1}));
    let questions = at_once(&slow, a.asked(&call)).await;
    let id = approval(&questions);
    let yes = ApprovalTerms::with_grant(GrantTerms::default());
    let yes = a.approvals().approve(&id, ApprovalChannel::Console, yes);
    let no = async {
        // The record of the yes is on the disk, and its row on the way.
        while slow.held() == 0 {
            tokio::task::yield_now().await;
        }
        a.approvals()
            .deny(&id, ApprovalChannel::Terminal, None)
            .await
    };
    let (yes, no) = race(&slow, 1, yes, no).await;
    no.unwrap();
    assert!(matches!(yes, Err(ApprovalError::Decided(_))), "{yes:?}");
    let mut states = states(&a);
    assert_eq!(states.remove(0), ("asked".to_owned(), false));
    states.sort();
    let [approved, denied, failed] = ["approved", "denied", "failed"].map(str::to_owned);
    assert_eq!(states, [(approved, true), (denied, false), (failed, true)]);
    assert_eq!(a.approvals().grants().len(), 0);
}

#[tokio::test]
async fn the_audit_log_says_that_an_approval_could_not_be_kept() {
    let (a, slow) = recorded();
    let call = a.call("wipe", json!({}));
    let questions = at_once(&slow, a.asked(&call)).await;
    let id = approval(&questions);
    *slow.full.lock().unwrap() = Some("approvals");
    let yes = a
        .approvals()
        .approve(&id, ApprovalChannel::Console, ApprovalTerms::default())
        .await;
    assert!(matches!(yes, Err(ApprovalError::NotStored(_))), "{yes:?}");
    let states: Vec<String> = states(&a).into_iter().map(|(state, _)| state).collect();
    assert_eq!(states, ["asked", "approved", "failed"]);
}

#[tokio::test]
async fn a_yes_whose_grant_cannot_be_kept_counts_once_and_says_so() {
    let (a, slow) = recorded();
    let call = a.call("add", json!({"a": 1}));
    let questions = at_once(&slow, a.asked(&call)).await;
    let id = approval(&questions);
    *slow.full.lock().unwrap() = Some("grants");
    let yes = ApprovalTerms::with_grant(GrantTerms::default());
    let yes = at_once(
        &slow,
        a.approvals().approve(&id, ApprovalChannel::Console, yes),
    )
    .await;
    assert_eq!(
        yes.unwrap_err().to_string(),
        "the call is approved, but the grant was not stored, so the next call needs an approval again: the disk is full"
    );
    assert!(ran(&at_once(&slow, a.go(again(&call, &questions))).await));
    let [asked, approved, failed, spent] =
        ["asked", "approved", "grant_failed", "spent"].map(str::to_owned);
    let all = [
        (asked, false),
        (approved, true),
        (failed, true),
        (spent, false),
    ];
    assert_eq!(states(&a), all);
    assert_eq!(a.approvals().grants().len(), 0);
}
