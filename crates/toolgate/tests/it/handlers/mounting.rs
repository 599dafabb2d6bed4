//! One server inside another, and tools that are shown otherwise than they are.

use super::peer::{NEWEST_REVISION, Peer, REVISIONS};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};
use toolgate::{
    Caller,
    aggregate::DefinitionOverride,
    core::{Item, MaybeReady},
    edge,
    handlers::{
        Cx, HandlerExit, ItemRegistry, Prompt, Resource, ResourceContents, ResourceTemplate,
        Server, TaskSupport, Tool, ask,
    },
    policy::RateQuota,
    rule::{Rule, RuleDecision},
};

fn tool(name: &'static str) -> Tool {
    Tool::dynamic(name, json!({"type": "object"}), move |_, _| async move {
        Ok::<_, HandlerExit>(name)
    })
}

/// Hides one tool, and counts what it was asked about.
struct Hides(&'static str, Arc<AtomicUsize>);

impl Rule for Hides {
    fn name(&self) -> &'static str {
        "hides"
    }

    fn is_visible(&self, _: &Caller, item: &Item) -> bool {
        item.local_name != self.0
    }

    fn decide<'a>(&'a self, _: &'a toolgate::Call, _: &'a Item) -> MaybeReady<'a> {
        self.1.fetch_add(1, Relaxed);
        MaybeReady::Ready(RuleDecision::Allow)
    }
}

fn clock(asked: &Arc<AtomicUsize>) -> Server {
    let alarm = Tool::dynamic("alarm", json!({"type": "object"}), |_, cx: Cx| async move {
        let at = cx.ask("at", ask::text("When?"))?;
        let sure = cx.ask("sure", ask::confirm("Sure?"))?;
        Ok::<_, HandlerExit>(format!("{at} {sure}"))
    });
    let day = ResourceTemplate::new("clock://{day}", "day", |vars, _| async move {
        Ok::<_, HandlerExit>(format!("day {}", vars.get("day")))
    });
    Server::new("a-clock", "1")
        .instructions("Ask for now.")
        .tool(tool("now").read_only())
        .tool(tool("log.show"))
        .tool(tool("secret"))
        .tool(alarm)
        .tool(tool("slow").task(TaskSupport::Optional))
        .prompt(Prompt::new("time", |_, _| async {
            Ok::<_, HandlerExit>("tell the time")
        }))
        .resource(Resource::fixed(
            "clock://face",
            "face",
            ResourceContents::text("12"),
        ))
        .resource(Resource::fixed(
            "test://both",
            "both",
            ResourceContents::text("inner"),
        ))
        .resource(Resource::fixed(
            "ui://dial",
            "dial",
            ResourceContents::text("<p>"),
        ))
        .template(day.complete("day", |typed, _| async move {
            Ok::<_, HandlerExit>(vec![format!("{typed}day")])
        }))
        .rule(Hides("secret", asked.clone()))
        .mount("cog", Server::new("a-cog", "1").tool(tool("turn")))
}

fn house(asked: &Arc<AtomicUsize>) -> (Arc<edge::ProtocolServer>, ItemRegistry) {
    Server::new("house", "1")
        .instructions("Knock first.")
        .tool(tool("knock"))
        .tool(tool("own.dotted"))
        .prompt(Prompt::new("greet", |_, _| async {
            Ok::<_, HandlerExit>("say hello")
        }))
        .resource(Resource::fixed(
            "test://both",
            "both",
            ResourceContents::text("outer"),
        ))
        .mount("clock", clock(asked))
        .build_with_registry()
        .unwrap()
}

