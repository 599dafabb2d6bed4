//! A client: starts a server, lists its tools, or calls one.
//!
//! `cargo run --example list_and_call -- PROGRAM [TOOL ARGUMENTS]`, for example with `target/debug/examples/counter`,
//! `count` and `{"by": 2}`.

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use serde_json::Value;
use std::{env, error::Error};
use toolgate::{Client, client::sanitize_line};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [program] => list(&Client::spawn([*program]).await?).await,
        [program, tool, arguments] => {
            let arguments = serde_json::from_str(arguments)?;
            call(&Client::spawn([*program]).await?, tool, arguments).await
        }
        _ => Err("usage: list_and_call PROGRAM [TOOL ARGUMENTS]".into()),
    }
}

async fn list(server: &Client) -> Result<(), Box<dyn Error>> {
    println!("speaks {}", server.revision());
    for tool in server.tools().await? {
        // Texts of a server may hold what a terminal obeys.
        let description = sanitize_line(&tool.description().unwrap_or_default(), 500);
        println!("{}: {description}", sanitize_line(tool.name(), 128));
    }
    Ok(())
}

async fn call(server: &Client, tool: &str, arguments: Value) -> Result<(), Box<dyn Error>> {
    let result = server.call(tool, arguments).await?;
    println!("{}", sanitize_line(&result.text(), 10_000));
    // That the tool failed is a result too: a model should read why.
    match result.is_error() {
        true => Err("the tool failed".into()),
        false => Ok(()),
    }
}
