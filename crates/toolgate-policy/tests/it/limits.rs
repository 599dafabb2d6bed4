//! Everything has a limit.

use crate::pipeline_fixture::{PipelineFixture, item, text};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};
use toolgate_core::{
    Content, ErrorKind, ListRequest, Outcome, Output, Progress, ReporterEvent, Service, ToolResult,
};
use toolgate_policy::PerServer;

struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A call of a tool that works so long and tells of progress so often; how long it took and what came of it.
async fn works(
    fixture: &PipelineFixture,
    long: Duration,
    often: Duration,
) -> (Duration, Result<Outcome, toolgate_core::Error>, bool) {
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = dropped.clone();
    fixture.handle(move |call| {
        let flag = Flag(flag.clone());
        Box::pin(async move {
            let (start, _flag) = (Instant::now(), flag);
            while start.elapsed() < long {
                sleep(often).await;
                call.reporter.send(ReporterEvent::Progress(Progress {
                    progress: 1.0,
                    total: None,
                    message: None,
                }));
            }
            Ok(Outcome::Done(Output::text("done")))
        })
    });
    let start = Instant::now();
    let outcome = fixture.go(fixture.call("look", json!({}))).await;
    (start.elapsed(), outcome, dropped.load(Ordering::SeqCst))
}

/// Holds: TOOL-48, LIFE-13
#[tokio::test(start_paused = true)]
async fn silence_ends_a_call() {
    let fixture = PipelineFixture::new();
    let (took, outcome, dropped) =
        works(&fixture, Duration::from_secs(100), Duration::from_secs(100)).await;
    assert_eq!(took.as_secs(), 60);
    assert!(dropped, "the work goes on");
    assert_eq!(outcome.as_ref().unwrap_err().kind(), &ErrorKind::TimedOut);
    assert_eq!(
        text(outcome),
        "timed out after 60 s without a response or progress"
    );
    assert_eq!(fixture.events("call.end")[0]["out"], "timeout");
}

/// Holds: CANC-14, LIFE-13
#[tokio::test(start_paused = true)]
async fn progress_buys_time_up_to_a_hard_cap() {
    let fixture = PipelineFixture::new();
    let (took, outcome, _) =
        works(&fixture, Duration::from_secs(300), Duration::from_secs(50)).await;
    outcome.unwrap();
    assert_eq!(took.as_secs(), 300);
    let (took, outcome, dropped) =
        works(&fixture, Duration::from_secs(3000), Duration::from_secs(50)).await;
    assert_eq!((took.as_secs(), dropped), (900, true));
    assert_eq!(
        text(outcome),
        "timed out after 15 min, the maximum duration of a call"
    );
}

/// A server that sends without a pause never lets its call wait, so each poll uses up the budget of the task.
#[tokio::test]
async fn a_call_that_is_always_ready_ends_in_time() {
    let mut fixture = PipelineFixture::new();
    fixture.route.deadline.idle = PerServer::all(Duration::from_millis(50));
    fixture.handle(|_| {
        Box::pin(async {
            // Bounded, so that the test fails instead of hanging if no timer fires.
            for _ in 0..50_000_000 {
                tokio::task::consume_budget().await;
            }
            Ok(Outcome::Done(Output::text("done")))
        })
    });
    let outcome = fixture.go(fixture.call("look", json!({}))).await;
    assert_eq!(outcome.unwrap_err().kind(), &ErrorKind::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn a_server_may_have_its_own_time() {
    let mut fixture = PipelineFixture::new();
    fixture.route.deadline.idle =
        PerServer::all(Duration::from_secs(60)).with("demo", Duration::from_secs(5));
    let (took, outcome, _) =
        works(&fixture, Duration::from_secs(100), Duration::from_secs(100)).await;
    assert_eq!(took.as_secs(), 5);
    outcome.unwrap_err();
}

#[tokio::test]
async fn a_result_may_be_so_large() {
    let mut fixture = PipelineFixture::new();
    fixture.route.size.result = 1000;
    fixture.route.size.blocks = 3;
    for (blocks, length, fits) in [(1, 975, true), (1, 976, false), (3, 1, true), (4, 1, false)] {
        fixture.handle(move |_| {
            let block = Content::text(&"x".repeat(length));
            let output = Output::Tool(ToolResult {
                content: vec![block; blocks],
                ..ToolResult::default()
            });
            Box::pin(async { Ok(Outcome::Done(output)) })
        });
        let outcome = fixture.go(fixture.call("look", json!({}))).await;
        assert_eq!(outcome.is_ok(), fits, "{blocks} of {length}: {outcome:?}");
        if !fits {
            let text = text(outcome);
            assert!(
                text.contains("its result was held back: it") && text.contains("the limit is"),
                "{text}"
            );
        }
    }
}

#[tokio::test]
async fn a_definition_may_be_so_large() {
    let fixture = PipelineFixture::new();
    let with = |description: usize, title: usize| json!({"name": "t", "description": "x".repeat(description), "title": "y".repeat(title), "inputSchema": {"type": "object"}});
    for (definition, fits) in [
        (with(8192, 1), true),
        (with(8193, 1), false),
        (with(1, 65_000), true),
        (with(1, 65_536), false),
    ] {
        fixture.tools(vec![item(definition)]);
        let listed = fixture
            .pipeline()
            .list(ListRequest::all(
                fixture.caller.clone(),
                toolgate_core::ItemKind::Tool,
            ))
            .await
            .unwrap();
        assert_eq!(listed.items().len(), usize::from(fits));
    }
}
