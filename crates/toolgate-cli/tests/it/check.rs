//! `toolgate check`: the program and what it says of configs.

use crate::help::{Modern, Setup, TempDir, output, toolgate};
use serde_json::json;
use std::path::Path;

/// Its exit code, and what it said and printed.
fn check(file: &Path, data: &Path, args: &[&str]) -> (i32, String, String) {
    let mut run = toolgate();
    run.args(["check", "--config"])
        .arg(file)
        .arg("--data")
        .arg(data)
        .args(args);
    let out = output(&mut run);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        out.status.code().unwrap(),
        text(out.stderr),
        text(out.stdout),
    )
}

#[test]
fn check_tells_of_rules_that_never_decide_and_of_wrong_conditions() {
    let dir = TempDir::new("check");
    let file = dir.file("toolgate.toml");
    let told = |rules: &str| {
        let program = env!("CARGO_BIN_EXE_toolgate");
        let text = format!("[server.s]\ncommand = [{program:?}, \"demo-server\"]\n{rules}");
        std::fs::write(&file, text).unwrap();
        let (code, said, _) = check(&file, dir.path(), &[]);
        (code, said)
    };
    let allow = "[[rule]]\ntools = [\"s.read\"]\naction = \"allow\"\n";
    let (code, said) = told(&format!(
        "{allow}[[rule]]\ntools = [\"s.*\"]\naction = \"deny\"\n"
    ));
    assert_eq!(code, 0);
    assert_eq!(
        said,
        "toolgate: rule 1 (line 3) never decides: rule 2 (line 6) matches the same calls and is stricter; correct or remove one of them\n\
         toolgate: not checked: whether the rules match any items of s: no gateway has listed their items yet; pass --servers to start the servers and list their items\n"
    );
    let (code, said) = told(&format!("{allow}when = 'args.path.startWith(\"/\")'\n"));
    assert_eq!(code, 2);
    assert!(said.contains(":6:8: \"when\" in [[rule]] is not a valid condition: column 11: unknown function startWith; did you mean startsWith?"), "{said}");
    let (code, said) = told(&format!("{allow}wen = 'args.path'\n"));
    assert_eq!(code, 2);
    assert!(
        said.contains("unknown key \"wen\" in [[rule]]; did you mean \"when\"?"),
        "{said}"
    );
}

const RULES: &str = r#"
[[rule]]
tools = ["demo.ad", "demo.zap*"]
action = "allow"
rate = "3/min"

[[rule]]
tools = ["demo.*", "demo.wipe"]
except = ["demo.fial"]
action = "deny"

[[rule]]
tools = ["*.zap", "*.*delete*", "demo.re*", "demo.resource:test://x"]
action = "deny"

[[rule]]
tools = ["demo.add"]
callers = ["key:*"]
action = "ask"
approvals = 2
"#;

fn demo(more: &str) -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    format!(
        "[server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n{more}"
    )
}

/// Returns the report on [`RULES`]; `offers` is the source of the tool list.
fn said(offers: &str) -> String {
    format!(
        "toolgate: rule 1 (line 5) never matches: \"demo.ad\" matches no item that {offers} (did you mean \"demo.add\"?); \"demo.zap*\" matches no item that {offers}\n\
         toolgate: rule 2 (line 10), in tools: \"demo.wipe\" matches no item that {offers}\n\
         toolgate: rule 2 (line 10), in except: \"demo.fial\" matches no item that {offers} (did you mean \"demo.fail\"?)\n"
    )
}

