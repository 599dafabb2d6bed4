//! HTTP over a Unix socket, on both sides.
#![cfg(unix)]

use serde_json::json;
use std::path::PathBuf;
use tokio::net::UnixListener;
use toolgate::{Client, Server, tool};

/// Says the text again.
#[tool(read_only)]
fn echo(text: String) -> String {
    text
}

struct Socket(PathBuf);

impl Socket {
    fn new(name: &str) -> Socket {
        let file = format!("toolgate-{name}-{}.sock", std::process::id());
        Socket(std::env::temp_dir().join(file))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
#[allow(
    clippy::disallowed_methods,
    reason = "the test plays the client meanwhile"
)]
async fn a_client_calls_a_server_over_a_unix_socket_in_every_revision() {
    let socket = Socket::new("both");
    let service = toolgate::http(Server::new("echo", "1").tool(echo)).unwrap();
    let router: axum::Router = axum::Router::new().nest_service("/mcp", service);
    let listener = UnixListener::bind(&socket.0).unwrap();
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    for (revision, url) in [
        ("2026-07-28", "http://localhost/mcp"),
        ("2025-11-25", "http://localhost/mcp"),
        ("2024-11-05", "http://localhost/mcp/sse"),
    ] {
        let builder = Client::builder().revision(revision).unix_socket(&socket.0);
        let client = builder.connect(url).await.unwrap();
        assert_eq!(client.revision(), revision);
        let said = client.call("echo", json!({"text": "hello"})).await.unwrap();
        assert_eq!(said.text(), "hello");
    }
    serving.abort();
}

#[tokio::test]
async fn a_unix_socket_rejects_tls_and_reports_a_missing_server() {
    let socket = Socket::new("none");
    let connect = |url: &'static str| Client::builder().unix_socket(&socket.0).connect(url);
    let error = connect("https://localhost/mcp")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("has no TLS"), "{error}");
    let error = connect("http://localhost/mcp")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("cannot be reached"), "{error}");
}
