//! The three servers and the host that the book compares with rmcp and FastMCP: they have the features that
//! `cargo xtask interop` checks of the others.

mod checks;

use crate::examples::program;

#[tokio::test]
async fn counter_server_with_toolgate() {
    checks::counter_server(vec![program("counter_server")]).await;
}

#[tokio::test]
async fn prompt_server_with_toolgate() {
    checks::prompt_server(vec![program("prompt_server")]).await;
}

#[tokio::test]
async fn structured_output_with_toolgate() {
    checks::structured_output(vec![program("structured_output")]).await;
}

#[tokio::test]
async fn chat_host_with_toolgate() {
    let servers = [
        ("counter", vec![program("counter_server")]),
        ("numbers", vec![program("structured_output")]),
    ];
    checks::chat_host(vec![program("chat_host")], &servers).await;
}

#[tokio::test]
async fn rejects_unknown_and_mistyped_arguments() {
    let expected = checks::Accepts {
        unknown_argument: false,
        unknown_prompt_argument: false,
        text_as_number: false,
        large_number: false,
    };
    let found = checks::differences(vec![program("counter_server")]).await;
    assert_eq!(found, expected);
}
