//! `--json` of every command that has it, against the published schemas, with a real gateway that has something to list.

use crate::{
    help::{Gate, Modern, Response, SOON, Setup, TempDir, output, toolgate, until},
    tasks::body,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Output,
    sync::Arc,
    thread::JoinHandle,
};

/// Command of the output, and the command line that prints it.
type OutputCase<'a> = (&'a str, &'a [&'a str]);

/// Outputs that need a running gateway.
const LIVE_OUTPUTS: &[OutputCase<'static>] = &[
    ("inbox", &["inbox"]),
    ("grants list", &["grants", "list"]),
    ("passkeys list", &["passkeys", "list"]),
    ("freeze list", &["freeze", "list"]),
    ("status", &["status"]),
    ("tools", &["tools"]),
    ("resources", &["resources"]),
    ("prompts", &["prompts"]),
    ("calls", &["calls"]),
    ("tasks list", &["tasks", "list"]),
    ("explain", &["explain", "demo.add", "{\"a\": 1, \"b\": 2}"]),
    ("pins list", &["pins", "list"]),
    ("pins diff", &["pins", "diff", "s.look"]),
    ("keys list", &["keys", "list"]),
    ("store check", &["store", "check"]),
    ("logs", &["logs", "s"]),
    ("audit tail", &["audit", "tail", "-n", "1000"]),
    ("audit search", &["audit", "search", "--tool", "demo.add"]),
    ("audit verify", &["audit", "verify"]),
];

/// Outputs that read a config, a home directory or transcripts.
const OFFLINE_OUTPUTS: &[OutputCase<'static>] = &[
    ("check", &["check", "--explain-memory"]),
    ("doctor", &["doctor", "--no-start"]),
    ("import --dry-run", &["import", "--dry-run"]),
    ("connect", &["connect"]),
    ("replay", &["replay"]),
    ("service status", &["service", "status"]),
    ("uninstall", &["uninstall"]),
    ("explain --history", &["explain", "--history", "1d"]),
];

/// Outputs whose tests need an authorization server; `logins.rs` compares them with their schema.
const OTHER_OUTPUTS: [&str; 3] = ["logins", "audit verify --fleet", "audit copies"];

/// A gateway with a key, a grant, a pending approval, a task, a freeze and a changed pin; and its pending call.
fn busy_gateway(data: &Arc<TempDir>) -> (Gate, JoinHandle<Response>) {
    let offer = data.write("offer.json", &offer("Looks").to_string());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/servers/changing.py");
    let gate = Setup::fast_demo(&format!(
        "[server.s]\ncommand = [\"sh\", \"-c\", \"echo started >&2; exec python3 {} {}\"]\n\
         [[rule]]\ntools = [\"s.*\"]\naction = \"allow\"\n",
        script.display(),
        offer.display()
    ))
    .start_in(data.clone());
    let call = |tool: &'static str, arguments: Value| {
        let port = gate.port;
        std::thread::spawn(move || Modern::call(port, &json!(1), tool, arguments))
    };
    call("demo_add", json!({"a": 1, "b": 2})).join().unwrap();
    gate.cli(&["keys", "create", "ci", "--expires", "5d"]);
    let note = call("demo_note", json!({"name": "n", "text": "x"}));
    gate.cli(&["approve", &gate.pending(), "--remember", "--uses", "3"]);
    note.join().unwrap();
    let arguments = json!({"to": 10_000, "delay_ms": 1_000});
    let task = json!({"name": "demo_slow_count", "arguments": arguments});
    Modern::ask(
        gate.port,
        Some("demo_slow_count"),
        &body("tools/call", task),
    );
    let pins = until("the definitions are pinned", SOON, || {
        Some(gate.cli(&["pins", "list"])).filter(|pins| pins.contains("s.look"))
    });
    assert!(!pins.contains("changed"), "{pins}");
    let new = data.write("offer.new", &self::offer("Looks\u{202e} again").to_string());
    fs::rename(new, offer).unwrap();
    until("a pin is changed", SOON, || {
        gate.cli(&["pins", "list"])
            .contains("changed")
            .then_some(())
    });
    gate.cli(&["freeze", "caller", "key:ci", "--reason", "leaked"]);
    let pending = call(
        "demo_delete_note",
        json!({"name": "\u{202e}\u{1b}[2J \"n\""}),
    );
    gate.pending();
    (gate, pending)
}

