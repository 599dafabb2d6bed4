//! Calls: their words, their answers, and their end.

use super::peer::{Peer, call, legacy, legacy_of, legacy_with, modern, options, soon};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
};
use tokio::{io::AsyncWrite, join};
use toolgate::{
    Call, Caller, Error, Json, Outcome, Service,
    client::RemoteServer,
    core::{
        CallReporter, ClientCapabilities, ErrorKind, EventSink, InputRequestKind, Op, Output,
        ReporterEvent, RequiredCapability,
    },
};
use toolgate_protocol::{
    json::JsonLimits,
    memory_budget::{BudgetScope, MemoryBudget},
};

/// Calls while the server answers.
async fn answered(
    remote: &RemoteServer,
    peer: &mut Peer,
    call: Call,
    result: Value,
) -> (Result<Outcome, Error>, Value) {
    join!(soon(remote.call(call)), async {
        let request = peer.read().await;
        peer.reply(&request, result).await;
        request
    })
}

fn text(words: &str) -> Value {
    json!({"content": [{"type": "text", "text": words}]})
}

#[derive(Default)]
struct Heard(Mutex<Vec<ReporterEvent>>);

impl EventSink for Heard {
    fn report(&self, event: ReporterEvent) {
        self.0.lock().unwrap().push(event);
    }
}

/// Counts what is written to it.
struct Counted<W>(W, Arc<AtomicUsize>);

impl<W: AsyncWrite + Unpin> AsyncWrite for Counted<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.1.fetch_add(1, Relaxed);
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// The peer checks that no id comes twice.
///
/// Holds: BASE-05, BASE-06
#[tokio::test(start_paused = true)]
async fn calls_that_wait_together_are_written_together() {
    const CALLS: usize = 20;
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(ours);
    let (mut peer, writes) = (Peer::over(theirs), Arc::<AtomicUsize>::default());
    let writer = Counted(writer, writes.clone());
    let (remote, ()) = join!(RemoteServer::open(reader, writer, options()), async {
        let probe = peer.read().await;
        peer.reply(&probe, json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}})).await;
    });
    let remote = remote.unwrap();
    writes.store(0, Relaxed);
    let calls = (0..CALLS).map(|n| remote.call(call(&format!("t{n}"), "{}")));
    let (done, ()) = join!(soon(join_all(calls)), async {
        for _ in 0..CALLS {
            let request = peer.read().await;
            let name = request["params"]["name"].as_str().unwrap();
            peer.reply(&request, text(name)).await;
        }
    });
    for (n, outcome) in done.into_iter().enumerate() {
        let Ok(Outcome::Done(Output::Tool(result))) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(result.content[0].json.to_value()["text"], format!("t{n}"));
    }
    assert_eq!(writes.load(Relaxed), 1);
}

/// Arguments that stand on many lines leave on one.
///
/// Holds: STDIO-02
#[tokio::test(start_paused = true)]
async fn a_message_of_the_client_is_one_line() {
    for (remote, mut peer) in [legacy(json!({})).await, modern(json!({})).await] {
        let pretty = "{\n  \"n\": 9007199254740993,\r\n\t\"text\": \"a\\nb\"\n}";
        let (done, line) = join!(soon(remote.call(call("write", pretty))), async {
            let line = peer.line().await;
            let request: Value = serde_json::from_str(&line).expect("all of it on a line");
            peer.reply(&request, text("ok")).await;
            line
        });
        done.unwrap();
        assert!(
            !line.trim_end_matches('\n').contains(['\n', '\r']),
            "{line:?}"
        );
        let on_a_line = r#""n": 9007199254740993,"#;
        assert!(
            line.contains(on_a_line) && line.contains(r#""text": "a\nb""#),
            "{line:?}"
        );
        assert!(peer.is_left_alone().await, "no other line came");
    }
}

/// Holds: STDIO-04
#[tokio::test(start_paused = true)]
async fn the_arguments_are_the_very_bytes_that_came() {
    let (remote, mut peer) = legacy(json!({})).await;
    let arguments = r#"{ "n":9007199254740993, "f": 1.0e2,"u":"\u00e9", "f2":1.10 }"#;
    let (done, line) = join!(soon(remote.call(call("write", arguments))), async {
        let line = peer.line().await;
        let request: Value = serde_json::from_str(&line).unwrap();
        peer.reply(&request, text("ok")).await;
        line
    });
    assert!(line.contains(arguments), "{line}");
    assert!(!line.contains("_meta"), "nobody listens: {line}");
    let Ok(Outcome::Done(output)) = done else {
        panic!("{done:?}")
    };
    assert_eq!(output.blocks(), 1);
}

/// Holds: ELIC-02, SAMP-01
#[tokio::test(start_paused = true)]
async fn a_modern_call_carries_what_the_caller_declared_and_no_more() {
    let (remote, mut peer) = modern(json!({})).await;
    let (_, request) = answered(&remote, &mut peer, call("a", "{}"), text("ok")).await;
    assert_eq!(
        request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"],
        json!({})
    );
    let mut able = call("a", "{}");
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = true;
    capabilities.elicitation_url = true;
    capabilities.sampling = false;
    capabilities.roots = true;
    able.capabilities = capabilities;
    let (_, request) = answered(&remote, &mut peer, able, text("ok")).await;
    let meta = &request["params"]["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/clientCapabilities"],
        json!({"elicitation": {"form": {}, "url": {}}, "roots": {}})
    );
    let mut able = call("a", "{}");
    able.capabilities.sampling = true;
    able.capabilities.sampling_tools = true;
    let (_, asked) = answered(&remote, &mut peer, able, text("ok")).await;
    assert_eq!(
        asked["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"],
        json!({"sampling": {"tools": {}}})
    );
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
}

