//! A server with a handshake asks in the middle of a call: the call waits until it comes again with the answer.

use super::peer::{Peer, call, legacy, legacy_of, legacy_with, options, soon};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::task::JoinHandle;
use toolgate::{
    Call, Caller, Error, Json, Outcome, Service,
    client::RemoteServer,
    core::{InputRequestKind, InputRequests, Output},
};
use toolgate_protocol::json::JsonLimits;

type Running = JoinHandle<Result<Outcome, Error>>;

/// Starts a round.
#[allow(
    clippy::disallowed_methods,
    reason = "the test plays the other side meanwhile"
)]
fn round(remote: &Arc<RemoteServer>, call: Call) -> Running {
    let remote = remote.clone();
    tokio::spawn(async move { remote.call(call).await })
}

async fn outcome(running: Running) -> Result<Outcome, Error> {
    soon(running).await.unwrap()
}

/// The questions of a round, as an edge takes them that lets them leave.
async fn asked(running: Running) -> InputRequests {
    match outcome(running).await {
        Ok(Outcome::InputRequired(mut questions)) => {
            std::mem::take(&mut questions.guard).defuse();
            questions
        }
        other => panic!("{other:?}"),
    }
}

fn able(name: &str) -> Call {
    let mut call = call(name, "{}");
    call.capabilities.elicitation = true;
    call
}

fn json_of(value: &Value) -> Json {
    Json::read(value.to_string().into_bytes(), &JsonLimits::default()).unwrap()
}

/// The next round of a call, with this answer.
fn next(mut call: Call, questions: &InputRequests, answer: &Value) -> Call {
    call.round.number += 1;
    call.round.slots = questions.slots.clone();
    call.round.answers = vec![(questions.requests[0].key.clone(), json_of(answer))];
    call
}

async fn elicit(peer: &mut Peer, id: u64, message: &str) {
    let params =
        json!({"message": message, "requestedSchema": {"type": "object", "properties": {}}});
    let ask = json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
    peer.send(&ask.to_string()).await;
}

