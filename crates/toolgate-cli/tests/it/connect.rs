//! `toolgate connect` and `disconnect`: the files of all known hosts.

use crate::help::{LONG, TempDir, end_politely, lines, output, toolgate};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Home directory of a user with a config.
struct Home {
    dir: TempDir,
}

impl Home {
    fn new(name: &str) -> Home {
        let dir = TempDir::new(name);
        let config = dir.file(".config/toolgate");
        fs::create_dir_all(&config).unwrap();
        fs::create_dir_all(dir.file("project")).unwrap();
        let program = env!("CARGO_BIN_EXE_toolgate");
        let text = format!(
            "[server.demo]\ncommand = [{program:?}, \"demo-server\"]\n\n[[rule]]\ntools = [\"demo.add\"]\naction = \"allow\"\n"
        );
        fs::write(config.join("toolgate.toml"), text).unwrap();
        Home { dir }
    }

    /// The command, as if this user had typed it in the directory of a project.
    fn run(&self, words: &[&str]) -> Output {
        let mut run = toolgate();
        self.settle(&mut run);
        output(run.args(words))
    }

    fn settle(&self, command: &mut Command) {
        command.current_dir(self.dir.file("project"));
        for name in [
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "CODEX_HOME",
            "CLAUDE_CONFIG_DIR",
            "COPILOT_HOME",
        ] {
            command.env_remove(name);
        }
        command.env("HOME", self.dir.path());
    }

    /// What the command prints; it must succeed.
    #[track_caller]
    fn prints(&self, words: &[&str]) -> String {
        let out = self.run(words);
        let (text, said) = (
            out.stdout,
            String::from_utf8_lossy(&out.stderr).into_owned(),
        );
        assert_eq!(out.status.code(), Some(0), "{words:?}: {said}");
        String::from_utf8(text).unwrap()
    }

    /// What the command says when it fails, and its exit code.
    #[track_caller]
    fn fails(&self, words: &[&str]) -> (i32, String) {
        let out = self.run(words);
        assert!(!out.status.success(), "{words:?}");
        let said = String::from_utf8(out.stderr).unwrap();
        (
            out.status.code().unwrap(),
            said.replace(&self.dir.path().display().to_string(), "HOME"),
        )
    }

    /// The known hosts: the words that name each, its state and its file.
    fn hosts(&self) -> Vec<(Vec<String>, String, PathBuf)> {
        let list = self.prints(&["connect", "--json"]);
        let list: Vec<Value> = serde_json::from_str(&list).unwrap();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        let row = |row: &Value| {
            let project = (row["project"] == true).then(|| "--project".to_owned());
            let words = [text(row, "host")].into_iter().chain(project).collect();
            (words, text(row, "state"), PathBuf::from(text(row, "file")))
        };
        list.iter().map(row).collect()
    }
}

/// A file of a host with settings of its own, and comments where the host allows them.
fn fixture(file: &Path) -> &'static str {
    match file.extension().and_then(|end| end.to_str()) {
        Some("toml") => "# my settings\nmodel = \"m\" # the best\n\n[tui]\ntheme = 'dark'\n",
        _ => "{\n  \"theme\": \"dark\",\n  \"nested\": {\"a\": [1, 2.50]}\n}\n",
    }
}

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

