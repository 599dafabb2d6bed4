//! Tools, resources, templates, prompts and completion.

use super::peer::{NEWEST_REVISION, Peer, REVISIONS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate::{
    Content, Error,
    core::{ErrorKind, PromptMessage},
    edge,
    handlers::{
        Cx, HandlerExit, Prompt, Resource, ResourceContents, ResourceTemplate, Server, Structured,
        Tool, ask,
    },
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// The one.
    a: i64,
    /// The other.
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

fn server() -> Arc<edge::ProtocolServer> {
    let add = Tool::new("add", |args: Add, cx: Cx| async move {
        cx.progress(1.0, 2.0, "half");
        let sum = args
            .a
            .checked_add(args.b)
            .ok_or(HandlerExit::new("too large"))?;
        Ok::<_, HandlerExit>(Structured(Sum { sum }))
    });
    let read = Tool::dynamic("read", json!({"type": "object"}), |_, _| async {
        std::fs::read_to_string("/nowhere/at/all")?;
        Ok::<_, HandlerExit>("never")
    });
    let all = Tool::dynamic("all", json!({"type": "object"}), |_, _| async {
        let contents = ResourceContents::text("x").json("test://a", Some("text/plain"));
        Ok::<_, HandlerExit>(vec![
            Content::text("t"),
            Content::image("AAAA", "image/png"),
            Content::audio("AAAA", "audio/wav"),
            Content::resource(&contents),
            Content::link("test://a", "a"),
        ])
    });
    let panics = Tool::dynamic("panics", json!({"type": "object"}), |_, _| async {
        let nothing: Result<&str, &str> = "x".parse::<i32>().map(|_| "").map_err(|_| "secret");
        Ok::<_, HandlerExit>(nothing.unwrap())
    });
    let prompt = Prompt::new("greet", |args, _| async move {
        Ok::<_, HandlerExit>(vec![
            PromptMessage::user(Content::text(&format!("Greet {}", args["name"]))),
            PromptMessage::assistant(Content::audio("AAAA", "audio/wav")),
        ])
    });
    let note = ResourceTemplate::new("note://{id}", "note", |vars, _| async move {
        match vars.get("id") {
            "9" => Err(HandlerExit::not_found("unknown note: 9")),
            id => Ok(format!("note {id}")),
        }
    });
    let broken = ResourceTemplate::new("broken://{how}", "broken", |vars, _| async move {
        match vars.get("how") {
            "io" => Ok(std::fs::read_to_string("/nowhere/at/all")?),
            "bug" => Err(HandlerExit::error(Error::new(ErrorKind::Bug, "a bug"))),
            _ => Err(HandlerExit::new("it failed")),
        }
    });
    Server::new("offering", "1.0.0")
        .instructions("Add first.")
        .cache(60_000, true)
        .tool(add.description("Adds.").read_only())
        .tool(read)
        .tool(all)
        .tool(panics)
        .prompt(
            prompt
                .description("A greeting.")
                .argument("name", "Whom.", true)
                .complete("name", |typed, _| async move {
                    let names = (0..200).map(|n| format!("{typed}{n}"));
                    Ok::<_, HandlerExit>(names.collect())
                }),
        )
        .resource(Resource::fixed(
            "test://bytes",
            "bytes",
            ResourceContents::bytes([0, 159]).mime("application/x"),
        ))
        .template(note.mime("text/plain"))
        .template(broken)
        .build()
        .unwrap()
}

/// Holds: TOOL-02, TOOL-07, TOOL-12, TOOL-14, TOOL-16, TOOL-17, TOOL-18, TOOL-25, LIFE-03, LIFE-08, BASE-15
#[tokio::test]
async fn tools_in_every_revision() {
    let server = server();
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, json!({})).await;
        let list = peer.result("tools/list", json!({})).await;
        let names: Vec<&str> = list["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["add", "read", "all", "panics"]);
        let schema = &list["tools"][0]["inputSchema"];
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["properties"]["a"]["description"], "The one.");
        let newer = revision >= "2025-06-18";
        assert_eq!(
            list["tools"][0].get("outputSchema").is_some(),
            newer,
            "{revision}"
        );
        assert_eq!(
            list["tools"][0].get("annotations").is_some(),
            revision > "2024-11-05"
        );

        let sum = peer
            .result(
                "tools/call",
                json!({"name": "add", "arguments": {"a": 1, "b": 2}}),
            )
            .await;
        assert_eq!(
            sum["content"],
            json!([{"type": "text", "text": "{\"sum\":3}"}])
        );
        let structured = newer.then(|| json!({"sum": 3}));
        assert_eq!(
            sum.get("structuredContent"),
            structured.as_ref(),
            "{revision}"
        );
        let over = peer
            .result(
                "tools/call",
                json!({"name": "add", "arguments": {"a": i64::MAX, "b": 2}}),
            )
            .await;
        assert_eq!(over["isError"], true);
        assert_eq!(over["content"][0]["text"], "too large");
        let failed = peer.result("tools/call", json!({"name": "read"})).await;
        assert_eq!(
            failed["isError"], true,
            "an error by ? is a failure of the tool"
        );
        assert!(
            failed["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("No such file")
        );
        // "Add" is not "add".
        for name in ["nothing", "Add"] {
            let called = json!({"name": name, "arguments": {"a": 1, "b": 2}});
            let unknown = peer.error("tools/call", called).await;
            assert_eq!(
                (&unknown["code"], &unknown["message"]),
                (&json!(-32602), &json!(format!("unknown tool: {name}")))
            );
        }
        let panicked = peer.error("tools/call", json!({"name": "panics"})).await;
        assert_eq!(panicked["code"], -32603);
        assert!(!panicked.to_string().contains("secret"), "{panicked}");

        let all = peer.result("tools/call", json!({"name": "all"})).await;
        let kinds: Vec<&str> = all["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["type"].as_str().unwrap())
            .collect();
        let expected = match revision {
            "2024-11-05" => ["text", "image", "text", "resource", "text"],
            "2025-03-26" => ["text", "image", "audio", "resource", "text"],
            _ => ["text", "image", "audio", "resource", "resource_link"],
        };
        assert_eq!(kinds, expected, "{revision}");
    }
}

/// Bad arguments are a failure of the tool since 2025-11-25, and an error of the protocol before.
///
/// Holds: TOOL-19, TOOL-41
#[tokio::test]
async fn arguments_are_checked_before_the_function_runs() {
    let server = server();
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, json!({})).await;
        let reply = peer
            .request(
                "tools/call",
                json!({"name": "add", "arguments": {"a": "1", "b": 2}}),
            )
            .await;
        let text = match revision >= "2025-11-25" {
            true => {
                assert_eq!(reply["result"]["isError"], true, "{revision}: {reply}");
                &reply["result"]["content"][0]["text"]
            }
            false => {
                assert_eq!(reply["error"]["code"], -32602, "{revision}: {reply}");
                &reply["error"]["message"]
            }
        };
        assert!(
            text.as_str().unwrap().contains("at /a expected an integer"),
            "{revision}: {reply}"
        );
    }
}

