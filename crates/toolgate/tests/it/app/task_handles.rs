//! Handles of tasks: calls that a server runs while the application does something else.

use super::sample_server::over;
use crate::tasks::{limits, served};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use toolgate::{
    Client,
    client::{
        CallProgress, ClientBuilder, InputAnswer, InputKind, InputQuestion, TaskHandle, TaskTicket,
    },
    core::{Error, ErrorKind, TaskStatus},
    handlers::ask::Reply,
};

/// Revisions with tasks.
const TASKS: [&str; 2] = ["2025-11-25", "2026-07-28"];

fn task(started: Result<CallProgress, Error>) -> TaskHandle {
    match started.unwrap() {
        CallProgress::Task(task) => task,
        other => panic!("{other:?}"),
    }
}

fn builder(revision: &str) -> ClientBuilder {
    Client::builder().revision(revision)
}

#[tokio::test]
async fn a_task_is_found_polled_and_awaited() {
    for revision in TASKS {
        let (server, hand) = served(limits());
        let client = over(builder(revision), server).await;
        let started = task(client.call_with("job", ()).start().await);
        hand.runs(1).await;
        assert_eq!(started.tool(), "job");
        let found = client.find_task(started.id()).unwrap();
        assert_eq!(
            found.poll().await.unwrap().status,
            TaskStatus::Working,
            "{revision}"
        );
        assert_eq!(client.open_tasks().len(), 1);
        assert!(client.find_task("another").is_none());
        hand.go.notify_one();
        assert_eq!(found.result().await.unwrap().text(), "slow", "{revision}");
        assert_eq!(
            found.poll().await.unwrap().status,
            TaskStatus::Completed,
            "{revision}"
        );
        assert!(
            client.find_task(started.id()).is_none(),
            "{revision}: it has ended"
        );
    }
}

/// Only an awaited call is cancelled by dropping it.
#[tokio::test]
async fn a_dropped_handle_leaves_the_task_running_and_cancel_ends_it() {
    for revision in TASKS {
        let (server, hand) = served(limits());
        let client = over(builder(revision), server).await;
        let started = task(client.call_with("job", ()).start().await);
        hand.runs(1).await;
        let id = started.id().to_owned();
        {
            // A wait that is given up is not a cancellation.
            let waiting = started.wait();
            tokio::pin!(waiting);
            let soon = std::time::Duration::from_millis(20);
            assert!(tokio::time::timeout(soon, &mut waiting).await.is_err());
        }
        drop(started);
        let found = client.find_task(&id).unwrap();
        assert_eq!(
            found.poll().await.unwrap().status,
            TaskStatus::Working,
            "{revision}"
        );
        found.cancel().await.unwrap();
        hand.runs(0).await;
        let result = found.result().await;
        assert!(
            matches!(result.unwrap_err().kind(), ErrorKind::Cancelled),
            "{revision}"
        );
    }
}

#[tokio::test]
async fn a_stored_ticket_continues_the_task_in_another_client() {
    for revision in TASKS {
        let (server, hand) = served(limits());
        let first = over(builder(revision), server.clone()).await;
        let started = task(first.call_with("job", ()).start().await);
        let saved = serde_json::to_string(started.ticket()).unwrap();
        hand.runs(1).await;
        let second = over(builder(revision), server).await;
        let ticket: TaskTicket = serde_json::from_str(&saved).unwrap();
        let attached = second.attach_task(ticket).unwrap();
        assert_eq!(
            attached.poll().await.unwrap().status,
            TaskStatus::Working,
            "{revision}"
        );
        hand.go.notify_one();
        assert_eq!(
            attached.result().await.unwrap().text(),
            "slow",
            "{revision}"
        );
    }
}

#[tokio::test]
async fn a_ticket_of_another_server_is_rejected() {
    let (server, _hand) = served(limits());
    let client = over(builder("2026-07-28"), server).await;
    let started = task(client.call_with("job", ()).start().await);
    let other = serde_json::to_string(started.ticket())
        .unwrap()
        .replace("\"world\"", "\"moon\"");
    let other: TaskTicket = serde_json::from_str(&other).unwrap();
    assert!(client.attach_task(other).is_err());
}

#[tokio::test]
async fn a_task_that_needs_input_is_answered_by_hand() {
    let (server, _hand) = served(limits());
    let client = over(
        builder("2026-07-28").manual_input([InputKind::Form]),
        server,
    )
    .await;
    let started = task(client.call_with("asks", ()).start().await);
    let mut progress = started.wait().await.unwrap();
    let mut rounds = 0;
    let result = loop {
        let mut call = match progress {
            CallProgress::Done(result) => break result,
            CallProgress::InputRequired(call) => call,
            other => panic!("{other:?}"),
        };
        rounds += 1;
        for (key, question) in call.questions().to_vec() {
            let InputQuestion::Form(form) = question else {
                panic!("{question:?}")
            };
            let value = if form.message == "Sure?" {
                json!(true)
            } else {
                json!("x")
            };
            let reply = Reply::Accepted(json!({"value": value}));
            call.answer(&key, InputAnswer::Form(reply)).unwrap();
        }
        progress = call.resume().await.unwrap();
    };
    assert_eq!((result.text().as_str(), rounds), ("x x true", 2));
}

#[tokio::test]
async fn a_task_is_confirmed_once_and_a_failed_one_says_so() {
    for revision in TASKS {
        let confirmed = Arc::new(AtomicUsize::new(0));
        let count = confirmed.clone();
        let (server, hand) = served(limits());
        let builder = builder(revision).confirm(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Ok(()) }
        });
        let client = over(builder, server).await;
        let started = task(client.call_with("job", ()).start().await);
        hand.go.notify_one();
        assert_eq!(started.result().await.unwrap().text(), "slow", "{revision}");
        assert_eq!(confirmed.load(Ordering::Relaxed), 1, "{revision}");
        let failing = task(client.call_with("fails", ()).start().await);
        assert!(failing.result().await.unwrap().is_error(), "{revision}");
    }
}

#[tokio::test]
async fn a_call_that_is_no_task_is_done() {
    for revision in TASKS {
        let (server, _hand) = served(limits());
        let client = over(builder(revision), server).await;
        let started = client.call_with("plain", ()).start().await.unwrap();
        assert!(matches!(started, CallProgress::Done(result) if result.text() == "plain"));
        assert!(client.open_tasks().is_empty());
    }
}
