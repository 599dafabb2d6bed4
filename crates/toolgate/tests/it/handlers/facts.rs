//! Single facts of the specification that no other test is about.

use super::peer::{NEWEST_REVISION, Peer, REVISIONS};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use toolgate::{
    Json,
    core::{Definition, ItemKind},
    edge,
    handlers::{
        Cx, HandlerExit, LogLevel, Prompt, Resource, ResourceContents, ResourceTemplate, Server,
        Tool, ask,
    },
};
use toolgate_protocol::json::JsonLimits;

fn tool(name: &str) -> Tool {
    Tool::dynamic(name, json!({"type": "object"}), |_, _| async {
        Ok::<_, HandlerExit>("x")
    })
}

fn server() -> Arc<edge::ProtocolServer> {
    let log = Tool::dynamic("log", json!({"type": "object"}), |_, cx: Cx| async move {
        cx.log(LogLevel::Info, "logged");
        Ok::<_, HandlerExit>("x")
    });
    let late = Tool::dynamic("late", json!({"type": "object"}), |_, cx: Cx| async move {
        #[allow(
            clippy::disallowed_methods,
            reason = "a handler that does what it should not"
        )]
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            cx.progress(2.0, None, "too late");
            cx.log(LogLevel::Error, "too late");
        });
        Ok::<_, HandlerExit>("x")
    });
    let asks = Tool::dynamic("asks", json!({"type": "object"}), |_, cx: Cx| async move {
        cx.ask("q", ask::text("Who?"))
    });
    let mut limits = edge::ServerLimits::default();
    limits.page_items = 1;
    Server::new("s", "1")
        .cache(5, true)
        .limits(limits)
        .tool(tool("b"))
        .tool(tool("a"))
        .tool(log)
        .tool(late)
        .tool(asks)
        .resource(Resource::fixed(
            "test://a",
            "a",
            ResourceContents::text("x"),
        ))
        .resource(Resource::fixed(
            "test://b",
            "b",
            ResourceContents::text("x"),
        ))
        .template(ResourceTemplate::new("note://{id}", "note", |_, _| async {
            Ok::<_, HandlerExit>("x")
        }))
        .prompt(Prompt::new("greet", |_, _| async {
            Ok::<_, HandlerExit>("x")
        }))
        .build()
        .unwrap()
}

/// The names of a list, page by page, and what the pages say of how long they hold.
async fn listed(peer: &mut Peer) -> (Vec<String>, Vec<Value>) {
    let (mut names, mut scopes, mut params) = (Vec::new(), Vec::new(), json!({}));
    loop {
        let page = peer.result("tools/list", params).await;
        names.push(page["tools"][0]["name"].as_str().unwrap().to_owned());
        scopes.push(page["cacheScope"].clone());
        match page.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return (names, scopes),
        }
    }
}

/// Holds: TOOL-03, TOOL-04, PAG-03, CACHE-13
#[tokio::test]
async fn a_list_is_the_same_on_every_connection() {
    let server = server();
    let mut first = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    let mut second = Peer::open(&server, NEWEST_REVISION, json!({"sampling": {}})).await;
    let before = listed(&mut first).await;
    assert_eq!(before.0, ["b", "a", "log", "late", "asks"]);
    assert!(before.1.iter().all(|scope| scope == "public"));
    first.result("tools/call", json!({"name": "a"})).await;
    assert_eq!(listed(&mut first).await, before);
    assert_eq!(listed(&mut second).await, before);
}

/// Holds: RES-02
#[tokio::test]
async fn resources_are_the_same_on_every_connection() {
    let server = server();
    let mut first = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    let mut second = Peer::open(
        &server,
        NEWEST_REVISION,
        json!({"sampling": {}, "roots": {}}),
    )
    .await;
    let all = async |peer: &mut Peer| {
        let page = peer.result("resources/list", json!({})).await;
        let next = json!({"cursor": page["nextCursor"]});
        let rest = peer.result("resources/list", next).await;
        assert!(rest.get("nextCursor").is_none(), "{rest}");
        [page, rest]
    };
    let before = all(&mut first).await;
    let uris: Vec<&Value> = before
        .iter()
        .map(|page| &page["resources"][0]["uri"])
        .collect();
    assert_eq!(uris, ["test://a", "test://b"]);
    let read = json!({"uri": "test://b"});
    first.result("resources/read", read).await;
    first.result("tools/call", json!({"name": "a"})).await;
    assert_eq!(all(&mut first).await, before);
    assert_eq!(all(&mut second).await, before);
    // A server without resources still answers.
    let none = Server::new("s", "1").tool(tool("a")).build().unwrap();
    let mut peer = Peer::open(&none, NEWEST_REVISION, json!({})).await;
    let empty = peer.result("resources/list", json!({})).await;
    assert_eq!(empty["resources"], json!([]));
}

