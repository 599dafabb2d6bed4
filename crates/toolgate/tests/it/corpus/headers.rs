//! Headers of requests over HTTP.

use crate::serve::{
    Scripted, Seen,
    http::{endpoint, send, text},
};
use serde_json::{Value, json};
use toolgate::{
    edge::http::{HttpEndpoint, HttpLimits},
    handlers::{HandlerExit, Server, Tool},
};

const CALL: [(&str, &str); 3] = [
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/call"),
    ("mcp-name", "echo"),
];

fn body(name: &str, arguments: &Value) -> String {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": name, "arguments": arguments, "_meta": meta}})
    .to_string()
}

/// Status, and code of the error if there is one.
async fn post(endpoint: &HttpEndpoint, headers: &[(&str, &str)], body: &str) -> (u16, Option<i64>) {
    let response = send(endpoint, "POST", headers, body).await;
    let status = response.status().as_u16();
    let reply: Value = serde_json::from_str(&text(response).await).unwrap_or_default();
    (status, reply["error"]["code"].as_i64())
}

/// A header of the protocol that comes twice says nothing, even where both say the same.
///
/// Holds: HTTPM-37
#[tokio::test]
async fn a_header_of_the_protocol_stands_once() {
    let endpoint = endpoint(Scripted::new());
    let call = body("echo", &json!({}));
    assert_eq!(post(&endpoint, &CALL, &call).await, (200, None));
    for twice in CALL {
        let mut headers = CALL.to_vec();
        headers.push(twice);
        let answer = post(&endpoint, &headers, &call).await;
        assert_eq!(answer, (400, Some(-32020)), "{twice:?}");
    }
}

/// A POST that neither opens a session nor names one, nor carries all it needs, is a bad request.
///
/// Holds: HTTPL-25
#[tokio::test]
async fn a_post_without_a_session_is_a_bad_request() {
    let endpoint = endpoint(Scripted::new());
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
    ] {
        let (status, _) = post(&endpoint, &[], &message.to_string()).await;
        assert_eq!(status, 400, "{message}");
    }
}

/// Holds: TOOL-32
#[tokio::test]
async fn an_integer_beyond_doubles_is_no_marked_argument() {
    let schema = json!({"type": "object", "properties": {
        "n": {"type": "integer", "x-mcp-header": "N"}, "m": {"type": "integer"},
    }});
    let tool = Tool::dynamic("echo", schema, |_, _| async { Ok::<_, HandlerExit>("x") });
    let server = Server::new("s", "1").tool(tool).build().unwrap();
    let endpoint = HttpEndpoint::new(server, HttpLimits::default());
    for (n, expected) in [
        (9_007_199_254_740_991_i64, (200, None)),
        (9_007_199_254_740_992, (400, Some(-32602))),
    ] {
        let (header, big) = (n.to_string(), 9_007_199_254_740_993_i64);
        let mut headers = CALL.to_vec();
        headers.push(("mcp-param-n", &header));
        let call = body("echo", &json!({"n": n, "m": big}));
        assert_eq!(post(&endpoint, &headers, &call).await, expected, "{n}");
    }
}

fn marked() -> HttpEndpoint {
    let schema = json!({"type": "object", "properties": {
        "plain": {"type": "string", "x-mcp-header": "Plain"},
        "deep": {"type": "object", "properties": {"inner": {"type": "string", "x-mcp-header": "Inner"}}},
    }});
    let tool = Tool::dynamic("echo", schema, |_, _| async { Ok::<_, HandlerExit>("x") });
    let server = Server::new("s", "1").tool(tool).build().unwrap();
    HttpEndpoint::new(server, HttpLimits::default())
}

async fn check(headers: &[(&str, &str)], arguments: Value, good: bool) {
    let mut all = CALL.to_vec();
    all.extend(headers);
    let answer = post(&marked(), &all, &body("echo", &arguments)).await;
    let expected = if good {
        (200, None)
    } else {
        (400, Some(-32020))
    };
    assert_eq!(answer, expected, "{headers:?} {arguments}");
}

