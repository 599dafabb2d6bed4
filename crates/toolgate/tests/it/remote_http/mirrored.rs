//! Arguments that go into headers too.

use super::{
    super::remote::peer::{all, call},
    posts::done,
    server::{Asked, Server, legacy, modern, soon},
};
use serde_json::{Value, json};
use toolgate::{
    Service,
    client::RemoteServer,
    core::{Catalog, ErrorKind, NoteAction},
};

fn marked(name: &str, properties: Value) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
}

async fn listed(remote: &RemoteServer, server: &Server, tools: Value) -> Catalog {
    let (list, ()) = soon(async {
        tokio::join!(remote.list(all()), async {
            let asked = server.next().await;
            assert_eq!(asked.body["method"], "tools/list");
            asked.result(json!({"tools": tools, "ttlMs": 60000})).await;
        })
    })
    .await;
    list.unwrap()
}

/// Holds: HTTPM-05, HTTPM-06, HTTPM-07, HTTPM-18, BASE-35, BASE-36.
#[tokio::test]
async fn every_post_has_the_metadata_headers() {
    let (remote, server) = modern(json!({"tools": {}, "resources": {}})).await;
    let has = |asked: &Asked, method: &str, name: Option<&str>| {
        assert_eq!(asked.method, "POST");
        assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(asked.header("mcp-method"), Some(method));
        assert_eq!(asked.header("mcp-name"), name, "{method}");
        assert_eq!(
            asked.header("accept"),
            Some("application/json, text/event-stream")
        );
        assert!(asked.body.is_object(), "one message: {}", asked.body);
        assert_eq!(asked.body["method"], method);
        let about = |member: &str| {
            let member = format!("io.modelcontextprotocol/{member}");
            asked.body["params"]["_meta"][member].clone()
        };
        assert_eq!(about("protocolVersion"), "2026-07-28");
        assert!(about("clientCapabilities").is_object(), "{}", asked.body);
        assert_eq!(about("clientInfo")["name"], "toolgate");
        assert!(about("clientInfo")["version"].is_string());
    };
    let list = tokio::join!(soon(remote.list(all())), async {
        let asked = server.next().await;
        has(&asked, "tools/list", None);
        asked
            .result(json!({"tools": [marked("echo", json!({}))], "ttlMs": 60000}))
            .await;
    });
    list.0.unwrap();
    for _ in 0..2 {
        let called = tokio::join!(soon(remote.call(call("echo", "{}"))), async {
            let asked = server.next().await;
            has(&asked, "tools/call", Some("echo"));
            asked.result(done("x")).await;
        });
        called.0.unwrap();
    }
}

