//! A client: starts a server, lists its tools, and calls one.
//!
//! `cargo run --example list_and_call -- PROGRAM [TOOL ARGUMENTS]`, for example with `target/debug/examples/counter`,
//! `count` and `{"by": 2}`.

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::{env, error::Error, process::Stdio};
use tokio::process::Command;
use toolgate::{
    Call, Caller, ItemKind, Json, List, Origin, Outcome, Service,
    client::{Remote, RemoteOptions, harmless},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args().skip(1);
    let program = words
        .next()
        .ok_or("usage: list_and_call PROGRAM [TOOL ARGUMENTS]")?;
    #[allow(clippy::disallowed_methods, reason = "a client starts its server")]
    let mut server = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let input = server.stdin.take().ok_or("no standard input")?;
    let output = server.stdout.take().ok_or("no standard output")?;
    let origin = Origin {
        server: "server".into(),
        trusted: false,
    };
    // Finds out which revision the server speaks.
    let remote = Remote::open(output, input, RemoteOptions::new(origin)).await?;
    println!("speaks {}", remote.status().revision);
    let caller = Caller::new("me");
    match words.next() {
        None => list(&remote, caller).await,
        Some(tool) => {
            let arguments = words.next().unwrap_or_else(|| "{}".to_owned());
            let arguments = Json::from_value(&serde_json::from_str(&arguments)?);
            call(&remote, Call::tool("c-1", caller, tool, arguments)).await
        }
    }
}

async fn list(remote: &Remote, caller: Caller) -> Result<(), Box<dyn Error>> {
    let tools = remote.list(List::all(caller, ItemKind::Tool)).await?;
    for tool in tools.items() {
        let description = tool.def.description().unwrap_or_default();
        // Texts of a server may hold what a terminal obeys.
        println!(
            "{}: {}",
            harmless(tool.def.name(), 100),
            harmless(&description, 500)
        );
    }
    Ok(())
}

async fn call(remote: &Remote, call: Call) -> Result<(), Box<dyn Error>> {
    match remote.call(call).await? {
        Outcome::Done(output) => {
            let result = output.into_tool().ok_or("no result of a tool")?;
            for block in &result.content {
                println!("{}", block.json.as_str());
            }
            match result.is_error {
                true => Err("the tool failed".into()),
                false => Ok(()),
            }
        }
        // We did not say that we can be asked.
        Outcome::Ask(_) => Err("the server asks, and this program cannot answer".into()),
    }
}
