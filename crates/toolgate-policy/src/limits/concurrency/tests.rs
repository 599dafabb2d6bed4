use super::*;
use futures_util::FutureExt;
use std::{collections::BTreeMap, sync::Mutex, time::Instant};
use toolgate_core::{Caller, Catalog, ChangeFilter, ChangeStream, Json, ListRequest, Op, Service};

fn caps(caller: usize, tool: usize, server: usize, all: usize) -> ConcurrencyLimits {
    ConcurrencyLimits {
        per_caller: caller,
        per_tool: tool,
        per_server: PerServer::all(server),
        total: all,
        max_queued_per_caller: 2,
        max_queued: 3,
        queue_timeout: Duration::from_secs(10),
        rejection_delay: Duration::from_millis(250),
    }
}

fn enter(
    at_once: &ConcurrencyLimit,
    caller: &str,
    tool: &str,
) -> Result<QueueAdmission, ReachedLimit> {
    let want = ConcurrencyKeys::new(caller, "server", tool);
    at_once.queue.enter(want, &at_once.limits)
}

#[track_caller]
fn runs(at_once: &ConcurrencyLimit, caller: &str, tool: &str) -> queue::ConcurrencyPermit {
    match enter(at_once, caller, tool) {
        Ok(QueueAdmission::Runs(place)) => place,
        _ => panic!("{caller} does not run"),
    }
}

#[track_caller]
fn waits(at_once: &ConcurrencyLimit, caller: &str, tool: &str) -> queue::QueueTurn {
    match enter(at_once, caller, tool) {
        Ok(QueueAdmission::Waits(turn)) => turn,
        _ => panic!("{caller} does not wait"),
    }
}

/// One call over each limit is queued; one over the queue is rejected with the limit that is reached.
#[test]
fn one_over_each_bound_waits_and_one_over_the_queue_is_refused() {
    for (bounds, caller, tool, words) in [
        (
            caps(1, 9, 9, 9),
            "a",
            "u",
            "1 call from this caller is already running",
        ),
        (
            caps(9, 1, 9, 9),
            "b",
            "t",
            "1 call to server.t is already running",
        ),
        (
            caps(9, 9, 1, 9),
            "b",
            "u",
            "1 call to the server server is already running",
        ),
        (caps(9, 9, 9, 1), "b", "u", "1 call is already running"),
    ] {
        let at_once = ConcurrencyLimit::with_queue(bounds);
        let first = runs(&at_once, "a", "t");
        let mut next = waits(&at_once, caller, tool);
        let _second = waits(&at_once, caller, tool);
        let Err(full) = enter(&at_once, caller, tool) else {
            panic!("one over the queue of a caller");
        };
        assert_eq!(full.to_string(), words);
        let text = limit_error(&full, Some(Duration::from_secs(10)));
        assert!(
            text.public_message()
                .ends_with("within 10 s; try again when one has completed")
        );
        assert!(next.wait().now_or_never().is_none());
        drop(first);
        assert!(next.wait().now_or_never().is_some(), "{words}");
    }
}

#[test]
fn one_over_the_queue_of_all_is_refused() {
    let at_once = ConcurrencyLimit::with_queue(caps(1, 9, 9, 9));
    let _running: Vec<_> = ["a", "b", "c", "d"]
        .map(|who| runs(&at_once, who, "t"))
        .into();
    let _waiting: Vec<_> = ["a", "b", "c"].map(|who| waits(&at_once, who, "t")).into();
    assert!(enter(&at_once, "d", "t").is_err());
}

/// A service that no call may reach.
struct Unreachable;

impl Service for Unreachable {
    fn list(&self, _: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        unreachable!()
    }

