//! No text that a server plants reaches the caller uncleaned, on any channel, in any revision.

use super::{
    planter::{HIDDEN, Planter},
    run,
};
use crate::handlers::peer::{NEWEST_REVISION, Peer, REVISIONS};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{duplex, split};
use toolgate::{
    Caller, Service,
    client::{RemoteOptions, RemoteServer},
    core::{ItemKind, ListRequest, Origin},
    edge::{self, ServerLimits, stdio},
};
use toolgate_policy::Policy;
use toolgate_protocol::dialect;

fn governed(end: Arc<dyn Service>) -> Arc<edge::ProtocolServer> {
    let pipeline = Arc::new(Policy::default().over(end));
    let server = edge::ProtocolServer::new(pipeline, "s", "1", ServerLimits::default());
    Arc::new(server.unwrap())
}

/// The planter as a server elsewhere, which speaks that revision and cleans nothing.
async fn elsewhere(planter: Arc<Planter>, revision: &str) -> RemoteServer {
    let raw = edge::ProtocolServer::new(planter, "planter", "1", ServerLimits::default()).unwrap();
    let (ours, theirs) = duplex(1 << 20);
    let (from, to) = split(theirs);
    #[allow(clippy::disallowed_methods, reason = "ends with its stream")]
    tokio::spawn(stdio::serve(Arc::new(raw), Caller::new("gate"), from, to));
    let mut options = RemoteOptions::new(Origin {
        server: "planter".into(),
        trusted: false,
    });
    let spoken = dialect::find(revision).unwrap();
    options.probe = spoken.stateless;
    options.revisions = vec![spoken];
    let (from, to) = split(ours);
    RemoteServer::open(from, to, options).await.unwrap()
}

/// Uses all that there is, in that revision; all that was heard.
async fn everything(server: &Arc<edge::ProtocolServer>, revision: &'static str) -> Vec<Value> {
    let able = json!({"elicitation": {}, "sampling": {}, "roots": {}});
    let mut peer = Peer::open(server, revision, able).await;
    if revision != NEWEST_REVISION {
        let debug = json!({"level": "debug"});
        peer.result("logging/setLevel", debug).await;
    }
    // Skills are of the newest revision.
    let has = |kind: &ItemKind| *kind != ItemKind::Skill || revision == NEWEST_REVISION;
    for kind in ItemKind::ALL.into_iter().filter(has) {
        let listed = peer.result(kind.list_method(), json!({})).await;
        assert!(listed[kind.list_member()].is_array());
    }
    let mut token = 0;
    let mut used = |mut params: Value| {
        token += 1;
        params["_meta"] =
            json!({"progressToken": token, "io.modelcontextprotocol/logLevel": "debug"});
        params
    };
    for tool in ["done", "fails", "broken", "invalid"] {
        let params = used(json!({"name": tool, "arguments": {"x": "y"}}));
        peer.request("tools/call", params).await;
    }
    for uri in ["test://done", "test://broken", "made://done"] {
        peer.request("resources/read", used(json!({"uri": uri})))
            .await;
    }
    for name in ["done", "broken"] {
        peer.request("prompts/get", used(json!({"name": name})))
            .await;
        let argument = json!({"name": "a", "value": "v"});
        let of = json!({"type": "ref/prompt", "name": name});
        let params = used(json!({"ref": of, "argument": argument}));
        peer.request("completion/complete", params).await;
    }
    for tool in ["asks", "samples"] {
        let id = peer.send_request("tools/call", json!({"name": tool})).await;
        loop {
            let message = peer.receive().await;
            if message["id"] == id && message.get("method").is_none() {
                break;
            }
            if message.get("id").is_some() {
                let error = json!({"code": -1, "message": "no"});
                peer.send_message(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
                    .await;
            }
        }
    }
    peer.heard()
}

pub(super) fn holds(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(HIDDEN),
        Value::Array(items) => items.iter().any(holds),
        Value::Object(members) => members
            .iter()
            .any(|(key, value)| key.contains(HIDDEN) || holds(value)),
        _ => false,
    }
}

fn clean(heard: &[Value], revision: &str) {
    for message in heard {
        assert!(!holds(message), "{revision}: {message}");
    }
    let all: String = heard.iter().map(Value::to_string).collect();
    assert!(
        !all.contains("enum"),
        "{revision}: a changed choice is listed"
    );
}

/// Every channel was used: else nothing is shown.
fn spoken(heard: &[Value], words: &[&str], revision: &str) {
    let all: String = heard.iter().map(Value::to_string).collect();
    for word in words {
        assert!(all.contains(word), "{revision}: nobody said {word}");
    }
}

const WORDS: [&str; 14] = [
    "description",
    "field",
    "schema",
    "argument",
    "block",
    "part",
    "about",
    "value",
    "broken",
    "invalid",
    "progress",
    "logger",
    "logged",
    "mime",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Holds: TOOL-44, PROM-05.
    #[test]
    fn nothing_hidden_comes_from_a_service(first in 0..HIDDEN.len()) {
        run(async {
            let planter = Planter::new(first);
            let server = governed(planter.clone());
            for revision in REVISIONS {
                let heard = everything(&server, revision).await;
                clean(&heard, revision);
                spoken(&heard, &WORDS, revision);
                if revision >= "2025-06-18" {
                    spoken(&heard, &["form", "sample", "structured", "meta", "title"], revision);
                }
            }
            for kind in ItemKind::ALL {
                let list = ListRequest::all(Caller::new("t"), kind);
                let catalog = Policy::default().over(planter.clone()).list(list).await.unwrap();
                let text = &catalog.server_instructions()[0].text;
                assert!(!text.contains(HIDDEN) && text.starts_with("instructions"));
            }
        });
    }

    #[test]
    fn nothing_hidden_comes_from_elsewhere(first in 0..HIDDEN.len(), up in 0..5usize, down in 0..5usize) {
        run(async {
            let remote = elsewhere(Planter::new(first), REVISIONS[up]).await;
            let server = governed(Arc::new(remote));
            let heard = everything(&server, REVISIONS[down]).await;
            clean(&heard, REVISIONS[down]);
            spoken(&heard, &["description", "block", "part", "value", "broken"], REVISIONS[down]);
        });
    }
}

/// The planter does plant: without the duties all of it comes through.
#[test]
fn without_duties_it_would_come() {
    run(async {
        let limits = ServerLimits::default();
        let raw = edge::ProtocolServer::new(Planter::new(0), "s", "1", limits).unwrap();
        let heard = everything(&Arc::new(raw), NEWEST_REVISION).await;
        let dirty = heard.iter().filter(|message| holds(message));
        assert!(dirty.count() > 20);
    });
}
