//! A host: joins servers under prefixes, prints their tools as function definitions of a model API, and runs calls of the
//! model.
//!
//! `cargo run --example model_tools -- PREFIX=PROGRAM... < CALLS`, for example with `math=target/debug/examples/counter`.
//! Each line of CALLS is a call as Anthropic's API writes it:
//! `{"type": "tool_use", "id": "1", "name": "math_count", "input": {"by": 2}}`.

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use serde_json::Value;
use std::{env, error::Error, io};
use toolgate::{Client, client::ClientGroup};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut clients = Vec::new();
    for word in env::args().skip(1) {
        let (prefix, program) = word
            .split_once('=')
            .ok_or("usage: model_tools PREFIX=PROGRAM...")?;
        clients.push((prefix.to_owned(), Client::spawn([program]).await?));
    }
    let group = ClientGroup::new(clients)?;
    let tools = group.tools().await?;
    for missing in tools.missing() {
        println!("the tools of {missing} are missing");
    }
    let tools = tools.to_anthropic();
    println!("{}", serde_json::to_string(tools.definitions())?);
    for line in io::stdin().lines() {
        let call: Value = serde_json::from_str(&line?)?;
        println!("{}", tools.run(&group, &call).await?);
    }
    group.close().await;
    Ok(())
}