fn offer(look: &str) -> Value {
    json!({
        "tools": [{"name": "look", "description": look, "inputSchema": {"type": "object"}}],
        "prompts": [{"name": "greet", "description": "Greets"}],
        "resources": [{"uri": "test://a", "name": "a"}],
    })
}

/// Returns the published schema of a command.
fn schema(command: &str) -> Value {
    let name = command.replace("--", "").replace(' ', "-");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/json");
    let text = fs::read_to_string(folder.join(format!("{name}.schema.json"))).expect(command);
    serde_json::from_str(&text).unwrap()
}

/// Checks an output: the schema, that it is not empty, and times. Returns its documents.
#[track_caller]
pub(crate) fn check_output(command: &str, text: &str) -> Vec<Value> {
    let schema = schema(command);
    let is_stream = schema["title"].as_str().unwrap().starts_with("Line");
    let parse = |text: &str| serde_json::from_str(text).expect(text);
    let documents: Vec<Value> = match is_stream {
        true => text.lines().map(parse).collect(),
        false => vec![parse(text)],
    };
    let validator = jsonschema::validator_for(&schema).unwrap();
    for document in &documents {
        let errors: Vec<String> = validator
            .iter_errors(document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{command}: {errors:#?} in {document:#}");
        check_members(command, document, &schema);
    }
    let filled = |document: &Value| document.as_array().is_none_or(|all| !all.is_empty());
    assert!(
        !documents.is_empty() && documents.iter().all(filled),
        "{command} is empty: {text}"
    );
    let foreign = |c: char| c == '\u{1b}' || c == '\u{202e}';
    assert!(!text.contains(foreign), "{command}: {text}");
    documents
}

/// Each member of an object is in its schema, and times are in RFC 3339.
fn check_members(command: &str, value: &Value, schema: &Value) {
    let known = schema.to_string();
    if let Value::Array(items) = value {
        items
            .iter()
            .for_each(|item| check_members(command, item, schema));
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        if name.ends_with("_at") && !value.is_null() {
            let time = value.as_str().unwrap_or_default();
            assert!(
                time.len() == 24 && time.ends_with('Z'),
                "{command} {name}: {value}"
            );
        }
        let is_record = command.starts_with("audit") && command != "audit verify";
        if !is_record {
            assert!(
                known.contains(&format!("{name:?}:")),
                "{command} has {name:?}, its schema has not"
            );
        }
        let is_foreign = ["input_schema", "output_schema", "arguments"].contains(&name.as_str());
        if !is_foreign && !is_record {
            check_members(command, value, schema);
        }
    }
}

#[track_caller]
fn stdout_of(words: &[&str], out: Output) -> String {
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{words:?}: {} {said}", out.status);
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn every_output_matches_its_published_schema() {
    let data = Arc::new(TempDir::new("json-outputs"));
    let (gate, pending) = busy_gateway(&data);
    let mut outputs = std::collections::BTreeMap::new();
    for (command, words) in LIVE_OUTPUTS {
        let words = [*words, &["--json"]].concat();
        let text = gate.cli(&words);
        outputs.insert(*command, check_output(command, &text));
    }
    let first = |command: &str| outputs[command][0][0].clone();
    assert_eq!(
        first("inbox")["arguments"]["name"],
        "\u{202e}\u{1b}[2J \"n\""
    );
    assert_eq!(first("grants list")["max_uses"], 3);
    assert_eq!(first("freeze list")["target"], "caller key:ci");
    assert_eq!(first("keys list")["name"], "ci");
    assert_eq!(first("tasks list")["tool"], "demo.slow_count");
    assert_eq!(first("status")["keys_ending"][0]["name"], "ci");
    assert_eq!(first("pins diff")["state"], "changed");
    assert_eq!(outputs["explain"][0]["decision"], "allow");
    assert_eq!(outputs["logs"][0]["text"], "started");
    assert_eq!(outputs["audit verify"][0]["chains"][0]["live"], true);
    let tools = outputs["tools"][0].as_array().unwrap();
    assert!(
        tools.iter().any(|tool| tool["full_name"] == "demo.add"),
        "{tools:#?}"
    );
    gate.cli(&["deny", &gate.pending(), "-m", "no"]);
    pending.join().unwrap();
    gate.stop();

    let home = Home::new(&data);
    for (command, words) in OFFLINE_OUTPUTS {
        let words = [*words, &["--json"]].concat();
        check_output(command, &stdout_of(&words, home.run(&words)));
    }
}

#[test]
fn each_schema_of_the_program_is_published_and_tested() {
    let listed = stdout_of(&["schema"], output(toolgate().arg("schema")));
    let listed: BTreeSet<&str> = listed.lines().collect();
    let cases = LIVE_OUTPUTS.iter().chain(OFFLINE_OUTPUTS);
    let cases = cases.map(|(command, _)| *command).chain(OTHER_OUTPUTS);
    let cases: BTreeSet<String> = cases.map(|name| name.replace("--", "")).collect();
    assert_eq!(listed, cases.iter().map(String::as_str).collect());
    for name in listed {
        let words: Vec<&str> = ["schema"].into_iter().chain(name.split(' ')).collect();
        let printed = stdout_of(&words, output(toolgate().args(&words)));
        assert_eq!(
            serde_json::from_str::<Value>(&printed).unwrap(),
            schema(name)
        );
    }
    let wrong = output(toolgate().args(["schema", "keys", "lst"]));
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("did you mean \"keys list\"?"));
}

#[test]
fn failures_keep_their_exit_codes_and_print_nothing_or_json() {
    let data = Arc::new(TempDir::new("json-failures"));
    let words = ["status", "--json", "--data"];
    let none = output(toolgate().args(words).arg(data.path()));
    assert_eq!((none.status.code(), none.stdout.len()), (Some(1), 0));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no gateway is running"));
    let gate = Setup::config("[server.gone]\ncommand = [\"/nowhere/program\"]\n").start_in(data);
    let down = until("the server is down", SOON, || {
        let out = gate.run(&["status", "--json"]);
        (out.status.code() == Some(1)).then_some(out)
    });
    let status = check_output("status", &String::from_utf8(down.stdout).unwrap());
    assert_eq!(status[0][0]["servers"][0]["down"], true);
    gate.stop();
}

/// Home directory with a host, a transcript and a service manager.
struct Home {
    data: PathBuf,
    dir: TempDir,
}

impl Home {
    fn new(data: &TempDir) -> Home {
        let dir = TempDir::new("json-home");
        let write = |file: &str, text: &str| {
            let file = dir.file(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            file
        };
        write(
            ".cursor/mcp.json",
            r#"{"mcpServers": {"files": {"command": "files-server", "env": {"API_KEY": "k-0123456789abcdef0123"}}}}"#,
        );
        let used = json!({"type": "assistant", "message": {"content": [
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}},
            {"type": "tool_use", "id": "t", "name": "mcp__demo__add", "input": {"a": 1, "b": 2}},
        ]}});
        write(".claude/projects/p/one.jsonl", &format!("{used}\n"));
        let program = env!("CARGO_BIN_EXE_toolgate");
        write(
            ".config/toolgate/toolgate.toml",
            &format!(
                "[server.demo]\ncommand = [{program:?}, \"demo-server\"]\n[[rule]]\ntools = [\"demo.*\"]\naction = \"deny\"\n"
            ),
        );
        let systemctl = write("bin/systemctl", "#!/bin/sh\necho active\n");
        fs::set_permissions(systemctl, fs::Permissions::from_mode(0o755)).unwrap();
        Home {
            data: data.path().join("state"),
            dir,
        }
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut run = toolgate();
        for name in [
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "CODEX_HOME",
            "CLAUDE_CONFIG_DIR",
        ] {
            run.env_remove(name);
        }
        let path = format!("{}:/usr/bin:/bin", self.dir.file("bin").display());
        run.args(words).arg("--data").arg(&self.data);
        run.env("HOME", self.dir.path()).env("PATH", path);
        output(run.current_dir(self.dir.path()))
    }
}
