//! A person who signs in from a terminal, and whose browser follows each page at once.

use super::{Response, send, toolgate};
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::Stdio,
};

/// Types `toolgate login` with these words, and does what a browser would. What was said before the page, and what was
/// printed in the end.
#[track_caller]
pub(crate) fn typed_login(config: &Path, state: &Path, words: &[&str]) -> (String, String) {
    let mut child = toolgate()
        .args(["login", "--no-browser"])
        .args(words)
        .arg("--config")
        .arg(config)
        .arg("--data")
        .arg(state)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    for line in lines.by_ref().map_while(Result::ok) {
        if line.starts_with("  http") {
            let led = get(line.trim());
            let back = led.header("location").expect("it leads back");
            assert_eq!(get(back).status, 200);
            break;
        }
        said.push_str(&line);
    }
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{said} {rest:?}");
    (said, String::from_utf8(done.stdout).unwrap())
}

/// Goes to an address of loopback.
pub(crate) fn get(url: &str) -> Response {
    let rest = url.strip_prefix("http://127.0.0.1:").unwrap();
    let (port, path) = rest.split_once('/').unwrap();
    let port: u16 = port.parse().unwrap();
    send(port, "GET", &format!("/{path}"), &[], b"")
}
