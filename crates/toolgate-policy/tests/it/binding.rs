//! An approval is good for one exact call: T50, and the test matrix of `envoyproxy/ai-gateway#2073`.

use crate::pipeline_fixture::{PipelineFixture, again, approval, item_of, said, text};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;
use toolgate_core::{
    Call, Caller, ErrorKind, InputRequestKind, InputRequests, Json, Outcome, RefusalReason,
};
use toolgate_policy::{ApprovalChannel, ApprovalService, ApprovalTerms};

async fn yes(fixture: &PipelineFixture, questions: &InputRequests) {
    let (desk, id) = (fixture.approvals(), approval(questions));
    let yes = desk.approve(&id, ApprovalChannel::Console, ApprovalTerms::default());
    yes.await.unwrap();
}

fn shown(questions: &InputRequests) -> &str {
    match &questions.requests[0].kind {
        InputRequestKind::Approve(approval) => approval.arguments.as_str(),
        other => panic!("no approval: {other:?}"),
    }
}

/// Row 1: the same caller, server, tool, digest of arguments, policy and expiry goes on and runs.
#[tokio::test]
async fn matrix_the_same_call_runs() {
    let fixture = PipelineFixture::new();
    let call = fixture.call("wipe", json!({"path": "/x"}));
    let questions = fixture.asked(&call).await;
    yes(&fixture, &questions).await;
    assert_eq!(said(fixture.go(again(&call, &questions)).await), "done");
    assert_eq!(fixture.reached(), 1);
    println!("matrix 1: resumed and run, once");
}

/// Row 2: the same approval, other arguments: not forwarded.
#[tokio::test]
async fn matrix_changed_arguments_do_not_run() {
    let fixture = PipelineFixture::new();
    let call = fixture.call("wipe", json!({"path": "/x"}));
    let questions = fixture.asked(&call).await;
    yes(&fixture, &questions).await;
    let mut changed = fixture.call("wipe", json!({"path": "/X"}));
    changed.id = call.id.clone();
    changed.round = again(&call, &questions).round.clone();
    assert_ne!(
        approval(&fixture.asked(&changed).await),
        approval(&questions)
    );
    assert_eq!(fixture.reached(), 0);
    println!("matrix 2: another digest is asked about anew, nothing forwarded");
}

/// Row 3: the same approval, another policy or past its expiry: asked anew.
#[tokio::test(start_paused = true)]
async fn matrix_a_changed_policy_or_a_passed_expiry_asks_anew() {
    let mut fixture = PipelineFixture::new();
    let call = fixture.call("wipe", json!({}));
    let questions = fixture.asked(&call).await;
    yes(&fixture, &questions).await;
    fixture.route.policy_id = "p2".into();
    assert_ne!(
        approval(&fixture.asked(&again(&call, &questions)).await),
        approval(&questions)
    );
    fixture.route.policy_id = "p1".into();
    tokio::time::advance(Duration::from_secs(601)).await;
    let late = text(fixture.go(again(&call, &questions)).await);
    assert!(late.contains("nobody approved this call within"), "{late}");
    fixture.asked(&fixture.call("wipe", json!({}))).await;
    assert_eq!(fixture.reached(), 0);
    println!("matrix 3: another policy asks anew, a passed expiry refuses");
}

/// Row 4: whoever should approve does not: a refusal is recorded with the id of the question.
#[tokio::test(start_paused = true)]
async fn matrix_nobody_answers_is_a_recorded_no() {
    let fixture = PipelineFixture::new();
    let call = fixture.call("wipe", json!({}));
    let questions = fixture.asked(&call).await;
    tokio::time::advance(Duration::from_secs(601)).await;
    let outcome = fixture.go(again(&call, &questions)).await;
    let kind = outcome.as_ref().unwrap_err().kind().clone();
    assert_eq!(kind, ErrorKind::Refused(RefusalReason::Expired));
    let expired = fixture.events("approval").pop().unwrap();
    assert_eq!(expired["state"], "expired");
    assert_eq!(expired["approval"], approval(&questions).as_str());
    assert_eq!(fixture.events("deny")[0]["call"], &*call.id);
    assert_eq!(fixture.reached(), 0);
    println!("matrix 4: expired and denied, with the id of the question");
}

/// A JSON value with some of everything.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn arguments() -> impl Strategy<Value = Value> {
    let member = ("[a-z]{1,4}", value());
    let members = prop::collection::vec(member, 1..5);
    members.prop_map(|m| Value::Object(m.into_iter().collect()))
}

/// Changes exactly one leaf or adds one member; never back to what it was.
fn change(value: &mut Value, at: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            let n = at % map.len();
            change(map.values_mut().nth(n).unwrap(), at / 7);
        }
        Value::Array(list) if !list.is_empty() => {
            let n = at % list.len();
            change(&mut list[n], at / 7);
        }
        Value::String(text) => text.push('x'),
        Value::Number(n) => *value = json!(n.as_i64().unwrap().wrapping_add(1)),
        Value::Bool(yes) => *value = json!(!*yes),
        _ => *value = json!([value.clone()]),
    }
}

