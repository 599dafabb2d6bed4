//! The same call gets the same verdict in every revision, and what is listed can be found.

use super::run;
use crate::handlers::peer::{Peer, REVISIONS};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use toolgate::{
    edge,
    handlers::{HandlerExit, Prompt, Resource, ResourceContents, ResourceTemplate, Server, Tool},
};
use toolgate_policy::{AccessRule, AccessRules, CelCondition, GlobPattern, RuleAction};

pub(super) const TOOLS: [&str; 4] = ["aa", "ab", "ba", "bb"];
const RESOURCES: [&str; 3] = ["test://aa", "test://ab", "test://b"];
const PROMPTS: [&str; 2] = ["aa", "bb"];

fn server(access: AccessRules) -> Arc<edge::ProtocolServer> {
    let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": false});
    let mut server = Server::new("s", "1").rule(access);
    for name in TOOLS {
        let tool = Tool::dynamic(name, schema.clone(), move |_, _| async move {
            if name == "bb" {
                return Err(HandlerExit::new("it failed"));
            }
            Ok(name)
        });
        server = server.tool(tool);
    }
    for uri in RESOURCES {
        server = server.resource(Resource::fixed(uri, "r", ResourceContents::text(uri)));
    }
    for name in PROMPTS {
        server = server.prompt(Prompt::new(name, move |_, _| async move {
            Ok::<_, HandlerExit>(name)
        }));
    }
    let made = ResourceTemplate::new("made://{x}", "made", |vars, _| async move {
        Ok::<_, HandlerExit>(vars.get("x").to_owned())
    });
    server.template(made).build().unwrap()
}

/// Conditions that hide, that only refuse, and that cannot be judged on some or all uses.
const WHEN: [&str; 9] = [
    "args.x == 1",
    "has(args.x) && args.x != 1",
    "args.uri.startsWith('test://a')",
    "args.missing",
    "time.unix > 0",
    "tool.name.startsWith('a')",
    "caller.name == 'peer'",
    "tool.read_only || tool.kind == 'prompt'",
    "tool.pinned == 'new'",
];

fn rule() -> impl Strategy<Value = AccessRule> {
    let names = [
        "*",
        "s.*",
        "s.a*",
        "s.?b",
        "s.bb",
        "*b",
        "s.resource:*",
        "s.resource:*a?",
        "s.prompt:*",
        "s.prompt:aa",
        "s.resource:made*",
        "other.*",
    ];
    let pattern = prop::sample::select(names.to_vec());
    let caller = prop::sample::select(vec!["*", "peer", "u"]);
    let then = prop::sample::select(vec![RuleAction::Allow, RuleAction::Ask, RuleAction::Deny]);
    let patterns = |p: Vec<&str>| p.into_iter().map(GlobPattern::new).collect::<Vec<_>>();
    let tools = prop::collection::vec(pattern.clone(), 1..3);
    let except = prop::collection::vec(pattern, 0..2);
    let callers = prop::collection::vec(caller, 0..2);
    let when = prop::option::of(prop::sample::select(WHEN.to_vec()));
    let all = (tools, except, callers, when, then);
    all.prop_map(move |(tools, except, callers, when, then)| {
        let mut rule = AccessRule::new("rule", then, patterns(tools));
        rule.except = patterns(except);
        rule.callers = callers.into_iter().collect();
        rule.when = when.map(|text| CelCondition::compile(text).unwrap());
        rule
    })
}

pub(super) fn access() -> impl Strategy<Value = AccessRules> {
    let otherwise =
        prop::sample::select(vec![None, Some(RuleAction::Allow), Some(RuleAction::Deny)]);
    (prop::collection::vec(rule(), 0..4), otherwise).prop_map(|(rules, otherwise)| {
        let access = AccessRules::new(rules);
        match otherwise {
            Some(then) => access.default_action(then),
            None => access,
        }
    })
}

/// Returns the outcome of a call: the text of its error or result.
pub(super) fn verdict(reply: &Value) -> String {
    if let Some(error) = reply.get("error") {
        return format!("no: {}", error["message"].as_str().unwrap());
    }
    let result = &reply["result"];
    let text = [
        &result["content"][0]["text"],
        &result["contents"][0]["text"],
        &result["messages"][0]["content"]["text"],
    ];
    let text = text.into_iter().find_map(Value::as_str).unwrap();
    match result["isError"] == true {
        true => format!("no: {text}"),
        false => format!("yes: {text}"),
    }
}

/// All uses of a thing that a caller may try: its kind, its name in a list, method and parameters.
fn uses() -> Vec<(&'static str, String, &'static str, Value)> {
    let mut all = Vec::new();
    let mut add =
        |kind, name: &str, method, params| all.push((kind, name.to_owned(), method, params));
    for name in TOOLS.into_iter().chain(["zz", ""]) {
        for arguments in [
            json!({"x": 1}),
            json!({"x": "1"}),
            json!({}),
            json!({"x": 1, "y": 2}),
        ] {
            let params = json!({"name": name, "arguments": arguments});
            add("tools", name, "tools/call", params);
        }
    }
    for uri in RESOURCES.into_iter().chain(["test://z"]) {
        add("resources", uri, "resources/read", json!({"uri": uri}));
    }
    let made = json!({"uri": "made://1"});
    add("resourceTemplates", "made://{x}", "resources/read", made);
    for name in PROMPTS.into_iter().chain(["zz"]) {
        add("prompts", name, "prompts/get", json!({"name": name}));
    }
    all
}

async fn listed(peer: &mut Peer) -> BTreeMap<&'static str, Vec<String>> {
    let mut all = BTreeMap::new();
    for (method, member, key) in [
        ("tools/list", "tools", "name"),
        ("resources/list", "resources", "uri"),
        (
            "resources/templates/list",
            "resourceTemplates",
            "uriTemplate",
        ),
        ("prompts/list", "prompts", "name"),
    ] {
        let list = peer.result(method, json!({})).await;
        let names = list[member].as_array().unwrap().iter();
        let names = names.map(|item| item[key].as_str().unwrap().to_owned());
        all.insert(member, names.collect());
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Holds: TOOL-41, TOOL-42.
    #[test]
    fn a_verdict_is_the_same_in_every_revision_and_what_is_listed_is_found(access in access()) {
        run(async {
            let server = server(access);
            let mut first = None;
            for revision in REVISIONS {
                let mut peer = Peer::open(&server, revision, json!({})).await;
                let lists = listed(&mut peer).await;
                let mut verdicts = Vec::new();
                for (kind, name, method, params) in uses() {
                    let reply = peer.request(method, params.clone()).await;
                    let verdict = verdict(&reply);
                    let found = !verdict.starts_with("no: unknown");
                    assert_eq!(lists[kind].contains(&name), found, "{revision} {method} {params}: {verdict}");
                    verdicts.push((method, params, verdict));
                }
                let (lists_before, before) = first.get_or_insert_with(|| (lists.clone(), verdicts.clone()));
                assert_eq!(lists_before, &lists, "{revision}");
                assert_eq!(before, &verdicts, "{revision}");
            }
        });
    }
}

/// The rules do decide: with none all may be used, with a hard one nothing.
#[test]
fn rules_decide() {
    run(async {
        for (then, expected) in [(RuleAction::Allow, 4), (RuleAction::Deny, 0)] {
            let server = server(AccessRules::default().default_action(then));
            let mut peer = Peer::open(&server, REVISIONS[0], json!({})).await;
            assert_eq!(listed(&mut peer).await["tools"].len(), expected);
        }
    });
}
