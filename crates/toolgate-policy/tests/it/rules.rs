//! Access rules: allowed, denied and hidden items.

use crate::pipeline_fixture::{PipelineFixture, item, item_of, rule, said, text};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_core::{
    Caller, DefinitionPin, Error, ErrorKind, Item, ListRequest, Outcome, PredictedOutcome, Service,
};
use toolgate_policy::{
    AccessRule, AccessRules, GlobPattern, OnInvalidOutput, PerServer, RateQuota, RuleAction,
};

async fn refused(fixture: &PipelineFixture, name: &str, arguments: Value) -> Error {
    let before = fixture.reached();
    let error = fixture.go(fixture.call(name, arguments)).await.unwrap_err();
    assert_eq!(fixture.reached(), before, "it reached the server");
    error
}

#[tokio::test]
async fn the_order_of_the_duties() {
    let duties = PipelineFixture::new().pipeline().policy_names();
    let order = [
        "entry",
        "stop",
        "contain",
        "admission",
        "resolve",
        "scopes",
        "concurrency",
        "gate",
        "freeze",
        "asking",
        "intent",
        "deadline",
        "output",
        "skills",
        "schemas",
        "foreign",
        "errors",
        "cut",
        "media",
        "links",
        "secrets",
        "text",
        "size",
        "skills",
        "pins",
        "circuit breaker",
    ];
    assert_eq!(duties, order);
}

/// An item caches the rules that match it. Another list of rules must not get those of the first one.
#[test]
fn every_list_of_rules_decides_on_the_same_item() {
    let item = item(json!({"name": "save", "inputSchema": {"type": "object"}}));
    let action_of = |rules: Vec<AccessRule>| {
        let rules = AccessRules::new(rules);
        rules.action_for_item(&Caller::new("a"), &item).0
    };
    for action in [RuleAction::Allow, RuleAction::Deny, RuleAction::Ask] {
        let other = rule("demo.other", RuleAction::Deny);
        assert_eq!(action_of(vec![other, rule("demo.save", action)]), action);
    }
    assert_eq!(
        action_of(vec![rule("demo.other", RuleAction::Deny)]),
        RuleAction::Ask
    );
}

/// A tool of the server, as if it were pinned.
fn accepted(fixture: &PipelineFixture, name: &str) -> Arc<Item> {
    let tools = fixture.script.catalog.lock().unwrap();
    Arc::new(
        tools
            .find(name)
            .unwrap()
            .with_pin(Arc::new(DefinitionPin::unlisted())),
    )
}

/// Whoever adds a duty to the table says here what a call is told of it beforehand. Rules are told of by themselves.
#[tokio::test]
async fn every_rule_of_the_table_is_explained() {
    let fixture = PipelineFixture::new();
    let pipeline = fixture.pipeline();
    let told = ["resolve", "gate"];
    // What these do depends on what runs at that moment, on the token of the caller, or on what comes back.
    let untold = [
        "entry",
        "stop",
        "contain",
        "admission",
        "scopes",
        "concurrency",
        "freeze",
        "asking",
        "intent",
        "deadline",
        "output",
        "skills",
        "schemas",
        "foreign",
        "errors",
        "cut",
        "media",
        "links",
        "secrets",
        "text",
        "size",
        "pins",
        "circuit breaker",
    ];
    for duty in pipeline.policy_names() {
        assert!(told.contains(&duty) || untold.contains(&duty), "{duty}");
    }
    let item = accepted(&fixture, "add");
    let way = pipeline
        .explain(&fixture.call("add", json!({"a": 1})), &item)
        .await;
    let mut by: Vec<&str> = way.steps.iter().map(|step| step.policy).collect();
    by.dedup();
    let rules = pipeline.rules();
    assert_eq!(
        rules,
        [
            "freeze",
            "circuit breaker",
            "pins",
            "access",
            "rate",
            "arguments",
            "leaks",
            "placeholders"
        ]
    );
    assert_eq!(by, [&["resolve"][..], &rules[..], &["confirm"]].concat());
}