/// Returns manipulations of a call after its approval. None of them may reach the service.
async fn tampered(fixture: &mut PipelineFixture, arguments: &Value, at: usize, how: u8) {
    let before = fixture.reached();
    let call = fixture.call("wipe", arguments.clone());
    let questions = fixture.asked(&call).await;
    assert_eq!(shown(&questions), call.arguments().raw().as_str());
    yes(fixture, &questions).await;
    let good = again(&call, &questions);
    let mut bad = good.clone();
    match how {
        0 => {
            let mut other = arguments.clone();
            change(&mut other, at);
            let other = Json::from_value(&other);
            bad = Call::tool(call.id.clone(), call.caller.clone(), "wipe", other);
            bad.round = good.round.clone();
        }
        1 => bad.caller = Caller::new("key:other"),
        2 => fixture.route.policy_id = "p2".into(),
        3 => fixture.tools(vec![item_of(
            "demo",
            true,
            json!({"name": "wipe", "inputSchema": {"type": "object"}, "description": "now better"}),
        )]),
        4 => fixture.tools(vec![item_of(
            "other",
            true,
            json!({"name": "wipe", "inputSchema": {"type": "object"}}),
        )]),
        5 => {
            // Used: then the same round again is a replay.
            fixture.go(good.clone()).await.unwrap();
        }
        _ => tokio::time::advance(Duration::from_secs(601)).await,
    }
    let reached = before + usize::from(how == 5);
    let outcome = fixture.go(bad).await;
    assert!(
        !matches!(outcome, Ok(Outcome::Done(_))),
        "{how}: {outcome:?}"
    );
    assert_eq!(fixture.reached(), reached, "way {how} came through");
    // What is still as it was is still good, unless it was used or is over.
    if how == 0 {
        fixture.go(good).await.unwrap();
    }
}

/// T50: one value changed after the approval, a replay, an expired one, another caller, policy, definition, server.
#[test]
fn t50_no_changed_call_comes_through() {
    let cases = match std::env::var_os("TOOLGATE_LONG") {
        Some(_) => 1000,
        None => 20,
    };
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let tried = std::cell::Cell::new(0_u32);
    runner
        .run(&(arguments(), any::<usize>()), |(arguments, at)| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()
                .unwrap();
            for how in 0..7 {
                runtime.block_on(tampered(
                    &mut PipelineFixture::unrecorded(),
                    &arguments,
                    at,
                    how,
                ));
                tried.set(tried.get() + 1);
            }
            Ok(())
        })
        .unwrap();
    println!(
        "T50: {} tampered calls in 7 ways, 0 came through; 100 % of the argument bytes shown",
        tried.get()
    );
}

/// T50, byte by byte: each byte of the arguments changed to each of a few others.
#[tokio::test]
async fn t50_each_byte_is_bound() {
    let fixture = PipelineFixture::unrecorded();
    let text = r#"{"path":"/srv/a","n":9007199254740993,"deep":[{"x":true}]}"#;
    let read = |bytes: Vec<u8>| Json::read(bytes, &Default::default()).ok();
    let of = |json: Json| Call::tool("c", Caller::new("key:test"), "wipe", json);
    let call = of(read(text.into()).unwrap());
    let questions = fixture.asked(&call).await;
    assert_eq!(shown(&questions), text);
    yes(&fixture, &questions).await;
    let (mut changed, mut unreadable) = (0, 0);
    for at in 0..text.len() {
        for byte in [b'0', b'9', b'a', b' ', b'"', b'/', text.as_bytes()[at] ^ 1] {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] = byte;
            let Some(json) =
                read(bytes).filter(|json| json.canonical() != call.arguments().raw().canonical())
            else {
                unreadable += 1;
                continue;
            };
            let mut bad = of(json);
            bad.round = again(&call, &questions).round.clone();
            let outcome = fixture.go(bad).await;
            assert!(
                !matches!(outcome, Ok(Outcome::Done(_))),
                "byte {at} to {byte}"
            );
            changed += 1;
        }
    }
    assert_eq!(fixture.reached(), 0);
    fixture.go(again(&call, &questions)).await.unwrap();
    println!("T50: {changed} changed bytes refused, {unreadable} were no JSON or the same value");
}

/// The stored row counts, and a row that was changed by hand does not.
#[tokio::test]
async fn a_row_that_does_not_hold_together_counts_for_nothing() {
    let fixture = PipelineFixture::unrecorded();
    let call = fixture.call("wipe", json!({"path": "/x"}));
    let questions = fixture.asked(&call).await;
    yes(&fixture, &questions).await;
    let store = &fixture.store;
    let row = store.entries("approvals").remove(0);
    for (key, value) in [
        ("text", json!(r#"{"path":"/y"}"#)),
        ("arguments", json!("00")),
        ("definition", json!("00")),
        ("tool", json!("add")),
        ("yeses", json!([])),
        ("standing", json!({"is": "approved"})),
        ("expires", json!("soon")),
        ("caller", Value::Null),
    ] {
        let mut bad = row.value.clone();
        bad[key] = value;
        let any = toolgate_policy::WritePrecondition::Any;
        store
            .write("approvals", &row.key, Some(bad), any)
            .await
            .unwrap();
        let fresh = ApprovalService::new(
            fixture.route.recorder.clone(),
            store.clone(),
            Default::default(),
        );
        assert!(fresh.find(&row.key).is_none(), "{key}");
        fixture.asked(&again(&call, &questions)).await;
    }
    assert_eq!(fixture.reached(), 0);
}
