//! Owners, limits and ends of tasks.

use super::{knows, limits, served, until};
use crate::{
    handlers::peer::{NEWEST_REVISION, Peer},
    rows::web::request,
};
use serde_json::{Value, json};
use std::time::Duration;
use toolgate::edge::{
    TaskLimits,
    http::{HttpEndpoint, HttpLimits},
};

pub(super) async fn asked(
    endpoint: &HttpEndpoint,
    caller: &str,
    method: &str,
    mut params: Value,
) -> Value {
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": NEWEST_REVISION,
        "io.modelcontextprotocol/clientCapabilities": knows()});
    let name = params
        .get("name")
        .or(params.get("taskId"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    let headers = [
        ("mcp-protocol-version", NEWEST_REVISION),
        ("mcp-method", method),
        ("mcp-name", name),
    ];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let answer = request(endpoint, caller, "POST", &headers, &body.to_string()).await;
    answer.json()
}

/// T06: another caller is answered byte for byte as if there were no such task.
///
/// Holds: SEC-01, SEC-02, XTASK-13
#[tokio::test]
async fn t06_a_task_is_good_for_its_caller_only() {
    let (server, hand) = served(limits());
    let endpoint = HttpEndpoint::new(server, HttpLimits::default());
    let created = asked(&endpoint, "a", "tools/call", json!({"name": "slow"})).await;
    let id = &created["result"]["taskId"];
    hand.runs(1).await;
    for (method, more) in [
        ("tasks/get", json!({})),
        ("tasks/update", json!({"inputResponses": {}})),
        ("tasks/cancel", json!({})),
    ] {
        let with = |id: &Value| {
            let mut params = more.clone();
            params["taskId"] = id.clone();
            params
        };
        let unknown = asked(
            &endpoint,
            "b",
            method,
            with(&json!(toolgate::ids::secret_id())),
        )
        .await;
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        assert_eq!(asked(&endpoint, "b", method, with(id)).await, unknown);
    }
    // The response is long gone, and it still runs.
    let seen = asked(&endpoint, "a", "tasks/get", json!({"taskId": id})).await;
    assert_eq!(seen["result"]["status"], "working");
    hand.runs(1).await;
    asked(&endpoint, "a", "tasks/cancel", json!({"taskId": id})).await;
    hand.runs(0).await;
}

/// One request in a session of 2025-11-25 over HTTP.
async fn in_session(
    endpoint: &HttpEndpoint,
    (caller, session): (&str, &str),
    method: &str,
    params: Value,
) -> Value {
    let headers = [
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-session-id", session),
    ];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let answer = request(endpoint, caller, "POST", &headers, &body.to_string()).await;
    answer.json()
}

/// Opens such a session; its id, and what the server declares.
async fn open_session(endpoint: &HttpEndpoint, caller: &str) -> (String, Value) {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let opened = request(endpoint, caller, "POST", &[], &body.to_string()).await;
    let session = opened.headers["mcp-session-id"].to_str().unwrap();
    (
        session.to_owned(),
        opened.json()["result"]["capabilities"].take(),
    )
}

/// Holds: TASK4-11
#[tokio::test]
async fn tasks_of_2025_11_25_are_bound_to_their_caller_and_not_listed_to_anonymous_ones() {
    let (server, hand) = served(limits());
    let endpoint = HttpEndpoint::new(server, HttpLimits::default());
    let (own, _) = open_session(&endpoint, "key:a").await;
    let call = json!({"name": "slow", "task": {"ttl": 60_000}});
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let created = in_session(&endpoint, ("key:a", &own), "tools/call", call.clone()).await;
        let id = created["result"]["task"]["taskId"]
            .as_str()
            .unwrap()
            .to_owned();
        // 32 characters of an alphabet of 32: 160 bits.
        assert!(id.len() >= 32, "{id}");
        ids.insert(id);
    }
    assert_eq!(ids.len(), 3);
    hand.runs(3).await;
    let (other, _) = open_session(&endpoint, "key:b").await;
    for id in &ids {
        let id = json!({"taskId": id});
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let seen = in_session(&endpoint, ("key:b", &other), method, id.clone()).await;
            assert_eq!(seen["error"]["code"], -32602, "{method}: {seen}");
        }
        let seen = in_session(&endpoint, ("key:a", &own), "tasks/get", id).await;
        assert_eq!(seen["result"]["status"], "working", "{seen}");
    }
    let (anonymous, declared) = open_session(&endpoint, "anonymous@http").await;
    assert!(declared["tasks"].get("list").is_none(), "{declared}");
    let session = ("anonymous@http", anonymous.as_str());
    let listed = in_session(&endpoint, session, "tasks/list", json!({})).await;
    assert_eq!(listed["error"]["code"], -32601, "{listed}");
}

/// Holds: TASK4-12
#[tokio::test]
async fn one_task_too_many_is_refused() {
    let mut own = limits();
    own.per_caller = 2;
    let mut all = limits();
    all.total = 2;
    for few in [own, all] {
        one_over(few).await;
    }
}

