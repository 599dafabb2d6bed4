//! Reuse of what an earlier client learned of its server.

use super::sample_server::{REVISIONS, server};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use toolgate::{
    Client,
    client::{ClientBuilder, Discovery},
    core::Caller,
    edge::stdio,
    handlers::Server,
};

/// Methods of the requests that a client sent.
type Sent = Arc<Mutex<Vec<String>>>;

/// Opens a client of the server, and records the methods of its messages.
#[allow(clippy::disallowed_methods, reason = "ends with its stream")]
async fn open(with: ClientBuilder, server: Server) -> (Client, Sent) {
    let (ours, middle) = tokio::io::duplex(1 << 20);
    let (near, theirs) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(theirs);
    let caller = Caller::new("in-process");
    tokio::spawn(stdio::serve(
        server.build().unwrap(),
        caller,
        reader,
        writer,
    ));
    let sent = Sent::default();
    let (from_client, mut to_client) = tokio::io::split(middle);
    let (mut from_server, mut to_server) = tokio::io::split(near);
    let methods = sent.clone();
    tokio::spawn(async move {
        let mut lines = BufReader::new(from_client).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            if let Some(method) = message["method"].as_str() {
                methods.lock().unwrap().push(method.to_owned());
            }
            to_server
                .write_all(format!("{line}\n").as_bytes())
                .await
                .unwrap();
        }
    });
    tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
    let (reader, writer) = tokio::io::split(ours);
    let client = with.id("world").open(reader, writer).await.unwrap();
    (client, sent)
}

/// Returns the discovery of a first client that listed its tools, after it was stored and read.
async fn stored(revision: &str) -> Discovery {
    let with = Client::builder().revision(revision);
    let (client, _) = open(with, server().cache(600_000, false)).await;
    client.tools().await.unwrap();
    let text = serde_json::to_string(&client.discovery()).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn methods(sent: &Sent) -> Vec<String> {
    let quiet = ["notifications/initialized", "subscriptions/listen"];
    let sent = sent.lock().unwrap();
    sent.iter()
        .filter(|method| !quiet.contains(&method.as_str()))
        .cloned()
        .collect()
}

#[tokio::test]
async fn a_known_server_is_not_asked_again_in_any_revision() {
    for revision in REVISIONS {
        let known = stored(revision).await;
        assert_eq!(known.revision(), revision);
        let with = Client::builder().revision(revision).discovery(known);
        let (client, sent) = open(with, server()).await;
        let handshake: &[&str] = match revision {
            "2026-07-28" => &[],
            _ => &["initialize"],
        };
        assert_eq!(client.revision(), revision);
        let tools = client.tools().await.unwrap();
        assert_eq!(tools[0].name(), "add", "{revision}");
        assert_eq!(methods(&sent), handshake, "{revision}");
        let sum = client.call("add", json!({"a": 1, "b": 2})).await.unwrap();
        assert_eq!(
            sum.structured::<Value>().unwrap(),
            json!({"sum": 3}),
            "{revision}"
        );
        assert_eq!(methods(&sent).last().unwrap(), "tools/call", "{revision}");
        assert_eq!(client.server().unwrap().name, "world");
        assert_eq!(
            client.instructions().as_deref(),
            Some("Use it well."),
            "{revision}"
        );
        // What was not listed before is listed now.
        client.prompts().await.unwrap();
        assert_eq!(methods(&sent).last().unwrap(), "prompts/list", "{revision}");
    }
}

#[tokio::test]
async fn arguments_are_checked_against_the_stored_definitions() {
    let known = stored("2026-07-28").await;
    let (client, sent) = open(Client::builder().discovery(known), server()).await;
    assert!(client.call("add", json!({"a": "x"})).await.is_err());
    assert!(methods(&sent).is_empty(), "nothing was sent");
}

#[tokio::test]
async fn a_stale_list_is_read_again() {
    for revision in REVISIONS {
        let known = stored(revision).await.keep_lists_for(Duration::ZERO);
        let (client, sent) = open(Client::builder().discovery(known), server()).await;
        client.tools().await.unwrap();
        assert_eq!(methods(&sent).last().unwrap(), "tools/list", "{revision}");
    }
}

#[tokio::test]
async fn the_application_can_keep_lists_longer_than_the_server_says() {
    let with = Client::builder().revision("2026-07-28");
    let (client, _) = open(with, server().cache(0, false)).await;
    client.tools().await.unwrap();
    let known = client.discovery();
    for (known, expected) in [
        (known.clone(), &["tools/list"][..]),
        (known.keep_lists_for(Duration::from_secs(3600)), &[]),
    ] {
        let (client, sent) = open(Client::builder().discovery(known), server()).await;
        client.tools().await.unwrap();
        assert_eq!(methods(&sent), expected);
    }
}

/// The stored revision is only a shortcut: what the application allows decides.
#[tokio::test]
async fn a_revision_that_is_not_allowed_is_negotiated() {
    let known = stored("2026-07-28").await;
    let with = Client::builder().revision("2025-11-25").discovery(known);
    let (client, _) = open(with, server()).await;
    assert_eq!(client.revision(), "2025-11-25");
}

#[tokio::test]
async fn the_discovery_of_another_server_is_rejected() {
    let known = stored("2026-07-28").await;
    let opened = Client::builder()
        .id("moon")
        .discovery(known)
        .in_process(server())
        .await;
    let error = opened.unwrap_err();
    let said = error.public_message();
    assert!(
        said.contains("belongs to the server \"world\"") && said.contains("server is \"moon\""),
        "{said}"
    );
}
