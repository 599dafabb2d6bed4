//! The extension `io.modelcontextprotocol/tasks` (2026-07-28).

use super::{knows, limits, served, until};
use crate::handlers::peer::{NEWEST_REVISION, Peer};
use serde_json::{Value, json};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

async fn open(abilities: Value) -> (Peer, std::sync::Arc<super::Hand>) {
    let (server, hand) = served(limits());
    (Peer::open(&server, NEWEST_REVISION, abilities).await, hand)
}

async fn begin(peer: &mut Peer, name: &str) -> Value {
    let created = peer.result("tools/call", json!({"name": name})).await;
    assert_eq!(created["resultType"], "task", "{created}");
    created["taskId"].clone()
}

fn accepted(value: Value) -> Value {
    json!({"action": "accept", "content": {"value": value}})
}

/// Holds: XTASK-03, XTASK-04, XTASK-06, XTASK-13
#[tokio::test]
async fn a_slow_call_is_answered_by_a_task() {
    let (mut peer, hand) = open(knows()).await;
    let about = peer.result("server/discover", json!({})).await;
    assert!(about["capabilities"]["extensions"].get(EXTENSION).is_some());
    assert!(about["capabilities"].get("tasks").is_none());
    let created = peer.result("tools/call", json!({"name": "slow"})).await;
    assert_eq!(created["resultType"], "task");
    for member in ["result", "error", "inputRequests", "requestState", "task"] {
        assert!(created.get(member).is_none(), "{created}");
    }
    let id = &created["taskId"];
    assert!(id.as_str().unwrap().len() >= 32, "{id}");
    let task = until(&mut peer, id, "working").await;
    assert_eq!(task["resultType"], "complete");
    assert_eq!(
        (&task["ttlMs"], &task["pollIntervalMs"]),
        (&json!(3_600_000), &json!(1000))
    );
    hand.runs(1).await;
    let task = until(&mut peer, id, "working").await;
    assert_eq!(task["statusMessage"], "it runs");
    hand.go.notify_one();
    let task = until(&mut peer, id, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], "slow");
    assert_eq!(task["createdAt"], created["createdAt"]);
    let again = until(&mut peer, id, "completed").await;
    assert_eq!(again, task, "what is over stays as it is");
}

/// Holds: XTASK-01, VER-07
#[tokio::test]
async fn who_declared_nothing_gets_no_task() {
    let (mut peer, hand) = open(json!({})).await;
    hand.go.notify_one();
    let done = peer.result("tools/call", json!({"name": "slow"})).await;
    assert_eq!(done["content"][0]["text"], "slow");
    let needs = json!({"extensions": {EXTENSION: {}}});
    for (method, params) in [
        ("tools/call", json!({"name": "job"})),
        ("tasks/get", json!({"taskId": "x"})),
        ("tasks/update", json!({"taskId": "x", "inputResponses": {}})),
        ("tasks/cancel", json!({"taskId": "x"})),
    ] {
        let error = peer.error(method, params).await;
        assert_eq!(error["code"], -32021, "{method}: {error}");
        assert_eq!(error["data"]["requiredCapabilities"], needs, "{method}");
    }
    // It is declared with each request.
    peer.declare(knows());
    begin(&mut peer, "slow").await;
}

/// Holds: XTASK-07
#[tokio::test]
async fn a_tool_that_fails_has_a_result_and_a_broken_call_an_error() {
    let (mut peer, _) = open(knows()).await;
    let id = begin(&mut peer, "fails").await;
    let task = until(&mut peer, &id, "completed").await;
    assert_eq!(task["result"]["isError"], true, "{task}");
    let id = begin(&mut peer, "breaks").await;
    let task = until(&mut peer, &id, "failed").await;
    assert_eq!(task["error"]["code"], -32603, "{task}");
    assert!(task.get("result").is_none());
    assert_eq!(task["statusMessage"], task["error"]["message"]);
}

