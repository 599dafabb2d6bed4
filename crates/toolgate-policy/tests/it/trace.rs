//! Every call leaves a trace.

use crate::pipeline_fixture::{Drops, PipelineFixture, again, approval, text};
use serde_json::json;
use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use toolgate_core::{
    ErrorKind, InputRequestKind, Outcome, Output, Progress, RefusalReason, ReporterEvent, Service,
};
use toolgate_journal::{FileDisk, OpenSegment, SegmentDisk};
use toolgate_policy::{
    ApprovalChannel, AuditDurability, CallEnd, CallObserver, CallStage, CallView, PerServer,
};

#[tokio::test]
async fn begin_is_on_the_disk_before_the_call_leaves_and_end_before_the_answer() {
    let mut fixture = PipelineFixture::new();
    fixture.route.audit_durability = PerServer::all(AuditDurability::Strict);
    let fixture = Arc::new(fixture);
    let weak = Arc::downgrade(&fixture);
    fixture.handle(move |_| {
        let fixture = weak.upgrade().unwrap();
        let begun = toolgate_journal::read::tail(&fixture.dir, 10).unwrap();
        assert_eq!(begun.last().unwrap().event, "call.begin");
        Box::pin(async { Ok(Outcome::Done(Output::text("done"))) })
    });
    let mut call = fixture.call("look", json!({"x": 1}));
    let mut info = toolgate_core::RequestInfo::default();
    info.revision = "2025-11-25".into();
    info.transport = "http";
    info.client = Some("cursor 1".into());
    info.request = Some("7".into());
    call.request_info = Arc::new(info);
    fixture.go(call).await.unwrap();
    let last = toolgate_journal::read::tail(&fixture.dir, 1)
        .unwrap()
        .remove(0);
    assert_eq!(
        (last.event.as_str(), &last.fields["out"]),
        ("call.end", &json!("ok"))
    );
    let begin = &fixture.events("call.begin")[0];
    for (field, value) in [
        ("era", json!("2025-11-25")),
        ("transport", json!("http")),
        ("client", json!("cursor 1")),
        ("rid", json!("7")),
        ("caller", json!("key:test")),
        ("srv", json!("demo")),
        ("name", json!("look")),
        ("args_len", json!(7)),
    ] {
        assert_eq!(begin[field], value, "{field}");
    }
    assert_eq!(begin["args_mac"].as_str().unwrap().len(), 64);
    assert!(
        !begin.to_string().contains("\"x\""),
        "contents are not recorded"
    );
}

#[tokio::test]
async fn each_way_to_end_has_its_word() {
    let fixture = PipelineFixture::new();
    for (kind, out) in [
        (ErrorKind::Upstream, "upstream_lost"),
        (ErrorKind::BadResponse, "bad_answer"),
        (ErrorKind::Cancelled, "cancelled_unknown"),
        (ErrorKind::JsonRpc(-32603), "rpc_error"),
        (ErrorKind::Bug, "bug"),
        (ErrorKind::NotFound, "rpc_error"),
    ] {
        let given = kind.clone();
        fixture.handle(move |_| {
            let error = toolgate_core::Error::new(given.clone(), "x");
            Box::pin(async { Err(error) })
        });
        fixture
            .go(fixture.call("look", json!({})))
            .await
            .unwrap_err();
        assert_eq!(fixture.events("call.end").last().unwrap()["out"], out);
    }
}

#[tokio::test]
async fn a_panic_is_an_error_of_one_call() {
    let fixture = PipelineFixture::new();
    fixture.handle(|_| panic!("secret of the handler"));
    let outcome = fixture.go(fixture.call("look", json!({}))).await;
    assert_eq!(outcome.as_ref().unwrap_err().kind(), &ErrorKind::Bug);
    assert!(!text(outcome).contains("secret"));
    fixture.handle(|_| Box::pin(async { panic!("later") }));
    assert_eq!(
        fixture
            .go(fixture.call("look", json!({})))
            .await
            .unwrap_err()
            .kind(),
        &ErrorKind::Bug
    );
    assert_eq!(fixture.events("call.end").len(), 2);
}

