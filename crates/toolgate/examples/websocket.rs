//! A server and a client over WebSocket, for which the protocol defines no transport.
//!
//! `cargo run --example websocket` prints its address and serves. `cargo run --example websocket ADDRESS NAME` greets.
#![allow(clippy::print_stdout, reason = "the output of the program")]

use futures_util::{SinkExt, StreamExt, future::ready};
use serde_json::json;
use std::{env, error::Error, io, net::Ipv4Addr, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::WebSocketConfig},
};
use toolgate::{
    Client, Server,
    core::Caller,
    edge::ProtocolServer,
    tool,
    transport::{self, MessageTransport},
};

/// Connections at once.
const CONNECTIONS: usize = 100;

/// Greets someone.
#[tool(read_only)]
fn greet(name: String) -> String {
    format!("hello, {name}")
}

/// Limits of a connection. A message is checked again on arrival, but has to be held until it is complete.
fn limits() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(4 << 20))
        .max_frame_size(Some(4 << 20))
}

/// Makes a connection a transport: one JSON-RPC message is one text message.
fn transport<S>(socket: WebSocketStream<S>) -> impl MessageTransport
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    socket
        .sink_map_err(io::Error::other)
        .with(|text: String| ready(Ok::<_, io::Error>(Message::text(text))))
        .filter_map(|message| {
            ready(match message {
                Ok(Message::Text(text)) => Some(Ok(text.into())),
                Ok(Message::Binary(bytes)) => Some(Ok(bytes)),
                Ok(_) => None, // pings, and the frame that closes the connection
                Err(error) => Some(Err(io::Error::other(error))),
            })
        })
}

async fn serve_connection(
    server: Arc<ProtocolServer>,
    stream: TcpStream,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let socket = tokio_tungstenite::accept_async_with_config(stream, Some(limits())).await?;
    let caller = Caller::new("anonymous@websocket");
    Ok(transport::serve(server, caller, "websocket", transport(socket)).await?)
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let server = Server::new("greeter", "1.0.0").tool(greet).build()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("serves at ws://{}", listener.local_addr()?);
    let mut connections = JoinSet::new();
    loop {
        if connections.len() >= CONNECTIONS {
            connections.join_next().await;
        }
        let (stream, _) = listener.accept().await?;
        while connections.try_join_next().is_some() {}
        connections.spawn(serve_connection(server.clone(), stream));
    }
}

async fn greet_at(address: &str, name: &str) -> Result<(), Box<dyn Error>> {
    let config = Some(limits());
    let (socket, _) = tokio_tungstenite::connect_async_with_config(address, config, true).await?;
    let client = Client::builder()
        .id("greeter")
        .open_transport(transport(socket))
        .await?;
    println!(
        "{}",
        client.call("greet", json!({"name": name})).await?.text()
    );
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.as_slice() {
        [] => serve().await,
        [address, name] => greet_at(address, name).await,
        _ => Err("usage: websocket [ADDRESS NAME]".into()),
    }
}
