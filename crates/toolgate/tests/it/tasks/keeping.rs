//! Tasks in a store for the next process.

use super::{Hand, holding::asked, limits, served};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};
use toolgate::{
    edge::{
        ServerLimits, TaskLimits,
        http::{HttpEndpoint, HttpLimits},
    },
    handlers::{HandlerExit, Server, TaskSupport, Tool},
};
use toolgate_policy::{MemoryStateStore, StateStore};

/// A process of that name on the store, for which that other one has ended.
fn process(
    store: &Arc<MemoryStateStore>,
    name: &str,
    gone: &str,
    few: TaskLimits,
) -> (HttpEndpoint, Arc<Hand>) {
    let (server, hand) = served(few);
    let server = Arc::into_inner(server).unwrap();
    let server = server.with_task_store(store.clone(), name, |process| process == gone);
    let server = Arc::new(server);
    (HttpEndpoint::new(server, HttpLimits::default()), hand)
}

async fn begin(endpoint: &HttpEndpoint, caller: &str, tool: &str) -> Value {
    let created = asked(endpoint, caller, "tools/call", json!({"name": tool})).await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    created["result"]["taskId"].clone()
}

async fn look(endpoint: &HttpEndpoint, caller: &str, id: &Value) -> Value {
    asked(endpoint, caller, "tasks/get", json!({"taskId": id})).await
}

