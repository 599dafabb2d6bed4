//! Rules with a condition: what they refuse, what they hide, and what happens where they cannot be judged.

use crate::pipeline_fixture::{PipelineFixture, item, item_of, rule, said, text};
use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_core::{
    Call, Caller, Item, ItemKind, Json, ListRequest, MaybeReady, Op, Rule, RuleDecision, Service,
};
use toolgate_policy::{AccessRule, AccessRules, CelCondition, RuleAction};

fn when(tools: &str, when: &str, then: RuleAction) -> AccessRule {
    let mut rule = rule(tools, then);
    rule.when = Some(CelCondition::compile(when).unwrap());
    rule
}

fn fixture(rules: Vec<AccessRule>) -> PipelineFixture {
    PipelineFixture::with(|m| m.rules = rules)
}

async fn listed(fixture: &PipelineFixture) -> Vec<String> {
    let ask = ListRequest::all(fixture.caller.clone(), ItemKind::Tool);
    let catalog = fixture.pipeline().list(ask).await.unwrap();
    let names = catalog.items().iter().map(|i| i.def.name().to_owned());
    names.collect()
}

fn step(verdict: &str, why: &str) -> Value {
    json!({"by": "access", "verdict": verdict, "why": why})
}

#[tokio::test]
async fn a_rule_over_arguments_refuses_and_hides_nothing() {
    let fixture = fixture(vec![
        rule("demo.*", RuleAction::Allow),
        when("demo.add", "args.a > 9", RuleAction::Deny),
    ]);
    assert_eq!(listed(&fixture).await, ["look", "add", "wipe"]);
    fixture
        .go(fixture.call("add", json!({"a": 9})))
        .await
        .unwrap();
    let refused = text(fixture.go(fixture.call("add", json!({"a": 10}))).await);
    assert_eq!(refused, "refused: rule for demo.add: when args.a > 9");
    assert_eq!(
        fixture.events("call.begin")[0]["trail"],
        json!([
            step("passed", "rule for demo.add: its condition is false"),
            step("allow", "rule for demo.*"),
        ])
    );
    assert_eq!(
        fixture.events("deny")[0]["trail"],
        json!([
            step("also", "allow: rule for demo.*"),
            step("refuse", "refused: rule for demo.add: when args.a > 9"),
        ])
    );
}

#[tokio::test]
async fn what_cannot_be_judged_falls_to_the_stricter_side() {
    let trouble = "its condition cannot be evaluated: args.b is missing";
    // An allow does not speak: the default asks.
    let allow = fixture(vec![when("demo.add", "args.b == 1", RuleAction::Allow)]);
    allow.asked(&allow.call("add", json!({"a": 1}))).await;
    let call = allow.call("add", json!({"a": 1, "b": 1}));
    allow.go(call).await.unwrap();
    // A deny and an ask do.
    let deny = fixture(vec![
        rule("demo.*", RuleAction::Allow),
        when("demo.add", "args.b == 1", RuleAction::Deny),
    ]);
    let refused = text(deny.go(deny.call("add", json!({"a": 1}))).await);
    assert_eq!(refused, format!("refused: rule for demo.add: {trouble}"));
    let ask = fixture(vec![
        rule("demo.*", RuleAction::Allow),
        when("demo.add", "args.b == 1", RuleAction::Ask),
    ]);
    ask.asked(&ask.call("add", json!({"a": 1}))).await;
    let call = ask.call("add", json!({"a": 1, "b": 2}));
    assert_eq!(said(ask.go(call).await), "done");
}

#[tokio::test]
async fn an_allow_that_was_passed_over_is_in_the_record() {
    let fixture = fixture(vec![
        when("demo.look", "args.b == 1", RuleAction::Allow),
        rule("demo.look", RuleAction::Allow),
    ]);
    fixture.go(fixture.call("look", json!({}))).await.unwrap();
    let why = "rule for demo.look: its condition cannot be evaluated: args.b is missing";
    assert_eq!(
        fixture.events("call.begin")[0]["trail"],
        json!([step("passed", why), step("allow", "rule for demo.look")])
    );
}

/// An expression that would never end stops, and the deny speaks.
#[tokio::test]
async fn an_expression_that_never_ends_denies() {
    let endless = "args.l.all(a, args.l.all(b, args.l.all(c, a + b + c >= 0))) && false";
    let fixture = fixture(vec![
        rule("demo.*", RuleAction::Allow),
        when("demo.look", endless, RuleAction::Deny),
    ]);
    let numbers: Vec<u32> = (0..1000).collect();
    let refused = text(
        fixture
            .go(fixture.call("look", json!({"l": numbers})))
            .await,
    );
    assert_eq!(
        refused,
        "refused: rule for demo.look: its condition cannot be evaluated: the evaluation needs more than 100000 steps; simplify the condition"
    );
}

