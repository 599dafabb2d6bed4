//! `toolgate explain --history`: recorded calls under another config, with the program and its own record.

use crate::help::{Gate, Modern, Setup, TempDir, output, toolgate};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// A config of the demo server, with this setting for recorded arguments.
fn config(arguments: &str, rules: &str) -> String {
    let audit = format!("[audit]\narguments = \"{arguments}\"\n");
    [audit, config_with_defaults(rules)].concat()
}

/// A config of the demo server that does not set how arguments are recorded.
fn config_with_defaults(rules: &str) -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    format!(
        "[server.demo]\ncommand = [{program:?}, \"demo-server\"]\n\
         trust_annotations = true\noutbound_secrets = \"off\"\n{rules}"
    )
}

fn rule(tools: &str, then: &str, when: &str) -> String {
    let when = match when {
        "" => String::new(),
        when => format!("when = '''{when}'''\n"),
    };
    format!("[[rule]]\ntools = [\"{tools}\"]\n{when}action = \"{then}\"\n")
}

/// Returns the config under which the calls were made.
fn before() -> String {
    [
        rule("demo.add", "allow", ""),
        rule("demo.note", "allow", ""),
        rule("demo.fail", "deny", ""),
        rule("demo.picture", "deny", "time.unix > 0"),
    ]
    .concat()
}

fn call(gate: &Gate, tool: &str, args: Value) {
    Modern::call(gate.port, &json!(1), tool, args);
}

/// Eight calls: four sums, a note with a secret, one that is hidden, one that is refused, one that a person denies; and one
/// of a tool that is not there.
fn recorded(arguments: &str) -> Arc<TempDir> {
    let gate = Setup::config(config(arguments, &before())).start();
    for a in [1, 2, 3, 50] {
        call(&gate, "demo_add", json!({"a": a, "b": 2}));
    }
    let secret = format!("ghp_{}", "Zx81aQ0Lm4Vb7Tn3Ks9Rw2Yd6Pf5Hc1GjUeB");
    call(&gate, "demo_note", json!({"name": "n", "text": secret}));
    call(&gate, "demo_fail", json!({}));
    call(&gate, "demo_picture", json!({}));
    call(&gate, "demo_nothing", json!({}));
    std::thread::scope(|scope| {
        let delete = scope.spawn(|| call(&gate, "demo_delete_note", json!({"name": "n"})));
        gate.cli(&["deny", &gate.pending(), "-m", "no"]);
        delete.join().unwrap();
    });
    gate.stop()
}

/// Returns the printed lines with single blanks, and checks that nothing else happens.
fn past(home: &TempDir, rules: &str, args: &[&str]) -> Vec<String> {
    let file = home.write("new.toml", &config("digest", rules));
    let data = home.path().join("state");
    let before = crate::explain::files(&data);
    let lines = run(&data, &file, args);
    assert_eq!(crate::explain::files(&data), before, "nothing is written");
    lines
}

fn run(data: &Path, file: &Path, args: &[&str]) -> Vec<String> {
    let mut run = toolgate();
    run.args(["explain", "--history", "1d", "--config"])
        .arg(file)
        .arg("--data")
        .arg(data)
        .args(args);
    let out = output(&mut run);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success(), "{said}");
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// The counts at the top: all, alike, allowed, asked, denied, unsaid, not judged.
fn counts(lines: &[String]) -> Vec<u64> {
    let first = |line: &String| line.split(' ').next()?.parse().ok();
    lines.iter().take(7).filter_map(first).collect()
}

#[test]
fn recorded_calls_are_judged_once_more() {
    let home = recorded("redacted");
    // The same rules decide alike.
    let same = past(&home, &before(), &[]);
    assert_eq!(counts(&same), [9, 8, 0, 0, 0, 0, 1], "{same:#?}");
    assert!(!same.iter().any(|line| line.contains("->")), "{same:#?}");

    let rules = [
        rule("demo.*", "allow", ""),
        rule("demo.add", "deny", "args.a > 9"),
        rule("demo.note", "ask", "args.text.contains(\"x\")"),
    ]
    .concat();
    let new = past(&home, &rules, &[]);
    assert_eq!(counts(&new), [9, 3, 3, 0, 1, 1, 1], "{new:#?}");
    let has = |text: &str| {
        assert!(
            new.iter().any(|line| line.starts_with(text)),
            "{text} {new:#?}"
        )
    };
    has("1 demo.add: allow -> deny, rule 2 (line 10): when args.a > 9");
    has(
        "1 demo.note: allow -> ?, rule 3 (line 14) reads the arguments, but a part that it needs is redacted",
    );
    has("1 demo.fail: deny -> allow, rule 1 (line 7)");
    has("1 demo.picture: deny -> allow, rule 1 (line 7)");
    has("1 demo.delete_note: ask -> allow, rule 1 (line 7)");
    assert!(
        new.last().unwrap().starts_with("evaluated with "),
        "{new:#?}"
    );
    assert!(!new.concat().contains("ghp_"), "{new:#?}");

    // What a rule does not look at may be redacted.
    let rules = [
        rule("demo.*", "allow", ""),
        rule("demo.note", "deny", "args.name == \"n\""),
    ]
    .concat();
    let new = past(&home, &rules, &["demo.note"]);
    assert_eq!(counts(&new), [1, 0, 0, 0, 1, 0, 0], "{new:#?}");
    let none = past(&home, &rules, &["--caller", "key:nobody"]);
    assert_eq!(counts(&none), [0, 0, 0, 0, 0, 0, 0], "{none:#?}");
}

