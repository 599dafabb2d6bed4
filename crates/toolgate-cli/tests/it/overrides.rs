//! Tools that are renamed, hidden, described anew and given arguments by the config.

use crate::help::{
    Gate, LONG, Modern, Reply, Session, Setup, TempDir, answer_of, output, toolgate, until,
    upstream,
};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The value of an argument that is set; nobody but the server may get it.
const SECRET: &str = "fixed-canary-8Zt3Lq6Wn1Xe4Rb9";

/// Arguments that a server was called with.
type Seen = Arc<Mutex<Vec<Value>>>;

/// A server with two tools that look something up, and one that drops it.
fn shelf() -> (String, Seen) {
    let seen = Seen::default();
    let keep = seen.clone();
    let schema = json!({
        "type": "object", "required": ["path", "team", "depth"], "additionalProperties": false,
        "properties": {
            "path": {"type": "string"}, "team": {"type": "string", "minLength": 3},
            "depth": {"type": "integer", "maximum": 9}, "more": {"type": "boolean"},
        },
    });
    let tool = move |name: &str| {
        json!({
            "name": name, "title": "Own", "description": format!("Own words of {name}."),
            "inputSchema": schema, "annotations": {"readOnlyHint": true},
        })
    };
    let address = upstream(move |message| {
        let answer = |result: Value| Reply::result(message, result);
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => answer(json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "shelf", "version": "1"},
            })),
            "tools/list" => {
                answer(json!({"tools": [tool("read_file"), tool("find_file"), tool("drop_file")]}))
            }
            "tools/call" => {
                keep.lock().unwrap().push(message["params"].clone());
                answer(json!({"content": [{"type": "text", "text": "done"}]}))
            }
            _ => answer(json!({})),
        }
    });
    (address, seen)
}

fn config(address: &str, more: &str) -> String {
    format!("[server.far]\nurl = {address:?}\ntrust_annotations = true\n{more}")
}

const LOOK: &str = r#"
[server.far.tools.read_file]
name = "look"
title = "Look"
description = "Looks at one thing."
arguments = { team = { env = "TEAM" }, depth = 3 }

[server.far.tools.drop_file]
hide = true
"#;

fn listed(gate: &Gate) -> Vec<Value> {
    let list = Modern::body(&json!(1), "tools/list", json!({}));
    let list = Modern::ask(gate.port, None, &list)["result"]["tools"].clone();
    list.as_array().unwrap().clone()
}

fn names(gate: &Gate) -> Vec<String> {
    let names = listed(gate).into_iter();
    names
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn call(gate: &Gate, tool: &str, arguments: Value) -> Value {
    let answer = Modern::call(gate.port, &json!(2), tool, arguments);
    answer_of(&answer, &json!(2))
}

/// All bytes in the files of a folder.
fn kept(dir: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            all.extend(kept(&entry.path()));
        } else if kind.is_file() {
            all.extend(std::fs::read(entry.path()).unwrap());
        }
    }
    all
}