fn names(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap().iter();
    list.map(|one| one["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn what_is_inside_is_offered_under_its_name_in_every_revision() {
    let asked = Arc::default();
    let (server, _) = house(&asked);
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, json!({})).await;
        let list = peer.result("tools/list", json!({})).await;
        let listed = names(&list["tools"]);
        assert_eq!(listed[..3], ["knock", "own.dotted", "clock_now"]);
        let dotted = listed[3];
        assert_eq!(dotted, "clock_log.show");
        assert_eq!(listed[4..], ["clock_alarm", "clock_slow", "clock_cog_turn"]);
        for (name, says) in [
            ("knock", "knock"),
            ("own.dotted", "own.dotted"),
            ("clock_now", "now"),
            (dotted, "log.show"),
            ("clock_cog_turn", "turn"),
        ] {
            let done = peer.result("tools/call", json!({"name": name})).await;
            assert_eq!(done["content"][0]["text"], says, "{revision}");
        }
        // What a layer of the inner server hides is hidden here, and its own names are none of ours.
        for name in ["clock_secret", "now", "clock_", "clock", "cog_turn"] {
            let error = peer.error("tools/call", json!({"name": name})).await;
            assert_eq!(
                error["message"],
                format!("unknown tool: {name}"),
                "{revision}"
            );
        }
        let extra = json!({"name": "clock_now", "arguments": {"x": 1}});
        peer.result("tools/call", extra).await;

        let list = peer.result("prompts/list", json!({})).await;
        assert_eq!(names(&list["prompts"]), ["greet", "clock_time"]);
        let got = peer
            .result("prompts/get", json!({"name": "clock_time"}))
            .await;
        assert_eq!(got["messages"][0]["content"]["text"], "tell the time");
        for (uri, text) in [
            ("clock://face", "12"),
            ("clock://monday", "day monday"),
            ("test://both", "outer"),
            ("ui://clock/dial", "<p>"),
        ] {
            let read = peer.result("resources/read", json!({"uri": uri})).await;
            assert_eq!(read["contents"][0]["text"], text, "{revision}");
        }
        let of = json!({"type": "ref/resource", "uri": "clock://{day}"});
        let params = json!({"ref": of, "argument": {"name": "day", "value": "mon"}});
        let done = peer.result("completion/complete", params).await;
        assert_eq!(done["completion"]["values"], json!(["monday"]));
    }
    assert!(
        asked.load(Relaxed) > 0,
        "the rule of the inner server was asked"
    );
    let opened = Peer::opened(&server, "2025-11-25").await;
    assert_eq!(
        opened["instructions"],
        "Knock first.\n\nclock: Ask for now."
    );
    assert_eq!(opened["serverInfo"]["name"], "house");
    assert!(
        opened["capabilities"]["completions"].is_object(),
        "{opened}"
    );
}

#[tokio::test]
async fn questions_of_the_inner_server_come_back_to_it() {
    for revision in ["2025-06-18", "2025-11-25", NEWEST_REVISION] {
        let (server, _) = house(&Arc::default());
        let mut peer = Peer::open(&server, revision, json!({"elicitation": {}})).await;
        let answer = |_: &str, params: &Value| {
            let boolean = params["requestedSchema"]["properties"]["value"]["type"] == "boolean";
            let value = if boolean { json!(true) } else { json!("noon") };
            json!({"action": "accept", "content": {"value": value}})
        };
        let done = peer.call("clock_alarm", json!({}), answer).await;
        assert_eq!(done["content"][0]["text"], "noon true", "{revision}");
    }
}

#[tokio::test]
async fn changes_of_the_inner_server_are_heard() {
    for revision in REVISIONS.into_iter().filter(|r| *r != NEWEST_REVISION) {
        let (server, registry) = house(&Arc::default());
        let mut peer = Peer::open(&server, revision, json!({})).await;
        peer.result("tools/list", json!({})).await;
        let inner = registry.mounted("clock").unwrap();
        inner.set_tool(tool("later")).unwrap();
        let told = peer.receive().await;
        assert_eq!(told["method"], "notifications/tools/list_changed");
        let done = peer
            .result("tools/call", json!({"name": "clock_later"}))
            .await;
        assert_eq!(done["content"][0]["text"], "later");
        peer.result("resources/subscribe", json!({"uri": "clock://face"}))
            .await;
        inner.updated("clock://face");
        let told = peer.receive().await;
        assert_eq!(told["params"]["uri"], "clock://face", "{revision}: {told}");
        peer.result("resources/subscribe", json!({"uri": "ui://clock/dial"}))
            .await;
        inner.updated("ui://dial");
        let told = peer.receive().await;
        assert_eq!(
            told["params"]["uri"], "ui://clock/dial",
            "{revision}: {told}"
        );
        let error = registry.set_tool(tool("clock_own")).unwrap_err();
        assert!(
            error.to_string().contains("begin with \"clock_\""),
            "{error}"
        );
        let cog = inner.mounted("cog").unwrap();
        assert!(cog.remove_tool("turn"));
        assert_eq!(
            peer.receive().await["method"],
            "notifications/tools/list_changed"
        );
        peer.error("tools/call", json!({"name": "clock_cog_turn"}))
            .await;
    }
}

#[tokio::test]
async fn a_tool_of_the_inner_server_can_be_a_task() {
    let (server, _) = house(&Arc::default());
    let mut peer = Peer::open(&server, "2025-11-25", json!({})).await;
    let params = json!({"name": "clock_slow", "task": {"ttl": 60_000}});
    let created = peer.result("tools/call", params).await;
    let id = created["task"]["taskId"].clone();
    let done = peer.result("tasks/result", json!({"taskId": id})).await;
    assert_eq!(done["content"][0]["text"], "slow", "{done}");
}