#[test]
fn every_host_is_connected_and_its_file_comes_back_byte_for_byte() {
    let home = Home::new("connect");
    let hosts = home.hosts();
    assert!(hosts.len() >= 14, "{hosts:?}");
    let mut tried = 0;
    for (words, state, file) in hosts {
        assert_eq!(state, "no file", "{words:?}");
        let id = words[0].as_str();
        for text in [None, Some(fixture(&file))] {
            if let Some(text) = text {
                write(&file, text);
            }
            let diff = home.prints(&["connect", id, "--dry-run"]);
            assert!(
                diff.contains("+") && diff.contains("toolgate"),
                "{id}: {diff}"
            );
            assert_eq!(
                fs::read_to_string(&file).ok().as_deref(),
                text,
                "{id}: a dry run"
            );
            home.prints(&["connect", id]);
            let after = fs::read_to_string(&file).unwrap();
            assert!(after.contains("\"serve\""), "{id}: {after}");
            let now = home.hosts().into_iter().find(|(words, ..)| words[0] == id);
            assert_eq!(now.unwrap().1, "connected", "{id}");
            // The second time changes nothing.
            home.prints(&["connect", id]);
            assert_eq!(fs::read_to_string(&file).unwrap(), after, "{id}");
            home.prints(&["disconnect", id]);
            assert_eq!(fs::read_to_string(&file).ok().as_deref(), text, "{id}");
            tried += 1;
        }
        fs::remove_file(&file).unwrap();
    }
    println!("connected and disconnected {tried} times");
    let left: Vec<_> = fs::read_dir(home.dir.file(".local/share/toolgate/hosts"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_the_host_wrote_meanwhile_stays() {
    let home = Home::new("meanwhile");
    for (words, _, file) in home.hosts() {
        let id = words[0].as_str();
        let text = fixture(&file);
        write(&file, text);
        home.prints(&["connect", id]);
        let connected = fs::read_to_string(&file).unwrap();
        // The host changes a setting of its own, as its users do.
        let rewritten = connected.replacen("dark", "light", 1);
        fs::write(&file, &rewritten).unwrap();
        // A second run of `connect` must not take this file for the one before the first run.
        home.prints(&["connect", id, "--name", "toolgate"]);
        home.prints(&["disconnect", id]);
        let back = fs::read_to_string(&file).unwrap();
        assert_eq!(back, text.replacen("dark", "light", 1), "{id}");
    }
}

#[test]
fn a_second_connection_over_a_changed_file_keeps_the_change() {
    let home = Home::new("second");
    let file = home.dir.file(".cursor/mcp.json");
    write(&file, fixture(&file));
    home.prints(&["connect", "cursor"]);
    let changed = fs::read_to_string(&file)
        .unwrap()
        .replacen("dark", "light", 1);
    fs::write(&file, changed).unwrap();
    home.prints(&["connect", "cursor", "--http"]);
    let entry: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(
        entry["mcpServers"]["toolgate"],
        json!({"url": "http://127.0.0.1:8665/mcp"})
    );
    home.prints(&["disconnect", "cursor"]);
    let back = fs::read_to_string(&file).unwrap();
    assert_eq!(back, fixture(&file).replacen("dark", "light", 1));
}

/// The host starts what its file says, and calls a tool.
#[test]
fn the_entry_starts_a_gateway_that_answers() {
    let home = Home::new("entry");
    home.prints(&["connect", "claude-code", "--project"]);
    let file = home.dir.file("project/.mcp.json");
    let text: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let entry = &text["mcpServers"]["toolgate"];
    assert_eq!(entry["type"], "stdio");
    let words = entry["args"].as_array().unwrap();
    let mut start = crate::help::command(entry["command"].as_str().unwrap());
    home.settle(&mut start);
    let mut child = start
        .args(words.iter().map(|word| word.as_str().unwrap()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let replies = lines(child.stdout.take().unwrap());
    let mut stdin = child.stdin.take().unwrap();
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}});
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "demo_add", "arguments": {"a": 20, "b": 22}}}),
    ] {
        writeln!(stdin, "{message}").unwrap();
    }
    let answer = loop {
        let line = replies.recv_timeout(LONG).expect("a reply");
        let reply: Value = serde_json::from_str(&line).unwrap();
        if reply["id"] == 2 {
            break reply;
        }
    };
    assert!(
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("42"),
        "{answer}"
    );
    drop(stdin);
    end_politely(&mut child);
    home.prints(&["disconnect", "claude-code", "--project"]);
    assert!(!file.exists(), "connect had created it");
}

#[test]
fn mistakes_are_explained() {
    let home = Home::new("mistakes");
    let file = home.dir.file(".cursor/mcp.json");
    let of = |words: &[&str]| home.fails(words);
    assert_eq!(
        of(&["connect", "cursr"]),
        (
            2,
            "toolgate: the host \"cursr\" is unknown; did you mean \"cursor\"?\n".to_owned()
        )
    );
    assert_eq!(
        of(&["connect", "claude-desktop", "--http"]),
        (2, "toolgate: Claude Desktop only starts servers and does not connect over HTTP; leave out --http\n".to_owned())
    );
    assert_eq!(
        of(&["connect", "windsurf", "--project"]),
        (
            2,
            "toolgate: Windsurf has no file for a project; leave out --project\n".to_owned()
        )
    );
    write(&file, "{\n  \"mcpServers\": {\n}");
    let (code, said) = of(&["connect", "cursor"]);
    assert_eq!(code, 1);
    assert!(
        said.starts_with("toolgate: HOME/.cursor/mcp.json is not valid JSON (line 1, column 1: ")
            && said.ends_with("; correct it, so that Cursor and toolgate can read it\n"),
        "{said}"
    );
    write(
        &file,
        "{\"mcpServers\": {\"toolgate\": {\"command\": \"other\"}}}",
    );
    assert_eq!(
        of(&["connect", "cursor"]),
        (1, "toolgate: HOME/.cursor/mcp.json already has a server \"toolgate\" that `toolgate connect` did not write; choose another name with --name, or remove that server\n".to_owned())
    );
    assert_eq!(
        of(&["disconnect", "cursor"]),
        (1, "toolgate: the server \"toolgate\" in HOME/.cursor/mcp.json does not start toolgate, and stays; remove it yourself\n".to_owned())
    );
    write(&file, "{}");
    assert_eq!(
        of(&["disconnect", "cursor"]),
        (
            1,
            "toolgate: Cursor is not connected: HOME/.cursor/mcp.json has no server \"toolgate\"\n"
                .to_owned()
        )
    );
    let config = home.dir.file(".config/toolgate/toolgate.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(
        &config,
        format!("token = {{ env = \"GATE_TOKEN\" }}\n{text}"),
    )
    .unwrap();
    assert_eq!(
        of(&["connect", "cursor", "--http"]),
        (2, "toolgate: the config requires a key of every caller; create one with `toolgate keys create NAME`, put it into an environment variable of the host, and name that variable with --token-env\n".to_owned())
    );
    home.prints(&["connect", "cursor", "--http", "--token-env", "TOOLGATE_KEY"]);
    let entry: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(
        entry["mcpServers"]["toolgate"]["headers"],
        json!({"Authorization": "Bearer ${env:TOOLGATE_KEY}"})
    );
}