#[test]
fn callers_see_what_the_config_says_and_the_server_gets_what_it_knows() {
    let (address, seen) = shelf();
    let gate = Setup::config(config(&address, LOOK))
        .env("TEAM", SECRET)
        .start();
    let tools = listed(&gate);
    assert_eq!(tools.len(), 2, "{tools:?}");
    assert_eq!(
        tools[0],
        json!({
            "name": "far_look", "title": "Look", "description": "Looks at one thing.",
            "annotations": {"readOnlyHint": true},
            "inputSchema": {
                "type": "object", "required": ["path"], "additionalProperties": false,
                "properties": {"path": {"type": "string"}, "more": {"type": "boolean"}},
            },
        })
    );
    assert_eq!(tools[1]["description"], "Own words of find_file.");

    let done = call(&gate, "far_look", json!({"path": "a", "more": true}));
    assert_eq!(done["result"]["content"][0]["text"], "done", "{done}");
    let got = seen.lock().unwrap().pop().unwrap();
    assert_eq!(got["name"], "read_file");
    let whole = json!({"path": "a", "more": true, "team": SECRET, "depth": 3});
    assert_eq!(got["arguments"], whole);

    // What is set cannot be sent, and what is sent has to fit as before.
    let sent = call(&gate, "far_look", json!({"path": "a", "team": "mine"}));
    let text = sent["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("at /team expected no argument of this name"),
        "{text}"
    );
    assert_eq!(sent["result"]["isError"], true);
    let old = Session::of(gate.port, "2025-06-18");
    let sent = old.call(&json!(3), "far_look", json!({"path": "a", "depth": 1}));
    let sent = answer_of(&sent, &json!(3));
    assert_eq!(sent["error"]["code"], -32602, "{sent}");
    assert_eq!(sent["error"]["data"]["path"], "/depth", "{sent}");
    let wrong = call(&gate, "far_look", json!({"path": 1})).to_string();
    assert!(wrong.contains("/path expected a string"), "{wrong}");
    // Neither the old name nor the hidden tool is there.
    for gone in ["far_read_file", "far_drop_file"] {
        let answer = call(&gate, gone, json!({"path": "a"}));
        assert!(answer.to_string().contains("nknown tool"), "{answer}");
    }
    assert!(seen.lock().unwrap().is_empty());

    let records = gate.audit();
    let begun = records.iter().find(|r| r["ev"] == "call.begin").unwrap();
    assert_eq!(begun["tool"], "far.look");
    assert_eq!(begun["own"], "read_file");
    assert_eq!(begun["fixed"], json!(["team", "depth"]));
    let denied = records.iter().find(|r| r["ev"] == "deny").unwrap();
    assert_eq!(
        (&denied["tool"], &denied["own"]),
        (&json!("far.look"), &json!("read_file"))
    );
    let shown = gate.cli(&["tools"]);
    assert!(
        shown.contains("far.look") && shown.contains("the configuration hides it"),
        "{shown}"
    );
    let said = [gate.state().to_string(), shown, gate.said().join("\n")].concat();
    assert!(!said.contains(SECRET), "{said}");
    let data = gate.stop();
    let kept = kept(data.path());
    assert!(!kept.windows(SECRET.len()).any(|w| w == SECRET.as_bytes()));
}

#[test]
fn rules_and_approvals_use_the_name_of_the_config_and_never_what_is_set() {
    let (address, seen) = shelf();
    let rules = "[[rule]]\ntools = [\"far.read_file\"]\naction = \"deny\"\n\
                 [[rule]]\ntools = [\"far.look\"]\naction = \"ask\"\n";
    let gate = Setup::config(config(&address, &format!("{LOOK}{rules}")))
        .env("TEAM", SECRET)
        .start();
    assert_eq!(names(&gate), ["far_look", "far_find_file"]);
    let port = gate.port;
    let asked =
        std::thread::spawn(move || Modern::call(port, &json!(2), "far_look", json!({"path": "a"})));
    let id = gate.pending();
    let (inbox, state) = (gate.cli(&["inbox"]), gate.state().to_string());
    assert!(inbox.contains("far.look"), "{inbox}");
    assert!(
        !inbox.contains(SECRET) && !state.contains(SECRET),
        "{state}"
    );
    gate.cli(&["approve", &id]);
    let done = answer_of(&asked.join().unwrap(), &json!(2));
    assert_eq!(done["result"]["content"][0]["text"], "done", "{done}");
    assert_eq!(seen.lock().unwrap()[0]["arguments"]["team"], SECRET);
    let told = gate.cli(&["explain", "far.look", "{\"path\": \"a\"}"]);
    assert!(told.contains("rule 2") && !told.contains(SECRET), "{told}");
    gate.stop();
}

