//! Single facts of the specification over HTTP that no other test is about.

use super::{
    Scripted,
    http::{Body, endpoint, send, text},
};
use http::Response;
use serde_json::{Value, json};
use toolgate::{
    HandlerExit,
    edge::http::{HttpEndpoint, HttpLimits},
    handlers::{Cx, LogLevel, Server, Tool, ask},
};

fn open(revision: &str) -> String {
    let client = json!({"name": "t", "version": "1"});
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string()
}

fn session(opened: &Response<Body>) -> String {
    let id = opened.headers()["mcp-session-id"].to_str().unwrap();
    id.to_owned()
}

/// A call of 2026-07-28: headers, and body.
fn modern<'a>(id: u64, name: &'a str, token: &str) -> ([(&'a str, &'a str); 3], String) {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}, "progressToken": token});
    let params = json!({"name": name, "arguments": {}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", name),
    ];
    (headers, body.to_string())
}

fn messages(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|l| l.strip_prefix("data: "));
    data.filter(|data| !data.is_empty())
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

/// Holds: HTTPL-12
#[tokio::test]
async fn the_reply_ends_the_stream_of_its_request() {
    let endpoint = endpoint(Scripted::new());
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let opened = send(&endpoint, "POST", &[], &open(revision)).await;
        let session = session(&opened);
        let with = [("mcp-session-id", session.as_str())];
        let params = json!({"name": "count", "_meta": {"progressToken": "p"}});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let response = send(&endpoint, "POST", &with, &call.to_string()).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        // `text` ends with the stream.
        let heard = messages(&text(response).await);
        let (reply, before) = heard.split_last().unwrap();
        assert_eq!(reply["id"], 1, "{revision}: {reply}");
        assert_eq!(before.len(), 3);
        for told in before {
            assert_eq!(told["params"]["progressToken"], "p", "{revision}: {told}");
        }
    }
}

/// Holds: HTTPM-11, PROG-08
#[tokio::test]
async fn progress_comes_on_the_stream_of_its_request() {
    let endpoint = endpoint(Scripted::new());
    let one = async |id: u64, token: &str| {
        let (headers, body) = modern(id, "count", token);
        let response = send(&endpoint, "POST", &headers, &body).await;
        messages(&text(response).await)
    };
    let (first, second) = tokio::join!(one(1, "first"), one(2, "second"));
    for (heard, id, token) in [(first, 1, "first"), (second, 2, "second")] {
        let (reply, before) = heard.split_last().unwrap();
        assert_eq!((&reply["id"], before.len()), (&json!(id), 3));
        for told in before {
            assert_eq!(told["params"]["progressToken"], token, "{told}");
        }
    }
}

/// A tool that asks after it told how far it is: the stream is open, and still the question is the result.
///
/// Holds: HTTPM-12, BASE-28
#[tokio::test]
async fn a_question_is_no_request_on_the_stream() {
    let object = json!({"type": "object"});
    let asks = Tool::dynamic("asks", object, |_, cx: Cx| async move {
        cx.progress(1.0, 2.0, "half");
        cx.ask("q", ask::text("Who?"))
    });
    let server = Server::new("s", "1").tool(asks).build().unwrap();
    let endpoint = HttpEndpoint::new(server, HttpLimits::default());
    let (headers, body) = modern(1, "asks", "p");
    let response = send(&endpoint, "POST", &headers, &body).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let heard = messages(&text(response).await);
    let methods: Vec<&Value> = heard.iter().map(|m| &m["method"]).collect();
    assert_eq!(methods, [&json!("notifications/progress"), &Value::Null]);
    assert_eq!(heard[1]["result"]["resultType"], "input_required");
}

