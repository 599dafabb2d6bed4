//! T27: callers that all use the same ids, over servers that answer in any order: each gets his own answers.

use super::run;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::{
    io::{duplex, split},
    net::TcpListener,
};
use toolgate::{
    Caller, Cx, HandlerExit, Server, Service, Tool,
    aggregate::{Aggregate, AggregateMember},
    client::{HttpOptions, RemoteOptions, RemoteServer},
    core::Origin,
    edge::{
        ProtocolServer, ServerLimits,
        http::{HttpEndpoint, HttpLimits},
        stdio,
    },
};
use toolgate_policy::RateQuota;
use toolgate_testkit::{REVISIONS, TestClient};

const CALLERS: usize = 500;
/// Calls of each; `TOOLGATE_LONG=1` makes it 200.
const CALLS: usize = 8;
/// Calls of each that are under way at once.
const AT_ONCE: usize = 4;

/// Says a word again, the later words often first.
fn echo() -> Arc<ProtocolServer> {
    let schema = json!({"type": "object", "properties": {"word": {"type": "string"}}});
    let tool = Tool::dynamic("echo", schema, |args: Value, _: Cx| async move {
        let word = args["word"].as_str().unwrap_or_default().to_owned();
        let wait = word.bytes().map(u64::from).sum::<u64>() % 7;
        tokio::time::sleep(Duration::from_millis(wait)).await;
        Ok::<_, HandlerExit>(word)
    });
    let mut limits = ServerLimits::default();
    limits.max_in_flight = 4096;
    let server = Server::new("echo", "1").tool(tool).limits(limits);
    let server = server.rate_limit(RateQuota::per_minute(100_000_000));
    server.concurrency_limit(4096, 4096).build().unwrap()
}

fn options(id: &str) -> RemoteOptions {
    RemoteOptions::new(Origin {
        server: id.into(),
        trusted: true,
    })
}

#[allow(clippy::disallowed_methods, reason = "ends with its stream")]
async fn by_stdio() -> Arc<RemoteServer> {
    let (ours, theirs) = duplex(1 << 20);
    let (from, to) = split(theirs);
    tokio::spawn(stdio::serve(echo(), Caller::new("gate"), from, to));
    let (from, to) = split(ours);
    Arc::new(RemoteServer::open(from, to, options("pipe")).await.unwrap())
}

#[allow(clippy::disallowed_methods, reason = "ends with the runtime")]
async fn by_http() -> Arc<RemoteServer> {
    let endpoint = HttpEndpoint::new(echo(), HttpLimits::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let endpoint = endpoint.clone();
            let service = hyper::service::service_fn(move |request| {
                let endpoint = endpoint.clone();
                async move { Ok::<_, Infallible>(endpoint.handle(Caller::new("gate"), request).await) }
            });
            let http = hyper::server::conn::http1::Builder::new();
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
        }
    });
    let remote = RemoteServer::connect(&url, options("web"), HttpOptions::default()).await;
    Arc::new(remote.unwrap())
}

async fn gateway() -> Arc<ProtocolServer> {
    let member = |id: &str, service: Arc<dyn Service>| AggregateMember {
        id: id.into(),
        prefix: id.to_owned(),
        service,
    };
    let members = vec![
        member("pipe", by_stdio().await),
        member("web", by_http().await),
    ];
    let all = Arc::new(Aggregate::new(members).unwrap());
    Arc::new(ProtocolServer::new(all, "gate", "1", ServerLimits::default()).unwrap())
}

/// One caller: several calls under way at once, each with a word of its own; how many answers were its own.
async fn caller(gateway: Arc<ProtocolServer>, number: usize, calls: usize) -> usize {
    let revision = REVISIONS[number % REVISIONS.len()];
    let mut peer = TestClient::open(&gateway, revision, json!({})).await;
    let mut words = Vec::new();
    for from in (0..calls).step_by(AT_ONCE) {
        let to = calls.min(from + AT_ONCE);
        for call in from..to {
            let tool = ["pipe_echo", "web_echo"][(number + call) % 2];
            let word = format!("{number}-{call}");
            let params = json!({"name": tool, "arguments": {"word": word}});
            words.push((peer.send_request("tools/call", params).await, word));
        }
        for _ in from..to {
            let answer = peer.receive().await;
            let asked = words.iter().find(|(id, _)| answer["id"] == *id);
            let (_, word) = asked.expect("an answer to a call of his own");
            assert_eq!(answer["result"]["content"][0]["text"], *word, "{answer}");
        }
    }
    words.len()
}

#[test]
fn each_caller_gets_its_own_answers() {
    let long = std::env::var_os("TOOLGATE_LONG").is_some();
    let calls = if long { 200 } else { CALLS };
    let answered = run(async {
        let gateway = gateway().await;
        // Not in the crowd: how long a list takes there is no part of this.
        caller(gateway.clone(), 0, 2).await;
        let all = (0..CALLERS).map(|number| caller(gateway.clone(), number, calls));
        futures_util::future::join_all(all)
            .await
            .into_iter()
            .sum::<usize>()
    });
    assert_eq!(answered, CALLERS * calls);
    println!("T27: {answered} answers to {CALLERS} callers with the same ids, 0 of them wrong");
}