/// Holds: XTASK-08, XTASK-09
#[tokio::test]
async fn questions_are_answered_in_the_task() {
    let (mut peer, _) = open(knows()).await;
    let id = begin(&mut peer, "asks").await;
    let task = until(&mut peer, &id, "input_required").await;
    let mut keys: Vec<String> = task["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(keys.len(), 2, "both are open at once");
    let update = |answers: Value| json!({"taskId": id, "inputResponses": answers});
    let nothing = json!({"never": accepted(json!("x"))});
    let told = peer.result("tasks/update", update(nothing)).await;
    assert_eq!(
        (&told["resultType"], told.get("taskId")),
        (&json!("complete"), None)
    );
    peer.result(
        "tasks/update",
        update(json!({&keys[0]: accepted(json!("a"))})),
    )
    .await;
    let task = until(&mut peer, &id, "input_required").await;
    let left: Vec<&String> = task["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(left, [&keys[1]]);
    // An answer that comes twice changes nothing.
    peer.result(
        "tasks/update",
        update(json!({&keys[0]: accepted(json!("z"))})),
    )
    .await;
    peer.result(
        "tasks/update",
        update(json!({&keys[1]: accepted(json!("b"))})),
    )
    .await;
    let key = loop {
        let task = peer.result("tasks/get", json!({"taskId": id})).await;
        if let Some(key) = task["inputRequests"]
            .as_object()
            .and_then(|asks| asks.keys().next())
        {
            break key.clone();
        }
        assert_eq!(task["status"], "working", "{task}");
    };
    assert!(!keys.contains(&key), "{key} was used");
    keys.push(key);
    peer.result(
        "tasks/update",
        update(json!({&keys[2]: accepted(json!(true))})),
    )
    .await;
    let task = until(&mut peer, &id, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], "a b true");
    for (method, params) in [
        ("tasks/get", json!({"taskId": "nobody"})),
        (
            "tasks/update",
            json!({"taskId": "nobody", "inputResponses": {}}),
        ),
        ("tasks/cancel", json!({"taskId": "nobody"})),
        ("tasks/get", json!({})),
    ] {
        assert_eq!(peer.error(method, params).await["code"], -32602, "{method}");
    }
}

/// Holds: XTASK-05
#[tokio::test]
async fn what_is_asked_before_leaves_as_the_answer() {
    let (mut peer, _) = open(knows()).await;
    let params = json!({"name": "first"});
    let asked = peer.result("tools/call", params.clone()).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let mut params = params;
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({"name": accepted(json!("Ada"))});
    let created = peer.result("tools/call", params).await;
    assert_eq!(created["resultType"], "task", "{created}");
    assert!(created.get("requestState").is_none());
}

/// Holds: XTASK-10
#[tokio::test]
async fn only_its_own_method_ends_a_task() {
    let (mut peer, hand) = open(knows()).await;
    let call = peer
        .send_request("tools/call", json!({"name": "slow"}))
        .await;
    let created = peer.receive().await;
    let id = created["result"]["taskId"].clone();
    hand.runs(1).await;
    peer.send_message(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}}))
        .await;
    until(&mut peer, &id, "working").await;
    let told = peer.result("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(
        (&told["resultType"], told.get("status")),
        (&json!("complete"), None)
    );
    hand.runs(0).await;
    until(&mut peer, &id, "cancelled").await;
    peer.result("tasks/cancel", json!({"taskId": id})).await;
    until(&mut peer, &id, "cancelled").await;
}

/// Holds: XTASK-15
#[tokio::test]
async fn the_words_of_2025_mean_nothing() {
    let (mut peer, _) = open(knows()).await;
    for method in ["tasks/result", "tasks/list"] {
        let error = peer.error(method, json!({"taskId": "x"})).await;
        assert_eq!(error["code"], -32601, "{method}");
    }
    let wished = json!({"name": "plain", "task": {"ttl": 1}});
    let done = peer.result("tools/call", wished).await;
    assert_eq!(done["resultType"], "complete");
}

/// Holds: XTASK-12
#[tokio::test]
async fn a_subscription_tells_of_tasks() {
    let (server, hand) = served(limits());
    let mut peer = Peer::open(&server, NEWEST_REVISION, knows()).await;
    let id = begin(&mut peer, "slow").await;
    hand.runs(1).await;
    let listen = json!({"notifications": {"taskIds": [id, "nobody"]}});
    let mut other = toolgate_testkit::TestClient::open(&server, NEWEST_REVISION, json!({})).await;
    assert_eq!(
        other.error("subscriptions/listen", listen.clone()).await["code"],
        -32021
    );
    other.declare(knows());
    other.send_request("subscriptions/listen", listen).await;
    let told = other.receive().await;
    assert_eq!(
        told["params"]["notifications"],
        json!({"taskIds": [id]}),
        "{told}"
    );
    let told = other.receive().await;
    assert_eq!(told["method"], "notifications/tasks");
    assert_eq!(
        (&told["params"]["taskId"], &told["params"]["status"]),
        (&id, &json!("working"))
    );
    hand.go.notify_one();
    let told = other.receive().await;
    assert_eq!(
        told["params"]["status"], "completed",
        "no progress and no logs: {told}"
    );
    assert_eq!(told["params"]["result"]["content"][0]["text"], "slow");
    assert!(told["params"].get("resultType").is_none());
}

/// The call and the stream share a connection, and the call requests progress and logs.
///
/// Holds: XTASK-12
#[tokio::test]
async fn the_stream_of_a_task_has_no_progress_and_no_logs() {
    let (mut peer, hand) = open(knows()).await;
    let meta = json!({"progressToken": "p", "io.modelcontextprotocol/logLevel": "debug"});
    let params = json!({"name": "late", "_meta": meta});
    let created = peer.result("tools/call", params).await;
    let id = created["taskId"].clone();
    let listen = json!({"notifications": {"taskIds": [id]}});
    peer.send_request("subscriptions/listen", listen).await;
    let opened = peer.receive().await;
    assert_eq!(opened["method"], "notifications/subscriptions/acknowledged");
    let mut messages = Vec::new();
    loop {
        let told = peer.receive().await;
        assert_eq!(told["method"], "notifications/tasks", "{told}");
        if told["params"]["status"] == "completed" {
            break;
        }
        let message = told["params"]["statusMessage"].clone();
        if message.is_string() && messages.last() != Some(&message) {
            // The tool continues after each message.
            hand.go.notify_one();
            messages.push(message);
        }
    }
    assert_eq!(messages, ["begun", "half"]);
    hand.go.notify_one();
    hand.reported_late.notified().await;
    let sent = peer.send_request("server/discover", json!({})).await;
    assert_eq!(peer.receive().await["id"], sent, "nothing came before it");
}
