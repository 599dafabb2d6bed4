//! Output on a terminal: widths, colors and progress, on a pseudo-terminal of `script`.

use crate::help::{Modern, SOON, Setup, TempDir, command, output, toolgate, until};
use serde_json::json;

/// Clears the line of the progress.
const CLEAR_LINE: &str = "\r\u{1b}[K";

/// Returns what a command prints on a terminal of this width, stderr included, with line feeds only.
fn on_terminal(width: u32, env: &[(&str, &str)], words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let program = env!("CARGO_BIN_EXE_toolgate");
    let line = format!("stty cols {width}; '{program}' {}", quoted.join(" "));
    let mut script = command("script");
    script.args(["-qec", &line, "/dev/null"]);
    script.env("TERM", "xterm").env_remove("NO_COLOR");
    script.envs(env.iter().copied());
    let out = output(&mut script);
    String::from_utf8(out.stdout).unwrap().replace("\r\n", "\n")
}

/// A server that takes some time to start, and its config.
fn slow_server(dir: &TempDir) -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let text = format!(
        "[server.slow]\ncommand = [\"sh\", \"-c\", \"sleep 2; exec {program} demo-server\"]\n"
    );
    dir.write("toolgate.toml", &text).display().to_string()
}

#[test]
fn tables_fit_the_terminal_and_names_stay_whole() {
    let gate = Setup::fast_demo("").start();
    let data = gate.data.path().join("state").display().to_string();
    let arguments = json!({"a": 1, "b": 2});
    for _ in 0..2 {
        Modern::call(gate.port, &json!(1), "demo_add", arguments.clone());
    }
    let reason = "it calls the wrong server again and again, and nobody knows why it does that yet";
    gate.cli(&["freeze", "all", "--reason", reason]);
    let tools = gate.cli(&["tools", "--json"]);
    let tools: Vec<serde_json::Value> = serde_json::from_str(&tools).unwrap();
    for width in [60, 80, 200] {
        for words in [
            &["tools"][..],
            &["calls"],
            &["status"],
            &["pins", "list"],
            &["freeze", "list"],
            &["audit", "tail"],
            &["explain", "demo.add"],
        ] {
            let words = [words, &["--data", &data]].concat();
            let text = on_terminal(width as u32, &[("NO_COLOR", "1")], &words);
            assert!(!text.trim().is_empty(), "{words:?}");
            for line in text.lines() {
                // A directory or a digest that is longer than a line is broken by the terminal.
                assert!(line.chars().count() <= width, "{width} {words:?}: {line}");
            }
            assert!(!text.contains('\u{1b}'), "{words:?}: {text:?}");
            let names = tools.iter().map(|tool| tool["full_name"].as_str().unwrap());
            for name in names.filter(|_| words[0] == "tools") {
                assert!(text.contains(name), "{width}: {name} is not in {text}");
            }
            if words[0] == "freeze" {
                let words: Vec<&str> = text.split_whitespace().collect();
                assert!(words.join(" ").contains(reason), "wrapped: {text}");
            }
        }
    }
    let piped = gate.cli(&["tools"]);
    assert!(!piped.contains('…') && !piped.contains('\u{1b}'), "{piped}");
    assert_eq!(piped.lines().count(), tools.len());
    gate.stop();
}

#[test]
fn states_have_colors_only_on_a_terminal_without_no_color() {
    let gate = Setup::fast_demo("").start();
    let data = gate.data.path().join("state").display().to_string();
    until("the tools are known and pinned", SOON, || {
        gate.cli(&["tools"]).contains("allow").then_some(())
    });
    let words = ["tools", "--data", &data];
    let painted = on_terminal(80, &[], &words);
    assert!(painted.contains("\u{1b}[32mallow\u{1b}[0m"), "{painted:?}");
    for env in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let plain = on_terminal(80, &[env], &words);
        assert!(
            plain.contains("allow") && !plain.contains('\u{1b}'),
            "{plain:?}"
        );
    }
    assert!(!gate.cli(&["tools"]).contains('\u{1b}'));
    let json = on_terminal(80, &[], &["tools", "--json", "--data", &data]);
    assert!(!json.contains('\u{1b}'), "{json:?}");
    gate.stop();
}

#[test]
fn progress_appears_after_a_second_and_is_cleared() {
    let dir = TempDir::new("progress");
    let config = slow_server(&dir);
    let data = dir.file("data").display().to_string();
    let words = ["check", "--servers", "--config", &config, "--data", &data];
    let text = on_terminal(80, &[], &words);
    let shown = format!("{CLEAR_LINE}Starting 1 server: slow… (1 s)");
    assert!(text.contains(&shown), "{text:?}");
    let (_, last) = text.rsplit_once(CLEAR_LINE).unwrap();
    assert!(
        last.contains("valid: 1 server") && !last.contains('…'),
        "{text:?}"
    );
    // Without a terminal, there is no progress.
    let piped = output(toolgate().args(words));
    let said = String::from_utf8(piped.stderr).unwrap();
    assert!(!said.contains("Starting"), "{said}");
    // A quick command shows none.
    let quick = on_terminal(80, &[], &["audit", "verify", "--data", &data]);
    assert!(!quick.contains(CLEAR_LINE), "{quick:?}");
}
