//! Layers, rules and sanitizers of a program on its server, its tools and its client.

use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use toolgate::{
    CallResult, Client, Error, HandlerExit, Server, Tool,
    core::ErrorKind,
    handlers::{Cx, ask::Reply},
    layer::{self, ConcurrentCalls, ErrorMask, ResultCache, RetryLayer, TimeoutLayer, ToolMetrics},
    rule,
    rule::RuleDecision,
    sanitizer,
};

/// Returns a tool that counts its runs and returns the count.
fn counting(name: &str, runs: &Arc<AtomicUsize>) -> Tool {
    let runs = runs.clone();
    Tool::dynamic(name, json!({"type": "object"}), move |_: Value, _: Cx| {
        let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Ok::<_, HandlerExit>(run.to_string()) }
    })
}

async fn client(server: Server) -> Client {
    Client::in_process(server).await.unwrap()
}

async fn call(client: &Client, tool: &str, arguments: Value) -> Result<CallResult, Error> {
    client.call(tool, arguments).await
}

#[tokio::test]
async fn layers_of_the_server_surround_those_of_a_tool_and_see_allowed_calls_only() {
    let seen: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let mark = |name: &'static str| {
        let seen = seen.clone();
        layer::from_fn(name, move |call, next| {
            seen.lock().unwrap().push(name);
            next.call(call)
        })
    };
    let runs = Arc::default();
    let server = Server::new("s", "1")
        .layer(mark("first"))
        .layer(mark("second"))
        .tool(counting("plain", &runs))
        .tool(
            counting("layered", &runs)
                .layer(mark("outer"))
                .layer(mark("inner")),
        )
        .rule(rule::from_fn("no", |call, _| {
            match call.arguments().value()["forbidden"] == true {
                true => RuleDecision::deny("not allowed; leave out \"forbidden\""),
                false => RuleDecision::Allow,
            }
        }));
    let client = client(server).await;
    call(&client, "layered", json!({})).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["first", "second", "outer", "inner"]);
    seen.lock().unwrap().clear();
    call(&client, "plain", json!({})).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["first", "second"]);
    seen.lock().unwrap().clear();
    let denied = call(&client, "layered", json!({"forbidden": true}))
        .await
        .unwrap();
    assert!(denied.is_error() && denied.text().contains("leave out \"forbidden\""));
    assert!(seen.lock().unwrap().is_empty());
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_cache_runs_a_read_only_tool_once_for_the_same_arguments() {
    let runs = Arc::default();
    let cache = || ResultCache::new(Duration::from_secs(60));
    let server = Server::new("s", "1")
        .tool(counting("read", &runs).read_only().layer(cache()))
        .tool(counting("write", &runs).layer(cache()));
    let client = client(server).await;
    let text = async |tool: &str, arguments: Value| {
        call(&client, tool, arguments)
            .await
            .unwrap()
            .text()
            .to_owned()
    };
    assert_eq!(text("read", json!({"a": 1, "b": 2})).await, "1");
    assert_eq!(text("read", json!({"b": 2, "a": 1})).await, "1");
    assert_eq!(text("read", json!({"a": 2})).await, "2");
    assert_eq!(text("write", json!({"a": 1})).await, "3");
    assert_eq!(text("write", json!({"a": 1})).await, "4");
}

#[tokio::test]
async fn a_cache_keeps_no_failed_result() {
    let runs = Arc::new(AtomicUsize::new(0));
    let seen = runs.clone();
    let tool = Tool::dynamic("read", json!({"type": "object"}), move |_: Value, _: Cx| {
        let run = seen.fetch_add(1, Ordering::SeqCst);
        async move {
            match run {
                0 => Err(HandlerExit::new("not yet")),
                _ => Ok("done"),
            }
        }
    });
    let cached = tool
        .read_only()
        .layer(ResultCache::new(Duration::from_secs(60)));
    let client = client(Server::new("s", "1").tool(cached)).await;
    assert!(call(&client, "read", json!({})).await.unwrap().is_error());
    for _ in 0..2 {
        assert_eq!(
            call(&client, "read", json!({})).await.unwrap().text(),
            "done"
        );
    }
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

/// Returns the text of a call that failed.
async fn failure(client: &Client, tool: &str, arguments: Value) -> String {
    match client.call(tool, arguments).await {
        Ok(result) => {
            assert!(result.is_error(), "{}", result.text());
            result.text().to_owned()
        }
        Err(error) => error.to_string(),
    }
}

/// Returns a layer that fails as a server does, so many times.
fn failing(times: usize) -> impl toolgate::layer::Layer {
    let left = AtomicUsize::new(times);
    layer::from_fn("failing", move |call, next| {
        let fails = left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            })
            .is_ok();
        Box::pin(async move {
            match fails {
                true => Err(Error::new(ErrorKind::Upstream, "the disk is away")),
                false => next.call(call).await,
            }
        })
    })
}

