//! The duties of a client, on by default.

use super::sample_server::{REVISIONS, client, over, server};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use toolgate::{
    Client, HandlerExit, Server, Structured, Tool,
    client::{CallEvent, CallState},
    core::{ErrorKind, RefusalReason},
};
use toolgate_policy::RateQuota;

fn tell<T: Send + 'static>() -> (Arc<Mutex<Vec<T>>>, impl Fn(T) + Send + Sync + 'static) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let to = seen.clone();
    (seen, move |one| to.lock().unwrap().push(one))
}

/// Holds: TOOL-41
#[tokio::test]
async fn bad_arguments_never_leave() {
    for revision in REVISIONS {
        let client = client(revision, Client::builder()).await;
        for bad in [
            json!({"a": 1}),
            json!({"a": 1, "b": "2"}),
            json!([1]),
            json!(3),
        ] {
            let error = client.call("add", &bad).await.unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::InvalidArguments(_)),
                "{revision} {bad}"
            );
        }
    }
}

/// Holds: TOOL-45, TOOL-46, TOOL-21
#[tokio::test]
async fn the_application_sees_the_exact_call_first() {
    for revision in REVISIONS {
        let (seen, told) = tell();
        let builder = Client::builder().confirm(move |call| {
            told(format!(
                "{} {} {} {:?}",
                call.server,
                call.tool.name(),
                call.arguments.as_str(),
                call.tool.annotations().destructive
            ));
            let a = call.arguments.get("a").and_then(|a| a.i64());
            async move {
                match a {
                    Some(1) => Ok(()),
                    _ => Err("a must be one".to_owned()),
                }
            }
        });
        let client = client(revision, builder).await;
        client.call("add", json!({"a": 1, "b": 2})).await.unwrap();
        let error = client
            .call("add", json!({"a": 2, "b": 2}))
            .await
            .unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Refused(RefusalReason::Approver));
        assert!(error.public_message().contains("a must be one"), "{error}");
        let seen = seen.lock().unwrap();
        assert_eq!(
            *seen,
            [
                r#"world add {"a":1,"b":2} true"#,
                r#"world add {"a":2,"b":2} true"#
            ]
        );
    }
}

/// A person who says yes is asked once, also where the server asks later.
///
/// Holds: TOOL-45
#[tokio::test]
async fn a_call_with_rounds_is_confirmed_once() {
    use toolgate::handlers::ask::Reply;
    let (seen, told) = tell();
    let builder = Client::builder()
        .on_elicit(|_| async { Reply::Accepted(json!({"value": "C"})) })
        .confirm(move |call| {
            told(call.tool.name().to_owned());
            async { Ok(()) }
        });
    let client = client("2026-07-28", builder).await;
    client.call("asks", ()).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["asks"]);
}

/// Holds: TOOL-42, TOOL-45
#[tokio::test]
async fn only_allowed_tools_are_there() {
    let builder = Client::builder().allow(["a*", "co?nt"]).deny(["asks"]);
    let client = client("2025-11-25", builder).await;
    let tools = client.tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    assert_eq!(names, ["add", "count"]);
    for hidden in ["asks", "fail"] {
        let error = client.call(hidden, ()).await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::NotFound, "{hidden}");
    }
    assert!(client.read("note://today").await.is_ok());
    let builder = Client::builder().deny(["resource:note://*"]);
    let client = super::sample_server::client("2025-11-25", builder).await;
    assert!(client.resources().await.unwrap().is_empty());
    let error = client.read("note://today").await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::NotFound);
}

