//! The server that the official conformance suite drives: `conformance-server --port N`, where 0 lets the system pick.
//!
//! It offers the fixtures that the suite names, at one endpoint on loopback, in every revision. The first line that it
//! writes is the URL.
#![allow(clippy::print_stdout, reason = "the URL is what was asked for")]

mod content;
mod everything;
mod input;
mod listener;
mod prompts;
mod resources;
mod schemas;
mod tools;

use std::process::ExitCode;
use std::sync::Arc;

use everything::Everything;
use toolgate::edge::http::{Endpoint, HttpLimits};
use toolgate::edge::{Server, ServerLimits};

#[tokio::main]
async fn main() -> ExitCode {
    let Some(port) = port() else {
        eprintln!("usage: conformance-server --port N");
        return ExitCode::from(2);
    };
    match run(port).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("conformance-server: {why}");
            ExitCode::FAILURE
        }
    }
}

fn port() -> Option<u16> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [flag, port] if flag == "--port" => port.parse().ok(),
        _ => None,
    }
}

async fn run(port: u16) -> Result<(), Box<dyn std::error::Error>> {
    let service = Arc::new(Everything::new()?);
    let server = Server::new(
        service,
        "toolgate-conformance-server",
        env!("CARGO_PKG_VERSION"),
        ServerLimits::default(),
    )?;
    let endpoint = Endpoint::new(Arc::new(server), HttpLimits::default());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    println!("http://{address}/mcp");
    listener::serve(listener, endpoint, address.port()).await;
    Ok(())
}