/// The audit log of a data directory, as text.
fn audit_log(data: &Path) -> String {
    let files = crate::explain::files(&data.join("audit"));
    let texts = files.values().map(|bytes| String::from_utf8_lossy(bytes));
    texts.collect()
}

#[test]
fn rules_over_arguments_are_judged_by_default() {
    let rules = [
        rule("demo.*", "allow", ""),
        rule("demo.add", "deny", "args.a > 100"),
        rule("demo.note", "deny", "args.text == \"\""),
    ]
    .concat();
    let gate = Setup::config(config_with_defaults(&rules)).start();
    for a in [1, 2, 3, 50] {
        call(
            &gate,
            "demo_add",
            json!({"a": a, "b": 7_707_700_770_077_i64}),
        );
    }
    let secret = format!("ghp_{}", "Zx81aQ0Lm4Vb7Tn3Ks9Rw2Yd6Pf5Hc1GjUeB");
    call(
        &gate,
        "demo_note",
        json!({"name": "nobody-reads-me", "text": secret}),
    );
    let home = gate.stop();

    // Only the arguments that a rule reads are recorded, and no secret of them.
    let log = audit_log(&home.path().join("state"));
    assert!(log.contains("[redacted:unread]") && log.contains("[redacted:github-token]"));
    for absent in [secret.as_str(), "nobody-reads-me", "7707700770077"] {
        assert!(!log.contains(absent), "{absent}");
    }

    let try_rule = |tools: &str, when: &str| {
        let rules = [rule("demo.*", "allow", ""), rule(tools, "deny", when)].concat();
        past(&home, &rules, &[])
    };
    let judged = try_rule("demo.add", "args.a > 9");
    assert_eq!(counts(&judged), [5, 4, 0, 0, 1, 0, 0], "{judged:#?}");
    let judged = try_rule("demo.add", "has(args.c) || \"d\" in args");
    assert_eq!(counts(&judged), [5, 5, 0, 0, 0, 0, 0], "{judged:#?}");
    let unread = try_rule("demo.add", "args.b > 9");
    assert_eq!(counts(&unread), [5, 1, 0, 0, 0, 4, 0], "{unread:#?}");
    let why = "4 demo.add: allow -> ?, rule 2 (line 10) reads the arguments, but an argument that it needs is not recorded";
    assert!(unread.contains(&why.to_owned()), "{unread:#?}");
}

#[test]
fn with_a_digest_only_what_needs_no_arguments_is_said() {
    let home = recorded("digest");
    let same = past(&home, &before(), &[]);
    assert_eq!(counts(&same), [9, 8, 0, 0, 0, 0, 1], "{same:#?}");
    let rules = [
        rule("demo.*", "allow", ""),
        rule("demo.add", "deny", "args.a > 9"),
        rule("demo.note", "deny", "time.unix > 0 && caller.name != \"a\""),
        rule("demo.fail", "deny", "has(args.a)"),
        rule("demo.picture", "deny", ""),
        rule("demo.picture", "ask", "args.x == 1"),
    ]
    .concat();
    let new = past(&home, &rules, &[]);
    // Of the sums nobody can tell; an empty object has a digest that says it all; and what is denied anyway is denied.
    assert_eq!(counts(&new), [9, 1, 2, 0, 1, 4, 1], "{new:#?}");
    let why = "4 demo.add: allow -> ?, rule 2 (line 10) reads the arguments, but only their digest is recorded";
    assert!(new.contains(&why.to_owned()), "{new:#?}");
    let gone = config("digest", "").replace("[server.demo]", "[server.other]");
    let file = home.write("gone.toml", &gone);
    let gone = run(&home.path().join("state"), &file, &["demo.add"]);
    assert_eq!(counts(&gone), [4, 0, 0, 0, 4, 0, 0], "{gone:#?}");
    let mut nowhere = toolgate();
    nowhere
        .args(["explain", "--history", "1d", "--config"])
        .arg(&file);
    let out = output(nowhere.arg("--data").arg(home.path().join("nowhere")));
    assert_eq!(out.status.code(), Some(1));
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("there is no audit log in "), "{said}");
}
