//! A client that is measured, and the bare server that it uses.

use crate::{http::Http, load::Load, peer::Peer};
use std::process::{Command, Stdio};

/// Lets it make so many calls, behind the words of `wrap` where there are any; the server has a core of its own where it is
/// said. How long the calls took, in seconds: the client compares every answer.
pub fn run(
    load: &Load,
    peer: &Peer,
    calls: u64,
    wrap: Option<Command>,
    core: Option<usize>,
) -> f64 {
    let core = core.map(|core| ["--core".to_owned(), core.to_string()]);
    let core = core.iter().flatten();
    let mut client = peer.command(load, calls);
    let server = load.http.then(|| {
        let mut server = Peer::beside("bare_http");
        server.args(["--breaking", "--tools", &load.tools.to_string()]);
        server.args(core.clone());
        Http::start(server)
    });
    match &server {
        Some(server) => client.args(["--url", &server.url()]),
        None => client.args(core),
    };
    if let Some(mut wrap) = wrap {
        wrap.arg(client.get_program()).args(client.get_args());
        client = wrap;
    }
    let output = client.stderr(Stdio::inherit()).output();
    let output = output.expect("it starts; build all programs of this crate");
    assert!(output.status.success(), "the client: {}", output.status);
    let said = String::from_utf8_lossy(&output.stdout);
    let took = said.lines().last().and_then(|took| took.parse().ok());
    if let Some(server) = server {
        server.end();
    }
    took.expect("it says how long it took")
}