#[test]
fn rules_that_fit_nothing_are_told_by_what_a_gateway_saw() {
    let gate = Setup::config(demo("")).start();
    gate.cli(&["explain", "demo.add"]);
    let home = gate.stop();
    let data = home.path().join("state");
    let file = home.write("rules.toml", &demo(RULES));
    let told = said("a gateway has listed for the server demo");
    let fine = format!("valid: 1 server, 4 rules in {}\n", file.display());
    assert_eq!(check(&file, &data, &[]), (0, told.clone(), fine.clone()));
    assert_eq!(check(&file, &data, &["--strict"]), (1, told, fine));
    let good = home.write(
        "good.toml",
        &demo("[[rule]]\ntools = [\"demo.add\"]\naction = \"allow\"\n"),
    );
    let fine = format!("valid: 1 server, 1 rule in {}\n", good.display());
    assert_eq!(check(&good, &data, &["--strict"]), (0, String::new(), fine));
}

#[test]
fn without_a_list_it_says_so_and_with_servers_it_asks() {
    let home = TempDir::new("check-servers");
    let nowhere = home.path().join("nowhere");
    let file = home.write("rules.toml", &demo(RULES));
    let (code, told, _) = check(&file, &nowhere, &["--strict"]);
    assert_eq!(code, 0, "what was not checked is no fault");
    let open = "toolgate: not checked: whether the rules match any items of demo: no gateway has listed their items yet; pass --servers to start the servers and list their items\n";
    assert!(told.ends_with(open), "{told}");
    assert!(!told.contains("matches nothing"), "{told}");
    let (code, told, _) = check(&file, &nowhere, &["--servers"]);
    assert_eq!((code, told), (0, said("the server demo offers")));
    assert!(!nowhere.exists(), "nothing is stored");

    let broken = format!(
        "{}\n[server.gone]\ncommand = [\"/nonexistent/x\"]\n",
        demo("")
    );
    let rule = "[[rule]]\ntools = [\"gone.a\", \"demo.ad\"]\naction = \"deny\"\n";
    let file = home.write("broken.toml", &format!("{broken}{rule}"));
    let (code, told, _) = check(&file, &nowhere, &["--servers"]);
    assert_eq!(code, 1);
    assert!(
        told.contains("in tools: \"demo.ad\" matches no item that the server demo offers"),
        "{told}"
    );
    assert!(
        told.contains("toolgate: the server gone is unavailable: "),
        "{told}"
    );
    assert!(!told.contains("\"gone.a\" fits"), "{told}");
}

#[test]
fn grants_for_what_is_not_there_are_told() {
    let gate = Setup::config(demo("")).start();
    std::thread::scope(|scope| {
        let port = gate.port;
        let note = json!({"name": "a", "text": "b"});
        let call = scope.spawn(move || Modern::call(port, &json!(1), "demo_note", note));
        let id = gate.pending();
        gate.cli(&["approve", &id, "--remember"]);
        call.join().unwrap();
    });
    let home = gate.stop();
    let other = demo("").replace("[server.demo]", "[server.other]");
    let file = home.write("other.toml", &other);
    let (code, told, _) = check(&file, &home.path().join("state"), &["--strict"]);
    assert_eq!(code, 1);
    assert!(
        told.contains(" is for demo.note, but the config has no server \"demo\"; revoke it"),
        "{told}"
    );
}

/// For `serve` and `check` alike, what the environment lacks is a wrong config.
#[test]
fn a_token_that_is_not_set_ends_serve_and_check_with_2() {
    let home = TempDir::new("check-token");
    let text = format!("token = {{ env = \"NO_SUCH_TOKEN\" }}\n{}", demo(""));
    let file = home.write("toolgate.toml", &text);
    let data = home.path().join("state");
    for command in [&["check"] as &[&str], &["serve", "--listen", "127.0.0.1:0"]] {
        let mut run = toolgate();
        run.args(command).arg("--config").arg(&file);
        let out = output(run.arg("--data").arg(&data));
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains("NO_SUCH_TOKEN is not set"), "{said}");
    }
    let mut run = toolgate();
    run.arg("check").arg("--data").arg(&data);
    run.env("XDG_CONFIG_HOME", home.path())
        .env("HOME", home.path());
    let out = output(&mut run);
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(
        said.contains("valid: 1 server, 0 rules in the built-in config"),
        "{said}"
    );
}
