//! State after a handshake: its end, and the negotiated values.

use super::{
    HANG, Scripted,
    http::{endpoint, send, text},
    server,
};
use crate::{
    handlers::peer::{Peer, REVISIONS},
    remote::peer::{Peer as Far, legacy_of, options, soon},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use toolgate::{
    Call, Caller, Cx, HandlerExit, Json, Service,
    client::RemoteServer,
    core::{ChangeFilter, ItemKind, ListRequest, Op},
    edge::stdio,
    handlers::{Server, Tool, ask},
};

/// A server that is offered a revision it has not, or one without sessions, names its newest with sessions.
///
/// Holds: LIFE-08
#[tokio::test]
async fn an_unknown_revision_is_answered_with_the_newest_of_sessions() {
    let offers = ["1999-01-01", "2026-07-28", "2099-12-31", "1.0", ""];
    for offer in offers {
        let mut peer = Peer::open(&server(Scripted::new()), REVISIONS[4], json!({})).await;
        let mut hello: Value = serde_json::from_str(&crate::rows::web::hello(offer)).unwrap();
        peer.send_message(hello.take()).await;
        let opened = peer.receive().await;
        assert_eq!(
            opened["result"]["protocolVersion"], "2025-11-25",
            "{offer:?}: {opened}"
        );
        let endpoint = endpoint(Scripted::new());
        let opened = send(&endpoint, "POST", &[], &crate::rows::web::hello(offer)).await;
        assert_eq!(opened.status(), 200, "{offer:?}");
        let opened: Value = serde_json::from_str(&text(opened).await).unwrap();
        assert_eq!(opened["result"]["protocolVersion"], "2025-11-25");
    }
}

/// A call may come before the handshake is over; what it asks the client does not.
///
/// Holds: LIFE-06
#[tokio::test(start_paused = true)]
#[allow(clippy::disallowed_methods, reason = "ends with its stream")]
async fn nothing_is_asked_before_the_handshake_is_over() {
    for ready in [true, false] {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(far);
        let front = server(Scripted::new());
        tokio::spawn(stdio::serve(front, Caller::new("test"), read, write));
        let (read, mut write) = tokio::io::split(near);
        let mut lines = BufReader::new(read).lines();
        let mut hello: Value =
            serde_json::from_str(&crate::rows::web::hello("2025-11-25")).unwrap();
        hello["params"]["capabilities"] = json!({"elicitation": {}});
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}"#;
        let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
        let first = format!("{hello}\n{call}\n{ping}\n");
        write.write_all(first.as_bytes()).await.unwrap();
        let mut next = async || -> Value {
            let line = tokio::time::timeout(HANG * 10, lines.next_line()).await;
            serde_json::from_str(&line.unwrap().unwrap().unwrap()).unwrap()
        };
        assert_eq!(next().await["id"], 0);
        assert_eq!(next().await["id"], 2, "only the ping is answered so far");
        if ready {
            let done = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
            write.write_all(done.as_bytes()).await.unwrap();
            assert_eq!(next().await["method"], "elicitation/create");
            continue;
        }
        let began = tokio::time::Instant::now();
        let answer = next().await;
        assert_eq!(
            (&answer["id"], &answer["result"]["isError"]),
            (&json!(1), &json!(true))
        );
        assert!(
            answer.to_string().contains("notifications/initialized"),
            "{answer}"
        );
        assert!(began.elapsed() <= Duration::from_secs(11));
    }
}

const OLD: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// All that a client can be asked for, by a tool each.
fn asking() -> Server {
    let tool = |name: &str, what: fn(&Cx) -> Result<(), HandlerExit>| {
        Tool::dynamic(
            name,
            json!({"type": "object"}),
            move |_, cx: Cx| async move {
                what(&cx)?;
                Ok::<_, HandlerExit>("asked")
            },
        )
    };
    Server::new("s", "1")
        .tool(tool("form", |cx| cx.ask("q", ask::text("Who?")).map(drop)))
        .tool(tool("page", |cx| {
            cx.ask("q", ask::url("Log in.", "https://example.com/"))
                .map(drop)
        }))
        .tool(tool("roots", |cx| cx.ask("q", ask::roots()).map(drop)))
        .tool(tool("model", |cx| {
            cx.ask("q", ask::model("Say hi.", 10)).map(drop)
        }))
}

/// A server asks for nothing that the client did not declare, in any revision: the call fails instead.
///
/// Holds: LIFE-10, LIFE-11
#[tokio::test]
async fn a_client_is_asked_for_nothing_that_it_did_not_declare() {
    let server = asking().build().unwrap();
    for revision in REVISIONS {
        let mut peer = Peer::open(&server, revision, json!({})).await;
        for tool in ["form", "page", "roots", "model"] {
            // `ask` fails at a request of the server.
            let reply = peer.request("tools/call", json!({"name": tool})).await;
            let failed = reply.get("error").is_some() || reply["result"]["isError"] == true;
            assert!(failed, "{revision} {tool}: {reply}");
        }
    }
}

async fn open(revision: &'static str, capabilities: Value) -> (RemoteServer, Far) {
    let mut options = options();
    let spoken = toolgate_protocol::dialect::find(revision).unwrap();
    options.revisions = vec![spoken];
    legacy_of(revision, capabilities, options).await
}

/// A client asks for nothing that the server did not declare, in any revision with a handshake.
///
/// Holds: LIFE-10, LIFE-11
#[tokio::test(start_paused = true)]
async fn a_server_is_asked_for_nothing_that_it_did_not_declare() {
    for revision in OLD {
        let (remote, mut peer) = open(revision, json!({})).await;
        let who = || Caller::new("test");
        // Tools are asked for all the same: a server without them may say so by declaring none, or by an error.
        for kind in ItemKind::ALL
            .into_iter()
            .filter(|kind| *kind != ItemKind::Tool)
        {
            let listed = soon(remote.list(ListRequest::all(who(), kind))).await;
            assert!(listed.is_ok_and(|l| l.items().is_empty()), "{kind:?}");
        }
        let mut want = ChangeFilter::all_lists(who());
        want.uris = vec!["t://a".to_owned()];
        let _changes = soon(remote.changes(want)).await;
        soon(remote.set_log_level("debug")).await.unwrap();
        // The first revision has no word for it.
        if revision != OLD[0] {
            let what = json!({"argument": {"name": "a", "value": ""}});
            let complete = Op::Complete(ItemKind::Prompt);
            let complete = Call::new("c", who(), complete, "p", Json::from_value(&what));
            let error = soon(remote.call(complete)).await.unwrap_err();
            assert!(
                error
                    .public_message()
                    .contains("does not support completion"),
                "{error}"
            );
        }
        assert!(peer.is_left_alone().await, "{revision}");
    }
}
