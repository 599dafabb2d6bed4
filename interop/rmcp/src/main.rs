//! A client and a server of the Rust SDK, driven by the tests like those of `interop`.
//!
//! `toolgate-rmcp client JOB` does a job as `interop/job.mjs` describes it. `toolgate-rmcp server SETTING` has the tools
//! of `interop/servers/tools.mjs`; `legacy` in its setting keeps it to the revisions with a handshake.

#![allow(
    clippy::disallowed_methods,
    reason = "a peer of the tests; the bans are for the gateway"
)]

mod client;
mod server;

use serde_json::{Value, json};
use std::process::ExitCode;

/// Error that ends the program.
type Failed = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["client", job] => client::run(job).await,
        ["server", setting] => server::run(setting).await,
        _ => Err("usage: toolgate-rmcp client JOB | server SETTING".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("toolgate-rmcp: {error}");
            say("error", json!({"message": error.to_string()}));
            ExitCode::FAILURE
        }
    }
}

/// Prints one line for something that happened.
fn say(event: &str, more: Value) {
    let mut line = json!({"event": event});
    if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
        line.extend(more);
    }
    println!("{line}");
}