/// The inner server limits what it offers itself.
#[tokio::test]
async fn limits_of_the_inner_server_hold() {
    let inner = Server::new("inner", "1")
        .tool(tool("t"))
        .rate_limit(RateQuota::per_minute(1));
    let server = Server::new("outer", "1")
        .mount("in", inner)
        .build()
        .unwrap();
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    let first = peer.result("tools/call", json!({"name": "in_t"})).await;
    assert_eq!(first["content"][0]["text"], "t");
    let second = peer.result("tools/call", json!({"name": "in_t"})).await;
    let text = second["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("rate limit"), "{text}");
}

#[test]
fn servers_that_cannot_stand_side_by_side_are_not_built() {
    let inner = || Server::new("inner", "1").tool(tool("t"));
    let why = |server: Server| server.build().err().unwrap().to_string();
    let outer = || Server::new("outer", "1").tool(tool("in_t"));
    assert!(why(outer().mount("in", inner())).contains("reserved for the mounted server"));
    outer().mount("other", inner()).build().unwrap();
    for (name, part) in [
        ("", "needs a name"),
        ("a_b", "letters, digits"),
        ("outer", "of the outer server"),
    ] {
        let server = Server::new("outer", "1").mount(name, inner());
        assert!(why(server).contains(part), "{name}");
    }
    let twice = Server::new("outer", "1")
        .mount("in", inner())
        .mount("in", inner());
    assert!(why(twice).contains("another server already uses it"));
    let bad =
        Server::new("outer", "1").mount("in", Server::new("inner", "1").tool(tool("no name")));
    assert!(why(bad).starts_with("the mounted server \"in\": the tool \"no name\""));
}

fn look() -> Tool {
    let schema = json!({
        "type": "object", "required": ["path", "team"], "properties": {"path": {"type": "string"}, "team": {"type": "string"}},
    });
    Tool::dynamic("look", schema, |args, _| async move {
        Ok::<_, HandlerExit>(format!("{} of {}", args["path"], args["team"]))
    })
}

#[tokio::test]
async fn a_tool_is_shown_as_its_author_says_and_called_as_it_is() {
    let shown = DefinitionOverride::new()
        .name("find")
        .title("Find")
        .description("Finds it.")
        .argument("team", "blue");
    let inner = Server::new("inner", "1")
        .tool(look())
        .tool(tool("gone"))
        .override_tool("look", shown)
        .override_tool("gone", DefinitionOverride::new().hide());
    let server = Server::new("outer", "1")
        .mount("in", inner)
        .build()
        .unwrap();
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, json!({})).await;
        let list = peer.result("tools/list", json!({})).await;
        assert_eq!(names(&list["tools"]), ["in_find"]);
        let find = &list["tools"][0];
        assert_eq!(find["description"], "Finds it.");
        let schema = json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}});
        assert_eq!(find["inputSchema"], schema);
        let call = |arguments: Value| json!({"name": "in_find", "arguments": arguments});
        let done = peer.result("tools/call", call(json!({"path": "a"}))).await;
        assert_eq!(
            done["content"][0]["text"], "\"a\" of \"blue\"",
            "{revision}"
        );
        let sent = peer
            .request("tools/call", call(json!({"path": "a", "team": "red"})))
            .await;
        assert!(
            sent.to_string().contains("at /team expected no argument"),
            "{sent}"
        );
        for gone in ["in_look", "in_gone"] {
            peer.error("tools/call", json!({"name": gone})).await;
        }
    }
    let why = |tool: &str, shown: DefinitionOverride| {
        let server = Server::new("s", "1").tool(look()).tool(self::tool("other"));
        server
            .override_tool(tool, shown)
            .build()
            .err()
            .unwrap()
            .to_string()
    };
    assert!(
        why("lok", DefinitionOverride::new())
            .contains("the server has no tool with this name; its tools are look, other")
    );
    assert!(
        why("look", DefinitionOverride::new().name("other")).contains("gives the name \"other\"")
    );
    assert!(
        why("look", DefinitionOverride::new().name("no name"))
            .contains("its name is invalid; use 1 to 128")
    );
    assert!(
        why("look", DefinitionOverride::new().argument("tem", 1))
            .contains("which the tool does not accept")
    );
}

#[test]
fn nothing_prints_what_is_set() {
    let shown = DefinitionOverride::new().argument("key", "canary");
    assert!(!format!("{shown:?}").contains("canary"));
}