/// Holds: HTTPM-26, HTTPM-28, HTTPM-29.
#[tokio::test]
async fn marked_arguments_are_repeated() {
    let (remote, server) = modern(json!({"tools": {}})).await;
    let tool = marked(
        "echo",
        json!({"region": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer", "x-mcp-header": "N"}, "secret": {"type": "string"}}),
    );
    listed(&remote, &server, json!([tool])).await;
    let sent = call(
        "echo",
        r#"{"region":"zürich","n":9007199254740991,"secret":"s"}"#,
    );
    let (outcome, ()) = tokio::join!(remote.call(sent), async {
        let asked = server.next().await;
        assert_eq!(
            asked.header("mcp-param-region"),
            Some("=?base64?esO8cmljaA==?=")
        );
        assert_eq!(asked.header("mcp-param-n"), Some("9007199254740991"));
        assert_eq!(asked.header("mcp-param-secret"), None);
        asked.result(done("x")).await;
    });
    outcome.unwrap();
    let sent = call("echo", r#"{"region":null}"#);
    let (outcome, ()) = tokio::join!(remote.call(sent), async {
        let asked = server.next().await;
        assert!(
            !asked
                .names()
                .iter()
                .any(|name| name.starts_with("mcp-param"))
        );
        asked.result(done("x")).await;
    });
    outcome.unwrap();
}

/// Holds: TOOL-32, HTTPM-28.
#[tokio::test]
async fn refuses_an_integer_beyond_doubles_before_anything_is_sent() {
    let (remote, server) = modern(json!({"tools": {}})).await;
    let tool = marked(
        "echo",
        json!({"n": {"type": "integer", "x-mcp-header": "N"}, "m": {"type": "integer"}}),
    );
    listed(&remote, &server, json!([tool])).await;
    for n in ["9007199254740993", "-9007199254740992"] {
        let sent = call("echo", &format!(r#"{{"n":{n}}}"#));
        let error = soon(remote.call(sent)).await.err().unwrap();
        let ErrorKind::InvalidArguments(problems) = error.kind() else {
            panic!("{error:?}")
        };
        assert_eq!(problems[0].path, "/n");
        assert!(error.public_message().contains("2^53-1"), "{error}");
    }
    // What no header repeats is the server's to judge, and the first request that it gets.
    let sent = call("echo", r#"{"n":1,"m":9007199254740993}"#);
    let (outcome, ()) = tokio::join!(remote.call(sent), async {
        let asked = server.next().await;
        assert_eq!(asked.header("mcp-param-n"), Some("1"));
        asked.result(done("x")).await;
    });
    outcome.unwrap();
}

/// Holds: TOOL-34, TOOL-35.
#[tokio::test]
async fn a_tool_that_breaks_the_rules_is_left_out_and_the_others_stay() {
    let (remote, server) = modern(json!({"tools": {}})).await;
    let tools = json!([
        marked("bad", json!({"a": {"type": "number", "x-mcp-header": "A"}})),
        marked(
            "good",
            json!({"a": {"type": "string", "x-mcp-header": "A"}})
        ),
    ]);
    let catalog = listed(&remote, &server, tools.clone()).await;
    let names: Vec<String> = catalog
        .items()
        .iter()
        .map(|item| item.full_name())
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(catalog.find("good").is_some());
    let status = remote.status();
    let note = &status.definition_notes[0];
    assert_eq!(
        (&*note.name, note.note.action),
        ("bad", NoteAction::Dropped)
    );
    assert!(note.note.reason.contains("x-mcp-header"));
    assert!(status.last_problem.unwrap().contains("x-mcp-header"));
    // Older revisions do not know the mark.
    let (remote, server) = legacy("2025-11-25").await;
    assert_eq!(listed(&remote, &server, tools).await.items().len(), 2);
}

/// Holds: HTTPM-31.
#[tokio::test]
async fn after_a_mismatch_the_tools_are_listed_again_and_the_call_goes_out_once_more() {
    let (remote, server) = modern(json!({"tools": {}})).await;
    let old = marked(
        "echo",
        json!({"a": {"type": "string", "x-mcp-header": "Old"}}),
    );
    let new = marked(
        "echo",
        json!({"a": {"type": "string", "x-mcp-header": "New"}}),
    );
    listed(&remote, &server, json!([old])).await;
    let sent = call("echo", r#"{"a":"x"}"#);
    let (outcome, ()) = soon(async {
        tokio::join!(remote.call(sent), async {
            let first = server.next().await;
            assert_eq!(first.header("mcp-param-old"), Some("x"));
            let id = first.body["id"].clone();
            first
                .error("400 Bad Request", -32020, "header mismatch", Value::Null)
                .await;
            let list = server.next().await;
            assert_eq!(list.body["method"], "tools/list");
            list.result(json!({"tools": [new]})).await;
            let again = server.next().await;
            assert_eq!(again.header("mcp-param-new"), Some("x"));
            assert_eq!(again.header("mcp-param-old"), None);
            assert_ne!(again.body["id"], id);
            again
                .error("400 Bad Request", -32020, "header mismatch", Value::Null)
                .await;
        })
    })
    .await;
    let error = outcome.err().unwrap();
    assert!(
        error.public_message().contains("header mismatch"),
        "only once: {error:?}"
    );
}
