//! Servers that answer a call with a task.

use super::peer::{Peer, all, call, legacy, modern, soon, tool};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{join, time::Instant};
use toolgate::{
    Call, Caller, Json, Outcome, Service,
    client::RemoteServer,
    core::{CallReporter, ClientCapabilities, ErrorKind, EventSink, Op, ReporterEvent},
};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

async fn knowing() -> (RemoteServer, Peer) {
    modern(json!({"tools": {}, "extensions": {EXTENSION: {}}})).await
}

fn task(kind: &str, status: &str, more: Value) -> Value {
    let mut task = json!({"resultType": kind, "taskId": "t-1", "status": status, "createdAt": "x",
        "lastUpdatedAt": "x", "ttlMs": 60_000, "pollIntervalMs": 5_000});
    for (key, value) in more.as_object().unwrap() {
        task[key] = value.clone();
    }
    task
}

fn text(words: &str) -> Value {
    json!({"content": [{"type": "text", "text": words}]})
}

fn completed() -> Value {
    task("complete", "completed", json!({"result": text("done")}))
}

fn said(outcome: &Outcome) -> String {
    let Outcome::Done(output) = outcome else {
        panic!("{outcome:?}")
    };
    output.tool().unwrap().content[0].json.as_str().to_owned()
}

async fn hears(peer: &mut Peer, method: &str) -> Value {
    let request = peer.read().await;
    assert_eq!(request["method"], method, "{request}");
    request
}

/// Holds: XTASK-02
#[tokio::test(start_paused = true)]
async fn a_task_is_followed_to_its_end() {
    let (remote, mut peer) = knowing().await;
    let (done, ()) = join!(soon(remote.call(call("slow", "{}"))), async {
        let request = hears(&mut peer, "tools/call").await;
        let declared = &request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert!(declared["extensions"].get(EXTENSION).is_some(), "{request}");
        peer.reply(&request, task("task", "working", json!({})))
            .await;
        let before = Instant::now();
        for answer in [task("complete", "working", json!({})), completed()] {
            let request = hears(&mut peer, "tasks/get").await;
            assert_eq!(request["params"]["taskId"], "t-1");
            peer.reply(&request, answer).await;
        }
        assert!(
            before.elapsed() >= Duration::from_secs(10),
            "as it was asked to wait"
        );
    });
    assert!(said(&done.unwrap()).contains("done"));
}