const CANARY: &str = "canary-layer-8Kd2Qm5Xw7Rz1Tn4";
/// Variable by which the test runs itself as a separate program.
const ALONE: &str = "TOOLGATE_TEST_LAYER_THAT_PANICS";

/// Panics within `AuditBegin`, over what it sees, as often as it is told.
struct Panics(AtomicBool);

impl CallObserver for Panics {
    fn on_begin(&self, _: &CallView) {}

    fn on_stage(&self, _: &str, _: &CallStage) {
        if self.0.swap(false, Ordering::SeqCst) {
            panic!("cannot show {}", String::from(CANARY));
        }
    }

    fn on_progress(&self, _: &str, _: &Progress) {}

    fn on_end(&self, _: &str, _: &CallEnd) {}
}

/// A fault in a duty itself is an error of the one call, recorded as what it is; the log says where it was, and nothing
/// of what passed through.
#[tokio::test]
#[allow(
    clippy::disallowed_methods,
    reason = "it starts itself again, as a program of its own"
)]
async fn t61_a_layer_that_panics_fails_one_call_and_tells_nothing_of_it() {
    if std::env::var_os(ALONE).is_none() {
        let itself = std::env::current_exe().unwrap();
        let name = "trace::t61_a_layer_that_panics_fails_one_call_and_tells_nothing_of_it";
        let mut again = std::process::Command::new(itself);
        let said = again.args(["--exact", name, "--nocapture"]).env(ALONE, "1");
        let said = said.output().unwrap();
        let log = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
        assert!(said.status.success(), "{log}");
        assert!(log.contains("trace.rs:") && !log.contains(CANARY), "{log}");
        return;
    }
    let mut fixture = PipelineFixture::new();
    fixture.route.observer = Arc::new(Panics(AtomicBool::new(true)));
    // One pipeline: what panicked once serves the next call.
    let pipeline = fixture.pipeline();
    let call = || fixture.call("look", json!({"secret": CANARY}));
    let outcome = pipeline.call(call()).await;
    assert_eq!(outcome.as_ref().unwrap_err().kind(), &ErrorKind::Bug);
    assert!(!text(outcome).contains("canary"));
    assert_eq!(fixture.reached(), 0);
    pipeline.call(call()).await.unwrap();
    let ends = fixture.events("call.end");
    let outs: Vec<_> = ends
        .iter()
        .map(|end| end["out"].as_str().unwrap())
        .collect();
    assert_eq!(outs, ["bug", "ok"]);
    assert!(!json!(fixture.records()).to_string().contains("canary"));
}

/// Drops a call after each number of polls until it gets through, and looks that nothing stays open.
async fn drop_everywhere(fixture: &PipelineFixture, call: impl Fn() -> toolgate_core::Call) {
    for polls in 0.. {
        let pipeline = fixture.pipeline();
        let inner = Box::pin(pipeline.call(call()));
        let outcome = Drops { inner, left: polls }.await;
        assert_eq!(*fixture.watcher.open.lock().unwrap(), Vec::<String>::new());
        let records = fixture.records();
        let count = |ev: &str| records.iter().filter(|r| r["ev"] == ev).count();
        assert_eq!(
            count("call.begin"),
            count("call.end"),
            "after {polls} polls"
        );
        if let Some(outcome) = outcome {
            outcome.unwrap();
            assert!(polls > 2, "it never waited");
            return;
        }
    }
}

#[tokio::test]
async fn dropping_at_any_await_leaves_nothing_open() {
    let fixture = PipelineFixture::new();
    fixture.handle(|_| {
        Box::pin(async {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            Ok(Outcome::Done(Output::text("done")))
        })
    });
    drop_everywhere(&fixture, || fixture.call("look", json!({}))).await;
    let outs: Vec<String> = fixture
        .events("call.end")
        .iter()
        .map(|r| r["out"].as_str().unwrap().to_owned())
        .collect();
    assert!(outs.contains(&"cancelled_unknown".to_owned()), "{outs:?}");
}

