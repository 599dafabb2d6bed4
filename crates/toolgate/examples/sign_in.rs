//! A client of a server that wants to know who calls: a person signs in in the browser, once, and what was granted is kept.
//!
//! `cargo run --example sign_in -- FOLDER ADDRESS [TOOL ARGUMENTS]`, for example with the address that the example
//! `protected` prints, `write` and `{"text": "milk"}`. The grant is kept in the folder, sealed.

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use serde_json::Value;
use std::{env, error::Error};
use toolgate::{
    Client,
    auth::{
        Url,
        client::{FileCredentialStore, LoopbackBrowser, OAuthClient},
    },
    client::sanitize_line,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (folder, address, call) = match words.as_slice() {
        [folder, address] => (*folder, *address, None),
        [folder, address, tool, arguments] => (*folder, *address, Some((*tool, *arguments))),
        _ => return Err("usage: sign_in FOLDER ADDRESS [TOOL ARGUMENTS]".into()),
    };
    // A program with a window would open the page. The person comes back to a port on this machine.
    let browser = LoopbackBrowser::new(|page| println!("to sign in, open {}", page.as_str()));
    let login = OAuthClient::builder(Url::parse(address)?)
        .name("Example of Toolgate")
        .store(FileCredentialStore::new(folder))
        .sign_in(browser)
        .build();
    // Before connecting, so that the person has all the time that it takes.
    if login.credential().await?.is_none() {
        let grant = login.sign_in().await?;
        println!(
            "{} granted: {}",
            sanitize_line(&grant.issuer, 200),
            grant.scopes
        );
    }
    // From here on it is renewed by itself, and where a call needs more, the person is asked again.
    let server = Client::builder()
        .credentials(login)
        .connect(address)
        .await?;
    match call {
        None => list(&server).await,
        Some((tool, arguments)) => {
            let arguments: Value = serde_json::from_str(arguments)?;
            let result = server.call(tool, arguments).await?;
            println!("{}", sanitize_line(&result.text(), 10_000));
            Ok(())
        }
    }
}

async fn list(server: &Client) -> Result<(), Box<dyn Error>> {
    for tool in server.tools().await? {
        println!("{}", sanitize_line(tool.name(), 128));
    }
    Ok(())
}
