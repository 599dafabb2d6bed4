//! The clock of the machine is set back between two runs, with the program and its own commands.

use crate::help::{Gate, Modern, SOON, Setup, TempDir, answer_of, output, toolgate, until};
use serde_json::{Value, json};
use std::{io::Write as _, net::TcpStream, path::Path, process::Output, sync::Arc, thread};

/// Lead of the clock in between, in seconds: longer than an approval, a grant or the key of the test.
const AHEAD: &str = "86400";

fn config() -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    format!(
        "[limits]\ngrant_seconds = 3600\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n"
    )
}

fn start(data: &Arc<TempDir>) -> Gate {
    Setup::config(config()).start_in(data.clone())
}

/// A command without a gateway, while the clock of the machine is ahead.
fn run_ahead(data: &Path, args: &[&str]) -> Output {
    let mut run = toolgate();
    run.args(args).arg("--data").arg(data);
    output(run.env("TOOLGATE_TEST_CLOCK_AHEAD_SECONDS", AHEAD))
}

fn note(text: &str) -> Value {
    json!({"name": "n", "text": text})
}

#[test]
fn what_has_expired_stays_expired_after_the_clock_is_set_back() {
    if !cfg!(debug_assertions) {
        return;
    }
    let data = Arc::new(TempDir::new("clock"));
    let state = data.path().join("state");
    let gate = start(&data);
    // A caller asks, and leaves before the approval; its next identical call would use that.
    let mut left = TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
    let asked = Modern::request(gate.port, &json!(1), "demo_note", note("once"));
    left.write_all(&asked).unwrap();
    let approval = gate.pending();
    drop(left);
    gate.cli(&["approve", &approval]);
    // Another call is allowed for an hour.
    let port = gate.port;
    let other = thread::spawn(move || Modern::call(port, &json!(2), "demo_note", note("often")));
    let of_other = until("the other call waits for a person", SOON, || {
        gate.inbox().into_iter().find(|id| *id != approval)
    });
    gate.cli(&[
        "approve",
        &of_other,
        "--remember",
        "--when",
        "args.text == \"often\"",
    ]);
    other.join().unwrap();
    gate.cli(&["keys", "create", "short", "--expires", "1h"]);
    gate.stop();

    // A process of the data directory sees the next day, and then the clock is set back.
    let made = run_ahead(&state, &["keys", "create", "later"]);
    assert!(made.status.success(), "{made:?}");

    let gate = start(&data);
    let list = gate.cli(&["keys", "list"]);
    let short = list.lines().find(|line| line.contains("short")).unwrap();
    assert!(short.contains("expired"), "{list}");
    let status = gate.cli(&["status"]);
    assert!(status.contains("the system clock was set back"), "{status}");
    for (id, text) in [(3, "once"), (4, "often")] {
        let port = gate.port;
        let again = thread::spawn(move || Modern::call(port, &json!(id), "demo_note", note(text)));
        gate.cli(&["deny", &gate.pending(), "-m", "asked again"]);
        let answer = answer_of(&again.join().unwrap(), &json!(id));
        assert!(answer.to_string().contains("asked again"), "{answer}");
    }
}