fn done(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn text(outcome: Result<Outcome, Error>) -> String {
    match outcome {
        Ok(Outcome::Done(Output::Tool(result))) => {
            let text = result.content[0].json.get("text");
            text.and_then(|text| text.string()).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_in_mid_call_is_a_round_and_the_server_sees_one_call() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let (remote, mut peer) = legacy_of(revision, json!({"tools": {}}), options()).await;
        let remote = Arc::new(remote);
        let tasks = tokio::runtime::Handle::current().metrics();
        let before = tasks.num_alive_tasks();
        let first = able("a");
        let running = round(&remote, first.clone());
        let sent = peer.read().await;
        elicit(&mut peer, 7, "which?").await;
        let questions = asked(running).await;
        let InputRequestKind::Elicit(params) = &questions.requests[0].kind else {
            panic!("{questions:?}")
        };
        assert_eq!(params.get("message").unwrap().string().unwrap(), "which?");
        assert_eq!(remote.status().parked_calls, 1);

        let answer = json!({"action": "accept", "content": {"unit": "m"}});
        let second = next(first.clone(), &questions, &answer);
        let running = round(&remote, second.clone());
        let told = peer.read().await;
        assert_eq!((&told["id"], &told["result"]), (&json!(7), &answer));
        // And once more, within the same call.
        elicit(&mut peer, 8, "sure?").await;
        let questions = asked(running).await;
        let running = round(
            &remote,
            next(second, &questions, &json!({"action": "decline"})),
        );
        assert_eq!(peer.read().await["result"]["action"], "decline");
        peer.reply(&sent, done("measured")).await;
        assert_eq!(text(outcome(running).await), "measured");
        assert_eq!(remote.status().parked_calls, 0);
        assert!(peer.is_left_alone().await, "nothing is sent twice");
        assert_eq!(tasks.num_alive_tasks(), before, "nothing waits on");
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_same_call_of_the_same_caller_goes_on() {
    let (remote, mut peer) = legacy(json!({"tools": {}})).await;
    let remote = Arc::new(remote);
    let first = able("a");
    let running = round(&remote, first.clone());
    peer.read().await;
    elicit(&mut peer, 7, "which?").await;
    let questions = asked(running).await;
    let answer = json!({"action": "accept", "content": {}});

    let mut other = next(first.clone(), &questions, &answer);
    other.caller = Caller::new("somebody else");
    let mut another = next(first.clone(), &questions, &answer);
    another.id = "c2".into();
    let mut unknown = next(first.clone(), &questions, &answer);
    let key = unknown.round.slots.keys().next().unwrap().clone();
    unknown.round.slots.insert(key, "nothing".into());
    for wrong in [other, another, unknown] {
        let refused = outcome(round(&remote, wrong)).await.unwrap_err();
        assert!(
            refused.public_message().contains("no longer"),
            "{refused:?}"
        );
    }
    assert_eq!(remote.status().parked_calls, 1, "it still waits");
    let running = round(&remote, next(first.clone(), &questions, &answer));
    assert_eq!(peer.read().await["id"], 7, "the first answer that is sent");
    // The answer is good once.
    let twice = outcome(round(&remote, next(first, &questions, &answer))).await;
    assert!(twice.unwrap_err().public_message().contains("no longer"));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_comes_back_to_is_cancelled() {
    let mut short = options();
    short.parked_call_timeout = Duration::from_secs(2);
    let (remote, mut peer) = legacy_with(json!({"tools": {}}), short).await;
    let remote = Arc::new(remote);
    let first = able("a");
    let running = round(&remote, first.clone());
    let sent = peer.read().await;
    elicit(&mut peer, 7, "which?").await;
    let questions = asked(running).await;
    let told = peer.read().await;
    assert_eq!(
        (&told["id"], &told["result"]["action"]),
        (&json!(7), &json!("cancel"))
    );
    let cancelled = peer.read().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], sent["id"]);
    let late = next(first, &questions, &json!({"action": "decline"}));
    let refused = outcome(round(&remote, late)).await.unwrap_err();
    assert!(
        refused.public_message().contains("no longer"),
        "{refused:?}"
    );
    assert_eq!(remote.status().parked_calls, 0);
}

/// A question that some layer above does not let pass: nobody will answer it, and its place is free at once.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_dropped_ends_its_call() {
    let (remote, mut peer) = legacy(json!({"tools": {}})).await;
    let remote = Arc::new(remote);
    let first = able("a");
    let running = round(&remote, first.clone());
    let sent = peer.read().await;
    elicit(&mut peer, 7, "which?").await;
    let Ok(Outcome::InputRequired(questions)) = outcome(running).await else {
        panic!("no question")
    };
    let late = next(first, &questions, &json!({"action": "decline"}));
    assert_eq!(remote.status().parked_calls, 1);
    let another = questions.clone();
    drop(questions);
    assert_eq!(remote.status().parked_calls, 1, "somebody has it still");
    let start = tokio::time::Instant::now();
    drop(another);
    assert_eq!(remote.status().parked_calls, 0);
    let told = peer.read().await;
    assert_eq!(
        (&told["id"], &told["result"]["action"]),
        (&json!(7), &json!("cancel"))
    );
    let cancelled = peer.read().await;
    assert_eq!(cancelled["params"]["requestId"], sent["id"]);
    assert_eq!(start.elapsed(), Duration::ZERO);
    let refused = outcome(round(&remote, late)).await.unwrap_err();
    assert!(
        refused.public_message().contains("no longer"),
        "{refused:?}"
    );
}

/// Without a place for calls that wait, nothing is declared.
#[tokio::test(start_paused = true)]
async fn with_no_place_nobody_can_be_asked() {
    let mut none = options();
    none.max_parked_calls = 0;
    let (remote, mut peer) = legacy_with(json!({"tools": {}}), none).await;
    let remote = Arc::new(remote);
    let running = round(&remote, able("a"));
    let sent = peer.read().await;
    elicit(&mut peer, 7, "which?").await;
    assert_eq!(peer.read().await["error"]["code"], -32600);
    peer.reply(&sent, done("went on")).await;
    assert_eq!(text(outcome(running).await), "went on");
}

/// An input request that cannot be forwarded is rejected with a message, and the call continues.
#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_can_answer_is_refused() {
    let (remote, mut peer) = legacy(json!({"tools": {}})).await;
    let remote = Arc::new(remote);
    // A caller without the ability.
    let running = round(&remote, call("a", "{}"));
    let sent = peer.read().await;
    elicit(&mut peer, 7, "which?").await;
    let told = peer.read().await;
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .contains("did not declare the capability"),
        "{told}"
    );
    peer.reply(&sent, done("went on")).await;
    assert_eq!(text(outcome(running).await), "went on");
    // A kind that this caller has not.
    let running = round(&remote, able("a"));
    let sent = peer.read().await;
    let sample = json!({"jsonrpc": "2.0", "id": 8, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}});
    peer.send(&sample.to_string()).await;
    let told = peer.read().await;
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .contains("did not declare the capability"),
        "{told}"
    );
    peer.reply(&sent, done("went on")).await;
    assert_eq!(text(outcome(running).await), "went on");
    // Two calls over one pipe: nothing says whose question it is.
    let mut other = able("b");
    other.id = "c2".into();
    let both = (round(&remote, able("a")), round(&remote, other));
    let sent = (peer.read().await, peer.read().await);
    elicit(&mut peer, 9, "which?").await;
    let told = peer.read().await;
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .contains("more than one"),
        "{told}"
    );
    peer.reply(&sent.0, done("first")).await;
    peer.reply(&sent.1, done("second")).await;
    let both = (text(outcome(both.0).await), text(outcome(both.1).await));
    assert!(both.0 != both.1);
}