#[tokio::test]
async fn what_is_explained_is_what_comes_and_uses_nothing_up() {
    let fixture = PipelineFixture::with(|m| {
        m.rules = vec![
            rule("demo.add", RuleAction::Allow),
            rule("demo.look", RuleAction::Deny),
            rule("demo.wipe", RuleAction::Ask),
        ];
        m.default = RateQuota::per_minute(1);
    });
    let pipeline = fixture.pipeline();
    let explain = async |name: &str, arguments: Value| {
        let item = accepted(&fixture, name);
        let call = fixture.call(name, arguments);
        pipeline.explain(&call, &item).await
    };
    for _ in 0..3 {
        let way = explain("add", json!({"a": 1})).await;
        assert_eq!(way.outcome, PredictedOutcome::Allow);
        assert_eq!(way.deciding_step.unwrap().reason, "rule for demo.add");
    }
    let way = explain("wipe", json!({})).await;
    assert_eq!(way.outcome, PredictedOutcome::Ask);
    assert_eq!(way.deciding_step.unwrap().policy, "access");
    let way = explain("add", json!({"a": "x"})).await;
    assert_eq!(way.outcome, PredictedOutcome::Deny);
    assert_eq!(way.deciding_step.unwrap().policy, "arguments");
    let way = explain("look", json!({})).await;
    assert_eq!(way.outcome, PredictedOutcome::Hide);
    assert_eq!(way.deciding_step.unwrap().reason, "rule for demo.look");
    assert_eq!(fixture.reached(), 0);
    assert_eq!(fixture.events("call.begin").len(), 0);
    fixture
        .go(fixture.call("add", json!({"a": 1})))
        .await
        .unwrap();
    fixture.asked(&fixture.call("wipe", json!({}))).await;
    refused(&fixture, "look", json!({})).await;
}

