//! Servers of 2024-11-05: one stream for all answers.

use super::{
    super::remote::peer::{Opening, call, welcome},
    server::{Asked, Server, Told, soon, start},
};
use serde_json::json;
use toolgate::{Service, client::RemoteServer};

/// Goes through the fallback, up to where the server names its endpoint.
async fn fallen_back(status: &str) -> (Opening, Server, Told) {
    let (opening, server) = start().await;
    server.next().await.answer(status, &[], "").await;
    let hello = server.next().await;
    assert_eq!(hello.body["method"], "initialize");
    hello.answer(status, &[], "").await;
    let get = server.next().await;
    assert_eq!((get.method.as_str(), get.path.as_str()), ("GET", "/mcp"));
    assert_eq!(get.header("accept"), Some("text/event-stream"));
    (opening, server, get.stream().await)
}

async fn open() -> (RemoteServer, Server, Told) {
    let (opening, server, mut told) = fallen_back("405 Method Not Allowed").await;
    told.raw("event: endpoint\ndata: /messages?session=1\n\n")
        .await;
    let hello = server.next().await;
    assert_eq!(
        (hello.method.as_str(), hello.path.as_str()),
        ("POST", "/messages?session=1")
    );
    assert_eq!(hello.body["method"], "initialize");
    let id = hello.body["id"].clone();
    hello.answer("202 Accepted", &[], "Accepted").await;
    told.message(&json!({"jsonrpc": "2.0", "id": id, "result": welcome("2024-11-05", json!({}))}))
        .await;
    let ready = server.next().await;
    assert_eq!(ready.body["method"], "notifications/initialized");
    posted(&ready);
    ready.answer("202 Accepted", &[], "Accepted").await;
    (soon(opening).await.unwrap().unwrap(), server, told)
}

/// Asserts that a client message was posted to the endpoint.
fn posted(asked: &Asked) {
    let at = (asked.method.as_str(), asked.path.as_str());
    assert_eq!(at, ("POST", "/messages?session=1"));
}

/// Holds: HTTPM-43, HTTPL-32, SSE1-04.
#[tokio::test]
async fn a_server_of_the_old_transport_is_found_and_used() {
    let (remote, server, mut told) = open().await;
    assert_eq!(remote.status().revision, "2024-11-05");
    let (outcome, ()) = soon(async {
        tokio::join!(remote.call(call("echo", "{}")), async {
            let asked = server.next().await;
            posted(&asked);
            let id = asked.body["id"].clone();
            asked.answer("202 Accepted", &[], "Accepted").await;
            // Only events of the kind `message` are messages.
            let error = json!({"code": -32000, "message": "no"});
            let other = json!({"jsonrpc": "2.0", "id": id, "error": error});
            told.raw(&format!("event: other\ndata: {other}\n\n")).await;
            told.message(&json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}))
                .await;
        })
    })
    .await;
    outcome.unwrap();
    told.message(&json!({"jsonrpc": "2.0", "id": 5, "method": "ping"}))
        .await;
    let pong = server.next().await;
    assert_eq!(pong.body, json!({"jsonrpc": "2.0", "id": 5, "result": {}}));
    posted(&pong);
    pong.answer("202 Accepted", &[], "").await;
    let (outcome, ()) = tokio::join!(remote.call(call("echo", "{}")), async {
        server
            .next()
            .await
            .answer("500 Internal Server Error", &[], "")
            .await;
    });
    assert!(outcome.err().unwrap().public_message().contains("HTTP 500"));
    told.end().await;
    assert_eq!(soon(remote.closed()).await, "it closed its event stream");
}

/// Holds: HTTPM-43
#[tokio::test]
async fn messages_go_nowhere_else() {
    let elsewhere = Server::new().await;
    for endpoint in [
        elsewhere.url.as_str(),
        "//other.test/m",
        "ftp://a/",
        "https://127.0.0.1/m",
    ] {
        let (opening, _server, mut told) = fallen_back("404 Not Found").await;
        told.raw(&format!("event: endpoint\ndata: {endpoint}\n\n"))
            .await;
        let error = soon(opening).await.unwrap().err().unwrap();
        assert!(error.to_string().contains("HTTP 404"), "{error}");
    }
    let short = std::time::Duration::from_millis(100);
    assert!(elsewhere.next_within(short).await.is_none());
}

/// Holds: HTTPM-43
#[tokio::test]
async fn a_stream_that_does_not_begin_with_the_endpoint_is_none() {
    let (opening, _server, mut told) = fallen_back("400 Bad Request").await;
    told.raw("data: {}\n\n").await;
    let error = soon(opening).await.unwrap().err().unwrap();
    assert!(error.to_string().contains("HTTP 400"), "{error}");
}

/// Only 400, 404 and 405 can mean the old transport.
///
/// Holds: HTTPM-43
#[tokio::test]
async fn other_refusals_are_not_followed_by_a_get() {
    for status in [
        "401 Unauthorized",
        "403 Forbidden",
        "422 Unprocessable Entity",
        "500 Internal Server Error",
    ] {
        let (opening, server) = start().await;
        server.next().await.answer("404 Not Found", &[], "").await;
        server.next().await.answer(status, &[], "").await;
        let error = soon(opening).await.unwrap().err().unwrap();
        assert!(error.to_string().contains(&status[..3]), "{error}");
        let short = std::time::Duration::from_millis(50);
        assert!(server.next_within(short).await.is_none(), "{status}");
    }
}