/// Holds: PAG-08
#[tokio::test]
async fn a_cursor_that_is_none_is_refused() {
    for revision in REVISIONS {
        let mut peer = Peer::open(&server(), revision, json!({})).await;
        for method in [
            "tools/list",
            "resources/list",
            "resources/templates/list",
            "prompts/list",
        ] {
            for cursor in [json!("after:nothing"), json!("x"), json!(7)] {
                let error = peer.error(method, json!({"cursor": cursor})).await;
                assert_eq!(error["code"], -32602, "{revision} {method} {cursor}");
            }
            // Many clients write a cursor that they do not have.
            let first = peer.result(method, json!({})).await;
            for absent in [json!(null), json!("")] {
                let page = peer.result(method, json!({"cursor": absent})).await;
                assert_eq!(page, first, "{revision} {method} {absent}");
            }
        }
    }
}

/// Also where the result would have a hint: the contents of that resource hold a minute.
///
/// Holds: CACHE-04
#[tokio::test]
async fn what_asks_is_not_to_be_kept() {
    let asks = Tool::dynamic("asks", json!({"type": "object"}), |_, cx: Cx| async move {
        cx.ask("q", ask::text("Who?"))
    });
    let resource = Resource::new("test://asks", "asks", |cx: Cx| async move {
        cx.ask("q", ask::text("Who?"))
    });
    let prompt = Prompt::new(
        "asks",
        |_, cx: Cx| async move { cx.ask("q", ask::text("Who?")) },
    );
    let server = Server::new("s", "1").tool(asks).prompt(prompt);
    let server = server.resource(resource.cache(60_000, true));
    let server = server.build().unwrap();
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({"elicitation": {}})).await;
    let uri = json!({"uri": "test://asks"});
    for (method, params) in [
        ("tools/call", json!({"name": "asks"})),
        ("prompts/get", json!({"name": "asks"})),
        ("resources/read", uri.clone()),
    ] {
        let asked = peer.result(method, params).await;
        assert_eq!(asked["resultType"], "input_required", "{method}: {asked}");
        assert!(
            asked.get("ttlMs").is_none() && asked.get("cacheScope").is_none(),
            "{method}: {asked}"
        );
    }
    let asked = peer.result("resources/read", uri).await;
    let answers = json!({"q": {"action": "accept", "content": {"value": "Ada"}}});
    let again = json!({"uri": "test://asks", "requestState": asked["requestState"], "inputResponses": answers});
    let read = peer.result("resources/read", again).await;
    assert_eq!(
        (&read["ttlMs"], &read["cacheScope"]),
        (&json!(60_000), &json!("public")),
        "{read}"
    );
}

/// Tools whose names differ only in case are two tools, and a third spelling is none of them.
///
/// Holds: TOOL-25
#[tokio::test]
async fn names_that_differ_in_case_are_different_tools() {
    let says = |name: &'static str| {
        Tool::dynamic(name, json!({"type": "object"}), move |_, _| async move {
            Ok::<_, HandlerExit>(name)
        })
    };
    let server = Server::new("s", "1").tool(says("add")).tool(says("Add"));
    let server = server.build().unwrap();
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, json!({})).await;
        for name in ["add", "Add"] {
            let said = peer.result("tools/call", json!({"name": name})).await;
            assert_eq!(said["content"][0]["text"], name, "{revision}");
        }
        let error = peer.error("tools/call", json!({"name": "ADD"})).await;
        assert_eq!(error["code"], -32602, "{revision}");
    }
}

