//! The client that the official conformance suite drives: `conformance-client URL`.
//!
//! The suite names the scenario in `MCP_CONFORMANCE_SCENARIO`, and gives data for some in `MCP_CONFORMANCE_CONTEXT`.
//! `MCP_CONFORMANCE_PROTOCOL_VERSION` is not read: which revision a server speaks is found out, as always.

mod answers;
mod arguments;
mod scenarios;
mod signing_in;

use std::process::ExitCode;

use serde_json::Value;

/// Any error, for its message only.
type Failed = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: conformance-client URL");
        return ExitCode::from(2);
    };
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    match run(&url, &scenario).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // `cargo xtask conformance` reads this line: the suite keeps no exit code.
            eprintln!("conformance-client: failed: {why}");
            ExitCode::FAILURE
        }
    }
}

async fn run(url: &str, scenario: &str) -> Result<(), Failed> {
    let context = match std::env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => Value::Null,
    };
    scenarios::play(scenario, url, &context).await
}