#[tokio::test(start_paused = true)]
async fn retries_repeat_only_what_is_safe_to_repeat() {
    let runs = Arc::default();
    let server = Server::new("s", "1")
        .tool(
            counting("read", &runs)
                .read_only()
                .layer(RetryLayer::new(3))
                .layer(failing(2)),
        )
        .tool(
            counting("worse", &runs)
                .read_only()
                .layer(RetryLayer::new(3))
                .layer(failing(3)),
        )
        .tool(
            counting("again", &runs)
                .idempotent()
                .layer(RetryLayer::new(2))
                .layer(failing(1)),
        )
        .tool(
            counting("write", &runs)
                .layer(RetryLayer::new(3))
                .layer(failing(1)),
        );
    let client = client(server).await;
    assert_eq!(call(&client, "read", json!({})).await.unwrap().text(), "1");
    assert!(
        failure(&client, "worse", json!({}))
            .await
            .contains("the disk is away")
    );
    assert_eq!(call(&client, "again", json!({})).await.unwrap().text(), "2");
    assert!(
        failure(&client, "write", json!({}))
            .await
            .contains("the disk is away")
    );
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_tool_has_its_own_timeout() {
    let slow = Tool::dynamic("slow", json!({"type": "object"}), |_: Value, _: Cx| async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        Ok::<_, HandlerExit>("late")
    });
    let server = Server::new("s", "1").tool(slow.layer(TimeoutLayer::new(Duration::from_secs(5))));
    let text = failure(&client(server).await, "slow", json!({})).await;
    assert!(text.contains("timed out after 5 s"), "{text}");
}

#[tokio::test]
async fn a_tool_has_its_own_concurrency_limit() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = (running.clone(), most.clone());
    let tool = Tool::dynamic("one", json!({"type": "object"}), move |_: Value, _: Cx| {
        let (running, most) = seen.clone();
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, HandlerExit>("done")
        }
    });
    let client = client(Server::new("s", "1").tool(tool.layer(ConcurrentCalls::at_most(1)))).await;
    let calls = (0..8).map(|_| call(&client, "one", json!({})));
    let results = futures_util::future::join_all(calls).await;
    assert!(
        results
            .into_iter()
            .all(|result| result.unwrap().text() == "done")
    );
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn metrics_count_calls_and_failures_by_tool() {
    let metrics = ToolMetrics::new();
    let runs = Arc::default();
    let bad = Tool::dynamic("bad", json!({"type": "object"}), |_: Value, _: Cx| async {
        Err::<String, _>(HandlerExit::new("no"))
    });
    let server = Server::new("s", "1")
        .layer(metrics.clone())
        .tool(counting("good", &runs))
        .tool(bad);
    let client = client(server).await;
    for tool in ["good", "good", "bad"] {
        call(&client, tool, json!({})).await.unwrap();
    }
    let snapshot = metrics.snapshot();
    let of = |name: &str| snapshot.iter().find(|(item, _)| &**item == name).unwrap().1;
    assert_eq!((of("s.good").calls, of("s.good").failures), (2, 0));
    assert_eq!(
        (of("s.bad").calls, of("s.bad").failures, of("s.bad").running),
        (1, 1, 0)
    );
}

#[tokio::test]
async fn a_mask_hides_the_texts_of_handlers_and_no_others() {
    let bad = Tool::dynamic("bad", json!({"type": "object"}), |_: Value, _: Cx| async {
        Err::<String, _>(HandlerExit::new("password of db-7 is wrong"))
    });
    let server = Server::new("s", "1")
        .layer(ErrorMask::new("the tool failed"))
        .tool(bad);
    let client = client(server).await;
    let masked = call(&client, "bad", json!({})).await.unwrap();
    assert!(masked.is_error());
    assert_eq!(masked.text(), "the tool failed");
    let unknown = call(&client, "none", json!({})).await.unwrap_err();
    assert!(unknown.public_message().contains("none"), "{unknown}");
}

