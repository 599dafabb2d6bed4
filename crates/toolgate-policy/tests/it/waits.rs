//! Waits of calls for the audit log, on a disk that is slow or fails on request.

use crate::pipeline_fixture::{Making, PipelineFixture, rule};
use serde_json::json;
use std::{
    future::poll_fn,
    io,
    path::Path,
    pin::Pin,
    sync::{Arc, Condvar, Mutex},
    task::Poll,
    time::{Duration, Instant},
};
use toolgate_core::{BoxFuture, Error, ErrorKind, Outcome, Output, RefusalReason, Service};
use toolgate_journal::{FileDisk, OpenSegment, SegmentDisk};
use toolgate_policy::{
    ApprovalChannel, AuditDurability, NewDefinitionAction, PerServer, RuleAction,
};

/// After so long a test that would wait for ever fails.
const BOUND: Duration = Duration::from_secs(20);

/// Behavior of syncs.
#[derive(Debug)]
struct State {
    /// Syncs that may still be done; the next one waits.
    permits: u32,
    fails: bool,
    /// Syncs that came so far.
    came: u32,
}

/// A disk that syncs when the test says.
#[derive(Clone, Debug)]
struct Slow(Arc<(Mutex<State>, Condvar)>);

impl Slow {
    fn new() -> Slow {
        let state = State {
            permits: u32::MAX,
            fails: false,
            came: 0,
        };
        Slow(Arc::new((Mutex::new(state), Condvar::new())))
    }

    fn set(&self, set: impl FnOnce(&mut State)) {
        set(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
    }

    /// From now on, only so many.
    fn permit(&self, permits: u32) {
        self.set(|state| state.permits = permits);
    }

    /// Waits until a sync came that is one more than this.
    fn comes(&self, before: u32) {
        let state = self.0.0.lock().unwrap();
        let came = |state: &mut State| state.came <= before;
        let (_state, late) = self.0.1.wait_timeout_while(state, BOUND, came).unwrap();
        assert!(!late.timed_out(), "no sync came");
    }

    fn came(&self) -> u32 {
        self.0.0.lock().unwrap().came
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.0.0.lock().unwrap();
        state.came += 1;
        self.0.1.notify_all();
        let none = |state: &mut State| state.permits == 0;
        let (mut state, late) = self.0.1.wait_timeout_while(state, BOUND, none).unwrap();
        if late.timed_out() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        state.permits -= 1;
        match state.fails {
            true => Err(io::Error::other("the disk is gone")),
            false => Ok(()),
        }
    }
}

struct SlowSegment(Box<dyn OpenSegment>, Slow);

impl SegmentDisk for Slow {
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenSegment>> {
        Ok(Box::new(SlowSegment(FileDisk.create(path)?, self.clone())))
    }

    fn resume(&self, path: &Path, length: u64) -> io::Result<Box<dyn OpenSegment>> {
        let segment = FileDisk.resume(path, length)?;
        Ok(Box::new(SlowSegment(segment, self.clone())))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        FileDisk.sync_dir(path)
    }
}

impl OpenSegment for SlowSegment {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.1.sync()
    }
}

fn fixture(waits: AuditDurability) -> (PipelineFixture, Slow) {
    let slow = Slow::new();
    let mut fixture = PipelineFixture::with(|making: &mut Making| {
        making.options.disk = Arc::new(slow.clone());
        making.rules = vec![rule("demo.*", RuleAction::Allow)];
    });
    fixture.route.audit_durability = PerServer::all(AuditDurability::Strict).with("demo", waits);
    (fixture, slow)
}

type Running<'a> = BoxFuture<'a, Result<Outcome, Error>>;