/// A message that expects no reply gets none, in a session.
///
/// Holds: HTTPL-07
#[tokio::test]
async fn what_wants_no_reply_is_accepted_without_a_body() {
    let endpoint = endpoint(Scripted::new());
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let opened = send(&endpoint, "POST", &[], &open(revision)).await;
        let session = session(&opened);
        let with = [("mcp-session-id", session.as_str())];
        for message in [
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 7, "result": {}}),
            json!({"jsonrpc": "2.0", "id": 8, "error": {"code": 1, "message": "no"}}),
        ] {
            let response = send(&endpoint, "POST", &with, &message.to_string()).await;
            assert_eq!(response.status(), 202, "{revision} {message}");
            assert_eq!(text(response).await, "");
        }
    }
}

/// Holds: HTTPM-36
#[tokio::test]
async fn names_of_headers_ignore_case_and_values_do_not() {
    let endpoint = endpoint(Scripted::new());
    let (headers, body) = modern(1, "echo", "p");
    let loud = headers.map(|(name, value)| (name.to_uppercase(), value));
    let loud: Vec<(&str, &str)> = loud.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    assert_eq!(send(&endpoint, "POST", &loud, &body).await.status(), 200);
    for (at, value) in [(1, "Tools/Call"), (2, "ECHO")] {
        let mut changed = headers;
        changed[at].1 = value;
        let response = send(&endpoint, "POST", &changed, &body).await;
        assert_eq!(response.status(), 400, "{value}");
        assert!(text(response).await.contains("-32020"));
    }
}

/// A subscription of 2026-07-28: headers, and body.
fn listen(id: &str, filter: &Value) -> ([(&'static str, &'static str); 2], String) {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/logLevel": "debug"});
    let params = json!({"notifications": filter, "_meta": meta});
    let body =
        json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params});
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
    ];
    (headers, body.to_string())
}

/// Holds: SUB-06
#[tokio::test]
async fn the_stream_of_a_subscription_that_we_end_ends_with_its_reply() {
    let server = super::server(Scripted::new());
    let endpoint = HttpEndpoint::new(server.clone(), HttpLimits::default());
    let (headers, body) = listen("l", &json!({"toolsListChanged": true}));
    let response = send(&endpoint, "POST", &headers, &body).await;
    server.close();
    // `text` ends with the stream.
    let heard = messages(&text(response).await);
    let (reply, before) = heard.split_last().unwrap();
    assert_eq!(
        before[0]["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(
        (&reply["id"], &reply["result"]["resultType"]),
        (&json!("l"), &json!("complete"))
    );
    let stream = &reply["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(stream, "l");
}

/// Holds: LOG-03
#[tokio::test]
async fn logs_come_on_the_stream_of_the_request_that_asked_for_them() {
    let object = json!({"type": "object"});
    let log = Tool::dynamic("log", object, |_, cx: Cx| async move {
        cx.log(LogLevel::Error, "logged");
        cx.progress(1.0, None, "");
        // The others are open meanwhile.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        Ok::<_, HandlerExit>("done")
    });
    let server = Server::new("s", "1").tool(log).build().unwrap();
    let endpoint = HttpEndpoint::new(server.clone(), HttpLimits::default());
    let (headers, body) = listen("l", &json!({"toolsListChanged": true}));
    let stream = send(&endpoint, "POST", &headers, &body).await;
    let call = async |id: u64, level: Option<&str>| {
        let (headers, body) = modern(id, "log", "p");
        let mut body: Value = serde_json::from_str(&body).unwrap();
        if let Some(level) = level {
            body["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
        }
        let response = send(&endpoint, "POST", &headers, &body.to_string()).await;
        messages(&text(response).await)
    };
    let (asked, quiet) = tokio::join!(call(1, Some("info")), call(2, None));
    server.close();
    let methods = |heard: &[Value]| -> Vec<Value> {
        heard
            .iter()
            .map(|message| message["method"].clone())
            .collect()
    };
    let (log, progress) = (
        json!("notifications/message"),
        json!("notifications/progress"),
    );
    assert_eq!(methods(&asked), [log, progress.clone(), Value::Null]);
    assert_eq!(methods(&quiet), [progress, Value::Null]);
    let listened = messages(&text(stream).await);
    assert_eq!(
        methods(&listened),
        [
            json!("notifications/subscriptions/acknowledged"),
            Value::Null
        ]
    );
}