/// Holds: PROG-01, PROG-02
#[tokio::test]
async fn progress_carries_the_callers_token() {
    for revision in REVISIONS {
        let mut peer = Peer::open(&server(), revision, json!({})).await;
        let params =
            json!({"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": {"progressToken": "p"}});
        peer.send_request("tools/call", params).await;
        let told = peer.receive().await;
        assert_eq!(told["method"], "notifications/progress");
        assert_eq!(told["params"]["progressToken"], "p");
        assert_eq!(
            told["params"].get("message").is_some(),
            revision > "2024-11-05"
        );
    }
}

/// Holds: PROG-03, PROG-01
#[tokio::test]
async fn progress_grows_without_a_total_too() {
    let steps = Tool::dynamic("steps", json!({"type": "object"}), |_, cx: Cx| async move {
        for progress in [0.5, 0.5, 0.25, 1.75, 1.0, -1.0, 3.0] {
            cx.progress(progress, None, "");
        }
        Ok::<_, HandlerExit>("done")
    });
    let server = Server::new("s", "1").tool(steps).build().unwrap();
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, json!({})).await;
        let params = json!({"name": "steps", "_meta": {"progressToken": 7}});
        let id = peer.send_request("tools/call", params).await;
        let mut heard = Vec::new();
        loop {
            let told = peer.receive().await;
            if told["id"] == id {
                break;
            }
            assert_eq!(told["params"]["progressToken"], 7, "{revision}: {told}");
            assert!(told["params"].get("total").is_none(), "{told}");
            heard.push(told["params"]["progress"].as_f64().unwrap());
        }
        assert_eq!(heard, [0.5, 1.75, 3.0], "{revision}");
    }
}

