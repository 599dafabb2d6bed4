//! `toolgate explain`: the program, its answers, and that nothing happens.

use crate::help::{Modern, Setup, TempDir, answer_of, output, toolgate};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const RULES: &str = r#"
[[rule]]
tools = ["demo.add"]
when = 'args.a <= 9'
rate = "3/min"
action = "allow"

[[rule]]
tools = ["demo.add"]
when = 'args.b == 13'
action = "deny"

[[rule]]
tools = ["demo.fail"]
callers = ["key:*"]
action = "deny"
"#;

fn config() -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    let demo = format!(
        "[server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n"
    );
    format!("{demo}{RULES}")
}

/// Returns the name of a rule: the line where it begins.
fn rule(n: usize) -> String {
    let config = config();
    let mut lines = config.lines().enumerate();
    let mut rules = lines.by_ref().filter(|(_, line)| *line == "[[rule]]");
    let (at, _) = rules.nth(n - 1).unwrap();
    format!("rule {n} (line {})", at + 1)
}

/// The lines of an explanation, with single blanks.
fn lines(text: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(words).collect()
}

#[test]
fn a_call_is_explained_and_nothing_happens() {
    let gate = Setup::config(config()).start();
    let explain = |args: &[&str]| lines(&gate.cli(&[&["explain"], args].concat()));
    let caller = "anonymous@http";
    let way = explain(&["demo.add", r#"{"a": 2, "b": 3}"#]);
    let allowed = [
        format!("resolve found demo.add for {caller}"),
        "freeze allow".to_owned(),
        "circuit breaker allow".to_owned(),
        "pins allow".to_owned(),
        format!("access passed {}: its condition is false", rule(2)),
        format!("access allow {}: when args.a <= 9", rule(1)),
        "rate info 3 per minute; 3 left now".to_owned(),
        "arguments allow".to_owned(),
        "leaks allow".to_owned(),
        "placeholders allow".to_owned(),
        "confirm allow no approval is required".to_owned(),
        "decision: allow (according to a running gateway; nothing was called)".to_owned(),
    ];
    assert_eq!(way, allowed);
    // As often as one likes: the rate is not used up.
    for _ in 0..5 {
        assert_eq!(explain(&["demo.add", r#"{"a": 2, "b": 3}"#]), allowed);
    }
    let calls = |event: &str| gate.audit().iter().filter(|r| r["ev"] == event).count();
    assert_eq!((calls("call.begin"), calls("deny")), (0, 0));
    assert_eq!(gate.inbox(), [""; 0]);

    let denied = explain(&["demo.add", r#"{"a": 2, "b": 13}"#]);
    assert!(
        denied.contains(&format!(
            "access refuse refused: {}: when args.b == 13",
            rule(2)
        )),
        "{denied:#?}"
    );
    assert_eq!(
        denied.last().unwrap(),
        "decision: deny (according to a running gateway; nothing was called)"
    );
    let untold = explain(&["demo.add", "{}"]);
    let why = format!(
        "{}: its condition cannot be evaluated: args.b is missing",
        rule(2)
    );
    assert!(
        untold.contains(&format!("access refuse refused: {why}")),
        "{untold:#?}"
    );
    let invalid = explain(&["demo.add", r#"{"a": 2, "b": 3, "c": 4}"#]);
    assert!(
        invalid
            .iter()
            .any(|line| line.starts_with("arguments refuse invalid arguments")),
        "{invalid:#?}"
    );
    let asked = explain(&["demo.add", r#"{"a": 10, "b": 3}"#]);
    assert!(
        asked.iter().any(|line| line.starts_with("decision: ")),
        "{asked:#?}"
    );
    let hidden = explain(&["demo.fail", "--caller", "key:ci"]);
    assert_eq!(
        hidden[0],
        format!("resolve hide key:ci does not see it: {}", rule(3))
    );
    assert_eq!(
        hidden[1],
        "decision: hide (according to a running gateway; nothing was called)"
    );
    let strange = gate.run(&["explain", "demo.nope"]);
    assert_eq!(strange.status.code(), Some(1));

    // What was told is what comes.
    let call = |args: Value| Modern::call(gate.port, &json!(1), "demo_add", args);
    let sum = answer_of(&call(json!({"a": 2, "b": 3})), &json!(1));
    assert_eq!(sum["result"]["structuredContent"]["sum"], 5);
    let refused = answer_of(&call(json!({"a": 2, "b": 13})), &json!(1));
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, format!("refused: {}: when args.b == 13", rule(2)));
    assert_eq!(refused["result"]["isError"], true);
    let left = explain(&["demo.add", r#"{"a": 2, "b": 3}"#]);
    assert!(
        left.contains(&"rate info 3 per minute; 2 left now".to_owned()),
        "{left:#?}"
    );
}

/// Every file of a folder and what is in it.
pub(crate) fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => _ = all.insert(path.clone(), std::fs::read(&path).unwrap()),
        }
    }
    all
}

/// `toolgate explain` without a gateway: what it printed, or what it said and its exit code.
fn alone(data: &Path, args: &[&str]) -> Result<Vec<String>, (i32, String)> {
    let mut run = toolgate();
    run.arg("explain").args(args).arg("--data").arg(data);
    let out = output(&mut run);
    match out.status.success() {
        true => Ok(lines(&String::from_utf8(out.stdout).unwrap())),
        false => Err((
            out.status.code().unwrap(),
            String::from_utf8(out.stderr).unwrap(),
        )),
    }
}

#[test]
fn without_a_gateway_the_config_and_what_is_stored_answer() {
    let gate = Setup::config(config()).start();
    let add = r#"{"a": 2, "b": 3}"#;
    let live = lines(&gate.cli(&["explain", "demo.add", add]));
    let home = gate.stop();
    let (data, file) = (home.path().join("state"), home.file("toolgate.toml"));
    let file = file.to_str().unwrap();
    let before = files(&data);
    let way = alone(&data, &["demo.add", add, "--config", file]).unwrap();
    assert!(
        way[0].starts_with("stored info its definition was stored ")
            && way[0].ends_with(" ago; the server was not contacted"),
        "{way:#?}"
    );
    let rate = live
        .iter()
        .position(|line| line.starts_with("rate "))
        .unwrap();
    let mut same = live.clone();
    same[rate] = "rate info 3 per minute; the number left is unknown".to_owned();
    same.pop();
    assert_eq!(way[1..way.len() - 1], same);
    let state = data.to_str().unwrap();
    let last = format!(
        "decision: allow (from {file} and the definitions stored in {state}; no gateway was contacted; nothing was called)"
    );
    assert_eq!(way.last(), Some(&last));
    let hidden = alone(
        &data,
        &["demo.fail", "--caller", "key:ci", "--config", file],
    )
    .unwrap();
    assert_eq!(
        hidden[1],
        format!("resolve hide key:ci does not see it: {}", rule(3))
    );

    let (code, said) = alone(&data, &["demo.ad", "--config", file]).unwrap_err();
    assert_eq!(code, 1);
    assert!(
        said.contains(
            "no gateway has listed it yet, so its definition is unknown; start a gateway with this config once; did you mean \"demo.add\"?"
        ),
        "{said}"
    );
    let (code, said) = alone(&data, &["other.add", "--config", file]).unwrap_err();
    assert_eq!(code, 1);
    assert!(
        said.contains("the config has no server \"other\""),
        "{said}"
    );
    let moved = home.write(
        "moved.toml",
        &config().replace("\"demo-server\"", "\"demo-server\", \"-x\""),
    );
    let (code, said) =
        alone(&data, &["demo.add", "--config", moved.to_str().unwrap()]).unwrap_err();
    assert_eq!(code, 1);
    assert!(
        said.contains("belong to another command or address"),
        "{said}"
    );
    assert_eq!(files(&data), before, "nothing is written");

    let nowhere = home.path().join("nowhere");
    let (code, said) = alone(&nowhere, &["demo.add", "--config", file]).unwrap_err();
    assert_eq!(code, 1);
    assert!(said.contains("no gateway has listed it yet"), "{said}");
    assert!(!nowhere.exists());
}

#[test]
fn another_config_is_asked_while_a_gateway_runs() {
    let gate = Setup::config(config()).start();
    gate.cli(&["explain", "demo.add"]);
    let other = config().replace("args.b == 13", "args.b == 3");
    let home = TempDir::new("other");
    let file = home.write("other.toml", &other);
    let add = r#"{"a": 2, "b": 3}"#;
    let asked = [
        "explain",
        "demo.add",
        add,
        "--config",
        file.to_str().unwrap(),
    ];
    let way = lines(&gate.cli(&asked));
    let why = format!("access refuse refused: {}: when args.b == 3", rule(2));
    assert!(way.contains(&why), "{way:#?}");
    let live = lines(&gate.cli(&["explain", "demo.add", add]));
    assert!(
        live.last().unwrap().starts_with("decision: allow "),
        "{live:#?}"
    );
    // How a definition is pinned is known to a condition, with a gateway and without.
    let pinned = other.replace("args.b == 3", "tool.pinned == \"accepted\" && args.b == 3");
    home.write("other.toml", &pinned);
    let why = format!(
        "access refuse refused: {}: when tool.pinned == \"accepted\" && args.b == 3",
        rule(2)
    );
    let way = lines(&gate.cli(&asked));
    assert!(way.contains(&why), "{way:#?}");
    home.write("other.toml", &pinned.replace("accepted", "changed"));
    let way = lines(&gate.cli(&asked));
    assert!(
        way.last().unwrap().starts_with("decision: allow "),
        "{way:#?}"
    );
    // What is frozen stands in what is stored.
    gate.cli(&["freeze", "server", "demo"]);
    let way = lines(&gate.cli(&asked));
    assert!(
        way.contains(&"freeze refuse refused: the operator froze the server demo".to_owned()),
        "{way:#?}"
    );
}

/// Reports the scopes that the caller's token needs; only the token shows whether it has them.
#[test]
fn the_scopes_that_a_token_needs_are_told() {
    let auth = "[auth]\nresource = \"https://tools.example.com/mcp\"\n\
                [auth.issuer.corp]\nurl = \"https://login.example.com\"\n\
                [[auth.scope]]\ntools = [\"demo.*\"]\nexcept = [\"demo.note\"]\nscopes = [\"demo:read\"]\n\
                [[auth.scope]]\ntools = [\"demo.add\"]\nscopes = [\"demo:add\"]\n";
    let gate = Setup::fast_demo(auth).start();
    let explain = |tool: &str, caller: &str| {
        lines(&gate.cli(&["explain", tool, "--caller", caller, r#"{"a": 1, "b": 2}"#]))
    };
    let told = "scopes info the caller's token needs the scopes demo:add demo:read; otherwise the call is refused, and the item is not listed";
    let way = explain("demo.add", "corp:ann");
    assert_eq!(way[1], told, "{way:#?}");
    let so = "decision: allow, if the token has the scopes demo:add demo:read (";
    assert!(way.last().unwrap().starts_with(so), "{way:#?}");
    let one = "scopes info the caller's token needs the scope demo:read; otherwise the call is refused, and the item is not listed";
    assert_eq!(explain("demo.fail", "corp:ann")[1], one);
    let none = "scopes info the caller's token needs no scope for this item";
    assert_eq!(explain("demo.note", "corp:ann")[1], none);
    let way = explain("demo.add", "key:ci");
    assert!(
        way.iter().all(|line| !line.starts_with("scopes")),
        "{way:#?}"
    );
    // Who shows nothing stays out.
    let way = lines(&gate.cli(&["explain", "demo.add", r#"{"a": 1, "b": 2}"#]));
    let out = "authentication refuse anonymous access is denied; a key or a token is required; a token needs the scopes demo:add demo:read";
    assert_eq!(way[0], out, "{way:#?}");
    assert!(
        way.last().unwrap().starts_with("decision: deny ("),
        "{way:#?}"
    );
    // Who cannot be is named.
    for nobody in ["corpse:ann", "ci"] {
        let out = gate.run(&["explain", "demo.add", "--caller", nobody]);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(
            said.contains(&format!("there is no caller {nobody:?}")),
            "{said}"
        );
    }
    // Without a gateway, too.
    let (data, config) = (
        gate.data.path().join("state"),
        gate.data.file("toolgate.toml"),
    );
    let mut command = toolgate();
    command
        .arg("--data")
        .arg(&data)
        .args(["explain", "demo.add", "--caller", "corp:ann"]);
    let out = output(command.arg("--config").arg(&config));
    let said = lines(&String::from_utf8_lossy(&out.stdout));
    assert!(said.contains(&told.to_owned()), "{said:#?}");
    let mut command = toolgate();
    command.arg("--data").arg(&data);
    command.args(["explain", "demo.add", "--caller", "corpse:ann"]);
    let out = output(command.arg("--config").arg(&config));
    assert_eq!(out.status.code(), Some(2), "{out:?}");
}
