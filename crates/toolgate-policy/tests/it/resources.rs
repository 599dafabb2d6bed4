//! Rules over resources, templates and prompts.

use crate::pipeline_fixture::{PipelineFixture, item, item_of, rule, text};
use serde_json::json;
use std::sync::Arc;
use toolgate_core::{
    Call, Caller, ChangeFilter, Definition, Error, Item, ItemKind, Json, ListRequest, Op, Origin,
    Outcome, Output, Principal, Service,
};
use toolgate_policy::{
    AccessRule, GlobPattern, RateLimiter, RateQuota, RequiredScopes, RuleAction, ScopeRule,
};

fn thing(kind: ItemKind, name: &str, trusted: bool) -> Arc<Item> {
    let json = json!({kind.key_member(): name, "name": "n"});
    let json = match kind {
        ItemKind::Prompt => json!({"name": name, "arguments": [{"name": "who"}]}),
        _ => json,
    };
    let origin = Origin {
        server: "files".into(),
        trusted,
    };
    Arc::new(Item::new(
        origin,
        Definition::read(kind, Json::from_value(&json)).unwrap(),
    ))
}

/// A server `files` with a tool, a resource, a template and a prompt.
fn fixture(rules: Vec<AccessRule>, trusted: bool) -> PipelineFixture {
    let fixture = PipelineFixture::with(|m| m.rules = rules);
    let tool = json!({"name": "read_it", "inputSchema": {"type": "object"}});
    fixture.tools(vec![
        item(json!({"name": "look", "inputSchema": {"type": "object"}})),
        item_of("files", trusted, tool),
        thing(ItemKind::Resource, "file:///docs/a", trusted),
        thing(ItemKind::Template, "file:///{+path}", trusted),
        thing(ItemKind::Prompt, "greet", trusted),
    ]);
    fixture.handle(|_| Box::pin(async { Ok(Outcome::Done(Output::text("done"))) }));
    fixture
}

/// Returns the outcome of a call: `ok`, `ask`, or the public text of the error.
async fn go(fixture: &PipelineFixture, op: Op, name: &str) -> String {
    let mut call = fixture.call(name, json!({}));
    call.op = op;
    if let Op::Complete(_) = op {
        let what = json!({"argument": {"name": "who", "value": "x"}});
        call = Call::new(
            "c-complete",
            fixture.caller.clone(),
            op,
            name,
            Json::from_value(&what),
        );
    }
    if op == Op::Resource {
        let uri = json!({"uri": name});
        call = Call::new(
            "c-uri",
            fixture.caller.clone(),
            op,
            name,
            Json::from_value(&uri),
        );
    }
    let outcome: Result<Outcome, Error> = fixture.go(call).await;
    match outcome {
        Ok(Outcome::Done(_)) => "ok".to_owned(),
        Ok(Outcome::InputRequired(_)) => "ask".to_owned(),
        failed => text(failed),
    }
}

async fn read(fixture: &PipelineFixture, uri: &str) -> String {
    go(fixture, Op::Resource, uri).await
}

fn except(tools: &str, not: &str, then: RuleAction) -> AccessRule {
    let mut rule = rule(tools, then);
    rule.except = vec![GlobPattern::new(not)];
    rule
}

#[tokio::test]
async fn without_a_rule_what_a_trusted_server_has_may_be_read() {
    for (trusted, expected) in [(true, "ok"), (false, "ask")] {
        let fixture = fixture(Vec::new(), trusted);
        assert_eq!(read(&fixture, "file:///docs/a").await, expected);
        assert_eq!(
            read(&fixture, "file:///docs/b").await,
            expected,
            "by the template"
        );
        assert_eq!(go(&fixture, Op::Prompt, "greet").await, expected);
        let completed = go(&fixture, Op::Complete(ItemKind::Prompt), "greet").await;
        assert_eq!(completed, "ok", "a completion never waits for a person");
    }
}

#[tokio::test]
async fn a_glob_over_a_server_covers_all_that_it_has() {
    let fixture = fixture(vec![rule("files.*", RuleAction::Allow)], false);
    for (op, name) in [
        (Op::Tool, "read_it"),
        (Op::Resource, "file:///docs/a"),
        (Op::Resource, "file:///x"),
        (Op::Prompt, "greet"),
    ] {
        assert_eq!(go(&fixture, op, name).await, "ok", "{name}");
    }
}

#[tokio::test]
async fn a_glob_over_names_of_tools_covers_no_resource() {
    let fixture = fixture(vec![rule("files.read_*", RuleAction::Allow)], false);
    assert_eq!(go(&fixture, Op::Tool, "read_it").await, "ok");
    assert_eq!(read(&fixture, "file:///docs/a").await, "ask");
    assert_eq!(go(&fixture, Op::Prompt, "greet").await, "ask");
}