/// Holds: PROG-05
#[tokio::test(start_paused = true)]
async fn a_flood_of_progress_is_limited() {
    let flood = Tool::dynamic("flood", json!({"type": "object"}), |_, cx: Cx| async move {
        for second in 0..3 {
            for n in 0..500 {
                cx.progress(f64::from(second * 500 + n), None, "");
                // The peer reads meanwhile, so no queue is full.
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
        cx.progress(1e6, None, "last");
        Ok::<_, HandlerExit>("done")
    });
    let server = Server::new("s", "1").tool(flood).build().unwrap();
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    let params = json!({"name": "flood", "_meta": {"progressToken": "p"}});
    let id = peer.send_request("tools/call", params).await;
    let mut heard = Vec::new();
    loop {
        let told = peer.receive().await;
        if told["id"] == id {
            break;
        }
        heard.push(told["params"]["progress"].as_f64().unwrap());
    }
    let of = |from: f64| {
        heard
            .iter()
            .filter(|n| (from..from + 500.0).contains(*n))
            .count()
    };
    // 100 at once, then 50 a second.
    assert_eq!([of(0.0), of(500.0), of(1000.0)], [100, 50, 50]);
    assert_eq!(heard.last(), Some(&1e6), "later progress is sent again");
}

/// Holds: RES-02, RES-04, RES-05, RES-06, CACHE-01, CACHE-02, CACHE-03, BASE-21, RES-09
#[tokio::test]
async fn resources_in_every_revision() {
    let server = server();
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, json!({})).await;
        let list = peer.result("resources/list", json!({})).await;
        assert_eq!(
            list["resources"],
            json!([{"uri": "test://bytes", "name": "bytes"}])
        );
        hinted(&list, revision, json!(60_000), "public");
        let templates = peer.result("resources/templates/list", json!({})).await;
        assert_eq!(
            templates["resourceTemplates"][0]["uriTemplate"],
            "note://{id}"
        );
        let bytes = peer
            .result("resources/read", json!({"uri": "test://bytes"}))
            .await;
        assert_eq!(
            bytes["contents"],
            json!([{"uri": "test://bytes", "mimeType": "application/x", "blob": "AJ8="}])
        );
        hinted(&bytes, revision, json!(0), "private");
        let note = peer
            .result("resources/read", json!({"uri": "note://7"}))
            .await;
        assert_eq!(
            note["contents"],
            json!([{"uri": "note://7", "mimeType": "text/plain", "text": "note 7"}])
        );
        for missing in ["note://9", "note://1/2", "other://x"] {
            let error = peer.error("resources/read", json!({"uri": missing})).await;
            let code = if revision == NEWEST_REVISION {
                -32602
            } else {
                -32002
            };
            assert_eq!(
                (&error["code"], &error["data"]["uri"]),
                (&json!(code), &json!(missing)),
                "{revision}"
            );
        }
        for failing in ["broken://io", "broken://bug", "broken://so"] {
            let error = peer.error("resources/read", json!({"uri": failing})).await;
            assert_eq!(error["code"], -32603, "{revision} {failing}: {error}");
        }
        let climbing = peer
            .error("resources/read", json!({"uri": "note://.."}))
            .await;
        assert_eq!(climbing["code"], -32602);
    }
}

