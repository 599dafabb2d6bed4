//! Rejections of the stdio transport, and its end.

use super::{Scripted, Seen, desk::until};
use crate::official::{Side, Talk};
use std::sync::{Arc, atomic::Ordering};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf};
use toolgate::{
    Caller,
    edge::{ProtocolServer, ServerLimits, stdio},
};
use toolgate_protocol::memory_budget::MemoryBudget;

const OPEN: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
pub(super) const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A client of one served stream.
struct Client {
    server: Arc<ProtocolServer>,
    scripted: Arc<Scripted>,
    seen: Arc<Seen>,
    write: tokio::io::WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    served: tokio::task::JoinHandle<std::io::Result<()>>,
    talk: Talk,
}

impl Client {
    #[allow(
        clippy::disallowed_methods,
        reason = "the test plays the other side meanwhile"
    )]
    fn start(in_flight: usize) -> Client {
        let (scripted, seen) = (Scripted::new(), Arc::new(Seen::default()));
        let mut limits = ServerLimits::default();
        limits.max_in_flight = in_flight;
        let server = ProtocolServer::new(scripted.clone(), "test", "1", limits).unwrap();
        let server = Arc::new(server.with_rejection_log(seen.clone()));
        let (near, far) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(far);
        let caller = Caller::new("test");
        let served = tokio::spawn(stdio::serve(server.clone(), caller, read, write));
        let (read, write) = tokio::io::split(near);
        Client {
            server,
            scripted,
            seen,
            write,
            lines: BufReader::new(read).lines(),
            served,
            talk: Talk::of(Side::Server),
        }
    }

    async fn send(&mut self, line: &str) {
        self.talk.heard(line);
        let line = format!("{line}\n");
        self.write.write_all(line.as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Option<String> {
        let next = tokio::time::timeout(super::HANG, self.lines.next_line());
        let next = next.await.expect("a line, or the end").unwrap();
        if let Some(line) = &next {
            self.talk.said(line);
        }
        next
    }

    /// Sends a line and gives the next one that comes.
    async fn ask(&mut self, line: &str) -> String {
        self.send(line).await;
        self.next().await.expect("an answer")
    }

    async fn runs(&self, count: usize) {
        let running = &self.scripted.running;
        until("so many run", || running.load(Ordering::SeqCst) == count).await;
    }
}

fn call(id: u32, tool: &str, meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"{meta}}}}}"#
    )
}

fn modern(id: u32, tool: &str) -> String {
    call(id, tool, &format!(",{MODERN}"))
}

#[tokio::test]
async fn calls_that_no_layer_saw_are_on_record_in_2026() {
    let mut client = Client::start(1);
    let no = client.ask(&call(1, "closed", "")).await;
    assert!(no.contains("not initialized"), "{no}");
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    client.ask(list).await;
    let version = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    let no = client.ask(&call(3, "unable", version)).await;
    assert!(no.contains("clientCapabilities"), "{no}");
    client.send(&modern(4, "forever")).await;
    client.runs(1).await;
    let no = client.ask(&modern(4, "twice")).await;
    assert!(no.contains("in flight already"), "{no}");
    let no = client.ask(&modern(5, "many")).await;
    assert!(no.contains("too many"), "{no}");
    assert_eq!(
        client.seen.calls(),
        ["stdio closed", "stdio unable", "stdio twice", "stdio many"]
    );
}

#[tokio::test]
async fn calls_that_no_layer_saw_are_on_record_in_a_session() {
    let mut client = Client::start(1);
    client.ask(OPEN).await;
    client.send(&call(1, "forever", "")).await;
    client.runs(1).await;
    let no = client.ask(&call(1, "twice", "")).await;
    assert!(no.contains("in flight already"), "{no}");
    let no = client.ask(&call(2, "many", "")).await;
    assert!(no.contains("too many"), "{no}");
    client
        .ask(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#)
        .await;
    assert_eq!(client.seen.calls(), ["stdio twice", "stdio many"]);
}

/// A call that runs is not cancelled by the server, and nor is one that its client cancelled.
///
/// Holds: SUB-06, SUB-07., CANC-06
#[tokio::test]
async fn a_subscription_that_we_end_is_told_and_answered() {
    let mut client = Client::start(8);
    client.send(&modern(1, "forever")).await;
    client.runs(1).await;
    let listen = format!(
        r#"{{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{MODERN}}}}}"#
    );
    let opened = client.ask(&listen).await;
    assert!(opened.contains("acknowledged"), "{opened}");
    client.server.close();
    let told = client.next().await.unwrap();
    assert!(
        told.contains(r#""method":"notifications/cancelled""#)
            && told.contains(r#""requestId":"l""#),
        "{told}"
    );
    let answer = client.next().await.unwrap();
    assert!(
        answer.contains(r#""id":"l""#) && answer.contains(r#""resultType":"complete""#),
        "{answer}"
    );
    assert!(
        answer.contains(r#""io.modelcontextprotocol/subscriptionId":"l""#),
        "{answer}"
    );
    client.runs(1).await;
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    assert_eq!(client.next().await, None, "nothing else is told");
    client.served.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_runs_may_end_when_the_server_stops_and_nothing_new_begins() {
    for open in [None, Some(OPEN)] {
        let mut client = Client::start(8);
        if let Some(open) = open {
            client.ask(open).await;
        }
        client.send(&modern(1, "forever")).await;
        client.runs(1).await;
        client.server.close();
        let no = client.ask(&modern(2, "echo")).await;
        assert!(no.contains("shutting down"), "{no}");
        assert_eq!(client.seen.calls(), ["stdio echo"]);
        client.runs(1).await;
        client
            .send(
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
            )
            .await;
        assert_eq!(client.next().await, None, "that was the last");
        client.served.await.unwrap().unwrap();
        assert_eq!(client.scripted.running.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn an_idle_peer_is_left_at_once_when_the_server_stops() {
    let mut client = Client::start(8);
    client.ask(OPEN).await;
    client.server.close();
    assert_eq!(client.next().await, None);
    client.served.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_line_without_room_is_told_so_and_the_next_one_is_read() {
    let server =
        ProtocolServer::new(Scripted::new(), "test", "1", ServerLimits::default()).unwrap();
    let server = Arc::new(server.with_memory_budget(MemoryBudget::new(1 << 20)));
    let (near, far) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(far);
    let serving = stdio::serve(server, Caller::new("test"), read, write);
    let playing = async {
        let (read, mut write) = tokio::io::split(near);
        let long = OPEN.replace("\"t\"", &format!("\"{}\"", "t".repeat(200 << 10)));
        write
            .write_all(format!("{long}\n{OPEN}\n").as_bytes())
            .await
            .unwrap();
        let mut lines = BufReader::new(read).lines();
        let told = lines.next_line().await.unwrap().unwrap();
        assert!(told.contains("exceed their memory budget"), "{told}");
        let opened = lines.next_line().await.unwrap().unwrap();
        assert!(opened.contains("\"id\":0"), "{opened}");
    };
    tokio::join!(serving, playing).0.unwrap();
}