async fn until_over(endpoint: &HttpEndpoint, id: &Value) -> Value {
    let looking = async {
        loop {
            let task = look(endpoint, "a", id).await["result"].take();
            if task["status"] != "working" {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), looking)
        .await
        .expect("in time")
}

#[tokio::test]
async fn the_next_process_has_what_ended_and_knows_what_was_lost() {
    let store = Arc::new(MemoryStateStore::new());
    let (first, hand) = process(&store, "first", "", limits());
    // One ends after it was kept; the others may end before.
    let slow = begin(&first, "a", "slow").await;
    hand.runs(1).await;
    hand.go.notify_one();
    until_over(&first, &slow).await;
    let ended = begin(&first, "a", "fails").await;
    let broken = begin(&first, "a", "breaks").await;
    let cancelled = begin(&first, "a", "slow").await;
    let lost = begin(&first, "a", "job").await;
    hand.runs(2).await;
    asked(&first, "a", "tasks/cancel", json!({"taskId": cancelled})).await;
    let before = [
        until_over(&first, &slow).await,
        until_over(&first, &ended).await,
        until_over(&first, &broken).await,
        until_over(&first, &cancelled).await,
    ];
    // Another process that shares the store: the first one lives, so it may read its tasks, for their caller, but not
    // change them.
    let (other, _) = process(&store, "other", "", limits());
    assert_eq!(look(&other, "a", &ended).await["result"], before[1]);
    assert_eq!(look(&other, "b", &ended).await["error"]["code"], -32602);
    let lost_there = look(&other, "a", &lost).await["result"].take();
    assert_eq!(lost_there["status"], "working", "{lost_there}");
    let cancelled_there = asked(&other, "a", "tasks/cancel", json!({"taskId": lost})).await;
    assert_eq!(cancelled_there["error"]["code"], -32602);
    let (second, _) = process(&store, "second", "first", limits());
    for (id, before) in [&slow, &ended, &broken, &cancelled]
        .into_iter()
        .zip(&before)
    {
        assert_eq!(&look(&second, "a", id).await["result"], before);
    }
    let task = look(&second, "a", &lost).await["result"].take();
    assert_eq!(
        (&task["status"], &task["error"]["code"]),
        (&json!("failed"), &json!(-32603)),
        "{task}"
    );
    let why = task["statusMessage"].as_str().unwrap();
    assert!(why.contains("not known whether"), "{why}");
    // It is still good for its caller only.
    let unknown = look(&second, "b", &json!(toolgate::ids::secret_id())).await;
    for id in [&ended, &lost] {
        assert_eq!(look(&second, "b", id).await, unknown);
    }
    // They belong to the second one now.
    let (third, _) = process(&store, "third", "first", limits());
    assert_eq!(look(&third, "a", &ended).await["result"], before[1]);
    assert_eq!(look(&third, "b", &ended).await, unknown);
    let (third, _) = process(&store, "third", "second", limits());
    assert_eq!(look(&third, "a", &lost).await["result"], task);
    hand.go.notify_one();
}

/// A new owner of a caller name does not get the tasks of the previous one.
#[tokio::test]
async fn what_one_began_is_not_for_the_next_who_has_the_name() {
    let store = Arc::new(MemoryStateStore::new());
    let (first, _) = process(&store, "first", "", limits());
    let task = begin(&first, "a#1", "fails").await;
    let (second, _) = process(&store, "second", "first", limits());
    for process in [&first, &second] {
        assert!(look(process, "a#1", &task).await["result"].is_object());
        let unknown = look(process, "a#2", &json!(toolgate::ids::secret_id())).await;
        assert_eq!(look(process, "a#2", &task).await, unknown);
    }
}

#[tokio::test]
async fn what_is_kept_is_bounded_and_ends() {
    let store = Arc::new(MemoryStateStore::new());
    let (first, _) = process(&store, "first", "", limits());
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = begin(&first, "a", "fails").await;
        until_over(&first, &id).await;
        ids.push(id);
        // They are told apart by their time.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut few = limits();
    few.per_caller = 2;
    let (second, _) = process(&store, "second", "first", few);
    assert_eq!(look(&second, "a", &ids[0]).await["error"]["code"], -32602);
    assert_eq!(
        look(&second, "a", &ids[2]).await["result"]["status"],
        "completed"
    );
    assert_eq!(store.versions("tasks").len(), 2);
    assert_eq!(store.versions("answers").len(), 2);
    let mut few = limits();
    few.max_result_bytes = 1;
    process(&store, "third", "second", few);
    assert_eq!(store.versions("tasks").len(), 0);
    assert_eq!(store.versions("answers").len(), 0);
}

/// A call that its caller waits for is not stored as a task.
#[tokio::test]
async fn a_call_that_is_no_task_is_not_kept() {
    let store = Arc::new(MemoryStateStore::new());
    let (first, hand) = process(&store, "first", "", TaskLimits::default());
    hand.go.notify_one();
    let done = asked(&first, "a", "tools/call", json!({"name": "slow"})).await;
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    assert_eq!(store.versions("tasks").len(), 0);
}

/// The process ends while a call is at its answer: what the end says of the task is what is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_end_is_the_one_that_is_kept() {
    let (begun, has_begun) = mpsc::sync_channel(1);
    let (go, may_go) = mpsc::sync_channel::<()>(1);
    let (begun, may_go) = (Mutex::new(begun), Mutex::new(may_go));
    // It has its thread to itself, so that no end can come between it and the end of its task.
    let busy = Tool::dynamic("busy", json!({"type": "object"}), move |_, _| {
        begun.lock().unwrap().send(()).unwrap();
        may_go.lock().unwrap().recv().unwrap();
        async { Ok::<_, HandlerExit>("done") }
    });
    let mut server_limits = ServerLimits::default();
    server_limits.tasks = limits();
    let server = Server::new("busy", "1").limits(server_limits);
    let server = server.tool(busy.task(TaskSupport::Required));
    let store = Arc::new(MemoryStateStore::new());
    let server = server.build().unwrap();
    let server = Arc::into_inner(server).unwrap();
    let server = Arc::new(server.with_task_store(store.clone(), "first", |_| false));
    let first = HttpEndpoint::new(server.clone(), HttpLimits::default());
    let id = begin(&first, "a", "busy").await;
    tokio::task::spawn_blocking(move || has_begun.recv_timeout(Duration::from_secs(20)))
        .await
        .unwrap()
        .unwrap();
    server.close();
    let seen = look(&first, "a", &id).await["result"].take();
    assert_eq!(seen["status"], "failed", "{seen}");
    go.send(()).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (second, _) = process(&store, "second", "first", limits());
    let kept = look(&second, "a", &id).await["result"].take();
    assert_eq!(kept["status"], "failed", "{kept}");
    assert_eq!(kept["error"], seen["error"]);
}
