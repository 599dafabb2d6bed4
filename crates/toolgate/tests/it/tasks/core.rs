//! Tasks of 2025-11-25.

use super::{limits, served, until};
use crate::handlers::peer::Peer;
use serde_json::{Value, json};
use toolgate::handlers::{HandlerExit, Server, Tool};

const REVISION: &str = "2025-11-25";

async fn open() -> (Peer, std::sync::Arc<super::Hand>) {
    let (server, hand) = served(limits());
    let able = json!({"elicitation": {"form": {}}});
    (Peer::open(&server, REVISION, able).await, hand)
}

/// The next message that is not the new state of a task.
async fn hear(peer: &mut Peer) -> Value {
    loop {
        let message = peer.receive().await;
        if message["method"] != "notifications/tasks/status" {
            return message;
        }
    }
}

async fn begin(peer: &mut Peer, name: &str) -> Value {
    let params = json!({"name": name, "task": {"ttl": 60_000}});
    let created = peer.result("tools/call", params).await;
    let task = &created["task"];
    assert_eq!(
        (&task["status"], &task["ttl"]),
        (&json!("working"), &json!(60_000)),
        "{created}"
    );
    has_timestamps(task);
    assert!(task["taskId"].is_string(), "{created}");
    task["taskId"].clone()
}

/// Asserts that a task has both timestamps.
fn has_timestamps(task: &Value) {
    let time = |member: &str| {
        let time = task[member].as_str().unwrap_or_default();
        let shape: String = time
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        assert_eq!(shape, "0000-00-00T00:00:00.000Z", "{member}: {task}");
        time.to_owned()
    };
    assert!(time("createdAt") <= time("lastUpdatedAt"), "{task}");
}

/// Holds: TASK4-01, TASK4-05, TASK4-06, TASK4-07, TASK4-08
#[tokio::test]
async fn a_call_is_a_task_where_the_client_wants_it() {
    let (mut peer, hand) = open().await;
    let declared = &peer.initialize_result()["capabilities"]["tasks"];
    assert_eq!(
        *declared,
        json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}})
    );
    let id = begin(&mut peer, "slow").await;
    let task = until(&mut peer, &id, "working").await;
    assert_eq!(
        (&task["pollInterval"], &task["ttl"]),
        (&json!(1000), &json!(60_000))
    );
    has_timestamps(&task);
    let waiting = peer
        .send_request("tasks/result", json!({"taskId": id}))
        .await;
    hand.runs(1).await;
    until(&mut peer, &id, "working").await;
    hand.go.notify_one();
    let reply = hear(&mut peer).await;
    assert_eq!(reply["id"], waiting, "{reply}");
    assert_eq!(reply["result"]["content"][0]["text"], "slow");
    let related = &reply["result"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related["taskId"], id);
    let ended = until(&mut peer, &id, "completed").await;
    has_timestamps(&ended);
    assert_eq!(ended["createdAt"], task["createdAt"]);
    let first = id;
    let id = begin(&mut peer, "breaks").await;
    assert_ne!(id, first);
    let error = peer.error("tasks/result", json!({"taskId": id})).await;
    assert_eq!(error["code"], -32603);
    until(&mut peer, &id, "failed").await;
}