    fn call(&self, _: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        unreachable!()
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        unreachable!()
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_above_the_queue_is_rejected_after_the_delay() {
    let at_once = ConcurrencyLimit::with_queue(caps(1, 9, 9, 9));
    let caller = Caller::new("a");
    let _own: Vec<_> = (0..3)
        .map(|_| at_once.admission.admit(&caller.limit_subject()).unwrap())
        .collect();
    let call = Call::new(
        "c",
        caller,
        Op::Tool,
        "t",
        Json::from_value(&serde_json::json!({})),
    );
    let began = tokio::time::Instant::now();
    let rejected = at_once
        .admission
        .call(call, Next::new(&[], &Unreachable))
        .await;
    assert!(rejected.is_err_and(|error| matches!(error.kind(), ErrorKind::Busy(None))));
    assert_eq!(began.elapsed(), Duration::from_millis(250));
}

#[test]
fn what_is_in_hand_is_bounded_before_anything_is_looked_up() {
    let at_once = ConcurrencyLimit::with_queue(caps(2, 9, 9, 3));
    let (a, b) = (Caller::new("a"), Caller::new("b"));
    let own: Vec<_> = (0..4)
        .map(|_| at_once.admission.admit(&a.limit_subject()).unwrap())
        .collect();
    let Err(error) = at_once.admission.admit(&a.limit_subject()) else {
        panic!("one over of this caller")
    };
    assert_eq!(
        error.public_message(),
        "too many concurrent calls: 4 calls from this caller are already running or waiting; try again when one has completed"
    );
    let _others: Vec<_> = (0..2)
        .map(|_| at_once.admission.admit(&b.limit_subject()).unwrap())
        .collect();
    assert!(
        at_once.admission.admit(&b.limit_subject()).is_err(),
        "one over in all"
    );
    drop(own);
    assert!(at_once.admission.admit(&b.limit_subject()).is_ok());
}

/// Queued callers are served round-robin, however many calls the others queue.
#[test]
fn callers_take_turns() {
    let mut caps = caps(99, 99, 99, 1);
    (caps.max_queued_per_caller, caps.max_queued) = (50, 99);
    let at_once = ConcurrencyLimit::with_queue(caps);
    let mut running = Some(runs(&at_once, "greedy", "t"));
    let mut turns: Vec<(&str, queue::QueueTurn)> = Vec::new();
    for _ in 0..20 {
        turns.push(("greedy", waits(&at_once, "greedy", "t")));
    }
    for who in ["one", "two", "one", "two"] {
        turns.push((who, waits(&at_once, who, "t")));
    }
    let mut order = Vec::new();
    while !turns.is_empty() {
        running.take();
        let at = turns.iter_mut().position(|(_, turn)| {
            running = turn.wait().now_or_never();
            running.is_some()
        });
        order.push(turns.remove(at.unwrap()).0);
    }
    assert_eq!(
        order[..7],
        ["greedy", "one", "two", "greedy", "one", "two", "greedy"]
    );
    assert_eq!(order.len(), 24);
    drop(running);
    assert!(at_once.queue.is_empty());
}

#[test]
fn a_busy_tool_does_not_hold_up_another_one_of_the_same_caller() {
    let at_once = ConcurrencyLimit::with_queue(caps(2, 1, 9, 9));
    let _busy = runs(&at_once, "a", "busy");
    let other = runs(&at_once, "a", "other");
    let mut first = waits(&at_once, "a", "busy");
    let mut second = waits(&at_once, "a", "other");
    drop(other);
    assert!(first.wait().now_or_never().is_none());
    assert!(second.wait().now_or_never().is_some());
}

#[test]
fn who_gives_up_leaves_nothing_behind() {
    let at_once = ConcurrencyLimit::with_queue(caps(1, 9, 9, 9));
    let running = runs(&at_once, "a", "t");
    drop(waits(&at_once, "a", "t"));
    let given_up = waits(&at_once, "a", "t").give_up();
    assert!(given_up.is_err());
    // Admitted, and dropped before it noticed.
    let turn = waits(&at_once, "a", "t");
    drop(running);
    drop(turn);
    // Admitted while it gives up: it keeps the permit.
    let running = runs(&at_once, "a", "t");
    let turn = waits(&at_once, "a", "t");
    drop(running);
    let place = turn.give_up().unwrap();
    assert!(enter(&at_once, "a", "t").is_ok_and(|w| matches!(w, QueueAdmission::Waits(_))));
    drop(place);
    assert!(at_once.queue.is_empty());
}

#[test]
fn more_room_lets_in_and_less_room_ends_nothing() {
    let at_once = ConcurrencyLimit::with_queue(caps(1, 9, 9, 9));
    let first = runs(&at_once, "a", "t");
    let mut second = waits(&at_once, "a", "t");
    let wide = at_once.with_limits(caps(3, 9, 9, 9));
    let _third = runs(&wide, "a", "t");
    assert!(second.wait().now_or_never().is_some());
    let narrow = wide.with_limits(caps(1, 9, 9, 9));
    drop(first);
    let mut next = waits(&narrow, "a", "t");
    assert!(next.wait().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever() {
    let at_once = ConcurrencyLimit::with_queue(caps(1, 9, 9, 9));
    let _running = runs(&at_once, "a", "t");
    let began = tokio::time::Instant::now();
    let Err(error) = at_once.wait_for_permit(waits(&at_once, "a", "t")).await else {
        panic!("there is no room");
    };
    assert_eq!(began.elapsed(), Duration::from_secs(10));
    assert_eq!(
        error.public_message(),
        "too many concurrent calls: 1 call from this caller is already running, and no slot became free within 10 s; try again when one has completed"
    );
    assert!(matches!(error.kind(), ErrorKind::Busy(_)));
}

/// Results of the callers in T78.
#[derive(Default)]
struct CallerResults {
    took: Vec<Duration>,
    refused: usize,
}

/// A polite caller: one call after the other.
async fn polite(at_once: ConcurrencyLimit, who: String, calls: u32) -> CallerResults {
    let mut met = CallerResults::default();
    for _ in 0..calls {
        let began = Instant::now();
        match work(&at_once, &who).await {
            true => met.took.push(began.elapsed()),
            false => met.refused += 1,
        }
    }
    met
}

/// 2 ms of work under a permit.
async fn work(at_once: &ConcurrencyLimit, who: &str) -> bool {
    let Ok(_hold) = at_once.admission.admit(&Caller::new(who).limit_subject()) else {
        return false;
    };
    let _place = match enter(at_once, who, "t") {
        Ok(QueueAdmission::Runs(place)) => place,
        Ok(QueueAdmission::Waits(turn)) => match at_once.wait_for_permit(turn).await {
            Ok(place) => place,
            Err(_) => return false,
        },
        Err(_) => return false,
    };
    tokio::time::sleep(Duration::from_millis(2)).await;
    true
}

#[allow(clippy::disallowed_methods, reason = "the callers of a test")]
async fn twenty(at_once: &ConcurrencyLimit) -> (CallerResults, u64) {
    let callers: Vec<_> = (0..20)
        .map(|n| tokio::spawn(polite(at_once.clone(), format!("polite-{n}"), 100)))
        .collect();
    let mut all = CallerResults::default();
    for caller in callers {
        let met = caller.await.unwrap();
        all.took.extend(met.took);
        all.refused += met.refused;
    }
    all.took.sort();
    let p99 = all.took[all.took.len() * 99 / 100];
    (all, u64::try_from(p99.as_micros()).unwrap())
}

/// T78: one caller with 1,000 calls at a time against 20 with one each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the callers of a test; its figure"
)]
async fn t78_a_greedy_caller_does_not_starve_the_polite_ones() {
    let at_once = ConcurrencyLimit::with_queue(ConcurrencyLimits {
        per_caller: 16,
        total: 32,
        max_queued_per_caller: 64,
        ..ConcurrencyLimits::default()
    });
    let (alone, before) = twenty(&at_once).await;
    assert_eq!(alone.refused, 0);
    let greedy = Arc::new(Mutex::new(BTreeMap::<bool, u64>::new()));
    let tasks: Vec<_> = (0..1000)
        .map(|_| {
            let (at_once, greedy) = (at_once.clone(), greedy.clone());
            tokio::spawn(async move {
                loop {
                    let done = work(&at_once, "greedy").await;
                    *greedy.lock().unwrap().entry(done).or_default() += 1;
                    // A rejected call is retried a moment later, as programs do.
                    tokio::time::sleep(Duration::from_millis(if done { 0 } else { 20 })).await;
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (met, with) = twenty(&at_once).await;
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    let greedy = greedy.lock().unwrap().clone();
    println!(
        "T78: 20 polite callers, {} of 2000 calls answered, p99 {before} us alone, {with} us beside 1000 parallel calls of one \
         (of which {} ran and {} were refused)",
        met.took.len(),
        greedy.get(&true).unwrap_or(&0),
        greedy.get(&false).unwrap_or(&0),
    );
    assert!(
        met.took.len() >= 1998,
        "99.9 % of the polite calls: {}",
        met.took.len()
    );
    assert!(
        greedy.get(&false).is_some_and(|refused| *refused > 0),
        "it is the greedy one that is refused"
    );
}

#[test]
fn who_runs_nothing_any_more_is_forgotten() {
    let at_once = ConcurrencyLimit::with_queue(caps(9, 9, 9, 9));
    let held = runs(&at_once, "stays", "stays");
    for n in 0..1000 {
        let _hold = at_once
            .admission
            .admit(&Caller::new(format!("caller {n}")).limit_subject())
            .unwrap();
        runs(&at_once, &format!("caller {n}"), &format!("tool {n}"));
    }
    assert!(
        at_once.queue.remembered() < 3 * 70,
        "callers, tools, servers"
    );
    assert!(at_once.admission.remembered() < 70);
    assert!(enter(&at_once, "stays", "stays").is_ok());
    drop(held);
    assert!(at_once.queue.is_empty());
}
