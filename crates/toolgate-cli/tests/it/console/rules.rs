//! Rules and settings at the console: errors in place, what a change does to past calls, and undo.

use super::{config, note};
use crate::help::{Gate, Modern, Script, Setup, browser, real, shot};
use serde_json::json;

const RULE: &str =
    "\n# Adding is harmless.\n[[rule]]\ntools = [\"demo.add\"]\naction = \"allow\"\n";

fn gate() -> Gate {
    let gate = Setup::config(config("") + RULE).start();
    for a in 1..=4 {
        Modern::call(gate.port, &json!(1), "demo_add", json!({"a": a, "b": 1}));
    }
    gate
}

#[test]
fn a_rule_is_changed_with_its_effect_on_past_calls_in_view_and_taken_back() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = gate();
    let before = std::fs::read_to_string(gate.data.file("toolgate.toml")).unwrap();
    let changed = "# Adding is harmless.\n[[rule]]\ntools = [\"demo.add\"]\naction = \"deny\"";
    let steps = json!([
        {"do": "go", "to": "#/rules"},
        {"do": "see", "at": "[data-rule='1']", "holds": "demo.add"},
        {"do": "click", "at": "[data-act=hits]"},
        {"do": "see", "at": "[data-rule='1'] [data-hits='4']"},
        {"do": "shot", "path": shot("rules.png")},
        {"do": "click", "at": "[data-act=edit-rule]"},
        {"do": "fill", "at": "[data-field=code]", "text": "[[rule]]\ntools = [\"demo.add\"]\naction = \"forbid\""},
        {"do": "see", "at": "[data-editor-error]", "holds": "forbid"},
        {"do": "see", "at": ".gutter .wrong"},
        {"do": "fill", "at": "[data-field=code]", "text": changed},
        {"do": "hidden", "at": "[data-editor-error]"},
        {"do": "click", "at": "[data-act=preview]"},
        {"do": "see", "at": "[data-effect-sum]", "holds": "4 would have been decided differently"},
        {"do": "see", "at": "[data-changes]", "holds": "deny"},
        {"do": "see", "at": ".diff del", "holds": "action = \"allow\""},
        {"do": "shot", "path": shot("rules-effect.png")},
        {"do": "click", "at": "[data-act=save]"},
        {"do": "see", "at": "[data-rule='1'] .verdict.deny"},
        {"do": "wait"},
        {"do": "click", "at": "[data-undo] summary"},
        {"do": "see", "at": "[data-version]:nth-child(1)", "holds": "1 line added, 1 line removed (action = \"deny\")"},
        {"do": "click", "at": "[data-version]:nth-child(2) [data-act=show-version]"},
        {"do": "see", "at": "[data-version]:nth-child(2) .diff ins", "holds": "action = \"allow\""},
        {"do": "click", "at": "[data-act=restore]"},
        {"do": "see", "at": "[data-rule='1'] .verdict.allow"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    page.event("waiting");
    let denied = Modern::call(gate.port, &json!(1), "demo_add", json!({"a": 1, "b": 1})).body;
    assert!(denied.contains("error"), "{denied}");
    let file = std::fs::read_to_string(gate.data.file("toolgate.toml")).unwrap();
    assert!(
        file.contains("action = \"deny\"") && file.contains("# Adding is harmless."),
        "{file}"
    );
    page.go_on();
    page.event("done");
    page.assert_no_page_error();
    let after = std::fs::read_to_string(gate.data.file("toolgate.toml")).unwrap();
    assert_eq!(after, before, "byte for byte");
    let reloads = gate
        .audit()
        .into_iter()
        .filter(|r| r["ev"] == "policy.reload" && r["by"] == "console");
    assert_eq!(reloads.count(), 2);
    let saves = gate
        .audit()
        .into_iter()
        .filter(|r| r["ev"] == "config.saved");
    assert_eq!(saves.filter(|r| r["by"] == "console").count(), 2);
}

#[test]
fn the_console_changes_rules_and_limits_but_no_server_unless_the_config_allows_it() {
    let gate = gate();
    let login = gate.log_in("");
    let text = |login: &crate::help::Login| {
        login.post("config/get", &json!({}))["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let now = text(&login);
    let evil = now.replace("demo-server", "demo-server\", \"--evil");
    let check = login.post("config/check", &json!({"text": evil}));
    assert_eq!(check["ok"], false, "{check}");
    assert!(
        check["why"]
            .as_str()
            .unwrap()
            .contains("danger_edit_config"),
        "{check}"
    );
    let digest = login.post("config/get", &json!({}))["digest"].clone();
    let save = login.post("config/save", &json!({"text": evil, "digest": digest}));
    assert!(
        save["error"]
            .as_str()
            .unwrap()
            .contains("must not change \"server\""),
        "{save}"
    );
    let stale = login.post("config/save", &json!({"text": now, "digest": "0"}));
    assert!(
        stale["error"]
            .as_str()
            .unwrap()
            .contains("changed meanwhile"),
        "{stale}"
    );
    let limits = format!("{now}\n[limits]\napproval_seconds = 77\n");
    let saved = login.post("config/save", &json!({"text": limits, "digest": digest}));
    assert_eq!(saved["ok"], true, "{saved}");
    assert!(
        std::fs::read_to_string(gate.data.file("toolgate.toml"))
            .unwrap()
            .contains("= 77")
    );
}

#[test]
fn secrets_of_the_config_do_not_reach_the_page_and_stay_in_the_file() {
    let secret = "a-very-secret-word-0123";
    let env = format!("env = {{ API_TOKEN = {{ danger_clear = \"{secret}\" }} }}\n");
    let text = config("") + &env + RULE;
    let gate = Setup::config(text.clone()).start();
    let login = gate.log_in("");
    let got = login.post("config/get", &json!({}));
    assert!(!got.to_string().contains(secret), "{got}");
    assert_eq!(got["masked"], 1, "{got}");
    let edited = got["text"]
        .as_str()
        .unwrap()
        .replace("action = \"allow\"", "action = \"ask\"");
    let preview = login.post("config/preview", &json!({"text": edited, "days": 7}));
    assert!(!preview.to_string().contains(secret), "{preview}");
    let saved = login.post(
        "config/save",
        &json!({"text": edited, "digest": got["digest"]}),
    );
    assert_eq!(saved["ok"], true, "{saved}");
    let file = std::fs::read_to_string(gate.data.file("toolgate.toml")).unwrap();
    assert_eq!(file, text.replace("action = \"allow\"", "action = \"ask\""));
}

#[test]
fn the_settings_show_the_file_and_a_proposed_rule_opens_in_the_editor() {
    let (Some(real), Some(_)) = (real(), browser()) else {
        return;
    };
    let gate = gate();
    for n in 0..3 {
        let waits = note(gate.port, &format!("text {n}"));
        let id = gate.pending();
        gate.cli(&["approve", &id]);
        waits.join().unwrap();
    }
    let steps = json!([
        {"do": "go", "to": "#/settings"},
        {"do": "see", "at": "#view-settings", "holds": "toolgate.toml"},
        {"do": "shot", "path": shot("settings.png")},
        {"do": "click", "at": "[data-act=edit-config]"},
        {"do": "fill", "at": "#view-settings [data-field=code]", "text": "listen = 1"},
        {"do": "see", "at": "#view-settings [data-editor-error]"},
        {"do": "click", "at": "#view-settings [data-act=cancel-edit]"},
        {"do": "go", "to": "#/overview"},
        {"do": "click", "at": "[data-insight=always-approved] a"},
        {"do": "see", "at": "#view-rules [data-field=code]"},
        {"do": "click", "at": "[data-act=preview]"},
        {"do": "see", "at": "[data-changes]", "holds": "demo.note"},
        {"do": "click", "at": "[data-act=save]"},
        {"do": "see", "at": "[data-rule='2']", "holds": "demo.note"},
    ]);
    let mut page = Script::browser(&real, &gate.console(), steps);
    page.event("done");
    page.assert_no_page_error();
    let ran = note(gate.port, "no approval needed").join().unwrap().body;
    assert!(!ran.contains("error"), "{ran}");
}
