//! T60: the ids of requests: which are taken, that they come back byte for byte, and that one in flight is not reused.

use super::{Scripted, desk::until, server};
use std::sync::atomic::Ordering;
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use toolgate::{Caller, edge::stdio};

const OPEN: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

struct Peer {
    write: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Peer {
    #[allow(clippy::disallowed_methods, reason = "ends with its stream")]
    async fn open(scripted: std::sync::Arc<Scripted>) -> Peer {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (read, write) = tokio::io::split(far);
        tokio::spawn(stdio::serve(
            server(scripted),
            Caller::new("test"),
            read,
            write,
        ));
        let (read, write) = tokio::io::split(near);
        let lines = BufReader::new(read).lines();
        let mut peer = Peer { write, lines };
        peer.ask(OPEN).await;
        peer
    }

    async fn send(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.write.write_all(line.as_bytes()).await.unwrap();
    }

    async fn ask(&mut self, line: &str) -> String {
        self.send(line).await;
        let next = tokio::time::timeout(super::HANG, self.lines.next_line());
        next.await.expect("an answer").unwrap().expect("a line")
    }
}

fn request(id: &str, tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#)
}

/// The id of a reply as it stands there.
fn id_of(reply: &str) -> &str {
    let from = reply.find(r#""id":"#).expect("an id") + 5;
    let rest = &reply[from..];
    let end = [r#","result""#, r#","error""#]
        .into_iter()
        .filter_map(|key| rest.find(key))
        .min();
    &rest[..end.expect("a reply")]
}

#[tokio::test]
async fn ids_come_back_byte_for_byte() {
    let long = format!("\"{}\"", "x".repeat(510));
    let taken = [
        "0",
        "1",
        "-1",
        "9007199254740993",
        "1e2",
        "1.0",
        "-0.0",
        "9223372036854775807",
        "-9223372036854775808",
        r#""""#,
        r#""1""#,
        r#""a b""#,
        r#""\u0061""#,
        r#""\"\\\/""#,
        r#""\ud83d\ude00""#,
        "\"é😀\"",
        &long,
    ];
    let mut peer = Peer::open(Scripted::new()).await;
    for id in taken {
        let reply = peer.ask(&request(id, "echo")).await;
        assert!(reply.contains("result"), "{id}: {reply}");
        assert_eq!(id_of(&reply), id);
        // Free again, once it is answered.
        assert!(
            peer.ask(&request(id, "echo")).await.contains("result"),
            "{id}"
        );
    }
    let over = format!("\"{}\"", "x".repeat(511));
    let huge = format!("\"{}\"", "x".repeat(1 << 20));
    let refused = [
        "null",
        "true",
        "[]",
        "{}",
        "1.5",
        "1E400",
        "9223372036854775808888",
        r#""\ud800""#,
        &over,
        &huge,
    ];
    for id in refused {
        let reply = peer.ask(&request(id, "echo")).await;
        assert!(reply.contains("error") && reply.len() < 4096, "{reply}");
        assert!(!reply.contains("result"), "{reply}");
    }
    println!("T60: {} ids taken, {} refused", taken.len(), refused.len());
}

#[tokio::test]
async fn the_first_of_two_wins() {
    let scripted = Scripted::new();
    let mut peer = Peer::open(scripted.clone()).await;
    let running = || scripted.running.load(Ordering::SeqCst);
    for id in ["7", r#""7""#, r#""a""#] {
        let before = running();
        peer.send(&request(id, "forever")).await;
        until("it runs", || running() == before + 1).await;
        let no = peer.ask(&request(id, "echo")).await;
        assert!(no.contains("in flight already"), "{no}");
        assert_eq!(running(), before + 1, "the first goes on");
    }
    // The same string, written in another way.
    let no = peer.ask(&request(r#""\u0061""#, "echo")).await;
    assert!(no.contains("in flight already"), "{no}");
}
