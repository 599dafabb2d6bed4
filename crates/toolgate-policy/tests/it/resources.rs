//! Rules over resources, templates and prompts.

use crate::world::{World, item, item_of, rule, text};
use serde_json::json;
use std::sync::Arc;
use toolgate_core::{
    Call, Definition, Error, Item, ItemKind, Json, List, Op, Origin, Outcome, Output, Service,
};
use toolgate_policy::{AccessRule, Pattern, Then};

fn thing(kind: ItemKind, name: &str, trusted: bool) -> Arc<Item> {
    let json = json!({kind.key(): name, "name": "n"});
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
fn world(rules: Vec<AccessRule>, trusted: bool) -> World {
    let world = World::with(|m| m.rules = rules);
    let tool = json!({"name": "read_it", "inputSchema": {"type": "object"}});
    world.tools(vec![
        item(json!({"name": "look", "inputSchema": {"type": "object"}})),
        item_of("files", trusted, tool),
        thing(ItemKind::Resource, "file:///docs/a", trusted),
        thing(ItemKind::Template, "file:///{+path}", trusted),
        thing(ItemKind::Prompt, "greet", trusted),
    ]);
    world.handle(|_| Box::pin(async { Ok(Outcome::Done(Output::text("done"))) }));
    world
}

/// What becomes of a use: `ok`, `ask`, or the public text of the error.
async fn go(world: &World, op: Op, name: &str) -> String {
    let mut call = world.call(name, json!({}));
    call.op = op;
    if let Op::Complete(_) = op {
        let what = json!({"argument": {"name": "who", "value": "x"}});
        call = Call::new(
            "c-complete",
            world.caller.clone(),
            op,
            name,
            Json::from_value(&what),
        );
    }
    if op == Op::Resource {
        let uri = json!({"uri": name});
        call = Call::new(
            "c-uri",
            world.caller.clone(),
            op,
            name,
            Json::from_value(&uri),
        );
    }
    let outcome: Result<Outcome, Error> = world.go(call).await;
    match outcome {
        Ok(Outcome::Done(_)) => "ok".to_owned(),
        Ok(Outcome::Ask(_)) => "ask".to_owned(),
        failed => text(failed),
    }
}

async fn read(world: &World, uri: &str) -> String {
    go(world, Op::Resource, uri).await
}

fn except(tools: &str, not: &str, then: Then) -> AccessRule {
    AccessRule {
        except: vec![Pattern::new(not)],
        ..rule(tools, then)
    }
}

#[tokio::test]
async fn without_a_rule_what_a_trusted_server_has_may_be_read() {
    for (trusted, expected) in [(true, "ok"), (false, "ask")] {
        let world = world(Vec::new(), trusted);
        assert_eq!(read(&world, "file:///docs/a").await, expected);
        assert_eq!(
            read(&world, "file:///docs/b").await,
            expected,
            "by the template"
        );
        assert_eq!(go(&world, Op::Prompt, "greet").await, expected);
        let completed = go(&world, Op::Complete(ItemKind::Prompt), "greet").await;
        assert_eq!(completed, "ok", "a completion never waits for a person");
    }
}

#[tokio::test]
async fn a_glob_over_a_server_covers_all_that_it_has() {
    let world = world(vec![rule("files.*", Then::Allow)], false);
    for (op, name) in [
        (Op::Tool, "read_it"),
        (Op::Resource, "file:///docs/a"),
        (Op::Resource, "file:///x"),
        (Op::Prompt, "greet"),
    ] {
        assert_eq!(go(&world, op, name).await, "ok", "{name}");
    }
}

#[tokio::test]
async fn a_glob_over_names_of_tools_covers_no_resource() {
    let world = world(vec![rule("files.read_*", Then::Allow)], false);
    assert_eq!(go(&world, Op::Tool, "read_it").await, "ok");
    assert_eq!(read(&world, "file:///docs/a").await, "ask");
    assert_eq!(go(&world, Op::Prompt, "greet").await, "ask");
}

#[tokio::test]
async fn a_prompt_has_a_name_of_its_own() {
    let world = world(vec![rule("files.prompt:gr*", Then::Deny)], true);
    assert_eq!(
        go(&world, Op::Prompt, "greet").await,
        "unknown prompt: greet"
    );
    let completed = go(&world, Op::Complete(ItemKind::Prompt), "greet").await;
    assert_eq!(completed, "unknown prompt: greet");
    assert_eq!(read(&world, "file:///docs/a").await, "ok");
}

/// A template is no way round a deny, however the URI is spelled, and it reads as if nothing were there.
#[tokio::test]
async fn what_is_denied_cannot_be_read_through_a_template() {
    let world = world(
        vec![rule("files.resource:file:///secret/*", Then::Deny)],
        true,
    );
    assert_eq!(read(&world, "file:///docs/b").await, "ok");
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
        assert_eq!(read(&world, uri).await, format!("unknown resource: {uri}"));
    }
    let denied = world.events("deny");
    let why = json!({"by": "access", "verdict": "hide", "why": "rule for files.resource:file:///secret/*"});
    assert_eq!(denied[0]["trail"][0], why, "the record knows");
    let ask = List::one(world.caller.clone(), ItemKind::Template, "file:///secret/a");
    let listed = world.pipeline().list(ask).await.unwrap();
    assert!(listed.items().is_empty(), "nor may its changes be heard");
}