#[tokio::test(start_paused = true)]
async fn its_questions_are_asked_once() {
    let (remote, mut peer) = knowing().await;
    let mut asking = call("slow", "{}");
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = true;
    asking.capabilities = capabilities;
    let ask = json!({"method": "elicitation/create", "params": {"message": "Who?",
        "requestedSchema": {"type": "object", "properties": {}}}});
    let open = task(
        "complete",
        "input_required",
        json!({"inputRequests": {"q1": ask}}),
    );
    let (asked, ()) = join!(soon(remote.call(asking.clone())), async {
        let request = hears(&mut peer, "tools/call").await;
        peer.reply(&request, task("task", "working", json!({})))
            .await;
        let request = hears(&mut peer, "tasks/get").await;
        peer.reply(&request, open.clone()).await;
    });
    let Ok(Outcome::InputRequired(questions)) = asked else {
        panic!("{asked:?}")
    };
    assert_eq!(questions.requests[0].key, "q1");
    asking.round.number = 1;
    asking.round.slots = questions.slots;
    let answer = Json::from_value(&json!({"action": "decline"}));
    asking.round.answers = vec![("q1".to_owned(), answer)];
    let (done, ()) = join!(soon(remote.call(asking)), async {
        let request = hears(&mut peer, "tasks/update").await;
        let answers = json!({"q1": {"action": "decline"}});
        assert_eq!(request["params"]["inputResponses"], answers);
        peer.reply(&request, json!({"resultType": "complete"}))
            .await;
        // It has not seen the answer yet.
        for answer in [open, completed()] {
            let request = hears(&mut peer, "tasks/get").await;
            peer.reply(&request, answer).await;
        }
    });
    assert!(said(&done.unwrap()).contains("done"));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_ends_its_task() {
    let (remote, mut peer) = knowing().await;
    {
        let running = remote.call(call("slow", "{}"));
        let answered = async {
            let request = hears(&mut peer, "tools/call").await;
            peer.reply(&request, task("task", "working", json!({})))
                .await;
            let request = hears(&mut peer, "tasks/get").await;
            peer.reply(&request, task("complete", "working", json!({})))
                .await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        tokio::select! {
            done = running => panic!("{done:?}"),
            () = answered => {}
        }
    }
    let request = hears(&mut peer, "tasks/cancel").await;
    assert_eq!(request["params"]["taskId"], "t-1");
}

/// Holds: XTASK-02
#[tokio::test(start_paused = true)]
async fn what_ends_badly_is_an_error() {
    let error = json!({"error": {"code": -32000, "message": "too hot"}});
    for (end, kind) in [
        (
            task("complete", "failed", error),
            ErrorKind::JsonRpc(-32000),
        ),
        (
            task("complete", "cancelled", json!({})),
            ErrorKind::Cancelled,
        ),
        (
            task("complete", "completed", json!({})),
            ErrorKind::Upstream,
        ),
        (task("complete", "dreaming", json!({})), ErrorKind::Upstream),
    ] {
        let (remote, mut peer) = knowing().await;
        let (done, ()) = join!(soon(remote.call(call("slow", "{}"))), async {
            let request = hears(&mut peer, "tools/call").await;
            peer.reply(&request, task("task", "working", json!({})))
                .await;
            let request = hears(&mut peer, "tasks/get").await;
            peer.reply(&request, end).await;
        });
        assert_eq!(*done.unwrap_err().kind(), kind);
    }
    // Of what can be no task, and from a server that declared none.
    let prompt = Call::new(
        "c",
        Caller::new("t"),
        Op::Prompt,
        "slow",
        Json::from_value(&json!({})),
    );
    let (knowing, other) = (knowing().await, modern(json!({"tools": {}})).await);
    for ((remote, mut peer), call) in [(knowing, prompt), (other, call("slow", "{}"))] {
        let (done, ()) = join!(soon(remote.call(call)), async {
            let request = peer.read().await;
            peer.reply(&request, task("task", "working", json!({})))
                .await;
        });
        assert_eq!(*done.unwrap_err().kind(), ErrorKind::BadResponse);
    }
}

/// Holds: TASK4-03, TOOL-40
#[tokio::test(start_paused = true)]
async fn in_2025_only_what_must_be_a_task_is_asked_for_as_one() {
    let able = json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}});
    for (capabilities, asks) in [(able, true), (json!({"tools": {}}), false)] {
        let (remote, mut peer) = legacy(capabilities).await;
        let with = |name: &str, support: Option<&str>| {
            let mut tool = tool(name);
            if let Some(support) = support {
                tool["execution"] = json!({"taskSupport": support});
            }
            tool
        };
        let tools = json!([
            with("none", None),
            with("forbidden", Some("forbidden")),
            with("optional", Some("optional")),
            with("required", Some("required"))
        ]);
        let (listed, ()) = join!(soon(remote.list(all())), async {
            let request = hears(&mut peer, "tools/list").await;
            peer.reply(&request, json!({"tools": tools})).await;
        });
        assert_eq!(listed.unwrap().items().len(), 4);
        for name in ["none", "forbidden", "optional", "required"] {
            let as_task = asks && name == "required";
            let (done, ()) = join!(soon(remote.call(call(name, "{}"))), async {
                let request = hears(&mut peer, "tools/call").await;
                assert_eq!(request["params"].get("task").is_some(), as_task, "{name}");
                if !as_task {
                    return peer.reply(&request, text("done")).await;
                }
                let task = json!({"taskId": "t-1", "status": "working", "createdAt": "x",
                    "lastUpdatedAt": "x", "ttl": null});
                peer.reply(&request, json!({"task": task})).await;
                let request = hears(&mut peer, "tasks/result").await;
                assert_eq!(request["params"]["taskId"], "t-1");
                peer.reply(&request, text("done")).await;
            });
            assert!(said(&done.unwrap()).contains("done"));
        }
    }
}

/// A task that another process began is polled as its server asks for, until its result can be fetched.
///
/// Holds: TASK4-06
#[tokio::test(start_paused = true)]
async fn in_2025_the_poll_interval_of_a_task_is_respected() {
    let able = json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}});
    let (remote, mut peer) = legacy(able).await;
    let mut going_on = call("slow", "{}");
    let kept = json!({"id": "t-1", "done": [], "poll": 5_000, "server": "files"});
    let slots = [("upstream_task".to_owned(), kept.to_string())];
    going_on.round.slots.extend(slots);
    going_on.resumed_after = Some(Duration::ZERO);
    let (done, ()) = join!(soon(remote.call(going_on)), async {
        for (waited, status, next) in [
            (5, "working", 7_000),
            (7, "working", 3_000),
            (3, "completed", 1),
        ] {
            let before = Instant::now();
            let request = hears(&mut peer, "tasks/get").await;
            let waited = Duration::from_secs(waited);
            let took = before.elapsed();
            // No time passes but where somebody waits.
            assert!((waited..waited * 2).contains(&took), "{took:?}");
            let task = json!({"taskId": "t-1", "status": status, "createdAt": "x",
                "lastUpdatedAt": "x", "ttl": null, "pollInterval": next});
            peer.reply(&request, task).await;
        }
        let request = hears(&mut peer, "tasks/result").await;
        peer.reply(&request, text("done")).await;
    });
    assert!(said(&done.unwrap()).contains("done"));
}

