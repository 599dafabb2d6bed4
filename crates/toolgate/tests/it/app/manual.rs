//! Input requests that the application answers by hand, and typed sampling.

use super::sample_server::{ASKING, REVISIONS, client, over};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use toolgate::{
    Client, Cx, HandlerExit, Server, Tool,
    client::{
        CallProgress, CallResult, InputAnswer, InputKind, InputQuestion, PendingCall,
        SamplingResponse,
    },
    core::{
        Definition, Error, Json, SampledToolUse, SamplingContent, SamplingMessage, SamplingParams,
        SamplingResult, ToolChoice,
    },
    handlers::ask::{self, Reply},
    rule::{self, RuleDecision},
};

fn pending(started: Result<CallProgress, Error>) -> PendingCall {
    match started.unwrap() {
        CallProgress::InputRequired(pending) => pending,
        other => panic!("{other:?}"),
    }
}

fn done(progress: Result<CallProgress, Error>) -> CallResult {
    match progress.unwrap() {
        CallProgress::Done(result) => result,
        other => panic!("{other:?}"),
    }
}

fn accepted(value: &str) -> InputAnswer {
    InputAnswer::Form(Reply::Accepted(json!({"value": value})))
}

#[tokio::test]
async fn a_form_is_answered_later_in_every_revision_that_has_forms() {
    for revision in ASKING {
        let client = client(revision, Client::builder().manual_input([InputKind::Form])).await;
        let mut call = pending(client.call_with("asks", ()).start().await);
        let (key, question) = call.questions()[0].clone();
        let InputQuestion::Form(form) = question else {
            panic!("{revision}: {question:?}")
        };
        assert_eq!(
            (form.message.as_str(), form.server.as_str()),
            ("Which unit?", "world")
        );
        // Other calls go on meanwhile.
        client.call("add", json!({"a": 1, "b": 2})).await.unwrap();
        assert!(
            call.answer("other", accepted("C")).is_err(),
            "{revision}: no such question"
        );
        assert!(
            call.answer(&key, accepted("K")).is_err(),
            "{revision}: not one of the choices"
        );
        assert!(
            call.answer(&key, InputAnswer::Url(Reply::Accepted(())))
                .is_err()
        );
        assert_eq!(call.questions().len(), 1, "{revision}: it stays open");
        call.answer(&key, accepted("C")).unwrap();
        assert!(call.questions().is_empty());
        let got: Value = done(call.resume().await).structured().unwrap();
        assert_eq!(got, json!({"unit": "C"}), "{revision}");
    }
}

#[tokio::test]
async fn a_call_without_input_is_done_at_once() {
    for revision in REVISIONS {
        let client = client(revision, Client::builder().manual_input([InputKind::Form])).await;
        let started = client
            .call_with("add", json!({"a": 1, "b": 2}))
            .start()
            .await;
        assert_eq!(
            done(started).structured::<Value>().unwrap(),
            json!({"sum": 3}),
            "{revision}"
        );
    }
}

#[tokio::test]
async fn a_declined_form_and_a_missing_answer_end_the_call() {
    for revision in ASKING {
        let client = client(revision, Client::builder().manual_input([InputKind::Form])).await;
        let mut call = pending(client.call_with("asks", ()).start().await);
        let key = call.questions()[0].0.clone();
        call.answer(&key, InputAnswer::Form(Reply::Declined))
            .unwrap();
        let result = done(call.resume().await);
        assert!(
            result.is_error() && result.text().contains("declined"),
            "{revision}"
        );
        let call = pending(client.call_with("asks", ()).start().await);
        let error = call.resume().await.unwrap_err();
        assert!(
            error
                .public_message()
                .contains("an answer to every question"),
            "{revision}: {error}"
        );
    }
}

/// A server cannot request what is not declared, and a call that is awaited needs a function.
#[tokio::test]
async fn only_declared_kinds_are_requested_and_an_awaited_call_needs_a_function() {
    for revision in ASKING {
        let builder = || Client::builder().manual_input([InputKind::Sampling]);
        let other = client(revision, builder()).await;
        let started = other.call_with("asks", ()).start().await;
        let refused = started.is_err()
            || matches!(&started, Ok(CallProgress::Done(result)) if result.is_error());
        assert!(refused, "{revision}: {started:?}");
        let by_hand = client(revision, Client::builder().manual_input([InputKind::Form])).await;
        let awaited = by_hand.call("asks", ()).await;
        assert!(
            awaited.is_err() || awaited.unwrap().is_error(),
            "{revision}"
        );
    }
}

#[tokio::test]
async fn confirmations_have_their_function_and_forms_wait() {
    for revision in ASKING {
        let confirmed = Arc::new(AtomicUsize::new(0));
        let count = confirmed.clone();
        let builder = Client::builder()
            .manual_input([InputKind::Form])
            .confirm(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                async { Ok(()) }
            });
        let client = client(revision, builder).await;
        let mut call = pending(client.call_with("asks", ()).start().await);
        let key = call.questions()[0].0.clone();
        call.answer(&key, accepted("F")).unwrap();
        done(call.resume().await);
        assert_eq!(confirmed.load(Ordering::Relaxed), 1, "{revision}");
    }
}