/// Holds: COMP-05
#[tokio::test]
async fn a_prompt_has_a_name_of_its_own() {
    let fixture = fixture(vec![rule("files.prompt:gr*", RuleAction::Deny)], true);
    assert_eq!(
        go(&fixture, Op::Prompt, "greet").await,
        "unknown prompt: greet"
    );
    let completed = go(&fixture, Op::Complete(ItemKind::Prompt), "greet").await;
    assert_eq!(completed, "unknown prompt: greet");
    assert_eq!(read(&fixture, "file:///docs/a").await, "ok");
}

/// Holds: COMP-03, COMP-05
#[tokio::test(start_paused = true)]
async fn completions_are_rate_limited() {
    let mut fixture = fixture(vec![rule("files.*", RuleAction::Allow)], true);
    fixture.route.rate = RateLimiter::new(Vec::new(), RateQuota::per_minute(3));
    let complete = || go(&fixture, Op::Complete(ItemKind::Prompt), "greet");
    for _ in 0..3 {
        assert_eq!(complete().await, "ok");
    }
    let refused = complete().await;
    assert!(refused.starts_with("the rate limit of files."), "{refused}");
    tokio::time::advance(std::time::Duration::from_secs(20)).await;
    assert_eq!(complete().await, "ok");
    assert_ne!(complete().await, "ok");
}

/// A template is no way round a deny, however the URI is spelled, and it reads as if nothing were there.
#[tokio::test]
async fn what_is_denied_cannot_be_read_through_a_template() {
    let fixture = fixture(
        vec![rule("files.resource:file:///secret/*", RuleAction::Deny)],
        true,
    );
    assert_eq!(read(&fixture, "file:///docs/b").await, "ok");
    for uri in [
        "file:///secret/a",
        "FILE:///secret/a",
        "file:///%73ecret/a",
        "file:////secret/a",
        "file:///./secret/a",
        "file://localhost/secret/a",
        "file:///%73ecret/a?%ff",
        "file:///%73ecret/a#%ff",
    ] {
        // The template fits no other scheme or host; what it does fit is denied.
        assert_eq!(
            read(&fixture, uri).await,
            format!("unknown resource: {uri}")
        );
    }
    let denied = fixture.events("deny");
    let why = json!({"by": "access", "verdict": "hide", "why": "rule for files.resource:file:///secret/*"});
    assert_eq!(denied[0]["trail"][0], why, "the record knows");
    let ask = ListRequest::one(
        fixture.caller.clone(),
        ItemKind::Template,
        "file:///secret/a",
    );
    let listed = fixture.pipeline().list(ask).await.unwrap();
    assert!(listed.items().is_empty(), "nor may its changes be heard");
}

/// A query or an empty segment that servers ignore does not evade a deny or ask rule.
#[tokio::test]
async fn a_query_or_an_empty_step_is_no_way_round_a_rule() {
    let key = "files.resource:file:///key";
    for (then, expected) in [(RuleAction::Deny, None), (RuleAction::Ask, Some("ask"))] {
        let fixture = fixture(vec![rule(key, then)], true);
        for uri in [
            "file:///key?x",
            "file:///key#x",
            "file:///key/",
            "file:///key/./.",
            "file:///k%65y/?",
        ] {
            let unknown = format!("unknown resource: {uri}");
            assert_eq!(read(&fixture, uri).await, expected.unwrap_or(&unknown));
        }
        assert_eq!(read(&fixture, "file:///keys").await, "ok");
    }
    let fixture = fixture(vec![rule(key, RuleAction::Allow)], false);
    assert_eq!(read(&fixture, "file:///key").await, "ok");
    assert_eq!(
        read(&fixture, "file:///key?x").await,
        "ask",
        "that was not allowed"
    );
}

#[tokio::test]
async fn a_rule_over_uris_speaks_of_what_a_template_has() {
    let rules = vec![rule("files.resource:file:///docs/*", RuleAction::Allow)];
    let fixture = fixture(rules, false);
    assert_eq!(read(&fixture, "file:///docs/b").await, "ok");
    assert_eq!(read(&fixture, "file:///other").await, "ask");
}

#[tokio::test]
async fn an_exception_over_uris_holds_for_what_a_template_has() {
    let rules = vec![except(
        "files.*",
        "files.resource:file:///etc/*",
        RuleAction::Allow,
    )];
    let fixture = fixture(rules, false);
    assert_eq!(read(&fixture, "file:///docs/b").await, "ok");
    assert_eq!(read(&fixture, "file:///etc/passwd").await, "ask");
    assert_eq!(read(&fixture, "file:///%65tc/passwd").await, "ask");
}