/// Text of others that has line breaks between its tokens, in a message of ours.
///
/// Holds: STDIO-02
#[tokio::test]
async fn a_message_of_the_server_is_one_line() {
    let pretty = "{\n  \"a\": \"x\\ny\",\r\n  \"b\": [\n1\n]\n}";
    let settings = Json::read(pretty.as_bytes().to_vec(), &JsonLimits::default()).unwrap();
    let server = Server::new("s", "1").extension("com.example/x", settings);
    let server = server.build().unwrap();
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    // A message in several lines would fail to be read.
    let found = peer.result("server/discover", json!({})).await;
    assert_eq!(
        found["capabilities"]["extensions"]["com.example/x"],
        json!({"a": "x\ny", "b": [1]})
    );
    let texts = peer.texts();
    assert!(texts[0].contains(r#""a": "x\ny""#), "{texts:?}");
    assert!(!texts[0].contains(['\n', '\r']), "{texts:?}");
}

/// Holds: BASE-12
#[tokio::test]
async fn a_notification_is_never_answered() {
    for revision in REVISIONS {
        let mut peer = Peer::open(&server(), revision, json!({})).await;
        for method in [
            "notifications/nothing",
            "tools/call",
            "notifications/cancelled",
        ] {
            peer.send_message(json!({"jsonrpc": "2.0", "method": method, "params": {}}))
                .await;
        }
        // The next message is the reply to the next request.
        let id = peer.send_request("tools/list", json!({})).await;
        assert_eq!(peer.receive().await["id"], id, "{revision}");
    }
}

/// The client's self-reported name changes nothing.
///
/// Holds: BASE-41
#[tokio::test]
async fn a_name_changes_nothing() {
    let named = |name: &str| json!({"name": name, "version": "1", "title": name});
    let names = ["claude", "evil \u{202e}", "inspector", "toolgate", ""];
    let mut clients: Vec<Value> = names.map(named).to_vec();
    clients.extend([json!(null), json!(7), json!({})]);
    let mut all = Vec::new();
    for client in &clients {
        let mut peer = Peer::open(&server(), NEWEST_REVISION, json!({})).await;
        let mut replies = Vec::new();
        for (method, mut params) in [
            ("server/discover", json!({})),
            ("tools/list", json!({})),
            ("resources/read", json!({"uri": "test://a"})),
            ("tools/call", json!({"name": "a"})),
            ("tools/call", json!({"name": "nothing"})),
            ("tools/call", json!({"name": "asks"})),
        ] {
            params["_meta"] = json!({"io.modelcontextprotocol/clientInfo": client});
            replies.push(peer.request(method, params).await);
        }
        all.push(replies);
    }
    assert!(all[0][3]["result"]["content"].is_array(), "{:?}", all[0]);
    for (client, replies) in clients.iter().zip(&all) {
        assert_eq!(replies, &all[0], "{client}");
    }
}

/// Holds: BASE-40, VER-04
#[tokio::test]
async fn every_result_names_its_server() {
    let mut peer = Peer::open(&server(), NEWEST_REVISION, json!({"elicitation": {}})).await;
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "a"})),
        ("tools/call", json!({"name": "asks"})),
        ("resources/read", json!({"uri": "test://a"})),
    ] {
        let result = peer.result(method, params).await;
        assert_eq!(
            result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "s",
            "{method}"
        );
    }
}

/// Holds: PROG-06
#[tokio::test]
async fn nothing_of_a_call_follows_its_result() {
    for revision in REVISIONS {
        let mut peer = Peer::open(&server(), revision, json!({})).await;
        let meta = json!({"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"});
        peer.result("tools/call", json!({"name": "late", "_meta": meta}))
            .await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let id = peer.send_request("tools/list", json!({})).await;
        assert_eq!(peer.receive().await["id"], id, "{revision}");
    }
}

/// Holds: LOG-03, LOG-04, LOG-02
#[tokio::test]
async fn logs_are_sent_to_those_who_asked() {
    let call = |level: Option<&str>| {
        let mut params = json!({"name": "log"});
        if let Some(level) = level {
            params["_meta"] = json!({"io.modelcontextprotocol/logLevel": level});
        }
        params
    };
    let mut peer = Peer::open(&server(), NEWEST_REVISION, json!({})).await;
    for (level, told) in [
        (None, false),
        (Some("warning"), false),
        (Some("info"), true),
    ] {
        let id = peer.send_request("tools/call", call(level)).await;
        let first = peer.receive().await;
        assert_eq!(
            first["method"] == "notifications/message",
            told,
            "{level:?}"
        );
        if told {
            assert_eq!(first["params"], json!({"level": "info", "data": "logged"}));
            assert_eq!(peer.receive().await["id"], id);
        }
    }
    assert_eq!(
        peer.error("tools/call", call(Some("loud"))).await["code"],
        -32602
    );
    let mut peer = Peer::open(&server(), "2025-11-25", json!({})).await;
    peer.result("logging/setLevel", json!({"level": "error"}))
        .await;
    let id = peer.send_request("tools/call", call(None)).await;
    assert_eq!(peer.receive().await["id"], id);
    assert_eq!(
        peer.error("logging/setLevel", json!({"level": "loud"}))
            .await["code"],
        -32602
    );
}