fn weather_tool() -> Definition {
    let tool = json!({"name": "radar", "inputSchema": {"type": "object"}});
    Definition::tool(Json::from_value(&tool)).unwrap()
}

/// A server that samples with a tool, runs it itself, and samples again.
fn sampling_server() -> Server {
    let schema = json!({"type": "object"});
    let tool = Tool::dynamic("forecast", schema, |_: Value, cx: Cx| async move {
        let mut params = SamplingParams::new(20);
        params.system_prompt = Some("Be short.".to_owned());
        params.model_preferences.hints = vec!["small".to_owned()];
        params.tools = vec![weather_tool()];
        params.tool_choice = ToolChoice::Required;
        params.messages = vec![SamplingMessage::user("Will it rain?")];
        let used = cx.ask("first", ask::create_message(&params))?;
        let uses: Vec<SampledToolUse> = used.tool_uses().cloned().collect();
        params.tool_choice = ToolChoice::None;
        params.messages.push(SamplingMessage {
            assistant: true,
            content: used.content.clone(),
        });
        let results = uses.iter().map(|used| {
            SamplingContent::ToolResult(toolgate::core::SampledToolResult {
                tool_use_id: used.id.clone(),
                content: vec![toolgate::core::Content::text("wet")],
                ..Default::default()
            })
        });
        params.messages.push(SamplingMessage {
            assistant: false,
            content: results.collect(),
        });
        let said = cx.ask("second", ask::create_message(&params))?;
        Ok::<_, HandlerExit>(format!("{} says {}", said.model, said.all_text()))
    });
    Server::new("sampling", "1").tool(tool)
}

/// Answers like a model that uses a tool first.
fn model(params: &SamplingParams) -> SamplingResponse {
    let last = params.messages.last().unwrap();
    match &last.content[0] {
        SamplingContent::ToolResult(result) => {
            assert_eq!(
                (result.tool_use_id.as_str(), params.tool_choice),
                ("u1", ToolChoice::None)
            );
            SamplingResponse::text("gpt", &result.content[0].as_text().unwrap())
        }
        _ => {
            assert_eq!(params.system_prompt.as_deref(), Some("Be short."));
            assert_eq!(params.model_preferences.hints, ["small"]);
            assert_eq!(params.tools[0].name(), "radar");
            assert_eq!(params.tool_choice, ToolChoice::Required);
            let input = Json::from_value(&json!({"at": "Oslo"}));
            let used = SampledToolUse {
                id: "u1".into(),
                name: "radar".into(),
                input,
            };
            SamplingResult::using_tools("gpt", vec![used]).into()
        }
    }
}

#[tokio::test]
async fn sampling_with_tools_is_typed_both_ways() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let builder = Client::builder().revision(revision).sample_with_tools();
        let builder = builder.on_sample(|asked| async move { Ok(model(&asked.params)) });
        let client = over(builder, sampling_server()).await;
        let said = client.call("forecast", ()).await.unwrap();
        assert_eq!(said.text(), "gpt says wet", "{revision}");
    }
}

#[tokio::test]
async fn sampling_is_answered_later_too() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let builder = Client::builder().revision(revision);
        let builder = builder.manual_input([InputKind::SamplingWithTools]);
        let client = over(builder, sampling_server()).await;
        let mut call = pending(client.call_with("forecast", ()).start().await);
        for last in [false, true] {
            let (key, question) = call.questions()[0].clone();
            let InputQuestion::Sample(asked) = question else {
                panic!("{question:?}")
            };
            call.answer(&key, InputAnswer::Sample(Ok(model(&asked.params))))
                .unwrap();
            let progress = call.resume().await;
            if last {
                assert_eq!(done(progress).text(), "gpt says wet", "{revision}");
                break;
            }
            call = pending(progress);
        }
    }
}

/// The rule decides: a denied call is not sent, and a confirmed one is.
#[tokio::test]
async fn a_confirmation_is_given_by_hand() {
    for revision in REVISIONS {
        let asks = rule::from_fn("careful", |_, _| RuleDecision::ask("it adds"));
        let builder = Client::builder()
            .rule(asks)
            .manual_input([InputKind::Confirm]);
        let client = client(revision, builder).await;
        for (said, sum) in [
            (Ok(()), Some(json!({"sum": 3}))),
            (Err("no".to_owned()), None),
        ] {
            let started = client
                .call_with("add", json!({"a": 1, "b": 2}))
                .start()
                .await;
            let mut call = pending(started);
            let (key, question) = call.questions()[0].clone();
            let InputQuestion::Confirm(asked) = question else {
                panic!("{question:?}")
            };
            assert_eq!(asked.tool.name(), "add");
            call.answer(&key, InputAnswer::Confirm(said)).unwrap();
            let ended = call.resume().await;
            match sum {
                Some(sum) => assert_eq!(
                    done(ended).structured::<Value>().unwrap(),
                    sum,
                    "{revision}"
                ),
                None => assert!(ended.is_err(), "{revision}"),
            }
        }
        let awaited = client.call("add", json!({"a": 1, "b": 2})).await;
        assert!(
            awaited.is_err(),
            "{revision}: nobody confirms a call that is awaited"
        );
    }
}