#[tokio::test]
async fn a_sanitizer_of_texts_sees_results_and_structured_content() {
    let tool = Tool::dynamic("mail", json!({"type": "object"}), |_: Value, _: Cx| async {
        Ok::<_, HandlerExit>(toolgate::Structured(
            json!({"ann": "write to ann@example.com"}),
        ))
    });
    let server = Server::new("s", "1")
        .tool(tool)
        .sanitize(sanitizer::text_from_fn("mail", |text| {
            text.contains('@')
                .then(|| text.replace("ann@example.com", "[mail]"))
        }));
    let result = call(&client(server).await, "mail", json!({}))
        .await
        .unwrap();
    assert_eq!(
        result.structured::<Value>().unwrap()["ann"],
        "write to [mail]"
    );
    assert!(!result.text().contains('@'), "{}", result.text());
}

/// Returns a server that pays at once up to 100, and asks above.
fn bank(paid: &Arc<AtomicUsize>) -> Server {
    Server::new("bank", "1")
        .tool(counting("pay", paid))
        .rule(rule::from_fn("large", |call, _| {
            match call.arguments().value()["amount"].as_u64() {
                Some(amount) if amount > 100 => RuleDecision::ask(format!("pays {amount}")),
                _ => RuleDecision::Allow,
            }
        }))
}

#[tokio::test]
async fn a_rule_of_a_server_asks_the_user_of_the_callers_client() {
    let (paid, asked) = (Arc::default(), Arc::new(Mutex::new(Vec::new())));
    let forms = asked.clone();
    let client = Client::builder()
        .on_elicit(move |form| {
            let large = form.message.contains("900");
            forms.lock().unwrap().push(form.message);
            async move {
                match large {
                    true => Reply::Declined,
                    false => Reply::Accepted(json!({"approve": true})),
                }
            }
        })
        .in_process(bank(&paid))
        .await
        .unwrap();
    call(&client, "pay", json!({"amount": 50})).await.unwrap();
    assert!(asked.lock().unwrap().is_empty());
    assert_eq!(
        call(&client, "pay", json!({"amount": 200}))
            .await
            .unwrap()
            .text(),
        "2"
    );
    let message = asked.lock().unwrap().pop().unwrap();
    assert!(
        message.contains("pays 200") && message.contains("pay"),
        "{message}"
    );
    let text = failure(&client, "pay", json!({"amount": 900})).await;
    assert!(text.contains("denied"), "{text}");
    assert_eq!(paid.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_client_that_cannot_ask_its_user_is_told_why_the_call_is_refused() {
    let paid = Arc::default();
    let client = client(bank(&paid)).await;
    let text = failure(&client, "pay", json!({"amount": 200})).await;
    assert!(
        text.contains("pays 200") && text.contains("form elicitation"),
        "{text}"
    );
    assert_eq!(paid.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_client_confirms_every_call_or_those_for_which_a_rule_asks() {
    let careful = || {
        rule::from_fn("careful", |call, _| match call.name() == "second" {
            true => RuleDecision::ask("is the second"),
            false => RuleDecision::Allow,
        })
    };
    for every in [true, false] {
        let (runs, asked) = (Arc::default(), Arc::new(Mutex::new(Vec::new())));
        let server = Server::new("s", "1")
            .tool(counting("first", &runs))
            .tool(counting("second", &runs));
        let seen = asked.clone();
        let confirm = move |call: toolgate::client::CallConfirmation| {
            seen.lock().unwrap().push(call.tool.name().to_owned());
            async { Ok(()) }
        };
        let builder = Client::builder().rule(careful());
        let client = match every {
            true => builder.confirm(confirm),
            false => builder.confirm_asked(confirm),
        };
        let client = client.in_process(server).await.unwrap();
        for tool in ["first", "second"] {
            call(&client, tool, json!({})).await.unwrap();
        }
        let expected: &[&str] = if every {
            &["first", "second"]
        } else {
            &["second"]
        };
        assert_eq!(*asked.lock().unwrap(), expected);
    }
}