/// Holds: HTTPL-07, HTTPM-09
#[tokio::test]
async fn a_notification_over_http_is_accepted_without_a_body() {
    let service = toolgate::Http::new(server(), edge::http::HttpLimits::default());
    let meta = json!({"io.modelcontextprotocol/protocolVersion": NEWEST_REVISION, "io.modelcontextprotocol/clientCapabilities": {}});
    let told = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "_meta": meta}});
    let request = http::Request::post("/mcp")
        .header("host", "localhost:1234")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", NEWEST_REVISION)
        .header("mcp-method", "notifications/cancelled")
        .body(http_body_util::Full::from(told.to_string()))
        .unwrap();
    let response = service.handle(request).await;
    assert_eq!(response.status(), 202);
    assert!(
        response
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .is_empty()
    );
}

/// Results are streams where that is wanted; errors keep their status.
#[tokio::test]
async fn every_result_can_be_a_stream() {
    let mut limits = edge::http::HttpLimits::default();
    limits.json_responses = false;
    let service = toolgate::Http::new(server(), limits);
    for (method, status, kind) in [
        ("tools/list", 200, "text/event-stream"),
        ("tools/nothing", 404, "application/json"),
    ] {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": NEWEST_REVISION, "io.modelcontextprotocol/clientCapabilities": {}});
        let asked = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}});
        let request = http::Request::post("/mcp")
            .header("host", "localhost:1234")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", NEWEST_REVISION)
            .header("mcp-method", method)
            .body(http_body_util::Full::from(asked.to_string()))
            .unwrap();
        let response = service.handle(request).await;
        assert_eq!(
            (
                response.status().as_u16(),
                &response.headers()["content-type"]
            ),
            (status, &kind.parse().unwrap())
        );
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).unwrap();
        assert!(
            text.contains(r#""id":1"#),
            "the stream ends with the reply: {text}"
        );
    }
}

/// A service that is mounted answers loopback names on any port, and pages of its own origin.
#[tokio::test]
async fn a_mounted_service_checks_who_reaches_it() {
    let service = toolgate::Http::new(server(), edge::http::HttpLimits::default());
    for (host, origin, good) in [
        ("localhost:1234", None, true),
        ("127.0.0.1", Some("http://127.0.0.1"), true),
        ("localhost:1234", Some("http://localhost:1234"), true),
        ("localhost:1234", Some("http://localhost:9"), false),
        ("evil.example:1234", None, false),
        ("localhost:x", None, false),
        ("localhost:1234", Some("https://evil.example"), false),
    ] {
        let mut request = http::Request::get("/mcp").header("host", host);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let request = request.body(http_body_util::Empty::new()).unwrap();
        let status = service.handle(request).await.status();
        assert_eq!(status == 403, !good, "{host} {origin:?}: {status}");
    }
}

/// Holds: TOOL-23
#[test]
fn a_title_is_found_in_its_order() {
    let title = |members: Value| {
        let mut tool = json!({"name": "n", "inputSchema": {}});
        tool.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        let tool = Definition::read(ItemKind::Tool, Json::from_value(&tool)).unwrap();
        tool.title().into_owned()
    };
    let old = json!({"title": "old"});
    assert_eq!(title(json!({"title": "new", "annotations": old})), "new");
    assert_eq!(title(json!({"annotations": old})), "old");
    assert_eq!(title(json!({})), "n");
}

/// Holds: VER-06
#[test]
fn keys_of_meta_and_of_extensions_are_checked() {
    let check = |server: Server, expected: &str| match server.build() {
        Err(error) => assert!(error.to_string().contains(expected), "{error}"),
        Ok(_) => panic!("built, though {expected}"),
    };
    let object = || Json::from_value(&json!({}));
    let server = || Server::new("s", "1");
    check(
        server().extension("thing", object()),
        "use an identifier with a prefix",
    );
    check(
        server().extension("com.example/-x", object()),
        "use an identifier with a prefix",
    );
    check(
        server().tool(tool("a").meta("a b", 1)),
        "is not a valid _meta key",
    );
    check(
        server().tool(tool("a").meta("com.mcp/x", 1)),
        "is reserved for the protocol",
    );
    let ui = json!({"resourceUri": "ui://a"});
    assert!(
        server()
            .tool(tool("a").meta("ui", ui))
            .extension("com.example/x", object())
            .build()
            .is_ok()
    );
}