/// Codes of earlier revisions become those of the caller's.
///
/// Holds: BASE-21
#[tokio::test]
async fn codes_of_earlier_revisions_are_not_sent_in_2026() {
    let fails = |code: i64| {
        let error = Error::new(ErrorKind::JsonRpc(code), "no".to_owned());
        async move { Err::<&str, _>(HandlerExit::error(error)) }
    };
    let tool = |name: &str, code: i64| {
        Tool::dynamic(name, json!({"type": "object"}), move |_, _| fails(code))
    };
    let page = Tool::dynamic("page", json!({"type": "object"}), |_, cx: Cx| async move {
        cx.ask("page", ask::url("Sign in.", "https://example.com/in"))
    });
    let server = Server::new("s", "1")
        .tool(tool("missing", -32002))
        .tool(tool("page_needed", -32042))
        .tool(page)
        .prompt(Prompt::new("missing", move |_, _| fails(-32002)))
        .resource(Resource::new("test://missing", "missing", move |_| {
            fails(-32002)
        }))
        .build()
        .unwrap();
    let calls = [
        ("tools/call", json!({"name": "missing"}), -32002, -32602),
        ("tools/call", json!({"name": "page_needed"}), -32042, -32603),
        ("prompts/get", json!({"name": "missing"}), -32002, -32602),
        (
            "resources/read",
            json!({"uri": "test://missing"}),
            -32002,
            -32602,
        ),
    ];
    for revision in ["2025-06-18", NEWEST_REVISION] {
        let abilities = json!({"elicitation": {"url": {}}});
        let mut peer = Peer::open(&server, revision, abilities).await;
        for (method, params, old, new) in &calls {
            let error = peer.error(method, params.clone()).await;
            let code = if revision == NEWEST_REVISION {
                new
            } else {
                old
            };
            assert_eq!(error["code"], *code, "{revision} {params}: {error}");
        }
        if revision == NEWEST_REVISION {
            let asked = peer.result("tools/call", json!({"name": "page"})).await;
            assert_eq!(asked["resultType"], "input_required", "{asked}");
            assert_eq!(asked["inputRequests"]["page"]["params"]["mode"], "url");
        }
    }
}

fn hinted(result: &Value, revision: &str, ttl: Value, scope: &str) {
    match revision {
        NEWEST_REVISION => assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&ttl, &json!(scope))
        ),
        _ => assert!(result.get("ttlMs").is_none() && result.get("cacheScope").is_none()),
    }
}

/// Holds: PROM-03, PROM-04
#[tokio::test]
async fn prompts_in_every_revision() {
    let server = server();
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, json!({})).await;
        let list = peer.result("prompts/list", json!({})).await;
        assert_eq!(
            list["prompts"][0]["arguments"],
            json!([{"name": "name", "description": "Whom.", "required": true}])
        );
        let got = peer
            .result(
                "prompts/get",
                json!({"name": "greet", "arguments": {"name": "Ada"}}),
            )
            .await;
        assert_eq!(got["description"], "A greeting.");
        assert_eq!(
            got["messages"][0],
            json!({"role": "user", "content": {"type": "text", "text": "Greet Ada"}})
        );
        let sound = if revision == "2024-11-05" {
            "text"
        } else {
            "audio"
        };
        assert_eq!(
            (
                &got["messages"][1]["role"],
                &got["messages"][1]["content"]["type"]
            ),
            (&json!("assistant"), &json!(sound))
        );
        for bad in [
            json!({"name": "greet"}),
            json!({"name": "greet", "arguments": {"name": "a", "x": "y"}}),
            json!({"name": "greet", "arguments": {"name": 1}}),
            json!({"name": "nobody"}),
        ] {
            assert_eq!(
                peer.error("prompts/get", bad).await["code"],
                -32602,
                "{revision}"
            );
        }
    }
}

/// Holds: COMP-01, TOOL-01, RES-01, PROM-01, LOG-01
#[tokio::test]
async fn declares_its_capabilities_in_every_revision() {
    let bare = Server::new("bare", "1").build().unwrap();
    for revision in REVISIONS {
        for (server, offers) in [(server(), true), (bare.clone(), false)] {
            let opened = match revision {
                NEWEST_REVISION => {
                    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
                    peer.result("server/discover", json!({})).await
                }
                old => Peer::opened(&server, old).await,
            };
            let declared = &opened["capabilities"];
            // A server without tools can get some while it runs, and tells of them.
            assert_eq!(
                declared["tools"]["listChanged"], true,
                "{revision}: {opened}"
            );
            for (capability, expected) in [
                ("logging", true),
                ("resources", offers),
                ("prompts", offers),
                // 2024-11-05 has no such capability.
                ("completions", offers && revision != "2024-11-05"),
            ] {
                assert_eq!(
                    declared[capability].is_object(),
                    expected,
                    "{revision}, {capability}: {opened}"
                );
            }
        }
    }
}