/// Holds: TASK4-05
#[tokio::test]
async fn a_finished_task_stays_as_it_is() {
    let (mut peer, hand) = open().await;
    let id = begin(&mut peer, "late").await;
    hand.go.notify_one();
    // The message shows that the tool continued.
    while until(&mut peer, &id, "working").await["statusMessage"] != "half" {}
    hand.go.notify_one();
    let ended = until(&mut peer, &id, "completed").await;
    hand.go.notify_one();
    hand.reported_late.notified().await;
    let refused = peer.error("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(refused["code"], -32602, "{refused}");
    assert_eq!(until(&mut peer, &id, "completed").await, ended);
}

/// Holds: TASK4-06
#[tokio::test]
async fn a_task_says_how_long_it_is_really_kept() {
    let most = json!(3_600_000);
    for (wanted, ttl) in [
        (json!({"ttl": 60_000}), json!(60_000)),
        (json!({"ttl": 3_600_001}), most.clone()),
        (json!({}), most),
    ] {
        let (mut peer, _) = open().await;
        let params = json!({"name": "slow", "task": wanted});
        let created = peer.result("tools/call", params).await;
        let id = json!({"taskId": created["task"]["taskId"]});
        let seen = peer.result("tasks/get", id.clone()).await;
        let listed = peer.result("tasks/list", json!({})).await["tasks"][0].take();
        let cancelled = peer.result("tasks/cancel", id.clone()).await;
        for task in [&created["task"], &seen, &listed, &cancelled] {
            has_timestamps(task);
            assert_eq!((&task["ttl"], &task["pollInterval"]), (&ttl, &json!(1000)));
        }
    }
}

/// Holds: TASK4-04
#[tokio::test]
async fn a_tool_says_whether_it_can_be_a_task() {
    let (mut peer, hand) = open().await;
    let mut support = json!({});
    let mut params = json!({});
    loop {
        let page = peer.result("tools/list", params).await;
        for tool in page["tools"].as_array().unwrap() {
            support[tool["name"].as_str().unwrap()] = tool["execution"]["taskSupport"].clone();
        }
        let Some(next) = page.get("nextCursor") else {
            break;
        };
        params = json!({"cursor": next});
    }
    assert_eq!(
        (&support["slow"], &support["job"]),
        (&json!("optional"), &json!("required"))
    );
    assert_eq!(support["plain"], Value::Null);
    let missing = peer.error("tools/call", json!({"name": "job"})).await;
    assert_eq!(missing["code"], -32601, "{missing}");
    let forbidden = json!({"name": "plain", "task": {}});
    assert_eq!(peer.error("tools/call", forbidden).await["code"], -32601);
    let wrong = json!({"name": "slow", "task": 1});
    assert_eq!(peer.error("tools/call", wrong).await["code"], -32602);
    hand.go.notify_one();
    let plain = peer.result("tools/call", json!({"name": "slow"})).await;
    assert_eq!(plain["content"][0]["text"], "slow");
}

/// Holds: TASK4-09, TASK4-08
#[tokio::test]
async fn its_questions_are_put_to_who_waits_for_the_result() {
    let (mut peer, _) = open().await;
    let id = begin(&mut peer, "asks").await;
    until(&mut peer, &id, "input_required").await;
    let waiting = peer
        .send_request("tasks/result", json!({"taskId": id}))
        .await;
    let mut asked = 0;
    let result = loop {
        let message = hear(&mut peer).await;
        if message["id"] == waiting && message.get("method").is_none() {
            break message;
        }
        assert_eq!(message["method"], "elicitation/create", "{message}");
        let related = &message["params"]["_meta"]["io.modelcontextprotocol/related-task"];
        assert_eq!(related["taskId"], id);
        asked += 1;
        let value = if asked < 3 { json!("x") } else { json!(true) };
        let answer = json!({"action": "accept", "content": {"value": value}});
        peer.send_message(json!({"jsonrpc": "2.0", "id": message["id"], "result": answer}))
            .await;
    };
    assert_eq!(result["result"]["content"][0]["text"], "x x true");
    assert_eq!(asked, 3);
}

/// Holds: TASK4-10
#[tokio::test]
async fn what_is_over_cannot_be_cancelled() {
    let (mut peer, hand) = open().await;
    let id = begin(&mut peer, "slow").await;
    hand.runs(1).await;
    let cancelled = peer.result("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(cancelled["status"], "cancelled");
    hand.runs(0).await;
    assert_eq!(
        peer.error("tasks/cancel", json!({"taskId": id})).await["code"],
        -32602
    );
    peer.error("tasks/result", json!({"taskId": id})).await;
    until(&mut peer, &id, "cancelled").await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(
            peer.error(method, json!({"taskId": "x"})).await["code"],
            -32602
        );
    }
    let first = begin(&mut peer, "slow").await;
    let second = begin(&mut peer, "slow").await;
    let page = peer.result("tasks/list", json!({})).await;
    let ids = |page: &Value| -> Vec<Value> {
        let tasks = page["tasks"].as_array().unwrap().iter();
        tasks.map(|task| task["taskId"].clone()).collect()
    };
    let mut all = ids(&page);
    assert_eq!(all.len(), 2, "a page has two");
    let next = peer
        .result("tasks/list", json!({"cursor": page["nextCursor"]}))
        .await;
    all.extend(ids(&next));
    all.sort_by_key(ToString::to_string);
    let mut expected = [id, first, second];
    expected.sort_by_key(ToString::to_string);
    assert_eq!(all, expected);
    assert!(next.get("nextCursor").is_none());
    assert_eq!(
        peer.error("tasks/list", json!({"cursor": "x"})).await["code"],
        -32602
    );
}

/// Holds: CANC-03
#[tokio::test]
async fn a_cancelled_request_does_not_end_its_task() {
    let (mut peer, hand) = open().await;
    let params = json!({"name": "slow", "task": {"ttl": 60_000}});
    let call = peer.send_request("tools/call", params).await;
    let created = hear(&mut peer).await;
    assert_eq!(created["id"], call, "{created}");
    let id = created["result"]["task"]["taskId"].clone();
    hand.runs(1).await;
    peer.send_message(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}}))
        .await;
    // Its reply shows that the notification was read.
    peer.result("ping", json!({})).await;
    until(&mut peer, &id, "working").await;
    hand.go.notify_one();
    let result = peer.result("tasks/result", json!({"taskId": id})).await;
    assert_eq!(result["content"][0]["text"], "slow");
}

