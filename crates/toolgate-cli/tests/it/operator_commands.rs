//! `toolgate call` and `toolgate freeze`: what an operator types, and what the answer explains.

use crate::help::{Gate, Modern, Setup, answer_of, toolgate};
use serde_json::{Value, json};
use std::{
    io::Write,
    process::{Output, Stdio},
};

/// The demo server, with rules that deny one tool always and another one for some arguments.
fn gate() -> Gate {
    Setup::fast_demo(
        "[[rule]]\ntools = [\"demo.fail\"]\naction = \"deny\"\n\
         [[rule]]\ntools = [\"demo.add\"]\nwhen = \"args.a == 13\"\naction = \"deny\"\n",
    )
    .start()
}

fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn sum(out: &Output) -> Value {
    let value: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{out:?}"));
    value["structuredContent"]["sum"].clone()
}

#[test]
fn call_accepts_pairs_json_a_file_and_standard_input() {
    let gate = gate();
    assert_eq!(sum(&gate.run(&["call", "demo.add", "a=1", "b=2.5"])), 3.5);
    assert_eq!(
        sum(&gate.run(&["call", "demo.add", "{\"a\": 1, \"b\": 2}"])),
        3
    );
    let file = gate.data.write("arguments.json", "{\"a\": 4, \"b\": 5}\n");
    let named = format!("@{}", file.display());
    assert_eq!(sum(&gate.run(&["call", "demo.add", &named])), 9);
    let mut call = toolgate();
    call.args(["call", "demo.add", "-", "--data"])
        .arg(gate.data.path().join("state"));
    call.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = call.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"{\"a\": 6, \"b\": 7}")
        .unwrap();
    assert_eq!(sum(&child.wait_with_output().unwrap()), 13);
    let typed = gate.run(&["call", "demo.add", "a=one", "b=2"]);
    assert_eq!(typed.status.code(), Some(1));
    assert!(
        stderr(&typed).contains("the argument \"a\" must be a number"),
        "{}",
        stderr(&typed)
    );
    for (words, why) in [
        (&["call", "demo.add", "a"][..], "not valid JSON"),
        (&["call", "demo.add", "a=1", "{}"], "do not mix them"),
        (&["call", "demo.add", "[1]"], "not a JSON object"),
    ] {
        let wrong = gate.run(words);
        assert_eq!(wrong.status.code(), Some(2), "{words:?}");
        assert!(
            stderr(&wrong).contains(why),
            "{words:?}: {}",
            stderr(&wrong)
        );
    }
    gate.stop();
}

#[test]
fn a_denial_names_the_rule_to_the_operator_and_not_to_the_model() {
    let gate = gate();
    let file = gate.data.file("toolgate.toml").display().to_string();
    for (words, rule) in [
        (&["call", "demo.fail"][..], "rule 1 (line "),
        (&["call", "demo.add", "a=13", "b=1"], "rule 2 (line "),
    ] {
        let denied = gate.run(words);
        let said = stderr(&denied);
        assert_eq!(denied.status.code(), Some(1), "{said}");
        assert!(said.contains("denied by ") && said.contains(rule), "{said}");
        assert!(
            said.contains(&file) && said.contains("run: toolgate reload"),
            "{said}"
        );
        assert!(said.contains("toolgate explain demo."), "{said}");
    }
    let id = json!(1);
    let model = Modern::call(gate.port, &id, "demo_add", json!({"a": 13, "b": 1}));
    let model = answer_of(&model, &id).to_string();
    assert!(
        !model.contains(&file) && !model.contains("toolgate explain"),
        "{model}"
    );
    gate.stop();
}

#[test]
fn freeze_refuses_what_no_call_can_match() {
    let gate = gate();
    for (words, why) in [
        (
            ["freeze", "server", "dmo"],
            "there is no server \"dmo\"; did you mean \"demo\"?",
        ),
        (["freeze", "server", "xyz"], "the servers are: demo"),
        (["freeze", "caller", "ci"], "write \"key:ci\""),
        (
            ["freeze", "caller", "kye:ci"],
            "callers are: key:NAME, anonymous@http",
        ),
        (
            ["freeze", "caller", "anonymus@http"],
            "did you mean \"anonymous@http\"?",
        ),
        (
            ["freeze", "caller", "key:*"],
            "is not the name of one caller",
        ),
    ] {
        let refused = gate.run(&words);
        assert_eq!(refused.status.code(), Some(1), "{words:?}");
        assert!(
            stderr(&refused).contains(why),
            "{words:?}: {}",
            stderr(&refused)
        );
    }
    assert_eq!(gate.cli(&["freeze", "list"]), "");
    gate.cli(&["keys", "create", "build"]);
    let unseen = stderr(&gate.run(&["freeze", "caller", "key:build"]));
    assert!(
        unseen.contains("has not seen a call by key:build"),
        "{unseen}"
    );
    let near = stderr(&gate.run(&["freeze", "caller", "key:biuld"]));
    assert!(near.contains("did you mean \"key:build\"?"), "{near}");
    Modern::call(gate.port, &json!(1), "demo_no_such", json!({}));
    let seen = stderr(&gate.run(&["freeze", "caller", "anonymous@http"]));
    assert_eq!(seen, "frozen: caller anonymous@http\n");
    assert_eq!(gate.cli(&["freeze", "list"]).lines().count(), 3);
    gate.stop();
}