/// One look that comes to nothing says nothing of the task.
#[tokio::test(start_paused = true)]
async fn looks_that_fail_are_made_again() {
    let (remote, mut peer) = knowing().await;
    let (done, ()) = join!(soon(remote.call(call("slow", "{}"))), async {
        let request = hears(&mut peer, "tools/call").await;
        peer.reply(&request, task("task", "working", json!({})))
            .await;
        let request = hears(&mut peer, "tasks/get").await;
        peer.reply_error(&request, -32603, "a hiccup", json!(null))
            .await;
        let failed = Instant::now();
        let request = hears(&mut peer, "tasks/get").await;
        let waited = failed.elapsed();
        assert!(waited >= Duration::from_secs(10), "{waited:?}");
        // This one is never answered.
        let cancel = hears(&mut peer, "notifications/cancelled").await;
        assert_eq!(cancel["params"]["requestId"], request["id"]);
        assert_eq!(failed.elapsed() - waited, Duration::from_secs(30));
        for answer in [task("complete", "working", json!({})), completed()] {
            let request = hears(&mut peer, "tasks/get").await;
            peer.reply(&request, answer).await;
        }
    });
    assert!(said(&done.unwrap()).contains("done"));
}

#[tokio::test(start_paused = true)]
async fn looks_are_not_made_again_for_ever_nor_where_the_task_is_unknown() {
    for (code, looks, kind, words) in [
        (-32603, 8, ErrorKind::Upstream, "8 times in a row"),
        (-32602, 1, ErrorKind::JsonRpc(-32602), "a hiccup"),
        (-32601, 1, ErrorKind::JsonRpc(-32601), "a hiccup"),
    ] {
        let (remote, mut peer) = knowing().await;
        let (done, ()) = join!(soon(remote.call(call("slow", "{}"))), async {
            let request = hears(&mut peer, "tools/call").await;
            peer.reply(&request, task("task", "working", json!({})))
                .await;
            for _ in 0..looks {
                while peer.is_left_alone().await {}
                let request = hears(&mut peer, "tasks/get").await;
                peer.reply_error(&request, code, "a hiccup", json!(null))
                    .await;
            }
            // It may run on, and nobody follows it any more.
            hears(&mut peer, "tasks/cancel").await;
        });
        let error = done.unwrap_err();
        assert_eq!(*error.kind(), kind);
        assert!(
            error.public_message().contains(words),
            "{}",
            error.public_message()
        );
    }
}

/// Progress of a call, as its caller hears it.
#[derive(Default)]
struct ProgressLog(Mutex<Vec<f64>>);

impl EventSink for ProgressLog {
    fn report(&self, event: ReporterEvent) {
        if let ReporterEvent::Progress(progress) = event {
            self.0.lock().unwrap().push(progress.progress);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn progress_grows_with_each_poll_also_with_those_that_fail() {
    let (remote, mut peer) = knowing().await;
    let log = Arc::new(ProgressLog::default());
    let mut slow = call("slow", "{}");
    slow.reporter = CallReporter::new(log.clone());
    let (done, ()) = join!(soon(remote.call(slow)), async {
        let request = hears(&mut peer, "tools/call").await;
        peer.reply(&request, task("task", "working", json!({})))
            .await;
        for answer in [None, None, Some("working"), None, Some("completed")] {
            let request = hears(&mut peer, "tasks/get").await;
            match answer {
                None => {
                    peer.reply_error(&request, -32603, "a hiccup", json!(null))
                        .await
                }
                Some("completed") => peer.reply(&request, completed()).await,
                Some(status) => {
                    let working = task("complete", status, json!({}));
                    peer.reply(&request, working).await;
                }
            }
        }
    });
    assert!(said(&done.unwrap()).contains("done"));
    let log = log.0.lock().unwrap().clone();
    assert_eq!(log.len(), 5, "{log:?}");
    assert!(log.windows(2).all(|pair| pair[0] < pair[1]), "{log:?}");
}