#[tokio::test]
async fn dropping_an_approved_call_at_any_await_leaves_nothing_open() {
    let fixture = PipelineFixture::new();
    for polls in 0.. {
        let call = fixture.call("wipe", json!({}));
        let questions = fixture.asked(&call).await;
        // An approval of the drop before may still be good.
        let _ = fixture
            .approvals()
            .approve(
                &approval(&questions),
                ApprovalChannel::Console,
                toolgate_policy::ApprovalTerms::default(),
            )
            .await;
        let before = fixture.reached();
        let pipeline = fixture.pipeline();
        let outcome = Drops {
            inner: Box::pin(pipeline.call(again(&call, &questions))),
            left: polls,
        }
        .await;
        assert!(fixture.watcher.open.lock().unwrap().is_empty());
        let (begins, ends) = (
            fixture.events("call.begin").len(),
            fixture.events("call.end").len(),
        );
        assert_eq!(begins, ends);
        let spent = fixture
            .events("approval")
            .iter()
            .filter(|r| r["state"] == "spent")
            .count();
        assert!(fixture.reached() <= spent, "a use without an approval");
        match outcome {
            Some(outcome) => {
                outcome.unwrap();
                return assert_eq!(fixture.reached(), before + 1);
            }
            // Drop what is left, so that the next turn asks anew.
            None => fixture.approvals().policy_changed(&format!("none-{polls}")),
        }
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_before_it_leaves_is_denied() {
    let fixture = PipelineFixture::new();
    let pipeline = fixture.pipeline();
    let call = fixture.call("wipe", json!({}));
    assert!(
        Drops {
            inner: Box::pin(pipeline.call(call)),
            left: 1
        }
        .await
        .is_none()
    );
    let denied = fixture.events("deny");
    assert_eq!((denied.len(), &denied[0]["out"]), (1, &json!("cancelled")));
}

#[tokio::test]
async fn an_observer_sees_the_whole_way() {
    let fixture = PipelineFixture::new();
    fixture.handle(|call| {
        Box::pin(async move {
            call.reporter.send(ReporterEvent::Progress(Progress {
                progress: 1.0,
                total: None,
                message: None,
            }));
            Ok(Outcome::Done(Output::text("done")))
        })
    });
    fixture.go(fixture.call("look", json!({}))).await.unwrap();
    let questions = fixture.asked(&fixture.call("wipe", json!({}))).await;
    let ends = fixture.watcher.ends.lock().unwrap();
    assert_eq!((ends[0].outcome, ends[1].outcome), ("ok", "waiting"));
    assert_eq!(&*ends[1].approvals[0], approval(&questions));
    assert_eq!(fixture.watcher.running.load(Ordering::SeqCst), 1);
    assert_eq!(fixture.watcher.progress.load(Ordering::SeqCst), 1);
}

/// A disk that fails once it is told to.
#[derive(Debug, Default)]
struct Broken(Arc<AtomicBool>);

struct BrokenSegment(Box<dyn OpenSegment>, Arc<AtomicBool>);

impl SegmentDisk for Broken {
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenSegment>> {
        Ok(Box::new(BrokenSegment(
            FileDisk.create(path)?,
            self.0.clone(),
        )))
    }

    fn resume(&self, path: &Path, length: u64) -> io::Result<Box<dyn OpenSegment>> {
        Ok(Box::new(BrokenSegment(
            FileDisk.resume(path, length)?,
            self.0.clone(),
        )))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        FileDisk.sync_dir(path)
    }
}

impl OpenSegment for BrokenSegment {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        match self.1.load(Ordering::SeqCst) {
            true => Err(io::Error::other("the disk is gone")),
            false => self.0.sync(),
        }
    }
}

fn on_broken_disk() -> (PipelineFixture, Arc<AtomicBool>) {
    let broken = Arc::new(AtomicBool::new(false));
    let fixture = PipelineFixture::with(|m| m.options.disk = Arc::new(Broken(broken.clone())));
    (fixture, broken)
}

#[tokio::test]
async fn without_a_record_nothing_happens() {
    let (mut fixture, broken) = on_broken_disk();
    fixture.route.audit_durability = PerServer::all(AuditDurability::Strict);
    broken.store(true, Ordering::SeqCst);
    let outcome = fixture.go(fixture.call("look", json!({}))).await;
    assert_eq!(
        outcome.as_ref().unwrap_err().kind(),
        &ErrorKind::Refused(RefusalReason::AuditUnavailable)
    );
    assert!(text(outcome).starts_with("refused: the audit log cannot be written"));
    assert_eq!(fixture.reached(), 0);
    // And again, now that the journal knows; and for one that would have been refused anyway.
    for name in ["look", "unknown"] {
        let outcome = fixture.go(fixture.call(name, json!({}))).await;
        assert_eq!(
            outcome.unwrap_err().kind(),
            &ErrorKind::Refused(RefusalReason::AuditUnavailable)
        );
    }
    assert_eq!(fixture.reached(), 0);
    assert!(fixture.watcher.open.lock().unwrap().is_empty());
}

#[tokio::test]
async fn without_a_record_no_answer_is_released() {
    let (fixture, broken) = on_broken_disk();
    fixture.handle(move |_| {
        broken.store(true, Ordering::SeqCst);
        Box::pin(async { Ok(Outcome::Done(Output::text("done"))) })
    });
    let outcome = fixture.go(fixture.call("look", json!({}))).await;
    assert_eq!(
        (fixture.reached(), outcome.unwrap_err().kind()),
        (1, &ErrorKind::Refused(RefusalReason::AuditUnavailable))
    );
}

#[tokio::test]
async fn without_a_record_no_decision_counts() {
    let (fixture, broken) = on_broken_disk();
    let call = fixture.call("wipe", json!({}));
    let questions = fixture.asked(&call).await;
    broken.store(true, Ordering::SeqCst);
    fixture
        .approvals()
        .approve(
            &approval(&questions),
            ApprovalChannel::Console,
            toolgate_policy::ApprovalTerms::default(),
        )
        .await
        .unwrap_err();
    assert_eq!(
        fixture.approvals().list()[0].status,
        toolgate_policy::ApprovalStatus::Pending
    );
    fixture
        .go(fixture.call("wipe", json!({"n": 1})))
        .await
        .unwrap_err();
    assert_eq!(
        fixture.approvals().list().len(),
        1,
        "a question that is not recorded is not asked"
    );
}

#[tokio::test]
async fn a_full_queue_refuses_and_loses_no_end() {
    let fixture = PipelineFixture::with(|m| m.options.max_queue_bytes = 6000);
    let pipeline = fixture.pipeline();
    fixture.handle(|_| Box::pin(std::future::pending()));
    let calls: Vec<_> = (0..200)
        .map(|_| pipeline.call(fixture.call("look", json!({}))))
        .collect();
    let mut waiting = Vec::new();
    for call in calls {
        let mut call = Drops {
            inner: Box::pin(call),
            left: 2,
        };
        let first = std::future::poll_fn(|cx| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut call).poll(cx))
        })
        .await;
        if first.is_pending() {
            waiting.push(call);
        }
    }
    drop(waiting);
    fixture.handle(|_| Box::pin(async { Ok(Outcome::Done(Output::text("done"))) }));
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while fixture.go(fixture.call("look", json!({}))).await.is_err() {
        assert!(
            std::time::Instant::now() < end,
            "the queue never has room again"
        );
    }
    let records = fixture.records();
    let count = |ev: &str| records.iter().filter(|r| r["ev"] == ev).count();
    assert_eq!(count("call.begin"), count("call.end"));
    let refused: u64 = records
        .iter()
        .filter(|r| r["ev"] == "overload")
        .map(|r| r["refused"].as_u64().unwrap())
        .sum();
    assert!(refused > 0, "what found no room is counted");
}

#[tokio::test]
async fn a_question_of_the_server_ends_the_round() {
    let fixture = PipelineFixture::new();
    fixture.handle(|_| {
        let asks = vec![toolgate_core::InputRequest {
            key: "k".into(),
            kind: InputRequestKind::Roots,
        }];
        Box::pin(async {
            Ok(Outcome::InputRequired(toolgate_core::InputRequests::new(
                asks,
            )))
        })
    });
    fixture.asked(&fixture.call("look", json!({}))).await;
    assert_eq!(fixture.events("call.end")[0]["out"], "input_required");
}
