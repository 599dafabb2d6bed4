//! Message transports of users, on both sides: WebSocket over a stream in memory.

use crate::{
    remote::peer,
    serve::{HANG, Scripted, Seen, desk::until},
};
use futures_util::{SinkExt, StreamExt, future::ready};
use serde_json::{Value, json};
use std::{
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{io::DuplexStream, task::JoinHandle};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::Role},
};
use toolgate::{
    Client, Cx, HandlerExit, Server, Service,
    client::RemoteServer,
    core::Caller,
    edge::{ProtocolServer, ServerLimits},
    handlers::ask::{self, Reply},
    tool,
    transport::{self, MessageTransport},
};
use toolgate_protocol::memory_budget::MemoryBudget;

type Socket = WebSocketStream<DuplexStream>;

/// Both ends of a connection: of the client and of the server.
async fn sockets() -> (Socket, Socket) {
    let (near, far) = tokio::io::duplex(1 << 20);
    let client = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
    (
        client,
        WebSocketStream::from_raw_socket(far, Role::Server, None).await,
    )
}

fn transport(socket: Socket) -> impl MessageTransport {
    socket
        .sink_map_err(io::Error::other)
        .with(|text: String| ready(Ok::<_, io::Error>(Message::text(text))))
        .filter_map(|message| {
            ready(match message {
                Ok(Message::Text(text)) => Some(Ok(text.into())),
                Ok(Message::Binary(bytes)) => Some(Ok(bytes)),
                Ok(_) => None,
                Err(error) => Some(Err(io::Error::other(error))),
            })
        })
}

#[allow(
    clippy::disallowed_methods,
    reason = "the test plays the other side meanwhile"
)]
fn serve(server: Arc<ProtocolServer>, socket: Socket) -> JoinHandle<io::Result<()>> {
    let caller = Caller::new("test");
    tokio::spawn(transport::serve(
        server,
        caller,
        "websocket",
        transport(socket),
    ))
}

/// Asks which unit, and tells it.
#[tool(read_only)]
async fn unit(cx: Cx) -> Result<String, HandlerExit> {
    cx.progress(1.0, 2.0, "asking");
    cx.ask("unit", ask::text("Which unit?"))
}

#[tokio::test]
async fn a_client_and_a_server_talk_over_websocket_in_both_eras() {
    for revision in ["2026-07-28", "2025-11-25"] {
        let (near, far) = sockets().await;
        let server = Server::new("units", "1").tool(unit).build().unwrap();
        let served = serve(server, far);
        let client = Client::builder()
            .revision(revision)
            .on_elicit(|form| async move {
                assert_eq!(form.message, "Which unit?");
                Reply::Accepted(json!({"value": "kelvin"}))
            })
            .open_transport(transport(near))
            .await
            .unwrap();
        assert_eq!(client.revision(), revision);
        let told = client.call("unit", ()).await.unwrap().text();
        assert_eq!(told, "kelvin");
        client.close().await;
        let ended = tokio::time::timeout(HANG, served).await;
        ended.expect("it ends with its client").unwrap().unwrap();
    }
}

/// A raw client of a served transport.
struct Raw {
    socket: Socket,
    served: JoinHandle<io::Result<()>>,
}

impl Raw {
    async fn open(server: Arc<ProtocolServer>) -> Raw {
        let (socket, far) = sockets().await;
        let served = serve(server, far);
        Raw { socket, served }
    }

    async fn send(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    /// The next message; nothing once the server closed the connection.
    async fn next(&mut self) -> Option<Value> {
        let next = tokio::time::timeout(HANG, self.socket.next()).await;
        match next.expect("a message, or the end")?.unwrap() {
            Message::Text(text) => Some(serde_json::from_str(&text).unwrap()),
            Message::Close(_) => None,
            other => panic!("{other:?}"),
        }
    }

    async fn error(&mut self, text: &str) -> String {
        self.send(text).await;
        let answer = self.next().await.expect("an answer");
        answer["error"]["message"].as_str().unwrap().to_owned()
    }

    fn call(id: u32, tool: &str, inside: &str) -> String {
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"_meta":{meta},"name":"{tool}","arguments":{{"x":{inside}}}}}}}"#
        )
    }
}

fn limited(scripted: Arc<Scripted>) -> ProtocolServer {
    let mut limits = ServerLimits::default();
    limits.max_in_flight = 2;
    limits.json.bytes = 64 << 10;
    ProtocolServer::new(scripted, "test", "1", limits).unwrap()
}