/// An argument deep inside that is repeated as a header is looked for where it stands.
///
/// Holds: HTTPM-34, HTTPM-35
#[tokio::test]
async fn a_marked_argument_deep_inside_is_compared() {
    let deep = || json!({"deep": {"inner": "x"}});
    check(&[("mcp-param-inner", "x")], deep(), true).await;
    check(&[("mcp-param-inner", "y")], deep(), false).await;
    check(&[], deep(), false).await;
    check(&[], json!({"deep": {}}), true).await;
    check(&[], json!({"deep": {"inner": null}}), true).await;
    check(&[], json!({}), true).await;
    for absent in [json!({"deep": {}}), json!({}), json!({"deep": null})] {
        check(&[("mcp-param-inner", "x")], absent, false).await;
    }
}

/// Tools are looked up only if one marks an argument; that changes with the tools, and with those of mounted servers.
///
/// Holds: HTTPM-34
#[tokio::test]
async fn a_marked_argument_is_compared_wherever_its_tool_comes_from() {
    let tool = |name: &str, keyword: &str| {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "string", keyword: "A"}}});
        Tool::dynamic(name, schema, |_, _| async { Ok::<_, HandlerExit>("x") })
    };
    let arguments = json!({"a": "x"});
    let missing = |server: std::sync::Arc<toolgate::edge::ProtocolServer>, name: &'static str| {
        let body = body(name, &arguments);
        async move {
            let endpoint = HttpEndpoint::new(server, HttpLimits::default());
            let headers = [CALL[0], CALL[1], ("mcp-name", name)];
            post(&endpoint, &headers, &body).await
        }
    };
    let refused = (400, Some(-32020));
    let server = || Server::new("s", "1").tool(tool("echo", "x-plain"));
    let (front, registry) = server().build_with_registry().unwrap();
    assert_eq!(missing(front.clone(), "echo").await, (200, None));
    registry.set_tool(tool("late", "x-mcp-header")).unwrap();
    assert_eq!(missing(front.clone(), "late").await, refused);
    registry.set_tool(tool("echo", "x-mcp-header")).unwrap();
    assert_eq!(missing(front.clone(), "echo").await, refused);
    registry.set_tool(tool("echo", "x-plain")).unwrap();
    assert_eq!(missing(front, "echo").await, (200, None));
    let inner = Server::new("inner", "1").tool(tool("deep", "x-mcp-header"));
    let outer = server().mount("in", inner).build().unwrap();
    assert_eq!(missing(outer, "in_deep").await, refused);
}

/// Text that is not plain is sent as Base64; invalid Base64 is rejected.
///
/// Holds: HTTPM-30, HTTPM-33
#[tokio::test]
async fn a_repeated_argument_has_good_characters() {
    let plain = |value: &str| json!({"plain": value});
    check(
        &[("mcp-param-plain", "=?base64?w7w=?=")],
        plain("\u{fc}"),
        true,
    )
    .await;
    check(&[("mcp-param-plain", "\u{fc}")], plain("\u{fc}"), false).await;
    for broken in ["=?base64?!!?=", "=?base64?/w==?=", "=?base64?w7w?="] {
        check(&[("mcp-param-plain", broken)], plain(broken), false).await;
    }
}

/// A request with rejected headers reaches no tool and is audited.
#[tokio::test]
async fn a_refused_header_is_on_record() {
    let seen = std::sync::Arc::new(Seen::default());
    let limits = toolgate::edge::ServerLimits::default();
    let server = toolgate::edge::ProtocolServer::new(Scripted::new(), "s", "1", limits).unwrap();
    let server = std::sync::Arc::new(server.with_rejection_log(seen.clone()));
    let endpoint = HttpEndpoint::new(server, HttpLimits::default());
    let mut headers = CALL.to_vec();
    headers.push(CALL[2]);
    let (status, _) = post(&endpoint, &headers, &body("echo", &json!({}))).await;
    assert_eq!((status, seen.calls()), (400, vec!["http echo".to_owned()]));
}