#[test]
fn tools_that_get_one_name_are_withheld_and_what_is_not_taken_is_not_set() {
    let (address, _) = shelf();
    let gate = Setup::config(config(
        &address,
        "[server.far.tools.read_file]\nname = \"find_file\"\n\
         [server.far.tools.drop_file]\narguments = { pth = \"a\" }\n",
    ))
    .start();
    assert!(names(&gate).is_empty(), "{:?}", names(&gate));
    let shown = gate.cli(&["tools"]);
    for why in [
        "gives the name \"find_file\" to this tool and to find_file",
        "gives the name \"find_file\" to this tool and to read_file",
        "sets the argument \"pth\", which the tool does not accept",
    ] {
        assert!(shown.contains(why), "{why}: {shown}");
    }
    // A name that is free because its tool is hidden can be given.
    gate.configure(&config(
        &address,
        "[server.far.tools.read_file]\nname = \"find_file\"\n[server.far.tools.find_file]\nhide = true\n",
    ));
    gate.cli(&["reload"]);
    assert_eq!(names(&gate), ["far_find_file", "far_drop_file"]);
    assert_eq!(listed(&gate)[0]["description"], "Own words of read_file.");
    gate.stop();
}

#[test]
fn a_reload_swaps_them_and_pins_are_of_what_the_server_says() {
    let (address, seen) = shelf();
    let gate = Setup::config(config(&address, "")).start();
    assert_eq!(
        names(&gate),
        ["far_read_file", "far_find_file", "far_drop_file"]
    );
    let pinned = gate.cli(&["pins", "list"]);
    assert!(pinned.contains("far.read_file"), "{pinned}");
    for (title, depth) in [("One", 1), ("Two", 2)] {
        let more = format!(
            "[server.far.tools.read_file]\nname = \"look\"\ntitle = {title:?}\n\
             arguments = {{ team = \"blue\", depth = {depth} }}\n"
        );
        gate.configure(&config(&address, &more));
        gate.cli(&["reload"]);
        let tools = listed(&gate);
        assert_eq!(tools[0]["title"], title, "{tools:?}");
        assert_eq!(tools[0]["name"], "far_look");
        call(&gate, "far_look", json!({"path": "a"}));
        assert_eq!(
            seen.lock().unwrap().pop().unwrap()["arguments"]["depth"],
            depth
        );
        assert_eq!(
            gate.cli(&["pins", "list"]),
            pinned,
            "nothing of it is pinned"
        );
    }
    // A variable that is not set changes nothing.
    gate.configure(&config(&address, LOOK));
    let out = gate.run(&["reload"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        said.contains("environment variable TEAM is not set"),
        "{said}"
    );
    assert_eq!(listed(&gate)[0]["title"], "Two");
    gate.stop();
}

#[test]
fn check_tells_of_tools_that_are_not_there_and_of_rules_with_old_names() {
    let dir = TempDir::new("overrides");
    let (address, _) = shelf();
    let text = "[server.far.tools.raed_file]\nhide = true\n\
                [server.far.tools.find_file]\nname = \"look\"\n\
                [server.far.tools.drop_file]\nname = \"look\"\n\
                [[rule]]\ntools = [\"far.find_*\"]\naction = \"deny\"\n";
    let gate = Setup::config(config(&address, text)).start();
    until("it was seen", LONG, || {
        gate.cli(&["pins", "list"])
            .contains("far.read_file")
            .then_some(())
    });
    let file = dir.write("toolgate.toml", &config(&address, text));
    let check = |args: &[&str]| {
        let mut run = toolgate();
        run.args(["check", "--config"]).arg(&file);
        run.arg("--data")
            .arg(gate.data.path().join("state"))
            .args(args);
        String::from_utf8(output(&mut run).stderr).unwrap()
    };
    let unlisted = "no gateway has listed a tool \"raed_file\" for the server far";
    let unknown = "the server far offers no tool \"raed_file\"";
    for (args, of, missing) in [
        (&[][..], "a gateway has listed for the server far", unlisted),
        (&["--servers"][..], "the server far offers", unknown),
    ] {
        let said = check(args);
        for line in [
            format!(
                "[server.far.tools.raed_file] (line 4) has no effect: {missing}; did you mean \"read_file\"?"
            ),
            "the tools find_file and drop_file of the server far have the same name \"look\" in the config, so all of them are withheld; give each a different name"
                .to_owned(),
            "rule 1 (line 10) matches far.find_file, but not far.look, the name that the config gives to this tool; write the new name in the rule"
                .to_owned(),
            format!("rule 1 (line 10) never matches: \"far.find_*\" matches no item that {of}"),
        ] {
            assert!(said.contains(&line), "{line}\n{said}");
        }
    }
    gate.stop();
}
