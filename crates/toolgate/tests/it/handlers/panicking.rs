//! T61: tools that panic over what they were given: an answer, a server that goes on, and nothing of it anywhere.
#![allow(clippy::print_stdout, reason = "the figures of the test")]

use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Command, Stdio},
};
use toolgate::handlers::{HandlerExit, Server, Tool};
use toolgate_testkit::canary::spellings;

const CANARY: &str = "canary-panic-4Nq8Wz2Kv6Xh1Lm9";
/// Variable by which the test runs itself as that server: the folder of its audit log.
const FOLDER: &str = "TOOLGATE_TEST_PANICKING";

/// The ways in which code panics with what it works on in its words.
const WAYS: [&str; 6] = ["said", "unwrapped", "sliced", "compared", "thrown", "later"];

fn panics(way: &str, secret: &str) -> String {
    match way {
        "said" => panic!("cannot work on {secret}"),
        "unwrapped" => {
            let number = secret.parse::<u8>().map_err(|_| secret.to_owned());
            number.unwrap().to_string()
        }
        "sliced" => secret[..secret.len() + 1].to_owned(),
        "compared" => {
            assert_eq!(secret, "something else");
            String::new()
        }
        "thrown" => std::panic::panic_any(secret.to_owned()),
        _ => unreachable!("{way} {secret}"),
    }
}

fn server(folder: &str) -> Server {
    let schema = json!({"type": "object", "properties": {"way": {"type": "string"}, "secret": {"type": "string"}}});
    let tool = Tool::dynamic("panics", schema, |args: Value, _| async move {
        let (way, secret) = (args["way"].as_str().unwrap(), &args["secret"]);
        if way == "fine" {
            return Ok::<_, HandlerExit>("fine".to_owned());
        }
        tokio::task::yield_now().await;
        Ok(panics(way, secret.as_str().unwrap()))
    });
    Server::new("panicking", "1").tool(tool).audit_in(folder)
}

#[tokio::test]
async fn panicking_server() {
    if let Ok(folder) = std::env::var(FOLDER) {
        // The harness may have begun a line.
        std::io::stdout().write_all(b"\n").unwrap();
        toolgate::stdio(server(&folder)).await.unwrap();
        std::process::exit(0);
    }
}

fn request(id: usize, way: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "panics", "arguments": {"way": way, "secret": CANARY}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "by-hand", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
}

pub(crate) fn files(folder: &Path, all: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, all);
        } else if path.is_file() {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            all.push((path.display().to_string(), text));
        }
    }
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "it starts itself again, as a program of its own"
)]
fn t61_what_a_tool_panics_over_stands_nowhere() {
    let folder = std::env::temp_dir().join(toolgate::ids::short_id("toolgate-panic"));
    let mut start = Command::new(std::env::current_exe().unwrap());
    start.args([
        "--exact",
        "handlers::panicking::panicking_server",
        "--nocapture",
    ]);
    start.env(FOLDER, &folder).env("RUST_BACKTRACE", "1");
    let mut child = start
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut to, mut from) = (
        child.stdin.take().unwrap(),
        BufReader::new(child.stdout.take().unwrap()),
    );
    let mut stderr = child.stderr.take().unwrap();
    let said = std::thread::spawn(move || {
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        said
    });
    let mut heard = String::new();
    for (id, way) in WAYS.iter().flat_map(|way| [way, &"fine"]).enumerate() {
        writeln!(to, "{}", request(id, way)).unwrap();
        let answer: Value = loop {
            let mut line = String::new();
            assert!(from.read_line(&mut line).unwrap() > 0, "it ended: {heard}");
            heard += &line;
            // The harness of tests says something, too.
            if let Ok(answer) = serde_json::from_str(&line) {
                break answer;
            }
        };
        assert_eq!(answer["id"], id);
        let fine = answer["result"]["content"][0]["text"] == "fine";
        assert_eq!(fine, *way == "fine", "{answer}");
        assert!(
            fine || answer.to_string().contains("internal error"),
            "{answer}"
        );
    }
    drop(to);
    from.read_to_string(&mut heard).unwrap();
    assert!(child.wait().unwrap().success(), "a panic ended it");
    let said = said.join().unwrap();
    let panics = said.matches("panic at ").count();
    assert_eq!(panics, WAYS.len(), "each says where: {said}");
    let mut all = vec![("stdout".to_owned(), heard), ("stderr".to_owned(), said)];
    files(&folder, &mut all);
    assert!(all.len() > 2, "a record");
    for canary in spellings(CANARY) {
        for (place, text) in &all {
            assert!(!text.contains(&canary), "{place} has {canary}: {text}");
        }
    }
    println!(
        "T61: {panics} panics over a secret, {} looks in {} streams and files, 0 found",
        spellings(CANARY).len() * all.len(),
        all.len(),
    );
    std::fs::remove_dir_all(folder).unwrap();
}