/// The transport has no limit of its own below 64 MiB.
#[tokio::test]
async fn the_limits_of_a_message_hold_over_a_transport_of_a_user() {
    let mut raw = Raw::open(Arc::new(limited(Scripted::new()))).await;
    let long = format!("\"{}\"", "y".repeat(64 << 10));
    let deep = "[".repeat(70) + &"]".repeat(70);
    let error = raw.error(&Raw::call(1, "echo", &long)).await;
    assert_eq!(
        error,
        "the message is longer than 65536 bytes, which is the limit"
    );
    let error = raw.error(&Raw::call(1, "echo", &deep)).await;
    assert!(error.contains("nested too deep"), "{error}");
    let error = raw.error(&Raw::call(1, "echo", r#"{"a":1,"a":2}"#)).await;
    assert!(error.contains("duplicate key"), "{error}");
    raw.send(&Raw::call(2, "echo", "1")).await;
    assert_eq!(
        raw.next().await.unwrap()["id"],
        2,
        "the next one is answered"
    );
}

#[tokio::test]
async fn requests_in_flight_are_limited_and_end_with_a_transport_of_a_user() {
    let (scripted, seen) = (Scripted::new(), Arc::new(Seen::default()));
    let server = limited(scripted.clone()).with_rejection_log(seen.clone());
    let mut raw = Raw::open(Arc::new(server)).await;
    raw.send(&Raw::call(1, "forever", "1")).await;
    raw.send(&Raw::call(2, "forever", "1")).await;
    let error = raw.error(&Raw::call(3, "forever", "1")).await;
    assert!(error.contains("too many requests at once"), "{error}");
    assert_eq!(seen.calls(), ["websocket forever"]);
    until("both run", || scripted.running.load(Ordering::SeqCst) == 2).await;
    drop(raw.socket);
    until("none runs", || scripted.running.load(Ordering::SeqCst) == 0).await;
    let served = tokio::time::timeout(HANG, raw.served).await;
    // The client did not close the connection in an orderly way.
    served.expect("it ends").unwrap().unwrap_err();
}

#[tokio::test]
async fn messages_over_a_transport_of_a_user_count_for_the_memory_budget() {
    let budget = MemoryBudget::new(64 << 10);
    let server = limited(Scripted::new()).with_memory_budget(budget.clone());
    let mut raw = Raw::open(Arc::new(server)).await;
    let large = format!("\"{}\"", "y".repeat(40 << 10));
    let error = raw.error(&Raw::call(1, "echo", &large)).await;
    assert!(error.contains("exceed their memory budget"), "{error}");
    raw.send(&Raw::call(2, "echo", "1")).await;
    assert_eq!(raw.next().await.unwrap()["id"], 2);
    until("nothing is held", || budget.used() == 0).await;
}

#[tokio::test]
async fn a_server_that_closes_ends_its_transport() {
    let server = Arc::new(limited(Scripted::new()));
    let mut raw = Raw::open(server.clone()).await;
    raw.send(&Raw::call(1, "echo", "1")).await;
    assert_eq!(raw.next().await.unwrap()["id"], 1);
    server.close();
    assert_eq!(raw.next().await, None, "the connection is closed");
    let served = tokio::time::timeout(HANG, raw.served).await;
    served.expect("it ends").unwrap().unwrap();
}

/// A client, open, and the raw end of its server.
async fn opened() -> (RemoteServer, Socket) {
    let (near, mut far) = sockets().await;
    let mut options = peer::options();
    options.max_line_bytes = 64 << 10;
    let (remote, far) = tokio::join!(
        RemoteServer::open_transport(transport(near), options),
        async {
            let probe = request(&mut far).await;
            reply(&mut far, &probe["id"], json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})).await;
            far
        }
    );
    (remote.unwrap(), far)
}

async fn request(socket: &mut Socket) -> Value {
    let next = tokio::time::timeout(HANG, socket.next()).await;
    let text = next
        .expect("a request")
        .unwrap()
        .unwrap()
        .into_text()
        .unwrap();
    serde_json::from_str(&text).unwrap()
}

async fn reply(socket: &mut Socket, id: &Value, result: Value) {
    let reply = json!({"jsonrpc": "2.0", "id": id, "result": result});
    socket.send(Message::text(reply.to_string())).await.unwrap();
}

#[tokio::test]
async fn an_answer_over_the_limit_fails_its_call_over_a_transport_of_a_user() {
    let (remote, mut far) = opened().await;
    for (length, good) in [(80 << 10, false), (10, true)] {
        let text = "y".repeat(length);
        let (outcome, ()) = tokio::join!(remote.call(peer::call("a", "{}")), async {
            let asked = request(&mut far).await;
            let content = json!([{"type": "text", "text": text}]);
            reply(
                &mut far,
                &asked["id"],
                json!({"resultType": "complete", "content": content}),
            )
            .await;
        });
        match outcome {
            Ok(_) => assert!(good, "{length} bytes"),
            Err(error) => {
                assert!(!good, "{error}");
                assert!(error.to_string().contains("line_bytes"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn the_end_of_a_transport_fails_calls_in_flight() {
    let (remote, mut far) = opened().await;
    let (outcome, ()) = tokio::join!(remote.call(peer::call("a", "{}")), async move {
        request(&mut far).await;
        far.close(None).await.unwrap();
        // Until the client has closed its end too.
        while far.next().await.is_some() {}
    });
    outcome.unwrap_err();
    let reason = tokio::time::timeout(HANG, remote.closed()).await.unwrap();
    assert_eq!(reason, "it closed the connection");
}

/// The example as a program, server and client.
#[tokio::test]
async fn the_websocket_example_serves_and_calls() {
    use crate::examples::program;
    use std::process::Stdio;
    use tokio::io::{AsyncBufReadExt, BufReader};
    #[allow(clippy::disallowed_methods, reason = "the examples are programs")]
    let command = || tokio::process::Command::new(program("websocket"));
    let mut server = command()
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let line = tokio::time::timeout(Duration::from_secs(30), lines.next_line()).await;
    let line = line.expect("it starts").unwrap().unwrap();
    let address = line.strip_prefix("serves at ").unwrap();
    let said = command().args([address, "Ann"]).kill_on_drop(true).output();
    let said = tokio::time::timeout(Duration::from_secs(30), said).await;
    assert_eq!(said.expect("it ends").unwrap().stdout, b"hello, Ann\n");
}