/// Polls until nothing more happens by itself.
async fn settle(running: &mut Running<'_>) -> Option<Result<Outcome, Error>> {
    for _ in 0..20 {
        let polled = poll_fn(|cx| Poll::Ready(Pin::new(&mut *running).poll(cx))).await;
        if let Poll::Ready(outcome) = polled {
            return Some(outcome);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Returns whether a call is sent before its begin record is on disk. Its result never leaves before its end record is.
async fn leaves_early(waits: AuditDurability, tool: &str) -> bool {
    let (fixture, slow) = fixture(waits);
    let pipeline = fixture.pipeline();
    // What comes first pins the definitions.
    fixture.go(fixture.call("look", json!({}))).await.unwrap();
    let (before, reached) = (slow.came(), fixture.reached());
    slow.permit(0);
    let mut running = pipeline.call(fixture.call(tool, json!({"a": 1})));
    assert!(settle(&mut running).await.is_none());
    slow.comes(before);
    // Its begin is in the hands of the disk, which does not give it back.
    assert!(settle(&mut running).await.is_none());
    let early = fixture.reached() > reached;
    // The sync that came is over; the next one does not come back.
    slow.permit(1);
    let end = Instant::now() + BOUND;
    let outcome = loop {
        assert!(Instant::now() < end, "no second sync came");
        let outcome = settle(&mut running).await;
        if outcome.is_some() || slow.came() >= before + 2 {
            break outcome;
        }
        std::thread::yield_now();
    };
    assert_eq!(fixture.reached(), reached + 1);
    slow.permit(u32::MAX);
    match outcome {
        // One sync was for both records.
        Some(outcome) if early && slow.came() == before + 1 => _ = outcome.unwrap(),
        Some(outcome) => panic!("an answer without a record: {outcome:?}"),
        None => _ = running.await.unwrap(),
    }
    early
}

#[tokio::test]
async fn each_mode_waits_for_what_it_says() {
    for (waits, tool, early) in [
        (AuditDurability::Strict, "look", false),
        (AuditDurability::Strict, "add", false),
        (AuditDurability::End, "look", true),
        (AuditDurability::End, "add", true),
        (AuditDurability::Auto, "look", true),
        (AuditDurability::Auto, "add", false),
    ] {
        assert_eq!(leaves_early(waits, tool).await, early, "{waits:?} {tool}");
    }
}

#[tokio::test]
async fn a_begin_that_fails_ends_the_call_that_did_not_wait_for_it() {
    let (fixture, slow) = fixture(AuditDurability::End);
    fixture.go(fixture.call("look", json!({}))).await.unwrap();
    fixture.handle(|_| Box::pin(std::future::pending()));
    slow.set(|state| state.fails = true);
    let outcome = fixture.go(fixture.call("look", json!({}))).await;
    assert_eq!(
        outcome.unwrap_err().kind(),
        &ErrorKind::Refused(RefusalReason::AuditUnavailable)
    );
    assert_eq!(fixture.reached(), 2, "it had left");
    assert!(fixture.watcher.open.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_answer_whose_begin_fails_is_not_released() {
    for waits in [AuditDurability::Strict, AuditDurability::End] {
        let (fixture, slow) = fixture(waits);
        fixture.go(fixture.call("look", json!({}))).await.unwrap();
        let failing = slow.clone();
        fixture.handle(move |_| {
            // Strict: only the end can fail any more.
            failing.set(|state| state.fails = true);
            failing.permit(u32::MAX);
            Box::pin(async { Ok(Outcome::Done(Output::text("done"))) })
        });
        if waits == AuditDurability::End {
            slow.permit(0);
        }
        let outcome = fixture.go(fixture.call("look", json!({}))).await;
        assert_eq!(
            outcome.unwrap_err().kind(),
            &ErrorKind::Refused(RefusalReason::AuditUnavailable),
            "{waits:?}"
        );
    }
}

#[tokio::test]
async fn a_call_whose_pin_is_forgotten_while_it_waits_does_not_leave() {
    for first in [NewDefinitionAction::Accept, NewDefinitionAction::Ask] {
        let (mut fixture, slow) = fixture(AuditDurability::Strict);
        *fixture.pins_mut() = fixture.pins().clone().on_new(PerServer::all(first));
        let pins = fixture.pins().clone();
        // What comes first pins the definitions.
        let _ = fixture.go(fixture.call("look", json!({}))).await;
        pins.accept_all("demo", &ApprovalChannel::Console.into())
            .await
            .unwrap();
        fixture.go(fixture.call("look", json!({}))).await.unwrap();
        let (before, reached) = (slow.came(), fixture.reached());
        slow.permit(0);
        let pipeline = fixture.pipeline();
        let mut running = pipeline.call(fixture.call("look", json!({})));
        assert!(settle(&mut running).await.is_none());
        slow.comes(before);
        pins.forget("demo.look", &ApprovalChannel::Console.into())
            .await
            .unwrap();
        slow.permit(u32::MAX);
        let outcome = running.await;
        assert_eq!(fixture.reached(), reached, "{first:?} {outcome:?}");
        assert_eq!(
            outcome.unwrap_err().kind(),
            &ErrorKind::NotFound,
            "{first:?}"
        );
    }
}
