//! The server that the official conformance suite drives: `conformance-server --port N`, where 0 lets the system pick,
//! or `conformance-server --stdio`, for a gateway that starts it.
//!
//! It offers the fixtures that the suite names, in every revision. With a port it serves one endpoint on loopback, and
//! the first line that it writes is the URL.
#![allow(clippy::print_stdout, reason = "the URL is what was asked for")]

mod asking;
mod content;
mod listener;
mod prompts;
mod resources;
mod schemas;
mod skills;
mod tasks;
mod tools;

use std::{process::ExitCode, time::Duration};

use toolgate::{Http, Server, edge::http::HttpLimits};

/// Transport that serves it.
enum Link {
    Http(u16),
    Stdio,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Some(link) = link() else {
        eprintln!("usage: conformance-server --port N | --stdio");
        return ExitCode::from(2);
    };
    match run(link).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("conformance-server: {why}");
            ExitCode::FAILURE
        }
    }
}

fn link() -> Option<Link> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [flag, port] if flag == "--port" => port.parse().ok().map(Link::Http),
        [flag] if flag == "--stdio" => Some(Link::Stdio),
        _ => None,
    }
}

async fn run(link: Link) -> Result<(), Box<dyn std::error::Error>> {
    match link {
        Link::Http(port) => {
            let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
            println!("http://{}/mcp", listener.local_addr()?);
            // Streams are what the suite can look into.
            let mut limits = HttpLimits::default();
            limits.json_responses = false;
            // Short, so that a slow call meets it: the suite comes back for the rest.
            limits.reconnect_after = Some(Duration::from_secs(1));
            listener::serve(listener, Http::new(everything().build()?, limits)).await;
            Ok(())
        }
        Link::Stdio => Ok(toolgate::stdio(everything()).await?),
    }
}

/// All fixtures, with all duties on.
fn everything() -> Server {
    let mut server = Server::new("toolgate-conformance-server", env!("CARGO_PKG_VERSION"));
    let answering = tools::all().into_iter().chain(asking::all());
    for tool in answering.chain(tasks::all()) {
        server = server.tool(tool);
    }
    for resource in resources::all() {
        server = server.resource(resource);
    }
    for prompt in prompts::all() {
        server = server.prompt(prompt);
    }
    server.skills(skills::all()).template(resources::template())
}
