//! The Rust SDK on both sides, in both eras.

use super::{
    clients::{Peer, over_http, over_stdio},
    elicitation::{Upstream, asks_everybody},
    section, servers,
};
use crate::help::{Client, Script, real, rmcp};
use serde_json::{Value, json};
use std::path::Path;

const OF_2025_11: Peer = Peer::of(Client::Rust, "legacy", "2025-11-25");
const OF_2026_07: Peer = Peer::of(Client::Rust, "modern", "2026-07-28");

fn behind(legacy: bool, revision: &str) {
    let program = rmcp().get_program().to_string_lossy().into_owned();
    let config = |notes: &std::path::Path| {
        section(
            &[&program, "server"],
            &json!({"notes": notes, "legacy": legacy}),
        )
    };
    servers::does_everything(config, revision);
}

fn at_url(legacy: bool, revision: &str) {
    let Some(real) = real() else { return };
    let setting = json!({"http": true, "legacy": legacy});
    servers::reached_at(
        |setting| Script::rust(&real, "server", setting),
        setting,
        revision,
    );
}

#[test]
fn client_of_2025_11_25_over_stdio() {
    over_stdio(OF_2025_11);
}

#[test]
fn client_of_2025_11_25_over_http() {
    over_http(OF_2025_11);
}

#[test]
fn client_of_2026_07_28_over_stdio() {
    over_stdio(OF_2026_07);
}

#[test]
fn client_of_2026_07_28_over_http() {
    over_http(OF_2026_07);
}

#[test]
fn server_of_2025_11_25() {
    behind(true, "2025-11-25");
}

#[test]
fn server_of_2026_07_28() {
    behind(false, "2026-07-28");
}

#[test]
fn server_of_2025_11_25_at_a_url() {
    at_url(true, "2025-11-25");
}

#[test]
fn server_of_2026_07_28_at_a_url() {
    at_url(false, "2026-07-28");
}

/// The server of `interop/rmcp`, which serves both eras.
struct Both;

impl Upstream for Both {
    fn command(&self, _: &Path) -> Vec<String> {
        let program = rmcp().get_program().to_string_lossy().into_owned();
        vec![program, "server".to_owned()]
    }

    fn start(&self, real: &Path, setting: &Value) -> Script {
        Script::rust(real, "server", setting)
    }
}

#[test]
fn elicitation_by_request() {
    let setting = json!({"both": true, "way": "request"});
    asks_everybody(&Both, setting, ["2025-11-25"; 2]);
}

#[test]
fn elicitation_by_result() {
    let setting = json!({"both": true, "way": "result"});
    asks_everybody(&Both, setting, ["2026-07-28"; 2]);
}