/// A part that servers leave away makes no exception of what is none: neither for what holds back nor for what allows.
#[tokio::test]
async fn a_query_is_no_way_to_an_exception() {
    for (then, expected) in [(RuleAction::Deny, None), (RuleAction::Ask, Some("ask"))] {
        let fixture = fixture(vec![except("files.*", "files.resource:*.md", then)], true);
        if then == RuleAction::Ask {
            assert_eq!(read(&fixture, "file:///a.md").await, "ok");
            assert_eq!(read(&fixture, "file:///%61.md").await, "ok");
        }
        for uri in ["file:///key?x=.md", "file:///key#.md", "file:///key"] {
            let unknown = format!("unknown resource: {uri}");
            assert_eq!(read(&fixture, uri).await, expected.unwrap_or(&unknown));
        }
    }
    let all_but = except("files.*", "files.resource:*.key", RuleAction::Allow);
    let fixture = fixture(vec![all_but], false);
    assert_eq!(read(&fixture, "file:///a").await, "ok");
    for uri in ["file:///a.key", "file:///a.key?x", "file:///a.key/."] {
        assert_eq!(read(&fixture, uri).await, "ask", "{uri}");
    }
    // Who leaves out a template leaves out all that it has.
    let but = except(
        "files.*",
        "files.resource:file:///{+path}",
        RuleAction::Deny,
    );
    let fixture = self::fixture(vec![but], true);
    assert_eq!(read(&fixture, "file:///a?x").await, "ok");
    // The end of its text is none of a URI.
    let fixture = self::fixture(
        vec![except("files.*", "files.resource:*.md", RuleAction::Ask)],
        true,
    );
    fixture.tools(vec![thing(ItemKind::Template, "file:///{+path}.md", true)]);
    assert_eq!(read(&fixture, "file:///a.md").await, "ok");
    assert_eq!(read(&fixture, "file:///key?x=.md").await, "ask");
}

/// The same files, for a caller whose token has that scope: all but notes needs `secret`.
fn scoped(scope: &str) -> PipelineFixture {
    let mut fixture = fixture(Vec::new(), true);
    let mut rule = ScopeRule::new(
        vec![GlobPattern::new("files.resource:*")],
        vec!["secret".to_owned()],
    );
    rule.except = vec![GlobPattern::new("files.resource:*.md")];
    fixture.route.scopes = RequiredScopes::new(vec![rule]);
    let mut principal = Principal::new("https://login.example.com", "ann");
    principal.scopes = vec![scope.to_owned()];
    fixture.caller = Caller::new("corp:ann").with_principal(principal);
    fixture
}

#[tokio::test]
async fn a_query_is_no_way_round_a_scope() {
    let (fixture, may) = (scoped("other"), scoped("secret"));
    for uri in ["file:///key?x=.md", "file:///key#.md", "file:///key/?.md"] {
        let said = read(&fixture, uri).await;
        assert_eq!(
            said, "refused: this call requires an access token with the scope secret",
            "{uri}"
        );
        assert_eq!(read(&may, uri).await, "ok");
    }
    assert_eq!(read(&fixture, "file:///a.md").await, "ok");
}

#[tokio::test]
async fn nobody_hears_of_changes_of_what_his_token_may_not_read() {
    for (scope, expected) in [
        ("other", &["file:///a.md"][..]),
        ("secret", &["file:///docs/a", "file:///b", "file:///a.md"]),
    ] {
        let fixture = scoped(scope);
        let mut want = ChangeFilter::all_lists(fixture.caller.clone());
        want.uris = ["file:///docs/a", "file:///b", "file:///a.md"]
            .map(str::to_owned)
            .to_vec();
        let changes = fixture.pipeline().changes(want).await.unwrap();
        assert_eq!(changes.filter().unwrap().uris, expected, "{scope}");
    }
}

/// A withheld resource is not readable through a matching template.
#[tokio::test]
async fn a_withheld_resource_is_not_reached_by_a_template() {
    let fixture = fixture(vec![rule("files.*", RuleAction::Allow)], true);
    let kept = json!({"uri": "file:///kept", "name": "n", "description": "x".repeat(70_000)});
    let origin = Origin {
        server: "files".into(),
        trusted: true,
    };
    let kept = Definition::read(ItemKind::Resource, Json::from_value(&kept)).unwrap();
    fixture.tools(vec![
        Arc::new(Item::new(origin, kept)),
        thing(ItemKind::Template, "file:///{+path}", true),
    ]);
    assert_eq!(read(&fixture, "file:///other").await, "ok");
    let withheld = read(&fixture, "file:///kept").await;
    assert!(
        withheld.starts_with("the resource file:///kept is withheld: "),
        "{withheld}"
    );
}

/// A server would subscribe to what it understands, not to what the text says.
#[tokio::test]
async fn changes_are_not_heard_under_an_ambiguous_uri() {
    let rules = vec![
        rule("files.*", RuleAction::Allow),
        rule("files.resource:file:///private/*", RuleAction::Deny),
    ];
    let fixture = fixture(rules, true);
    let mut want = ChangeFilter::all_lists(fixture.caller.clone());
    let uris = [
        "file:///docs/a",
        "file:///docs\\b",
        "file:///docs/../b",
        "file:///private/k",
        "file:/private/k",
        "file:///%70rivate/k",
    ];
    want.uris = uris.map(str::to_owned).to_vec();
    let changes = fixture.pipeline().changes(want).await.unwrap();
    assert_eq!(changes.filter().unwrap().uris, ["file:///docs/a"]);
}
