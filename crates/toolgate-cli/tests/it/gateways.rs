//! Several gateways on one data directory, of which one does not answer.

use crate::help::{Modern, Setup, TempDir, command, output, toolgate};
use serde_json::json;
use std::io::Read;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

#[test]
fn a_gateway_that_hangs_or_ends_holds_up_nobody() {
    let data = Arc::new(TempDir::short());
    let gate = Setup::demo().start_in(data.clone());
    let run = data.path().join("state/run");
    crate::help::until("the gateway opened its folder", crate::help::LONG, || {
        run.is_dir().then_some(())
    });
    // The first is never asked to accept, as if suspended; the second ends in the middle. Both come before the real one.
    let _deaf = UnixListener::bind(run.join("0.sock")).unwrap();
    let ends = UnixListener::bind(run.join("00.sock")).unwrap();
    std::thread::spawn(move || {
        for stream in ends.incoming().flatten() {
            let _ = (&stream).read(&mut [0; 1024]);
        }
    });
    let port = gate.port;
    let asked = std::thread::spawn(move || {
        let arguments = json!({"name": "a", "text": "b"});
        Modern::call(port, &json!(1), "demo_note", arguments)
    });
    let cli = |args: &[&str]| {
        let state = data.path().join("state");
        output(toolgate().args(args).arg("--data").arg(state))
    };
    let approval = crate::help::until("the call waits", crate::help::LONG, || {
        let out = cli(&["inbox"]);
        assert!(out.status.success(), "{out:?}");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(
            said.contains("process ID 0 ") && said.contains("may be suspended"),
            "{said}"
        );
        assert!(said.contains("process ID 00 "), "{said}");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        text.split_whitespace()
            .find(|word| word.starts_with("a-"))
            .map(str::to_owned)
    });
    let out = cli(&["approve", &approval]);
    assert!(out.status.success(), "{out:?}");
    assert!(!asked.join().unwrap().body.contains("isError\":true"));
    let out = cli(&["approve", "a-no-such"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success());
    assert!(
        said.contains("a-no-such") && said.contains("process ID 0 "),
        "it may be one of the other's: {said}"
    );
}

#[test]
fn a_suspended_gateway_does_nothing_late() {
    let gate = Setup::demo().start();
    let pid = gate.pid().to_string();
    let signal = |name: &str| {
        assert!(
            command("kill")
                .args([name, &pid])
                .status()
                .unwrap()
                .success()
        )
    };
    signal("-STOP");
    let call = || gate.run(&["call", "demo.add", "{\"a\": 1, \"b\": 2}"]);
    let out = call();
    signal("-CONT");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("may be suspended"), "{said}");
    // The connection of the one that gave up is taken before that of the next.
    let out = call();
    assert!(out.status.success(), "{out:?}");
    let begun = gate
        .audit()
        .iter()
        .filter(|r| r["ev"] == "call.begin")
        .count();
    assert_eq!(begun, 1, "what was given up is not done late");
}
