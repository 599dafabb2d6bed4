//! `toolgate replay`: transcripts of past sessions, judged by a config.

use crate::help::{TempDir, output, toolgate};
use serde_json::{Value, json};
use std::fs;

const CONFIG: &str = r#"
[server.host]
command = ["toolgate", "host-tools"]
[server.github]
command = ["github-server"]

[[rule]]
tools = ["host.read"]
action = "allow"
[[rule]]
tools = ["github.delete_*"]
action = "deny"
"#;

/// A home directory with sessions of Claude Code and Codex.
fn home() -> TempDir {
    let home = TempDir::new("replay");
    let claude = |name: &str, input: Value| json!({"type": "assistant", "message": {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": name, "input": input}]}});
    let codex = |name: &str, arguments: &str| json!({"timestamp": "t", "type": "response_item", "payload": {"type": "function_call", "name": name, "arguments": arguments}});
    let mut lines: Vec<Value> = (0..4)
        .map(|_| claude("Bash", json!({"command": "cargo test"})))
        .collect();
    lines.extend([
        json!({"type": "user", "message": {"role": "user", "content": "hi"}}),
        claude("Bash", json!({"command": "rm -rf /tmp/x"})),
        claude("Read", json!({"file_path": "/a"})),
        claude("mcp__github__delete_repo", json!({"name": "x"})),
        claude("mcp__jira__get_issue", json!({"id": 1})),
        claude("TodoWrite", json!({"todos": []})),
    ]);
    let write = |file: &str, lines: &[Value]| {
        let file = home.file(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(file, format!("{text}not JSON\n")).unwrap();
    };
    write(".claude/projects/-srv-app/one.jsonl", &lines);
    let shell = "{\"command\":[\"bash\",\"-lc\",\"cargo test\"]}";
    write(
        ".codex/sessions/2026/11/22/rollout-x.jsonl",
        &[codex("shell", shell), codex("update_plan", "{}")],
    );
    home
}

fn replay(home: &TempDir, config: &str, words: &[&str]) -> (Option<i32>, String, String) {
    let file = home.write("toolgate.toml", config);
    let mut run = toolgate();
    for name in [
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "XDG_DATA_HOME",
        "XDG_CONFIG_HOME",
    ] {
        run.env_remove(name);
    }
    let out = output(
        run.arg("replay")
            .args(words)
            .arg("--config")
            .arg(file)
            .env("HOME", home.path()),
    );
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code(), text(out.stdout), text(out.stderr))
}

#[test]
fn past_sessions_are_judged_and_rules_proposed() {
    let home = home();
    let (code, text, said) = replay(&home, CONFIG, &[]);
    assert_eq!(code, Some(0), "{said}");
    for wanted in [
        "      1 would be allowed\n",
        "      6 would need an approval\n",
        "      1 would be denied\n",
        "      1 to servers that the config does not have\n",
        "      6       0       0  host.bash\n",
        "      0       1       0  github.delete_repo\n",
        "the config has no server \"jira\" (1 call)",
        "These rules would have made 5 of 6 approvals unnecessary.",
        "when = 'args.command in [\"cargo test\"]'\n",
        "2 sessions, evaluated with ",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in {text}");
    }
    // The proposed rules are a part of a config, and do what is said of them.
    let (_, rules) = text.split_once("before you add it:\n\n").unwrap();
    let (rules, _) = rules.split_once("\n2 sessions").unwrap();
    let (code, text, said) = replay(&home, &format!("{CONFIG}{rules}"), &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        text.contains("      6 would be allowed\n")
            && text.contains("      1 would need an approval\n"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_replayed_is_named() {
    let home = home();
    let (code, _, said) = replay(&home, CONFIG, &["missing.jsonl"]);
    assert_eq!(
        (code, said.as_str()),
        (
            Some(1),
            "toolgate: missing.jsonl cannot be read: No such file or directory (os error 2)\n"
        )
    );
    let (code, _, said) = replay(&home, CONFIG, &["--caller", "kee:x"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("there is no caller \"kee:x\""), "{said}");
    let empty = TempDir::new("no-sessions");
    let (code, _, said) = replay(&empty, CONFIG, &[]);
    assert_eq!(code, Some(1));
    assert!(
        said.starts_with("toolgate: there is no transcript (*.jsonl) in "),
        "{said}"
    );
}