async fn one_over(few: TaskLimits) {
    let (server, hand) = served(few);
    let mut peer = Peer::open(&server, NEWEST_REVISION, knows()).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let created = peer.result("tools/call", json!({"name": "job"})).await;
        ids.push(created["taskId"].clone());
    }
    hand.runs(2).await;
    let error = peer.error("tools/call", json!({"name": "job"})).await;
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("limit of tasks (2)"),
        "{error}"
    );
    hand.runs(2).await;
    peer.result("tasks/cancel", json!({"taskId": ids[0]})).await;
    hand.runs(1).await;
    // What is over gives way.
    let created = peer.result("tools/call", json!({"name": "job"})).await;
    assert_eq!(created["resultType"], "task");
    let gone = peer.error("tasks/get", json!({"taskId": ids[0]})).await;
    assert_eq!(gone["code"], -32602);
    hand.runs(2).await;
}

#[tokio::test]
async fn where_there_is_no_room_the_caller_waits() {
    let mut none = limits();
    none.per_caller = 0;
    let (server, hand) = served(none);
    let mut peer = Peer::open(&server, NEWEST_REVISION, knows()).await;
    hand.go.notify_one();
    let done = peer.result("tools/call", json!({"name": "slow"})).await;
    assert_eq!(done["resultType"], "complete", "{done}");
    let asked = peer.result("tools/call", json!({"name": "first"})).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
}

/// Holds: TASK4-12
#[tokio::test]
async fn a_task_ends_with_its_time() {
    let mut short = limits();
    short.lifetime = Duration::from_millis(200);
    let (server, hand) = served(short);
    let mut peer = Peer::open(&server, NEWEST_REVISION, knows()).await;
    let created = peer.result("tools/call", json!({"name": "slow"})).await;
    assert_eq!(created["ttlMs"], 200);
    let gone = async {
        while peer
            .request("tasks/get", json!({"taskId": created["taskId"]}))
            .await
            .get("error")
            .is_none()
        {}
    };
    tokio::time::timeout(Duration::from_secs(20), gone)
        .await
        .unwrap();
    hand.runs(0).await;
}

#[tokio::test]
async fn results_give_way_where_they_are_too_long_together() {
    let mut small = limits();
    small.max_result_bytes = 300;
    let (server, _) = served(small);
    let mut peer = Peer::open(&server, NEWEST_REVISION, knows()).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        let created = peer.result("tools/call", json!({"name": "fails"})).await;
        until(&mut peer, &created["taskId"], "completed").await;
        ids.push(created["taskId"].clone());
    }
    assert_eq!(
        peer.error("tasks/get", json!({"taskId": ids[0]})).await["code"],
        -32602
    );
    until(&mut peer, &ids[3], "completed").await;
}

/// Nobody can look any more, so nothing runs on.
#[tokio::test]
async fn the_end_of_a_stream_ends_its_tasks() {
    let (server, hand) = served(limits());
    let mut peer = Peer::open(&server, NEWEST_REVISION, knows()).await;
    peer.result("tools/call", json!({"name": "slow"})).await;
    hand.runs(1).await;
    assert_eq!(server.tasks().len(), 1);
    drop(peer);
    hand.runs(0).await;
    let mut peer = Peer::open(&server, NEWEST_REVISION, knows()).await;
    peer.result("tools/call", json!({"name": "slow"})).await;
    hand.runs(1).await;
    let call = server.tasks()[0].call.clone();
    assert!(server.cancel_task(&call) && !server.cancel_task(&call));
    hand.runs(0).await;
    assert_eq!(server.tasks()[0].status, "cancelled");
}

/// Clients of both revisions get the same error, and the task continues.
///
/// Holds: TASK4-12
#[tokio::test]
async fn who_looks_too_often_is_told_when_to_look() {
    let mut few = limits();
    few.polls_per_minute = 60;
    let (server, hand) = served(few);
    let endpoint = HttpEndpoint::new(server.clone(), HttpLimits::default());
    let created = asked(&endpoint, "a", "tools/call", json!({"name": "slow"})).await;
    let id = json!({"taskId": created["result"]["taskId"]});
    let mut looks = 0;
    let refused = loop {
        let task = asked(&endpoint, "a", "tasks/get", id.clone()).await;
        if task.get("error").is_some() {
            break task["error"].clone();
        }
        looks += 1;
        assert!(looks < 600, "nobody says no");
    };
    assert!(looks >= 60, "{looks}");
    assert_eq!(refused["code"], -32603, "{refused}");
    let after = refused["data"]["retryAfterMs"].as_u64().unwrap();
    assert!((1..=1000).contains(&after), "{refused}");
    let text = refused["message"].as_str().unwrap();
    assert!(text.contains("every 1000 ms"), "{text}");
    // Another one has its own, and what is asked of the task besides is not counted.
    let second = asked(&endpoint, "a", "tools/call", json!({"name": "slow"})).await;
    let second = json!({"taskId": second["result"]["taskId"]});
    let task = asked(&endpoint, "a", "tasks/get", second).await;
    assert_eq!(task["result"]["status"], "working", "{task}");
    hand.runs(2).await;
    let done = asked(&endpoint, "a", "tasks/cancel", id).await;
    assert!(done.get("error").is_none(), "{done}");
    hand.runs(1).await;
}
