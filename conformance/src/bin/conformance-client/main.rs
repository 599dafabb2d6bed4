//! The client that the official conformance suite drives: `conformance-client URL`.
//!
//! It connects over HTTP as every user of the library does, looks at all lists, and uses what the scenario wants used.
//! Scenarios that need authorization fail: the client side has no OAuth.

mod uses;

use std::{env, process::ExitCode};
use toolgate::{
    Origin,
    client::{HttpOptions, Remote, RemoteOptions},
};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("conformance-client: failed: {reason}");
            ExitCode::from(2)
        }
    }
}

async fn run() -> Result<(), String> {
    let url = env::args().next_back().ok_or("no URL")?;
    let word = |name: &str| env::var(name).unwrap_or_default();
    let remote = Remote::connect(
        &url,
        options(&word("MCP_CONFORMANCE_PROTOCOL_VERSION")),
        HttpOptions::default(),
    );
    let remote = remote.await.map_err(|error| error.to_string())?;
    let scenario = word("MCP_CONFORMANCE_SCENARIO");
    let context = word("MCP_CONFORMANCE_CONTEXT");
    uses::all(&remote, &scenario, &context).await
}

/// The suite says which revision it speaks, so that it sees no probe where it waits for a handshake.
fn options(revision: &str) -> RemoteOptions {
    let mut options = RemoteOptions::new(Origin {
        server: "suite".into(),
        trusted: false,
    });
    options.probe = revision == "2026-07-28";
    if !options.probe {
        let newest = |d: &&toolgate_wire::dialect::Dialect| d.revision <= revision;
        options.revisions.retain(newest);
    }
    options
}
