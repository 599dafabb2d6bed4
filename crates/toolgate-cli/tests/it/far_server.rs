//! A server with a URL: another gateway, which wants a token.

use crate::help::{Gate, Modern, SOON, Setup, until};
use serde_json::{Value, json};

fn far() -> Gate {
    Setup::fast_demo("")
        .top("token = { env = \"FAR_TOKEN\" }")
        .env("FAR_TOKEN", "a-token-of-many-letters")
        .start()
}

fn near(url: &str) -> Setup {
    Setup::config(format!(
        "[limits]\nrate = \"1000000/s\"\n[server.far]\nurl = {url:?}\ntrust_annotations = true\n\
         headers = {{ Authorization = {{ env = \"FAR_AUTHORIZATION\" }} }}\n"
    ))
}

fn add(gate: &Gate, id: u64) -> String {
    let arguments = json!({"a": 1, "b": 2});
    Modern::call(gate.port, &json!(id), "far_demo_add", arguments).body
}

fn server(gate: &Gate, ready: impl Fn(&Value) -> bool) -> Value {
    until("the server is so", SOON, || {
        let state = gate.state();
        let server = state["servers"][0].clone();
        ready(&server).then_some(server)
    })
}

#[test]
fn a_server_with_a_url_stands_behind_the_gate() {
    let far = far();
    let near = near(&format!("{}?k=canary", far.endpoint))
        .env("FAR_AUTHORIZATION", "Bearer a-token-of-many-letters")
        .start();
    let body = add(&near, 1);
    assert!(body.contains("\"sum\":3"), "{body}");
    let shown = server(&near, |server| server["state"] == "running");
    // It serves both eras, and a session is preferred.
    assert_eq!(shown["revision"], "2025-11-25");
    assert_eq!(shown["command"], far.endpoint.as_str());
    assert!(!near.state().to_string().contains("canary"));
    assert!(!near.state().to_string().contains("many-letters"));
    // It is gone: calls fail with words, and the gateway goes on.
    drop(far);
    let body = add(&near, 2);
    assert!(body.contains("the server far cannot be reached"), "{body}");
}

#[test]
fn who_has_no_token_is_told() {
    let far = far();
    let near = near(&far.endpoint)
        .env("FAR_AUTHORIZATION", "Bearer another-token-altogether")
        .start();
    let shown = server(&near, |server| server["state"] == "backoff");
    let error = shown["error"].as_str().unwrap();
    assert!(error.contains("HTTP 401"), "{error}");
}

#[test]
fn a_variable_that_is_not_set_is_said_and_nothing_is_sent() {
    let near = near("http://127.0.0.1:9/mcp").start();
    let shown = server(&near, |server| server["state"] == "failed");
    let error = shown["error"].as_str().unwrap();
    assert!(error.contains("FAR_AUTHORIZATION is not set"), "{error}");
    // Whoever misses it in a list, or calls it, is told.
    for (args, code) in [(&["tools"] as &[&str], 0), (&["call", "far.demo.add"], 1)] {
        let out = near.run(args);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{said}");
        let line = said
            .lines()
            .find(|line| line.starts_with("toolgate: the server far "));
        assert!(
            line.unwrap().contains("FAR_AUTHORIZATION is not set"),
            "{said}"
        );
    }
}

#[test]
fn the_one_server_of_run_that_cannot_be_started_is_told_with_the_reason() {
    let gate = Setup::run(&["/nonexistent/server".into()]).start();
    let line = until("it is told", SOON, || {
        let said = gate.said();
        let told = |line: &&String| line.contains("the server nonexistent is not running: ");
        said.iter().find(told).cloned()
    });
    assert!(
        line.contains("/nonexistent/server was not started: the file does not exist"),
        "{line}"
    );
}