/// Holds: PROG-05
#[tokio::test(start_paused = true)]
async fn progress_reaches_the_call_it_belongs_to_and_only_while_it_runs() {
    let (remote, mut peer) = legacy(json!({})).await;
    let heard = Arc::new(Heard::default());
    let mut one = call("slow", "{}");
    one.reporter = CallReporter::new(heard.clone());
    let (done, token) = join!(soon(remote.call(one)), async {
        let request = peer.read().await;
        let token = request["params"]["_meta"]["progressToken"].clone();
        peer.notify(
            "notifications/progress",
            json!({"progressToken": token, "progress": 1, "total": 2, "message": "half"}),
        )
        .await;
        peer.notify(
            "notifications/progress",
            json!({"progressToken": "other", "progress": 1}),
        )
        .await;
        peer.notify(
            "notifications/progress",
            json!({"progressToken": token, "progress": "x"}),
        )
        .await;
        peer.reply(&request, text("ok")).await;
        peer.notify(
            "notifications/progress",
            json!({"progressToken": token, "progress": 2}),
        )
        .await;
        token
    });
    done.unwrap();
    assert!(token.is_i64());
    assert!(peer.is_left_alone().await);
    let heard = heard.0.lock().unwrap();
    let [ReporterEvent::Progress(progress)] = heard.as_slice() else {
        panic!("{heard:?}")
    };
    assert_eq!(
        (
            progress.progress,
            progress.total,
            progress.message.as_deref()
        ),
        (1.0, Some(2.0), Some("half"))
    );
    assert_eq!(remote.status().counters.stray_notifications, 3);
}

/// Holds: PROG-01
#[tokio::test(start_paused = true)]
async fn the_progress_tokens_of_calls_in_flight_differ() {
    for (remote, mut peer) in [legacy(json!({})).await, modern(json!({})).await] {
        let heard = [0; 3].map(|_| Arc::new(Heard::default()));
        let calls = heard.iter().map(|heard| {
            let mut call = call("slow", "{}");
            call.reporter = CallReporter::new(heard.clone());
            soon(remote.call(call))
        });
        let (done, ()) = join!(join_all(calls), async {
            let mut requests = Vec::new();
            for _ in 0..heard.len() {
                requests.push(peer.read().await);
            }
            for (n, request) in requests.iter().enumerate() {
                let token = &request["params"]["_meta"]["progressToken"];
                assert!(token.is_i64() || token.is_string(), "{token}");
                let progress = json!({"progressToken": token, "progress": n});
                peer.notify("notifications/progress", progress).await;
            }
            for request in &requests {
                peer.reply(request, text("ok")).await;
            }
        });
        assert!(done.iter().all(Result::is_ok), "{done:?}");
        for (n, heard) in heard.iter().enumerate() {
            let heard = heard.0.lock().unwrap();
            let [ReporterEvent::Progress(progress)] = heard.as_slice() else {
                panic!("call {n}: {heard:?}")
            };
            assert_eq!(progress.progress, n as f64);
        }
    }
}

