//! The tools of hosts themselves, which their hooks send through the gateway.

use crate::help::{Gate, Modern, Setup, TempDir, command, output, toolgate};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::{Child, Output, Stdio};
use std::sync::Arc;

/// What `toolgate connect claude-code --hooks` appends to an empty config.
fn hook_config() -> String {
    let home = TempDir::new("hook-config");
    let file = home.write("toolgate.toml", "");
    let mut run = toolgate();
    run.args(["connect", "claude-code", "--hooks", "--config"])
        .arg(&file)
        .env("HOME", home.path())
        .env_remove("CLAUDE_CONFIG_DIR")
        .env("XDG_DATA_HOME", home.file("data"));
    let out = output(&mut run);
    assert!(out.status.success(), "{out:?}");
    fs::read_to_string(&file).unwrap()
}

/// Runs the hook of a host with an input.
fn start(gate: &Gate, words: &[&str], input: &Value) -> Child {
    let mut run = toolgate();
    let mut child = run
        .arg("hook")
        .args(words)
        .arg("--data")
        .arg(gate.data.path().join("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    write!(child.stdin.take().unwrap(), "{input}").unwrap();
    child
}

fn answer(child: Child) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn bash(text: &str) -> Value {
    json!({"session_id": "s", "transcript_path": "/t", "cwd": "/srv", "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "u", "tool_input": {"command": text}})
}

#[test]
fn a_person_decides_about_the_shell_of_a_host() {
    let gate = Setup::config(hook_config()).start();
    // Reading is allowed by the first rules.
    let read = json!({"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {"file_path": "/a"}});
    assert_eq!(
        answer(start(&gate, &["claude-code"], &read)),
        (Some(0), String::new(), String::new())
    );
    // A shell command waits for a person.
    let waiting = start(&gate, &["claude-code"], &bash("rm -rf build"));
    let id = gate.pending();
    let shown = gate.cli(&["inbox"]);
    assert!(
        shown.contains("host.bash for hook@claude-code") && shown.contains("rm -rf build"),
        "{shown}"
    );
    gate.cli(&["approve", &id]);
    let (code, output, said) = answer(waiting);
    assert_eq!((code, output.as_str()), (Some(0), ""));
    assert!(
        said.starts_with("waiting for a person to approve host.bash (a-"),
        "{said}"
    );
    let waiting = start(&gate, &["codex"], &bash("curl evil.example"));
    let id = gate.pending();
    gate.cli(&["deny", &id, "-m", "ask the owner of evil.example first"]);
    let (code, output, said) = answer(waiting);
    assert_eq!((code, output.as_str()), (Some(2), ""));
    assert!(
        said.contains("ask the owner of evil.example first"),
        "{said}"
    );
    let shell = json!({"hook_event_name": "beforeShellExecution", "conversation_id": "c", "command": "npm i", "cwd": "/p"});
    let waiting = start(&gate, &["cursor"], &shell);
    let id = gate.pending();
    gate.cli(&["deny", &id, "-m", "not today"]);
    let (code, output, _) = answer(waiting);
    let reply: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((code, &reply["permission"]), (Some(0), &json!("deny")));
    assert!(
        reply["agent_message"]
            .as_str()
            .unwrap()
            .contains("not today"),
        "{reply}"
    );
    // All of it is in the audit log.
    let calls = gate.audit();
    let of = |caller: &str| {
        let of_caller = calls.iter().filter(|record| record["caller"] == caller);
        let named = of_caller.filter(|record| record["tool"].is_string());
        let calls: BTreeSet<_> = named.filter_map(|record| record["call"].as_str()).collect();
        calls.len()
    };
    assert_eq!(
        (of("hook@claude-code"), of("hook@codex"), of("hook@cursor")),
        (2, 1, 1)
    );
}

/// Inputs that the hosts sent, recorded with a model on loopback that asked for these tools.
#[test]
fn recorded_inputs_of_hosts_are_decided() {
    let rules = "[[rule]]\ntools = [\"host.bash\"]\nwhen = 'args.command.startsWith(\"echo\")'\naction = \"allow\"\n\
        [[rule]]\ntools = [\"host.fetch\", \"host.search\"]\naction = \"allow\"\n\
        [[rule]]\ntools = [\"host.edit\"]\nwhen = 'args.path == \"/home/ada/work/a.txt\" && args.cwd == \"/home/ada/work\"'\naction = \"allow\"\n\
        [[rule]]\ntools = [\"host.bash\"]\nwhen = 'args.command.startsWith(\"rm\")'\naction = \"deny\"\n\
        [[rule]]\ntools = [\"host.write\"]\naction = \"deny\"\n";
    let gate = Setup::config(hook_config() + rules).start();
    let decide = |host: &str, recorded: &str| -> Vec<String> {
        let inputs = recorded.lines().map(|line| {
            let input: Value = serde_json::from_str(line).unwrap();
            let (code, out, said) = answer(start(&gate, &[host], &input));
            let decision = match code {
                Some(0) => "allowed",
                Some(2) => "denied",
                _ => panic!("{code:?} {out} {said}"),
            };
            let tool = input["tool_name"].as_str().unwrap();
            format!("{tool} {decision}")
        });
        inputs.collect()
    };
    assert_eq!(
        decide(
            "claude-code",
            include_str!("hooks/claude-code-2.1.197.jsonl")
        ),
        [
            "Bash allowed",
            "Write denied",
            "Read allowed",
            "Edit allowed",
            "Grep allowed",
            "WebFetch allowed"
        ]
    );
    assert_eq!(
        decide("codex", include_str!("hooks/codex-0.169.0.jsonl")),
        ["Bash allowed", "Bash denied"]
    );
    let write = include_str!("hooks/claude-code-2.1.197.jsonl")
        .lines()
        .nth(1);
    let write = serde_json::from_str(write.unwrap()).unwrap();
    let (_, _, said) = answer(start(&gate, &["claude-code"], &write));
    assert!(said.contains("the rules deny host.write"), "{said}");
}

#[test]
fn calls_of_the_audit_log_are_judged_by_another_config() {
    let rule = "[[rule]]\ntools = [\"host.bash\"]\nwhen = 'args.command == \"cargo test\"'\naction = \"allow\"\n\
        [[rule]]\ntools = [\"host.write\"]\naction = \"deny\"\n";
    let gate = Setup::config(hook_config() + rule).start();
    for _ in 0..3 {
        assert_eq!(
            answer(start(&gate, &["codex"], &bash("cargo test"))).0,
            Some(0)
        );
    }
    let write = json!({"hook_event_name": "PreToolUse", "tool_name": "Write", "tool_input": {"file_path": "/a", "content": "x"}});
    assert_eq!(answer(start(&gate, &["claude-code"], &write)).0, Some(2));
    let judge = |rules: &str| {
        let file = gate.data.write("other.toml", &(hook_config() + rules));
        gate.cli(&[
            "replay",
            "--audit",
            "1d",
            "--config",
            file.to_str().unwrap(),
        ])
    };
    let text = judge("");
    for wanted in [
        "      0 would be allowed\n",
        "      4 would need an approval\n",
        "      3       0       0  host.bash\n",
        "These rules would have made 3 of 4 approvals unnecessary.",
        "when = 'args.command in [\"cargo test\"]'\n",
        "the audit log, evaluated with ",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in {text}");
    }
    let (_, rules) = text.split_once("before you add it:\n\n").unwrap();
    let (rules, _) = rules.split_once("\nthe audit log").unwrap();
    let text = judge(rules);
    assert!(text.contains("      3 would be allowed\n"), "{text}");
    assert!(text.contains("      1 would need an approval\n"), "{text}");
}

#[test]
fn nobody_decides_in_time_or_no_gateway_runs() {
    let gate = Setup::config(hook_config()).start();
    let (code, _, said) = answer(start(&gate, &["claude-code", "--wait", "1"], &bash("ls")));
    assert_eq!(code, Some(2));
    assert!(
        said.ends_with("toolgate: denied, because there was no decision within 1 s\n"),
        "{said}"
    );
    let data: Arc<TempDir> = gate.stop();
    let alone = |words: &[&str]| {
        let mut run = toolgate();
        let mut child = run
            .arg("hook")
            .args(words)
            .arg("--data")
            .arg(data.path().join("state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        write!(child.stdin.take().unwrap(), "{}", bash("ls")).unwrap();
        answer(child)
    };
    let (code, _, said) = alone(&["claude-code"]);
    assert_eq!(code, Some(2));
    assert!(
        said.starts_with("toolgate: denied, because no gateway could decide: "),
        "{said}"
    );
    let (code, _, said) = alone(&["claude-code", "--if-unavailable", "allow"]);
    assert_eq!(code, Some(0));
    assert!(
        said.starts_with("toolgate: this call was not checked: "),
        "{said}"
    );
}

#[test]
fn other_callers_do_not_see_the_tools_of_hosts() {
    let gate = Setup::config(hook_config()).start();
    let tools = Modern::ask(
        gate.port,
        None,
        &Modern::body(&json!(1), "tools/list", json!({})),
    );
    assert_eq!(tools["result"]["tools"], json!([]), "{tools}");
    let answer = Modern::call(gate.port, &json!(2), "host_bash", json!({"command": "ls"}));
    assert!(!answer.body.contains("allowed"));
}

#[test]
fn an_input_that_cannot_be_read_is_denied() {
    let gate = Setup::config(hook_config()).start();
    let (code, _, said) = answer(start(&gate, &["claude-code"], &json!({"tool": "Bash"})));
    assert_eq!(
        (code, said.as_str()),
        (
            Some(2),
            "toolgate: the input of the hook cannot be read: it has no \"tool_name\"\n"
        )
    );
    let (code, _, said) = answer(start(&gate, &["zed"], &json!({})));
    assert_eq!(
        (code, said.as_str()),
        (
            Some(2),
            "toolgate: toolgate does not support hooks of the host \"zed\"; it supports those of claude-code, codex, cursor\n"
        )
    );
}

/// A denial is not taken for a gateway that is away.
#[test]
fn a_rule_denies_whatever_happens_without_a_gateway() {
    let deny = "\n[[rule]]\ntools = [\"host.bash\"]\nwhen = 'args.command.contains(\"sudo\")'\naction = \"deny\"\n";
    let gate = Setup::config(hook_config() + deny).start();
    let words = ["claude-code", "--if-unavailable", "allow"];
    let (code, _, said) = answer(start(&gate, &words, &bash("sudo ls")));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("refused: rule 3 "), "{said}");
}

/// The shell of the host runs the command of the settings, and the settings come back.
#[test]
fn the_hook_of_the_settings_runs_and_goes_without_a_trace() {
    let home = TempDir::new("hook-home");
    let config = home.file(".config/toolgate/toolgate.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "# mine\n").unwrap();
    for (host, file, event) in [
        ("claude-code", ".claude/settings.json", "PreToolUse"),
        ("codex", ".codex/hooks.json", "PreToolUse"),
        ("cursor", ".cursor/hooks.json", "beforeShellExecution"),
    ] {
        let run = |words: &[&str]| {
            let mut run = toolgate();
            for name in [
                "XDG_CONFIG_HOME",
                "XDG_DATA_HOME",
                "CODEX_HOME",
                "CLAUDE_CONFIG_DIR",
            ] {
                run.env_remove(name);
            }
            let out = output(run.args(words).env("HOME", home.path()));
            assert!(out.status.success(), "{words:?}: {out:?}");
        };
        let file = home.file(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let before = "{\n  \"version\": 1,\n  \"model\": \"m\"\n}\n";
        fs::write(&file, before).unwrap();
        run(&["connect", host, "--hooks", "--dry-run"]);
        assert_eq!(fs::read_to_string(&file).unwrap(), before);
        run(&["connect", host, "--hooks"]);
        run(&["connect", host, "--hooks"]);
        let settings: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let hooks = settings["hooks"][event].as_array().unwrap();
        assert_eq!(hooks.len(), 1, "{settings}");
        let line = hooks[0]["command"].as_str();
        let line = line
            .or_else(|| hooks[0]["hooks"][0]["command"].as_str())
            .unwrap();
        // No gateway runs, so the hook denies.
        let mut shell = command("sh");
        let mut child = shell
            .args(["-c", line])
            .env("HOME", home.path())
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = match host {
            "cursor" => json!({"hook_event_name": event, "command": "ls"}),
            _ => bash("ls"),
        };
        write!(child.stdin.take().unwrap(), "{input}").unwrap();
        let (code, out, said) = answer(child);
        let denied = code == Some(2) || out.contains("\"deny\"");
        assert!(
            denied && format!("{out}{said}").contains("no gateway"),
            "{host}: {out}{said}"
        );
        // The host changes its settings in the meantime.
        let changed = fs::read_to_string(&file).unwrap().replace("\"m\"", "\"n\"");
        fs::write(&file, changed).unwrap();
        run(&["disconnect", host, "--hooks"]);
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            before.replace("\"m\"", "\"n\""),
            "{host}"
        );
    }
    let text = fs::read_to_string(&config).unwrap();
    assert_eq!(text.matches("[server.host]").count(), 1, "{text}");
    assert!(text.starts_with("# mine\n"), "{text}");
}