#[tokio::test]
async fn a_rule_over_facts_of_the_tool_hides() {
    let fixture = fixture(vec![when("*", "!tool.read_only", RuleAction::Deny)]);
    assert_eq!(listed(&fixture).await, ["look"]);
    let refused = text(fixture.go(fixture.call("wipe", json!({}))).await);
    assert_eq!(refused, "unknown tool: wipe");
    // What a stranger claims does not count.
    let claims = json!({"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
    fixture.tools(vec![item_of("demo", false, claims)]);
    assert_eq!(listed(&fixture).await, [""; 0]);
}

fn decided(access: &AccessRules, caller: &Caller, item: &Item, args: &Value) -> RuleAction {
    let args = Json::from_value(args);
    let call = Call::new("c", caller.clone(), Op::Tool, item.def.name(), args);
    match access.decide(&call, item) {
        MaybeReady::Ready(RuleDecision::Allow) => RuleAction::Allow,
        MaybeReady::Ready(RuleDecision::Ask(_)) => RuleAction::Ask,
        MaybeReady::Ready(RuleDecision::Deny(_)) => RuleAction::Deny,
        MaybeReady::Pending(_) => panic!("rules never wait"),
    }
}

/// Every spelling of a URI is judged: a deny speaks where one fits, an allow where all do.
#[test]
fn a_uri_is_judged_in_all_its_spellings() {
    let item = {
        let template = json!({"uriTemplate": "file:///{+path}", "name": "n"});
        let def = toolgate_core::Definition::read(ItemKind::Template, Json::from_value(&template));
        let origin = item(json!({"name": "x", "inputSchema": {"type": "object"}}))
            .origin
            .clone();
        Item::new(origin, def.unwrap())
    };
    let verdict = |rules: Vec<AccessRule>, uri: &str| {
        let access = AccessRules::new(rules).default_action(RuleAction::Ask);
        let args = Json::from_value(&json!({ "uri": uri }));
        let call = Call::new("c", Caller::new("a"), Op::Resource, uri, args);
        match access.decide(&call, &item) {
            MaybeReady::Ready(RuleDecision::Allow) => RuleAction::Allow,
            MaybeReady::Ready(RuleDecision::Ask(_)) => RuleAction::Ask,
            _ => RuleAction::Deny,
        }
    };
    let secret = |then| vec![when("*", "args.uri.startsWith('file:///secret')", then)];
    let open = |then| vec![when("*", "!args.uri.contains('secret')", then)];
    for uri in [
        "file:///secret/a",
        "FILE:///secret/a",
        "file:///%73ecret",
        "file:////./secret",
    ] {
        assert_eq!(
            verdict(secret(RuleAction::Deny), uri),
            RuleAction::Deny,
            "{uri}"
        );
        assert_ne!(
            verdict(open(RuleAction::Allow), uri),
            RuleAction::Allow,
            "{uri}"
        );
    }
    assert_eq!(
        verdict(open(RuleAction::Allow), "file:///public"),
        RuleAction::Allow
    );
    assert_eq!(
        verdict(secret(RuleAction::Deny), "file:///public"),
        RuleAction::Ask
    );
}

const WHEN: [&str; 7] = [
    "args.x == 1",
    "args.x > 1 || args.y == 'b'",
    "has(args.y)",
    "time.unix > 0",
    "tool.read_only",
    "caller.name == 'a'",
    "tool.pinned == 'new'",
];

fn any_rule(then: impl Strategy<Value = RuleAction>) -> impl Strategy<Value = AccessRule> {
    let tools = prop::sample::select(vec!["*", "demo.*", "demo.l*", "demo.add", "other.*"]);
    let callers = prop::option::of(prop::sample::select(vec!["a", "b"]));
    let when = prop::option::of(prop::sample::select(WHEN.to_vec()));
    (tools, callers, when, then).prop_map(|(tools, callers, when, then)| {
        let mut rule = rule(tools, then);
        rule.callers = callers.into_iter().collect();
        rule.when = when.map(|text| CelCondition::compile(text).unwrap());
        rule
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// One more deny never allows more, wherever it stands, and shows nothing that was hidden.
    #[test]
    fn adding_a_deny_never_allows_more(
        rules in prop::collection::vec(any_rule(prop::sample::select(vec![RuleAction::Allow, RuleAction::Ask, RuleAction::Deny])), 0..5),
        deny in any_rule(Just(RuleAction::Deny)),
        at in 0usize..6,
        otherwise in prop::option::of(prop::sample::select(vec![RuleAction::Allow, RuleAction::Deny])),
        args in prop::sample::select(vec![json!({}), json!({"x": 1}), json!({"x": 2, "y": "b"}), json!({"x": "1"})]),
    ) {
        let made = |rules: Vec<AccessRule>| match otherwise {
            Some(then) => AccessRules::new(rules).default_action(then),
            None => AccessRules::new(rules),
        };
        let before = made(rules.clone());
        let mut more = rules;
        more.insert(at.min(more.len()), deny);
        let after = made(more);
        let hints = json!({"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
        let add = json!({"name": "add", "inputSchema": {"type": "object"}});
        for item in [item(hints), item(add)] {
            for caller in [Caller::new("a"), Caller::new("b")] {
                prop_assert!(decided(&after, &caller, &item, &args) >= decided(&before, &caller, &item, &args));
                prop_assert!(before.is_visible(&caller, &item) || !after.is_visible(&caller, &item));
                // What is hidden could not have been used.
                for access in [&before, &after] {
                    prop_assert!(access.is_visible(&caller, &item) || decided(access, &caller, &item, &args) == RuleAction::Deny);
                }
            }
        }
    }
}
