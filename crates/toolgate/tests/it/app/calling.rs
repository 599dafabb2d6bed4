//! Lists, calls, resources, prompts and completion.

use super::sample_server::{REVISIONS, client, over, server};
use serde::Deserialize;
use serde_json::json;
use std::sync::{Arc, Mutex};
use toolgate::{Client, Json, core::ErrorKind, handlers::LogLevel};
use toolgate_protocol::json::JsonLimits;

#[derive(Deserialize)]
struct Sum {
    sum: i64,
}

/// Holds: TOOL-13, TOOL-20, TOOL-23, TOOL-25, PAG-04, LIFE-01, LIFE-04
#[tokio::test]
async fn tools_in_every_revision() {
    for revision in REVISIONS {
        let client = client(revision, Client::builder()).await;
        let tools = client.tools().await.unwrap();
        assert_eq!(tools[0].name(), "add", "{revision}");
        assert!(tools[0].input_schema().get("required").is_some());
        let result = client.call("add", json!({"a": 2, "b": 3})).await.unwrap();
        assert_eq!(result.structured::<Sum>().unwrap().sum, 5, "{revision}");
        let result = client.call("fail", ()).await.unwrap();
        assert!(result.is_error());
        assert_eq!(result.text(), "no luck");
        assert!(result.structured::<Sum>().is_err());
        let unknown = client.call("Add", ()).await.unwrap_err();
        assert_eq!(*unknown.kind(), ErrorKind::NotFound);
    }
}

/// Holds: RES-05, RES-09, PROM-04, COMP-02
#[tokio::test]
async fn resources_prompts_and_completion_in_every_revision() {
    for revision in REVISIONS {
        let client = client(revision, Client::builder()).await;
        assert_eq!(client.resources().await.unwrap()[0].name(), "note://today");
        assert_eq!(
            client.templates().await.unwrap()[0].name(),
            "note://of/{day}"
        );
        let text =
            |read: toolgate::core::ReadResult| read.contents[0].get("text").unwrap().string();
        let read = client.read("note://today").await.unwrap();
        assert_eq!(text(read).unwrap(), "Sunny.");
        let read = client.read("note://of/monday").await.unwrap();
        assert_eq!(text(read).unwrap(), "Notes of monday.");
        assert!(client.read("note://nowhere/at/all").await.is_err());
        assert!(client.read("not an address").await.is_err());
        assert_eq!(client.prompts().await.unwrap()[0].name(), "greet");
        let prompt = client.prompt("greet", json!({"who": "Ada"})).await.unwrap();
        let text = prompt.messages[0].content.json.get("text").unwrap();
        assert_eq!(text.string().unwrap(), "Greet Ada.");
        let invalid = client.prompt("greet", ()).await.unwrap_err();
        assert!(matches!(invalid.kind(), ErrorKind::InvalidArguments(_)));
        let values = client.complete_prompt("greet", "who", "A", &[]).await;
        assert_eq!(values.unwrap().values, ["Ada", "Alan"], "{revision}");
    }
}

/// Holds: CANC-14, PROG-01, PROG-03, LOG-02, LOG-03
#[tokio::test]
async fn progress_and_log_in_every_revision() {
    for revision in REVISIONS {
        let logged = Arc::new(Mutex::new(Vec::new()));
        let to = logged.clone();
        let builder = Client::builder().on_log(LogLevel::Warning, move |message| {
            to.lock().unwrap().push(message.level);
        });
        let client = client(revision, builder).await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let to = seen.clone();
        let call = client.call_with("count", ());
        call.progress(move |p| to.lock().unwrap().push(p.progress))
            .await
            .unwrap();
        assert_eq!(*seen.lock().unwrap(), [1.0, 2.0, 3.0], "{revision}");
        assert_eq!(*logged.lock().unwrap(), ["warning"], "{revision}");
    }
}

/// Holds: LIFE-03, LIFE-16, LIFE-18
#[tokio::test]
async fn what_the_server_says_of_itself() {
    for revision in REVISIONS {
        let client = client(revision, Client::builder()).await;
        client.ping().await.unwrap();
        assert_eq!(client.server().unwrap().name, "world");
        assert_eq!(client.instructions().unwrap(), "Use it well.");
        assert!(client.capabilities().get("tools").is_some());
    }
    let newest = Client::in_process(server()).await.unwrap();
    assert_eq!(newest.revision(), "2026-07-28");
    let settings = newest.extension("com.example/thing").unwrap();
    assert_eq!(settings.as_str(), r#"{"x":1}"#);
}

/// Holds: CACHE-11, RES-03
#[tokio::test]
async fn changes_are_told_and_read_anew() {
    for revision in REVISIONS {
        let (edge, registry) = server().build_with_registry().unwrap();
        let builder = Client::builder().revision(revision);
        let client = over(builder, edge).await;
        let before = client.tools().await.unwrap().len();
        let mut changes = client.changes(["note://today"]).await.unwrap();
        // Told again until it is heard: since 2026-07-28 the stream of changes opens beside all else.
        let changed = loop {
            registry.remove_tool("fail");
            registry.updated("note://today");
            let soon = std::time::Duration::from_millis(20);
            if let Ok(changed) = tokio::time::timeout(soon, changes.next()).await {
                break changed.unwrap();
            }
        };
        assert!(!changed.lists.is_empty() || !changed.updated.is_empty());
        while client.tools().await.unwrap().len() == before {
            tokio::task::yield_now().await;
        }
    }
}

/// Holds: TOOL-41
#[tokio::test]
async fn exact_arguments_keep_their_bytes() {
    let client = client("2026-07-28", Client::builder()).await;
    let bytes = br#"{"b": 3,  "a":2}"#.to_vec();
    let exact = Json::read(bytes, &JsonLimits::default()).unwrap();
    let seen = Arc::new(Mutex::new(String::new()));
    let to = seen.clone();
    let builder = Client::builder().confirm(move |call| {
        *to.lock().unwrap() = call.arguments.as_str().to_owned();
        async { Ok(()) }
    });
    let confirming = over(builder, server()).await;
    for client in [client, confirming] {
        let result = client.call("add", &exact).await;
        assert_eq!(result.unwrap().structured::<Sum>().unwrap().sum, 5);
    }
    assert_eq!(*seen.lock().unwrap(), r#"{"b": 3,  "a":2}"#);
}