/// A result may link to a resource that no list shows. Rules speak of it by its URI, however that is written.
///
/// Holds: RES-09
#[tokio::test]
async fn resources_that_no_list_shows() {
    use super::legacy::{legacy, soon};
    let builder = Client::builder().deny(["resource:file:///secret/*"]);
    let (client, mut peer, _) = legacy(builder, json!({"resources": {}})).await;
    let (reading, other) = (client.clone(), client.clone());
    let read = soon(async move { reading.read("file:///linked").await });
    for list in ["resources", "resourceTemplates"] {
        let request = peer.read().await;
        peer.reply(&request, json!({list: []})).await;
    }
    let request = peer.read().await;
    assert_eq!(request["params"]["uri"], "file:///linked");
    let contents = json!({"contents": [{"uri": "file:///linked", "text": "x"}]});
    peer.reply(&request, contents).await;
    assert_eq!(read.await.unwrap().unwrap().contents.len(), 1);
    for uri in [
        "file:///secret/a",
        "file:///%73ecret/a",
        "file:///x/../secret/a",
    ] {
        let error = other.read(uri).await.unwrap_err();
        assert!(
            matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::InvalidArguments(_)
            ),
            "{uri}: {error:?}"
        );
    }
}

/// Holds: TOOL-43
#[tokio::test]
async fn the_rate_is_limited() {
    let builder = Client::builder().rate_limit(RateQuota::per_minute(2));
    let client = client("2026-07-28", builder).await;
    let add = || client.call("add", json!({"a": 1, "b": 2}));
    assert!(add().await.is_ok() && add().await.is_ok());
    assert!(matches!(
        add().await.unwrap_err().kind(),
        ErrorKind::Busy(_)
    ));
}

fn slow() -> Server {
    let slow = Tool::dynamic("slow", json!({"type": "object"}), |_: Value, _| async {
        std::future::pending::<()>().await;
        Ok::<_, HandlerExit>(Structured(json!({})))
    });
    Server::new("slow", "1").tool(slow)
}

/// Holds: TOOL-48, CANC-14, LIFE-13
#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_ends() {
    for revision in REVISIONS {
        let builder = Client::builder().revision(revision);
        let client = over(builder, slow()).await;
        let begin = tokio::time::Instant::now();
        let call = client.call_with("slow", ()).timeout(Duration::from_secs(3));
        let error = call.await.unwrap_err();
        assert_eq!(
            (error.kind(), begin.elapsed().as_secs()),
            (&ErrorKind::TimedOut, 3)
        );
        let error = client.call("slow", ()).await.unwrap_err();
        assert_eq!(
            (error.kind(), begin.elapsed().as_secs()),
            (&ErrorKind::TimedOut, 63)
        );
    }
}

/// Holds: TOOL-44, TOOL-47
#[tokio::test]
async fn text_that_hides_is_cleaned() {
    // A server without duties of its own.
    let client = super::legacy::bare().await;
    let text = client.call("sly", ()).await.unwrap().text();
    assert_eq!(
        text,
        toolgate_policy::sanitize_text("a\u{202e}b\u{e0041}\u{1b}[2J")
    );
    assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'));
    let tools = client.tools().await.unwrap();
    assert!(!tools[0].description().unwrap().contains('\u{e0041}'));
}

/// Holds: TOOL-45, TOOL-49
#[tokio::test]
async fn calls_are_told_and_recorded() {
    let (seen, told) = tell::<CallEvent>();
    let folder = std::env::temp_dir().join(format!("toolgate-client-{}", std::process::id()));
    let builder = Client::builder().observe(told).audit_in(&folder);
    let client = over(builder, server()).await;
    client.call("add", json!({"a": 1, "b": 2})).await.unwrap();
    client.call("add", json!({"a": 1})).await.unwrap_err();
    drop(client.call("add", ()));
    let states: Vec<String> = {
        let seen = seen.lock().unwrap();
        assert_eq!(seen[0].arguments.as_str(), r#"{"a":1,"b":2}"#);
        let word = |event: &CallEvent| match &event.state {
            CallState::Began => "begins",
            CallState::Done {
                is_error: false, ..
            } => "done",
            CallState::Failed { .. } => "failed",
            _ => "other",
        };
        seen.iter().map(|event| word(event).to_owned()).collect()
    };
    assert_eq!(states, ["begins", "done", "begins", "failed"]);
    drop(client);
    let mut files = Vec::new();
    let mut folders = vec![folder.clone()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => files.push(std::fs::read_to_string(path).unwrap_or_default()),
            }
        }
    }
    let all = files.concat();
    for event in ["call.begin", "call.end", "deny"] {
        assert!(all.contains(event), "{event}: {all}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