/// Holds: RES-05
#[tokio::test(start_paused = true)]
async fn the_older_code_for_a_missing_resource_is_understood() {
    for (remote, mut peer) in [legacy(json!({})).await, modern(json!({})).await] {
        let uri = Json::from_value(&json!({"uri": "t://gone"}));
        let read = Call::new("c1", Caller::new("test"), Op::Resource, "t://gone", uri);
        for (call, kind) in [
            (read, ErrorKind::NotFound),
            // For a tool call the code has no meaning.
            (call("a", "{}"), ErrorKind::JsonRpc(-32002)),
        ] {
            let (outcome, ()) = join!(soon(remote.call(call)), async {
                let request = peer.read().await;
                let data = json!({"uri": "t://gone"});
                peer.reply_error(&request, -32002, "no such resource", data)
                    .await;
            });
            let error = outcome.unwrap_err();
            assert_eq!(
                (error.kind(), error.public_message()),
                (&kind, "the server answered: no such resource")
            );
        }
    }
}

/// Holds: RES-05
#[tokio::test(start_paused = true)]
async fn the_newer_code_for_a_missing_resource_is_understood_only_if_it_is_certain() {
    let gone = || json!({"uri": "t://gone"});
    let read = || {
        let uri = Json::from_value(&gone());
        Call::new("c1", Caller::new("test"), Op::Resource, "t://gone", uri)
    };
    for (call, data, is_modern, missing) in [
        (read(), gone(), true, true),
        // Without the requested URI, and in a revision before 2026-07-28, any parameter may be invalid.
        (read(), json!({"uri": "t://other"}), true, false),
        (read(), json!({"why": "t://gone"}), true, false),
        (read(), Value::Null, true, false),
        (read(), gone(), false, false),
        (call("a", "{}"), gone(), true, false),
    ] {
        let (remote, mut peer) = match is_modern {
            true => modern(json!({})).await,
            false => legacy(json!({})).await,
        };
        let about = format!("{data} {is_modern}");
        let (outcome, ()) = join!(soon(remote.call(call)), async {
            let request = peer.read().await;
            peer.reply_error(&request, -32602, "no such resource", data)
                .await;
        });
        let kind = match missing {
            true => ErrorKind::NotFound,
            false => ErrorKind::JsonRpc(-32602),
        };
        assert_eq!(*outcome.unwrap_err().kind(), kind, "{about}");
    }
}

