//! Limits, rules and sanitizers of one tool beside others.

use super::peer::{NEWEST_REVISION, Peer};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use toolgate::{
    Cx, HandlerExit, Server, Tool, ToolError,
    aggregate::DefinitionOverride,
    core::{Caller, Item, MaybeReady, Rule, RuleDecision, rule},
    handlers::IntoTool,
    policy::RateQuota,
    sanitizer, tool,
};

/// Repeats a text.
#[tool(read_only)]
fn echo(text: String) -> String {
    text
}

/// Repeats a text too.
#[tool(read_only)]
fn other(text: String) -> Result<String, ToolError> {
    Ok(text)
}

async fn open(server: Server) -> Peer {
    Peer::open(&server.build().unwrap(), NEWEST_REVISION, json!({})).await
}

/// Calls a tool and returns the text of its result.
async fn call(peer: &mut Peer, name: &str, text: &str) -> String {
    let params = json!({"name": name, "arguments": {"text": text}});
    let result = peer.result("tools/call", params).await;
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{result}")).to_owned()
}

/// Rule that denies calls with the text `no`.
fn no_no() -> impl Rule {
    rule::from_fn("no", |call, _| {
        match call.arguments().value()["text"].as_str() {
            Some("no") => RuleDecision::deny("not this text"),
            _ => RuleDecision::Allow,
        }
    })
}

#[tokio::test]
async fn a_rule_of_a_tool_denies_only_its_calls() {
    let server = Server::new("rules", "1").tool(echo.into_tool().rule(no_no()));
    let mut peer = open(server.tool(other)).await;
    assert_eq!(call(&mut peer, "echo", "yes").await, "yes");
    assert!(
        call(&mut peer, "echo", "no")
            .await
            .contains("not this text")
    );
    assert_eq!(call(&mut peer, "other", "no").await, "no");
}

#[tokio::test]
async fn a_rule_applies_to_a_renamed_a_mounted_and_a_later_tool() {
    let renamed = DefinitionOverride::new().name("say");
    let inner = Server::new("inner", "1").tool(echo.into_tool().rule(no_no()));
    let server = Server::new("rules", "1")
        .tool(echo.into_tool().rule(no_no()))
        .override_tool("echo", renamed)
        .mount("inner", inner);
    let mut peer = open(server).await;
    for name in ["say", "inner_echo"] {
        assert_eq!(call(&mut peer, name, "yes").await, "yes", "{name}");
        let denied = call(&mut peer, name, "no").await;
        assert!(denied.contains("not this text"), "{name}: {denied}");
    }
    let (server, registry) = Server::new("later", "1").build_with_registry().unwrap();
    registry.set_tool(echo.into_tool().rule(no_no())).unwrap();
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    assert!(
        call(&mut peer, "echo", "no")
            .await
            .contains("not this text")
    );
}

/// Rule that hides its tool.
struct Hidden;

impl Rule for Hidden {
    fn name(&self) -> &'static str {
        "hidden"
    }

    fn is_visible(&self, _: &Caller, _: &Item) -> bool {
        false
    }

    fn decide<'a>(&'a self, _: &'a toolgate::Call, _: &'a Item) -> MaybeReady<'a> {
        MaybeReady::Ready(RuleDecision::Allow)
    }
}

#[tokio::test]
async fn a_rule_can_hide_its_tool() {
    let server = Server::new("rules", "1").tool(echo.into_tool().rule(Hidden));
    let mut peer = open(server.tool(other)).await;
    let listed = peer.result("tools/list", json!({})).await;
    let names = listed["tools"].as_array().unwrap().iter();
    let names: Vec<&Value> = names.map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["other"]);
    let params = json!({"name": "echo", "arguments": {"text": "a"}});
    let error = peer.error("tools/call", params).await;
    assert!(error.to_string().contains("unknown tool"), "{error}");
}

#[tokio::test]
async fn two_rules_ask_for_one_approval_with_both_reasons() {
    let ask = |reason: &'static str| rule::from_fn("ask", move |_, _| RuleDecision::ask(reason));
    let tool = echo
        .into_tool()
        .rule(ask("sends mail"))
        .rule(ask("costs money"));
    let mut peer = open(Server::new("rules", "1").tool(tool)).await;
    let refused = call(&mut peer, "echo", "a").await;
    assert!(
        refused.contains("sends mail; costs money"),
        "the client cannot be asked: {refused}"
    );
}

#[tokio::test]
async fn a_sanitizer_of_a_tool_changes_only_its_results() {
    let quiet = sanitizer::text_from_fn("quiet", |text| {
        text.contains("secret")
            .then(|| text.replace("secret", "..."))
    });
    let server = Server::new("sanitizers", "1").tool(echo.into_tool().sanitize(quiet));
    let mut peer = open(server.tool(other)).await;
    assert_eq!(call(&mut peer, "echo", "a secret").await, "a ...");
    assert_eq!(call(&mut peer, "other", "a secret").await, "a secret");
    let listed = peer.result("tools/list", json!({})).await;
    assert_eq!(listed["tools"][0]["description"], "Repeats a text.");
}

#[tokio::test]
async fn a_result_that_is_too_long_for_its_tool_is_held_back() {
    let server = Server::new("sizes", "1").tool(echo.into_tool().max_result_bytes(100));
    let mut peer = open(server.tool(other)).await;
    let long = "x".repeat(200);
    assert_eq!(call(&mut peer, "echo", "short").await, "short");
    let held = call(&mut peer, "echo", &long).await;
    assert!(held.contains("its result was held back"), "{held}");
    assert_eq!(call(&mut peer, "other", &long).await, long);
}

#[tokio::test]
async fn a_rate_limit_of_a_tool_leaves_others_alone() {
    let quota = RateQuota {
        count: 2,
        per: Duration::from_secs(3600),
    };
    let server = Server::new("rates", "1").tool(echo.into_tool().rate_limit(quota));
    let mut peer = open(server.tool(other)).await;
    for _ in 0..2 {
        assert_eq!(call(&mut peer, "echo", "a").await, "a");
    }
    let params = json!({"name": "echo", "arguments": {"text": "a"}});
    let reply = peer.request("tools/call", params).await.to_string();
    assert!(reply.contains("2 per hour"), "{reply}");
    for _ in 0..5 {
        assert_eq!(call(&mut peer, "other", "a").await, "a");
    }
}

/// Waits for longer than its limit.
#[tool(
    timeout = "10ms",
    concurrency = 1,
    rate = "100/min",
    max_result_bytes = 1000
)]
async fn slow() -> String {
    std::future::pending().await
}

#[tokio::test]
async fn the_options_of_the_attribute_limit_a_tool() {
    let mut peer = open(Server::new("limits", "1").tool(slow)).await;
    let params = json!({"name": "slow"});
    let reply = peer.request("tools/call", params).await.to_string();
    assert!(reply.contains("timed out after"), "{reply}");
}

#[tokio::test]
async fn the_concurrency_of_a_tool_bounds_its_calls() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, highest) = (running.clone(), most.clone());
    let schema = json!({"type": "object"});
    let two = Tool::dynamic("two", schema, move |_, _: Cx| {
        let (running, most) = (now.clone(), highest.clone());
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            running.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, HandlerExit>("done")
        }
    });
    let mut peer = open(Server::new("limits", "1").tool(two.concurrency(2))).await;
    for _ in 0..6 {
        peer.send_request("tools/call", json!({"name": "two"}))
            .await;
    }
    for _ in 0..6 {
        peer.receive().await;
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
}