/// Holds: COMP-02, COMP-03, COMP-05
#[tokio::test]
async fn completion_has_at_most_a_hundred_values() {
    let server = server();
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, json!({})).await;
        let of = json!({"type": "ref/prompt", "name": "greet"});
        let params = json!({"ref": of, "argument": {"name": "name", "value": "A"}});
        let completed = peer.result("completion/complete", params).await["completion"].take();
        let first: Vec<String> = (0..100).map(|n| format!("A{n}")).collect();
        assert_eq!(
            completed["values"],
            json!(first),
            "in the order of the author"
        );
        assert_eq!(
            (&completed["total"], &completed["hasMore"]),
            (&json!(200), &json!(true))
        );
        let of = json!({"type": "ref/prompt", "name": "greet"});
        let argument = json!({"name": "name", "value": ""});
        for wrong in [
            json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": argument}),
            json!({"ref": {"type": "ref/resource", "uri": "x://y"}, "argument": argument}),
            json!({"ref": {"type": "ref/tool", "name": "add"}, "argument": argument}),
            json!({"ref": {"type": "ref/prompt", "name": 7}, "argument": argument}),
            json!({"ref": of}),
            json!({"ref": of, "argument": {"name": "other", "value": ""}}),
            json!({"ref": of, "argument": {"name": "name"}}),
            json!({"ref": of, "argument": {"name": "name", "value": 7}}),
            json!({"ref": of, "argument": argument, "context": []}),
        ] {
            let error = peer.error("completion/complete", wrong.clone()).await;
            assert_eq!(error["code"], -32602, "{revision} {wrong}: {error}");
        }
    }
}

/// Each revision hears what it has words for.
#[tokio::test]
async fn a_server_says_who_it_is() {
    let server = Server::new("s", "1").title("The S").description("It is S.");
    let server = server
        .website("https://example.com")
        .icons(json!([{"src": "data:x"}]));
    let server = server.build().unwrap();
    for revision in REVISIONS {
        let about = match revision {
            NEWEST_REVISION => {
                let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
                let mut result = peer.result("server/discover", json!({})).await;
                result["_meta"]["io.modelcontextprotocol/serverInfo"].take()
            }
            old => Peer::opened(&server, old).await["serverInfo"].take(),
        };
        let members: Vec<&String> = about.as_object().unwrap().keys().collect();
        match revision {
            "2024-11-05" | "2025-03-26" => assert_eq!(members, ["name", "version"]),
            "2025-06-18" => assert_eq!(members, ["name", "title", "version"]),
            _ => assert_eq!(
                members,
                [
                    "description",
                    "icons",
                    "name",
                    "title",
                    "version",
                    "websiteUrl"
                ]
            ),
        }
    }
}

/// Only offered capabilities are declared, and instructions are sent.
///
/// Holds: VER-03
#[tokio::test]
async fn only_what_is_offered_is_declared() {
    let bare = Server::new("bare", "1").build().unwrap();
    let mut peer = Peer::open(&bare, NEWEST_REVISION, json!({})).await;
    let about = peer.result("server/discover", json!({})).await;
    assert_eq!(about["supportedVersions"], json!([NEWEST_REVISION]));
    assert_eq!(
        about["capabilities"],
        json!({"logging": {}, "tools": {"listChanged": true}})
    );
    let mut peer = Peer::open(&server(), NEWEST_REVISION, json!({})).await;
    let about = peer.result("server/discover", json!({})).await;
    assert_eq!(about["instructions"], "Add first.");
    for declared in ["completions", "prompts", "resources", "tools"] {
        assert!(about["capabilities"].get(declared).is_some(), "{about}");
    }
}
