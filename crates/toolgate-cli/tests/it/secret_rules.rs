//! Rules of an operator that find secrets, with the program.

use crate::help::{Modern, Setup, TempDir, answer_of, output, toolgate};
use serde_json::{Value, json};
use std::sync::Arc;

const RULES: &str =
    "[[rules]]\nid = \"acme-token\"\nregex = '''acme_[0-9a-f]{16}'''\nkeywords = [\"acme_\"]\n";

fn config() -> String {
    let program = env!("CARGO_BIN_EXE_toolgate");
    format!(
        "secret_rules = [\"acme.toml\"]\n[audit]\narguments = \"redacted\"\nresults = \"redacted\"\n\
         [server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\noutbound_secrets = \"warn\"\n\
         [[rule]]\ntools = [\"demo.*\"]\naction = \"allow\"\n"
    )
}

#[test]
fn rules_of_an_operator_redact_answers_and_the_audit_log() {
    let data = Arc::new(TempDir::new("secret-rules"));
    data.write("acme.toml", RULES);
    let gate = Setup::config(config()).start_in(data.clone());
    let token = "acme_0123456789abcdef";
    let arguments = json!({"name": token, "text": "x"});
    let said = Modern::call(gate.port, &json!(1), "demo_note", arguments);
    let said = answer_of(&said, &json!(1)).to_string();
    assert!(!said.contains(token), "{said}");
    let log = Value::from(gate.audit()).to_string();
    assert!(log.contains("[redacted:acme-token]"), "{log}");
    assert!(!log.contains(token), "{log}");
}

#[test]
fn a_file_of_rules_that_cannot_be_used_is_refused_with_its_line() {
    let data = TempDir::new("secret-rules");
    let file = data.write("toolgate.toml", &config());
    let check = || {
        let out = output(toolgate().args(["check", "--config"]).arg(&file));
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    let (code, said) = check();
    assert!(code == Some(2) && said.contains("acme.toml"), "{said}");
    data.write("acme.toml", &RULES.replace("{16}", "{16}("));
    let (code, said) = check();
    assert_eq!(code, Some(2), "{said}");
    let wrong = "acme.toml:3:9: the regex of rule \"acme-token\" cannot be used: unclosed group";
    assert!(said.contains(wrong), "{said}");
    data.write("acme.toml", RULES);
    assert_eq!(check().0, Some(0));
}