/// Holds: TASK4-02
#[tokio::test]
async fn a_server_without_slow_tools_ignores_the_wish_for_a_task() {
    let plain = Tool::dynamic("plain", json!({"type": "object"}), |_, _| async {
        Ok::<_, HandlerExit>("plain")
    });
    let server = Server::new("s", "1").tool(plain).build().unwrap();
    let mut peer = Peer::open(&server, REVISION, json!({})).await;
    let declared = &peer.initialize_result()["capabilities"];
    assert!(declared.get("tasks").is_none(), "{declared}");
    let params = json!({"name": "plain", "task": {}});
    let done = peer.result("tools/call", params).await;
    assert_eq!(done["content"][0]["text"], "plain");
    assert!(done.get("task").is_none(), "{done}");
}

/// Holds: TASK4-02
#[tokio::test]
async fn older_revisions_know_no_tasks() {
    let (server, hand) = served(limits());
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let mut peer = Peer::open(&server, revision, json!({})).await;
        assert!(
            peer.initialize_result()["capabilities"]
                .get("tasks")
                .is_none()
        );
        hand.go.notify_one();
        let done = peer
            .result("tools/call", json!({"name": "slow", "task": {}}))
            .await;
        assert_eq!(done["content"][0]["text"], "slow");
        assert_eq!(
            peer.error("tasks/get", json!({"taskId": "x"})).await["code"],
            -32601
        );
    }
}

/// Holds: PROG-07
#[tokio::test]
async fn progress_goes_on_until_it_is_over() {
    let (mut peer, hand) = open().await;
    let level = json!({"level": "emergency"});
    peer.result("logging/setLevel", level).await;
    let params = json!({"name": "late", "task": {}, "_meta": {"progressToken": "p"}});
    let created = peer.result("tools/call", params).await;
    for progress in [1, 2] {
        let told = hear(&mut peer).await;
        assert_eq!(told["method"], "notifications/progress", "{told}");
        assert_eq!(
            (
                &told["params"]["progressToken"],
                &told["params"]["progress"]
            ),
            (&json!("p"), &json!(progress))
        );
        hand.go.notify_one();
    }
    let id = json!({"taskId": created["task"]["taskId"]});
    let sent = peer.send_request("tasks/result", id).await;
    let reply = hear(&mut peer).await;
    assert_eq!(
        (&reply["id"], &reply["result"]["content"][0]["text"]),
        (&json!(sent), &json!("late"))
    );
    hand.go.notify_one();
    hand.reported_late.notified().await;
    let sent = peer.send_request("ping", json!({})).await;
    assert_eq!(hear(&mut peer).await["id"], sent, "nothing came before it");
}

/// Page basic/utilities/tasks (2025-11-25): a tool that failed is a task that failed, and its result says how.
#[tokio::test]
async fn a_tool_that_fails_is_a_task_that_failed() {
    let (mut peer, _) = open().await;
    let id = begin(&mut peer, "fails").await;
    let task = until(&mut peer, &id, "failed").await;
    assert!(task["statusMessage"].is_string(), "{task}");
    let result = peer.result("tasks/result", json!({"taskId": id})).await;
    assert_eq!(result["isError"], true, "{result}");
    // What the server behind answered with an error is one here too, for the task and for a call that waits.
    let id = begin(&mut peer, "answers").await;
    until(&mut peer, &id, "failed").await;
    let error = peer.error("tasks/result", json!({"taskId": id})).await;
    assert_eq!(error["code"], -32050, "{error}");
    let waited = peer.error("tools/call", json!({"name": "answers"})).await;
    assert_eq!(waited, error);
}

/// Holds: TASK4-05
#[tokio::test]
async fn its_session_is_told_of_each_new_state() {
    let (mut peer, hand) = open().await;
    let told = |message: &Value, id: &Value, status: &str| {
        assert_eq!(message["method"], "notifications/tasks/status", "{message}");
        let params = &message["params"];
        assert_eq!((&params["taskId"], &params["status"]), (id, &json!(status)));
        for member in ["createdAt", "lastUpdatedAt", "ttl", "pollInterval"] {
            assert!(params.get(member).is_some(), "{params}");
        }
        // The id stands in it already, and results come by tasks/result only.
        assert!(params.get("_meta").is_none() && params.get("result").is_none());
    };
    let id = begin(&mut peer, "slow").await;
    let other = begin(&mut peer, "slow").await;
    hand.runs(2).await;
    // What it says of its progress is no new state.
    told(&cancel(&mut peer, &other).await, &other, "cancelled");
    hand.go.notify_one();
    told(&peer.receive().await, &id, "completed");
    let id = begin(&mut peer, "asks").await;
    told(&peer.receive().await, &id, "input_required");
    told(&cancel(&mut peer, &id).await, &id, "cancelled");
}

/// Cancels a task; what the session is told of it, before the reply or after it.
async fn cancel(peer: &mut Peer, id: &Value) -> Value {
    let sent = peer
        .send_request("tasks/cancel", json!({"taskId": id}))
        .await;
    let (first, second) = (peer.receive().await, peer.receive().await);
    let (reply, told) = match first.get("method") {
        Some(_) => (second, first),
        None => (first, second),
    };
    assert_eq!(reply["id"], sent, "{reply}");
    told
}
