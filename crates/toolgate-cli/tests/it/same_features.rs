//! The servers and the host that the book compares, with rmcp and with FastMCP: they have the features that the tests of
//! the library check of the same programs with Toolgate.

#[path = "../../../toolgate/tests/it/same_features/checks/mod.rs"]
mod checks;

use crate::help::{real, rmcp};
use std::path::Path;

/// Returns the command of a program of `interop/rmcp`.
fn with_rmcp(name: &str) -> Vec<String> {
    let path = Path::new(rmcp().get_program()).with_file_name(name);
    vec![path.to_str().unwrap().to_owned()]
}

/// Returns the command of a program of `interop/fastmcp`.
fn with_fastmcp(name: &str) -> Vec<String> {
    let folder = real().expect("`cargo xtask interop` installs FastMCP");
    let python = folder.join("venv-fastmcp/bin/python");
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/fastmcp");
    let program = programs.join(format!("{name}.py"));
    [python, program]
        .map(|path| path.to_str().unwrap().to_owned())
        .into()
}

#[tokio::test]
async fn counter_server_with_rmcp() {
    checks::counter_server(with_rmcp("counter_server")).await;
}

#[tokio::test]
async fn counter_server_with_fastmcp() {
    checks::counter_server(with_fastmcp("counter_server")).await;
}

#[tokio::test]
async fn prompt_server_with_rmcp() {
    checks::prompt_server(with_rmcp("prompt_server")).await;
}

#[tokio::test]
async fn prompt_server_with_fastmcp() {
    checks::prompt_server(with_fastmcp("prompt_server")).await;
}

#[tokio::test]
async fn structured_output_with_rmcp() {
    checks::structured_output(with_rmcp("structured_output")).await;
}

#[tokio::test]
async fn structured_output_with_fastmcp() {
    checks::structured_output(with_fastmcp("structured_output")).await;
}

#[tokio::test]
async fn chat_host_with_rmcp() {
    chat_host(with_rmcp).await;
}

#[tokio::test]
async fn chat_host_with_fastmcp() {
    chat_host(with_fastmcp).await;
}

async fn chat_host(command: fn(&str) -> Vec<String>) {
    let servers = [
        ("counter", command("counter_server")),
        ("numbers", command("structured_output")),
    ];
    checks::chat_host(command("chat_host"), &servers).await;
}

#[tokio::test]
async fn rmcp_accepts_unknown_arguments() {
    let expected = checks::Accepts {
        unknown_argument: true,
        unknown_prompt_argument: true,
        text_as_number: false,
        large_number: false,
    };
    let found = checks::differences(with_rmcp("counter_server")).await;
    assert_eq!(found, expected);
}

#[tokio::test]
async fn fastmcp_accepts_text_as_a_number() {
    let expected = checks::Accepts {
        unknown_argument: false,
        unknown_prompt_argument: true,
        text_as_number: true,
        large_number: true,
    };
    let found = checks::differences(with_fastmcp("counter_server")).await;
    assert_eq!(found, expected);
}