/// Holds: TOOL-21
#[tokio::test]
async fn read_only_of_a_trusted_server_passes_without_a_rule() {
    let fixture = PipelineFixture::new();
    assert_eq!(
        said(fixture.go(fixture.call("look", json!({}))).await),
        "done"
    );
    let claims = json!({"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
    fixture.tools(vec![item_of("demo", false, claims)]);
    fixture.asked(&fixture.call("look", json!({}))).await;
}

#[tokio::test]
async fn the_strictest_rule_wins_and_is_recorded() {
    let fixture = PipelineFixture::with(|m| {
        m.rules = vec![
            rule("demo.*", RuleAction::Allow),
            rule("*.wipe", RuleAction::Ask),
            rule("demo.add", RuleAction::Allow),
        ]
    });
    fixture.asked(&fixture.call("wipe", json!({}))).await;
    fixture
        .go(fixture.call("add", json!({"a": 1})))
        .await
        .unwrap();
    assert_eq!(
        fixture.events("call.begin")[0]["trail"],
        json!([
            {"by": "access", "verdict": "also", "why": "allow: rule for demo.add"},
            {"by": "access", "verdict": "allow", "why": "rule for demo.*"},
        ])
    );
}

#[tokio::test]
async fn rules_look_at_callers_and_exceptions() {
    let fixture = PipelineFixture::with(|m| {
        let mut allow = rule("demo.*", RuleAction::Allow);
        allow.callers = ["key:*"].into_iter().collect();
        allow.except = vec![GlobPattern::new("*.w*")];
        m.rules = vec![allow];
    });
    fixture
        .go(fixture.call("add", json!({"a": 1})))
        .await
        .unwrap();
    fixture.asked(&fixture.call("wipe", json!({}))).await;
    let mut other = fixture.call("add", json!({"a": 1}));
    other.caller = Caller::new("anonymous@http");
    fixture.asked(&other).await;
}

/// Holds: TOOL-42
#[tokio::test]
async fn a_hidden_tool_is_an_unknown_one() {
    let fixture = PipelineFixture::with(|m| m.rules = vec![rule("demo.wipe", RuleAction::Deny)]);
    let listed = fixture
        .pipeline()
        .list(ListRequest::all(
            fixture.caller.clone(),
            toolgate_core::ItemKind::Tool,
        ))
        .await
        .unwrap();
    assert_eq!(
        listed
            .items()
            .iter()
            .map(|i| i.def.name())
            .collect::<Vec<_>>(),
        ["look", "add"]
    );
    let hidden = refused(&fixture, "wipe", json!({})).await;
    let unknown = refused(&fixture, "wope", json!({})).await;
    assert_eq!(
        format!("{hidden:?}").replace("wipe", "wope"),
        format!("{unknown:?}")
    );
    // Only the record tells them apart.
    let denied = fixture.events("deny");
    assert_eq!(
        denied[0]["trail"],
        json!([{"by": "access", "verdict": "hide", "why": "rule for demo.wipe"}])
    );
    assert_eq!(denied[1]["trail"], json!([]));
    assert_eq!(
        (&denied[0]["code"], &denied[1]["code"]),
        (&json!("not_found"), &json!("not_found"))
    );
}

/// Holds: TOOL-43, COMP-05
#[tokio::test(start_paused = true)]
async fn so_often_and_no_more() {
    let fixture = PipelineFixture::with(|m| {
        m.default = RateQuota {
            count: 5,
            per: std::time::Duration::from_secs(60),
        }
    });
    for _ in 0..5 {
        fixture.go(fixture.call("look", json!({}))).await.unwrap();
    }
    let error = refused(&fixture, "look", json!({})).await;
    assert_eq!(
        error.public_message(),
        "the rate limit of demo.look is reached: 5 per minute; retry in 12 s"
    );
    let ErrorKind::Busy(Some(wait)) = error.kind() else {
        panic!()
    };
    let wait = *wait;
    let mut other = fixture.call("look", json!({}));
    other.caller = Caller::new("key:other");
    fixture.go(other).await.unwrap();
    fixture.asked(&fixture.call("wipe", json!({}))).await;
    tokio::time::advance(wait / 2).await;
    refused(&fixture, "look", json!({})).await;
    tokio::time::advance(wait).await;
    fixture.go(fixture.call("look", json!({}))).await.unwrap();
    refused(&fixture, "look", json!({})).await;
}

#[tokio::test]
async fn bad_arguments_are_named() {
    let fixture = PipelineFixture::new();
    let error = refused(&fixture, "add", json!({"a": "one", "b": 1.5})).await;
    assert_eq!(
        error.public_message(),
        "invalid arguments for add: at /a expected an integer, got a string of 3 characters; at /b expected an integer, got the number 1.5"
    );
    let ErrorKind::InvalidArguments(problems) = error.kind() else {
        panic!()
    };
    assert_eq!(
        (problems[0].path.as_str(), problems[0].expected.as_str()),
        ("/a", "an integer")
    );
    let error = refused(&fixture, "add", json!({})).await;
    assert_eq!(
        error.public_message(),
        "invalid arguments for add: at /a expected a value, because it is required, got nothing"
    );
    assert_eq!(
        fixture.approvals().list().len(),
        0,
        "nobody is asked about arguments that do not fit"
    );
    assert_eq!(fixture.events("deny")[0]["code"], "invalid");
}

#[tokio::test]
async fn an_unknown_argument_is_refused_with_the_nearest_name() {
    let mut fixture = PipelineFixture::new();
    let near = refused(&fixture, "add", json!({"a": 1, "B": 2})).await;
    assert!(
        near.public_message().contains(
            "at /B expected no argument of this name (did you mean \"b\"?), got a number"
        ),
        "{near}"
    );
    let far = refused(&fixture, "add", json!({"a": 1, "sidenote": "secret"})).await;
    assert!(
        far.public_message().contains("there are \"a\", \"b\"")
            && !far.public_message().contains("secret"),
        "{far}"
    );
    fixture.route.arguments.allow_unknown = PerServer::all(false).with("demo", true);
    fixture
        .asked(&fixture.call("add", json!({"a": 1, "sidenote": "x"})))
        .await;
}

#[tokio::test]
async fn a_number_that_would_be_rounded_is_refused() {
    let fixture = PipelineFixture::new();
    let mut call = fixture.call("look", json!({}));
    let raw = toolgate_core::Json::read(
        br#"{"n": 18446744073709551616}"#.to_vec(),
        &Default::default(),
    )
    .unwrap();
    call.invocation.arguments = toolgate_core::CallArguments::new(raw);
    assert!(text(fixture.go(call).await).contains("numbers that fit 64 bits exactly"));
    assert_eq!(fixture.reached(), 0);
}

/// Holds: BASE-46, BASE-53, TOOL-50
#[tokio::test]
async fn a_tool_that_cannot_be_checked_is_withheld() {
    let fixture = PipelineFixture::new();
    fixture.tools(vec![item(
        json!({"name": "odd", "inputSchema": {"$ref": "https://example.com/schema.json"}}),
    )]);
    let told = refused(&fixture, "odd", json!({})).await;
    assert!(
        told.public_message()
            .starts_with("the tool odd is withheld: "),
        "{told:?}"
    );
    let seen = fixture
        .route
        .inspection(fixture.script.clone())
        .list(ListRequest::all(
            fixture.caller.clone(),
            toolgate_core::ItemKind::Tool,
        ))
        .await
        .unwrap();
    let why = seen.items()[0].withheld.clone().unwrap();
    assert!(
        why.contains("inputSchema") && why.contains("leads out of the schema"),
        "{why}"
    );
    let denied = &fixture.events("deny")[0];
    assert_eq!(denied["trail"][0]["why"], why);
}

/// Holds: TOOL-13, TOOL-47
#[tokio::test]
async fn results_keep_their_promise() {
    let fixture = PipelineFixture::new();
    let promised = json!({"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true},
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}});
    fixture.tools(vec![item(promised)]);
    for (structured, expected) in [
        (Some(json!({"n": 1})), None),
        (
            Some(json!({"n": "x"})),
            Some("at /n expected an integer, got a string of 1 character"),
        ),
        (None, Some("it has no structuredContent")),
    ] {
        let given = structured.clone();
        fixture.handle(move |_| {
            let mut output = toolgate_core::ToolResult::text("x");
            output.structured = given.as_ref().map(toolgate_core::Json::from_value);
            Box::pin(async { Ok(Outcome::Done(output.into())) })
        });
        let outcome = fixture.go(fixture.call("look", json!({}))).await;
        match expected {
            None => drop(outcome.unwrap()),
            Some(part) => assert!(text(outcome).contains(part), "{part}"),
        }
    }
    fixture.handle(|_| Box::pin(async { Ok(Outcome::Done(toolgate_core::Output::error("no"))) }));
    fixture.go(fixture.call("look", json!({}))).await.unwrap();
    let outs: Vec<_> = fixture
        .events("call.end")
        .iter()
        .map(|r| r["out"].clone())
        .collect();
    assert_eq!(outs, ["ok", "refused", "refused", "tool_error"]);
}

#[tokio::test]
async fn a_broken_result_may_pass_with_a_note() {
    let mut fixture = PipelineFixture::new();
    fixture.tools(vec![item(json!({"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true},
        "outputSchema": {"type": "object"}}))]);
    fixture.route.output_schema.on_invalid = PerServer::all(OnInvalidOutput::Warn);
    fixture.go(fixture.call("look", json!({}))).await.unwrap();
    let end = &fixture.events("call.end")[0];
    assert_eq!(end["out"], "ok");
    assert_eq!(
        end["trail"],
        json!([{"by": "output", "verdict": "warn", "why": "it has no structuredContent"}])
    );
    fixture.route.output_schema.on_invalid = PerServer::all(OnInvalidOutput::Pass);
    fixture.go(fixture.call("look", json!({}))).await.unwrap();
    assert!(fixture.events("call.end")[1].get("trail").is_none());
}

#[tokio::test]
async fn a_promise_that_cannot_be_checked_is_withheld() {
    let fixture = PipelineFixture::new();
    fixture.tools(vec![item(json!({"name": "odd", "inputSchema": {"type": "object"}, "outputSchema": {"$ref": "https://x.test/s"}}))]);
    let seen = fixture
        .route
        .inspection(fixture.script.clone())
        .list(ListRequest::all(
            fixture.caller.clone(),
            toolgate_core::ItemKind::Tool,
        ))
        .await
        .unwrap();
    assert!(
        seen.items()[0]
            .withheld
            .as_deref()
            .unwrap()
            .contains("outputSchema")
    );
    refused(&fixture, "odd", json!({})).await;
}

#[tokio::test]
async fn what_leaves_a_schema_open() {
    let fixture = PipelineFixture::new();
    for (more, open) in [
        (json!({}), false),
        (json!({"required": ["a"]}), false),
        (json!({"additionalProperties": true}), true),
        (json!({"patternProperties": {"^x": {}}}), true),
        (json!({"anyOf": [{}]}), true),
        (json!({"$ref": "#/$defs/d", "$defs": {"d": {}}}), true),
    ] {
        let mut schema = json!({"type": "object", "properties": {"a": {}}});
        schema
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        fixture.tools(vec![item(
            json!({"name": "look", "inputSchema": schema, "annotations": {"readOnlyHint": true}}),
        )]);
        let outcome = fixture
            .go(fixture.call("look", json!({"a": 1, "x": 1})))
            .await;
        assert_eq!(outcome.is_ok(), open, "{more}");
    }
}