/// Holds: MRTR-11, MRTR-12, TOOL-39
#[tokio::test(start_paused = true)]
async fn a_question_is_an_outcome_and_its_answer_goes_back_with_the_state() {
    let (remote, mut peer) = modern(json!({})).await;
    let mut first = call("a", "{}");
    first.capabilities.elicitation = true;
    let form = json!({"method": "elicitation/create", "params": {"message": "which?", "requestedSchema": {}}});
    let question = json!({"resultType": "input_required", "inputRequests": {"unit": form}, "requestState": "s&\"1"});
    let (asked, begun) = answered(&remote, &mut peer, first.clone(), question).await;
    let Ok(Outcome::InputRequired(questions)) = asked else {
        panic!("{asked:?}")
    };
    let InputRequestKind::Elicit(params) = &questions.requests[0].kind else {
        panic!("{questions:?}")
    };
    assert_eq!(
        (
            questions.requests[0].key.as_str(),
            params.get("message").unwrap().string().as_deref()
        ),
        ("unit", Some("which?"))
    );

    let read = |text: &str| Json::read(text.as_bytes().to_vec(), &JsonLimits::default()).unwrap();
    first.round.number = 1;
    first.round.slots = questions.slots;
    first
        .round
        .slots
        .insert("confirm".to_owned(), "ours".to_owned());
    first.round.answers.push((
        "unit".to_owned(),
        read(r#"{"action":"accept","content":{"unit":"C"}}"#),
    ));
    first
        .round
        .answers
        .push(("approval".to_owned(), read(r#"{"action":"accept"}"#)));
    let (done, request) = answered(
        &remote,
        &mut peer,
        first,
        json!({"resultType": "complete", "content": []}),
    )
    .await;
    assert!(matches!(done, Ok(Outcome::Done(_))));
    assert_ne!(request["id"], begun["id"]);
    assert_eq!(request["params"]["requestState"], "s&\"1");
    assert_eq!(
        request["params"]["inputResponses"],
        json!({"unit": {"action": "accept", "content": {"unit": "C"}}})
    );
}

/// Holds: BASE-16
#[tokio::test(start_paused = true)]
async fn a_result_without_a_type_is_complete() {
    let (remote, mut peer) = modern(json!({})).await;
    for result in [
        text("fine"),
        json!({"resultType": "complete", "content": []}),
    ] {
        let (outcome, _) = answered(&remote, &mut peer, call("a", "{}"), result.clone()).await;
        assert!(
            matches!(outcome, Ok(Outcome::Done(_))),
            "{result}: {outcome:?}"
        );
    }
    // The same members with another type are no complete result.
    let other = json!({"resultType": "partial", "content": []});
    let (outcome, _) = answered(&remote, &mut peer, call("a", "{}"), other).await;
    assert!(outcome.is_err(), "{outcome:?}");
}

/// Holds: BASE-17
#[tokio::test(start_paused = true)]
async fn results_that_are_none_are_errors_of_the_server() {
    let ask = |method: &str| json!({"resultType": "input_required", "inputRequests": {"k": {"method": method}}});
    let (remote, mut peer) = modern(json!({})).await;
    let bad = [
        json!("fine"),
        json!(null),
        json!([]),
        json!({"resultType": "task", "content": []}),
        json!({"resultType": 7, "content": []}),
        json!({"resultType": "complete", "content": null}),
        json!({"content": {}}),
        json!({"content": [{"no": "type"}]}),
        json!({"resultType": "input_required"}),
        ask("elicitation/create"),
        ask("sampling/createMessage"),
        ask("roots/list"),
        ask("tools/call"),
    ];
    for result in bad {
        let (outcome, _) = answered(&remote, &mut peer, call("a", "{}"), result.clone()).await;
        let Err(error) = outcome else {
            panic!("{result}: {outcome:?}")
        };
        assert_eq!(*error.kind(), ErrorKind::BadResponse);
        assert!(
            error
                .public_message()
                .starts_with("the server files sent an invalid result"),
            "{}",
            error.public_message()
        );
    }
    // What a later revision calls a question is no question in the old era.
    let (remote, mut peer) = legacy(json!({})).await;
    let (outcome, _) = answered(
        &remote,
        &mut peer,
        call("a", "{}"),
        json!({"resultType": "input_required", "requestState": "x"}),
    )
    .await;
    assert!(outcome.is_err());
}

/// Holds: BASE-43
#[tokio::test(start_paused = true)]
async fn the_trace_of_a_call_is_passed_on() {
    let (remote, mut peer) = modern(json!({})).await;
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for (state, baggage) in [(Some("a=1,b=2"), Some("k=v;p")), (None, None)] {
        let mut traced = call("a", "{}");
        traced.trace.parent = Some(parent.to_owned());
        traced.trace.state = state.map(str::to_owned);
        traced.trace.baggage = baggage.map(str::to_owned);
        let (outcome, ()) = join!(soon(remote.call(traced)), async {
            let request = peer.read().await;
            let meta = &request["params"]["_meta"];
            assert_eq!(meta["traceparent"], parent);
            assert_eq!(meta.get("tracestate"), state.map(Value::from).as_ref());
            assert_eq!(meta.get("baggage"), baggage.map(Value::from).as_ref());
            peer.reply(&request, json!({"content": []})).await;
        });
        outcome.unwrap();
    }
}

/// Keys of the protocol that are unknown here, or of a form that is: the result counts all the same.
///
/// Holds: BASE-29
#[tokio::test(start_paused = true)]
async fn odd_values_under_reserved_keys_of_a_result_are_no_error() {
    for (remote, mut peer) in [
        legacy_of("2025-06-18", json!({}), options()).await,
        legacy(json!({})).await,
        modern(json!({})).await,
    ] {
        for value in [json!([1]), json!({"a": {}}), json!("x"), json!(7)] {
            let mut result = text("fine");
            result["_meta"] = json!({"io.modelcontextprotocol/later": value, "dev.mcp/x": value,
                "io.modelcontextprotocol/serverInfo": value, "progressToken": value, "traceparent": value});
            let (outcome, _) = answered(&remote, &mut peer, call("a", "{}"), result).await;
            let Ok(Outcome::Done(output)) = outcome else {
                panic!("{value}: {outcome:?}")
            };
            assert_eq!(output.blocks(), 1, "{value}");
        }
    }
}

/// A cancellation that names no question of the server, or nothing at all, ends nothing and is not answered.
///
/// Holds: CANC-12
#[tokio::test(start_paused = true)]
async fn a_cancellation_of_nothing_is_ignored_by_the_client() {
    for (remote, mut peer) in [legacy(json!({})).await, modern(json!({})).await] {
        let (outcome, ()) = join!(soon(remote.call(call("a", "{}"))), async {
            let request = peer.read().await;
            for params in [
                json!({}),
                json!({"requestId": null}),
                json!({"requestId": {}}),
                json!({"requestId": 1.5}),
                json!({"requestId": "unknown"}),
                json!({"requestId": 4711}),
                json!([request["id"]]),
            ] {
                peer.notify("notifications/cancelled", params).await;
            }
            peer.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#)
                .await;
            assert!(peer.is_left_alone().await);
            peer.reply(&request, text("done")).await;
        });
        assert!(matches!(outcome, Ok(Outcome::Done(_))), "{outcome:?}");
        let finished = json!({"requestId": 1});
        peer.notify("notifications/cancelled", finished).await;
        let (again, _) = answered(&remote, &mut peer, call("a", "{}"), text("again")).await;
        assert!(matches!(again, Ok(Outcome::Done(_))), "{again:?}");
    }
}

/// Holds: BASE-19
#[tokio::test(start_paused = true)]
async fn codes_of_the_implementation_defined_range_have_no_meaning() {
    let (remote, mut peer) = modern(json!({})).await;
    // Data that would mean something beside -32021 and -32022.
    let data = json!({"requiredCapabilities": {"sampling": {}}, "supported": ["2025-11-25"], "requested": "x"});
    for code in -32019..=-32000_i64 {
        if code == -32002 {
            continue;
        }
        let (outcome, ()) = join!(soon(remote.call(call("a", "{}"))), async {
            let request = peer.read().await;
            peer.reply_error(&request, code, "no such thing", data.clone())
                .await;
        });
        assert_eq!(*outcome.unwrap_err().kind(), ErrorKind::JsonRpc(code));
        assert!(peer.is_left_alone().await, "{code}: nothing is sent again");
    }
}

/// Holds: TOOL-20
#[tokio::test(start_paused = true)]
async fn errors_keep_the_words_of_the_server_and_get_their_kind() {
    let (remote, mut peer) = modern(json!({})).await;
    let need = json!({"requiredCapabilities": {"sampling": {}}});
    let cases = [
        (-32602, json!(null), ErrorKind::JsonRpc(-32602)),
        (-32603, json!({}), ErrorKind::JsonRpc(-32603)),
        (
            -32021,
            need,
            ErrorKind::MissingCapability(RequiredCapability::Sampling),
        ),
    ];
    for (code, data, kind) in cases {
        let (outcome, ()) = join!(soon(remote.call(call("a", "{}"))), async {
            let request = peer.read().await;
            peer.reply_error(&request, code, "no such thing", data)
                .await;
        });
        let error = outcome.unwrap_err();
        assert_eq!(
            (error.kind(), error.public_message()),
            (&kind, "the server answered: no such thing")
        );
    }
}

/// Holds: STDIO-10, CANC-01, CANC-05
#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_cancelled_once_it_has_left() {
    for (remote, mut peer) in [legacy(json!({})).await, modern(json!({})).await] {
        let mut running = remote.call(call("slow", "{}"));
        let request = tokio::select! {
            _ = &mut running => panic!("nobody answered"),
            request = peer.read() => request,
        };
        drop(running);
        let cancel = peer.read().await;
        assert_eq!(cancel["method"], "notifications/cancelled");
        assert_eq!(cancel["params"]["requestId"], request["id"]);
        peer.reply(&request, text("too late")).await;
        assert!(peer.is_left_alone().await);
        assert_eq!(remote.status().counters.stray_replies, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_before_it_left_never_reaches_the_server() {
    let (remote, mut peer) = legacy(json!({})).await;
    // More than the pipe and the queue take: the last ones wait inside.
    let big = format!("{{\"x\":\"{}\"}}", "y".repeat(100_000));
    let mut calls: Vec<_> = (0..60).map(|_| remote.call(call("a", &big))).collect();
    for running in &mut calls {
        assert!(futures_util::FutureExt::now_or_never(running).is_none());
    }
    tokio::task::yield_now().await;
    drop(calls);
    let (mut sent, mut cancelled) = (Vec::new(), Vec::new());
    while let Ok(message) =
        tokio::time::timeout(std::time::Duration::from_secs(5), peer.read()).await
    {
        match message["method"].as_str().unwrap() {
            "tools/call" => sent.push(message["id"].clone()),
            _ => cancelled.push(message["params"]["requestId"].clone()),
        }
    }
    assert!(sent.len() < 60, "{}", sent.len());
    assert_eq!(
        sent, cancelled,
        "what left is cancelled, in its order, and nothing else is"
    );
}

/// Holds: BASE-22
#[tokio::test(start_paused = true)]
async fn a_lost_server_ends_its_calls_and_says_what_is_known() {
    for (remote, mut peer) in [legacy(json!({})).await, modern(json!({})).await] {
        let ((one, two), ()) = join!(
            async {
                join!(
                    soon(remote.call(call("a", "{}"))),
                    soon(remote.call(call("b", "{}")))
                )
            },
            async {
                peer.read().await;
                peer.read().await;
                drop(peer);
            }
        );
        for outcome in [one, two] {
            let error = outcome.unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::Upstream);
            assert_eq!(
                error.public_message(),
                "the server files stopped during the call; it is not known whether the call took effect"
            );
        }
        let after = remote.call(call("a", "{}")).await.unwrap_err();
        assert_eq!(*after.kind(), ErrorKind::Upstream);
        assert_eq!(
            after.public_message(),
            "the server files stopped before the call was sent; nothing was done"
        );
    }
}

/// Only what the server sent as an error has the kind of one: not a reply that cannot be read.
///
/// Holds: BASE-22
#[tokio::test(start_paused = true)]
async fn an_error_of_ours_is_none_of_the_server() {
    let (remote, mut peer) = modern(json!({})).await;
    let error = json!({"code": -32603, "message": "no"});
    for (reply, is_answer) in [
        (json!({"result": 7}), false),
        (json!({"result": {"resultType": "nonsense"}}), false),
        (json!({"result": {}, "error": error}), false),
        (json!({"error": {"code": "-32603", "message": "no"}}), false),
        (json!({"error": error}), true),
    ] {
        let (outcome, ()) = join!(soon(remote.call(call("a", "{}"))), async {
            let mut message = reply.clone();
            message["jsonrpc"] = json!("2.0");
            message["id"] = peer.read().await["id"].clone();
            peer.send(&message.to_string()).await;
        });
        let error = outcome.unwrap_err();
        let answered = matches!(error.kind(), ErrorKind::JsonRpc(_));
        assert_eq!(answered, is_answer, "{reply}: {error:?}");
        let said = error.public_message().starts_with("the server answered: ");
        assert_eq!(said, is_answer, "{reply}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_out_of_order_find_their_calls() {
    let (remote, mut peer) = legacy(json!({})).await;
    let calls = (0..200).map(|n| remote.call(call("echo", &format!("{{\"n\":{n}}}"))));
    let (outcomes, ()) = join!(futures_util::future::join_all(calls), async {
        let mut requests = Vec::new();
        for _ in 0..200 {
            requests.push(peer.read().await);
        }
        for request in requests.iter().rev() {
            peer.reply(
                request,
                text(&request["params"]["arguments"]["n"].to_string()),
            )
            .await;
        }
    });
    for (n, outcome) in outcomes.into_iter().enumerate() {
        let Ok(Outcome::Done(output)) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(
            output.tool().unwrap().content[0]
                .json
                .get("text")
                .unwrap()
                .string()
                .unwrap(),
            n.to_string()
        );
    }
}

/// An answer beyond the memory budget ends its call at once, and leaves nothing behind.
#[tokio::test(start_paused = true)]
async fn an_answer_without_room_ends_its_call_at_once() {
    let room = MemoryBudget::new(1 << 20);
    let mut options = options();
    options.budget_scope = BudgetScope::of(&room, "files".into());
    let (remote, mut peer) = legacy_with(json!({}), options).await;
    let text = json!({"content": [{"type": "text", "text": "x".repeat(200 << 10)}]});
    // Short, and far longer once it is a tree.
    let tree = json!({"content": [], "structuredContent": {"all": vec![json!({"a": 1}); 2000]}});
    for result in [text, tree] {
        let (outcome, ()) = join!(soon(remote.call(call("a", "{}"))), async {
            let request = peer.read().await;
            peer.reply(&request, result).await;
        });
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Busy(None));
        let words = "the memory budget for messages in flight is exhausted";
        assert!(
            error.public_message().contains(words),
            "{}",
            error.public_message()
        );
        assert_eq!(room.used(), 0);
    }
    let (outcome, ()) = join!(soon(remote.call(call("a", "{}"))), async {
        let request = peer.read().await;
        let fits = json!({"content": [{"type": "text", "text": "x".repeat(50 << 10)}]});
        peer.reply(&request, fits).await;
    });
    assert!(outcome.is_ok() && room.used() > 200 << 10);
    drop(outcome);
    assert_eq!(room.used(), 0);
}