/// `--replace` moves the other servers of the host into the config, and `disconnect` puts them back.
#[test]
fn the_other_servers_go_behind_the_gateway_and_come_back() {
    let home = Home::new("replace");
    let file = home.dir.file(".cursor/mcp.json");
    let program = env!("CARGO_BIN_EXE_toolgate");
    let text = format!(
        "{{\n  // mine\n  \"mcpServers\": {{\n    \"notes\": {{\n      \"command\": {program:?},\n      \"args\": [\"demo-server\"],\n      \"env\": {{\"MODE\": \"fast\"}}\n    }},\n    \"broken\": {{\"args\": []}}\n  }},\n  \"theme\": \"dark\"\n}}\n"
    );
    write(&file, &text);
    let config = home.dir.file(".config/toolgate/toolgate.toml");
    let before = fs::read_to_string(&config).unwrap();
    let diff = home.prints(&["connect", "cursor", "--replace", "--dry-run"]);
    assert!(
        diff.contains("+[server.notes]") && diff.contains("-    \"notes\": {"),
        "{diff}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert_eq!(fs::read_to_string(&config).unwrap(), before);
    for changed in [false, true] {
        home.prints(&["connect", "cursor", "--replace"]);
        let after = fs::read_to_string(&file).unwrap();
        // A server that cannot be imported stays where it works.
        assert!(
            after.contains("\"toolgate\": {") && after.contains("\"broken\""),
            "{after}"
        );
        assert!(!after.contains("\"notes\""), "{after}");
        let imported = fs::read_to_string(&config).unwrap();
        assert_eq!(imported.matches("[server.notes]").count(), 1, "{imported}");
        if changed {
            fs::write(&file, after.replace("dark", "light")).unwrap();
        }
        home.prints(&["disconnect", "cursor"]);
        let back = fs::read_to_string(&file).unwrap();
        match changed {
            false => assert_eq!(back, text),
            true => {
                let plain = back.replace("// mine", "");
                let value: Value = serde_json::from_str(&plain).unwrap();
                let notes =
                    json!({"command": program, "args": ["demo-server"], "env": {"MODE": "fast"}});
                assert_eq!(
                    value["mcpServers"],
                    json!({"notes": notes, "broken": {"args": []}})
                );
                assert!(
                    back.starts_with("{\n  // mine\n") && back.contains("\"theme\": \"light\""),
                    "{back}"
                );
            }
        }
    }
}

#[test]
fn doctor_knows_the_connections() {
    let home = Home::new("doctor-hosts");
    let report = |code: i32| {
        let out = home.run(&["doctor", "--no-start", "--json"]);
        assert_eq!(out.status.code(), Some(code), "{out:?}");
        let report: Value = serde_json::from_slice(&out.stdout).unwrap();
        let checks = report["checks"].as_array().unwrap().iter();
        let hosts: Vec<Value> = checks
            .filter(|check| check["check"] == "host")
            .cloned()
            .collect();
        hosts
    };
    let none = report(0);
    assert!(
        none[0]["message"]
            .as_str()
            .unwrap()
            .starts_with("no host is connected"),
        "{none:?}"
    );
    home.prints(&["connect", "zed"]);
    let found = report(0);
    assert_eq!(
        (&found[0]["subject"], &found[0]["state"]),
        (&json!("zed"), &json!("ok"))
    );
    fs::write(home.dir.file(".config/zed/settings.json"), "{}").unwrap();
    let found = report(1);
    assert_eq!(found[0]["state"], "problem");
    assert!(
        found[0]["message"]
            .as_str()
            .unwrap()
            .contains("`toolgate connect zed` again"),
        "{found:?}"
    );
}