/// What a server leaves away does not make another resource of it, for a rule that forbids or asks.
#[tokio::test]
async fn a_query_or_an_empty_step_is_no_way_round_a_rule() {
    let key = "files.resource:file:///key";
    for (then, expected) in [(Then::Deny, None), (Then::Ask, Some("ask"))] {
        let world = world(vec![rule(key, then)], true);
        for uri in [
            "file:///key?x",
            "file:///key#x",
            "file:///key/",
            "file:///key/./.",
            "file:///k%65y/?",
        ] {
            let unknown = format!("unknown resource: {uri}");
            assert_eq!(read(&world, uri).await, expected.unwrap_or(&unknown));
        }
        assert_eq!(read(&world, "file:///keys").await, "ok");
    }
    let world = world(vec![rule(key, Then::Allow)], false);
    assert_eq!(read(&world, "file:///key").await, "ok");
    assert_eq!(
        read(&world, "file:///key?x").await,
        "ask",
        "that was not allowed"
    );
}

#[tokio::test]
async fn a_rule_over_uris_speaks_of_what_a_template_has() {
    let rules = vec![rule("files.resource:file:///docs/*", Then::Allow)];
    let world = world(rules, false);
    assert_eq!(read(&world, "file:///docs/b").await, "ok");
    assert_eq!(read(&world, "file:///other").await, "ask");
}

#[tokio::test]
async fn an_exception_over_uris_holds_for_what_a_template_has() {
    let rules = vec![except(
        "files.*",
        "files.resource:file:///etc/*",
        Then::Allow,
    )];
    let world = world(rules, false);
    assert_eq!(read(&world, "file:///docs/b").await, "ok");
    assert_eq!(read(&world, "file:///etc/passwd").await, "ask");
    assert_eq!(read(&world, "file:///%65tc/passwd").await, "ask");
}

/// What is withheld is not had by the template that fits it either.
#[tokio::test]
async fn a_withheld_resource_is_not_reached_by_a_template() {
    let world = world(vec![rule("files.*", Then::Allow)], true);
    let kept = json!({"uri": "file:///kept", "name": "n", "description": "x".repeat(70_000)});
    let origin = Origin {
        server: "files".into(),
        trusted: true,
    };
    let kept = Definition::read(ItemKind::Resource, Json::from_value(&kept)).unwrap();
    world.tools(vec![
        Arc::new(Item::new(origin, kept)),
        thing(ItemKind::Template, "file:///{+path}", true),
    ]);
    assert_eq!(read(&world, "file:///other").await, "ok");
    let withheld = read(&world, "file:///kept").await;
    assert!(withheld.starts_with("unknown"), "{withheld}");
}
