//! The samples of the rules, and laws.

#![allow(clippy::print_stdout, reason = "figures for people")]

use super::{Secrets, find, rules};
use serde_json::json;
use std::collections::BTreeMap;
use toolgate_core::Json;

fn file() -> rules::File {
    toml::from_str(rules::TEXT).unwrap()
}

/// A sample without what keeps other tools from finding it.
fn sample(text: &str) -> String {
    text.replace('¦', "")
}

/// T49: each rule finds its own samples, and none of those that are none.
#[test]
fn rules_find_their_samples() {
    let mut wrong = Vec::new();
    let (mut yes, mut no) = (0, 0);
    for rule in &file().rule {
        assert!(!rule.yes.is_empty() && !rule.no.is_empty(), "{}", rule.id);
        for text in rule.yes.iter().map(|t| sample(t)) {
            yes += 1;
            let found = find::find(&text);
            if !found.iter().any(|f| f.rule == rule.id) {
                wrong.push(format!("{} misses {text:?}: {found:?}", rule.id));
            }
        }
        for text in rule.no.iter().map(|t| sample(t)) {
            no += 1;
            if let Some(found) = find::find(&text).first() {
                wrong.push(format!("{} takes {text:?} of {}", found.rule, rule.id));
            }
        }
    }
    println!(
        "T49: {} rules, {yes} secrets found, {no} others left",
        file().rule.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn fields_find_their_samples() {
    let field = file().field;
    for (key, value) in &field.yes {
        let (key, value) = (sample(key), sample(value));
        let json = Json::from_value(&json!({"a": {key.as_str(): value}}));
        let redacted = Secrets::redact_json(&json);
        assert!(redacted.as_str().contains("[redacted:"), "{key}: {value}");
        assert!(!redacted.as_str().contains(&value), "{key}: {value}");
    }
    for (key, value) in &field.no {
        let json = Json::from_value(&json!({key.as_str(): sample(value)}));
        assert_eq!(Secrets::redact_json(&json), json);
    }
}

/// T46 for secrets: cleaning twice changes nothing more.
#[test]
fn redacting_twice_changes_nothing_more() {
    for rule in &file().rule {
        for text in &rule.yes {
            let once = Secrets::redact_text(&sample(text)).into_owned();
            assert_eq!(Secrets::redact_text(&once), once, "{}", rule.id);
        }
    }
}

#[test]
fn all_but_the_secret_stays() {
    let text = sample("{ \"a\" : 1.50, \"t\": \"gh¦p_k3R9vQ2mX7bT1nL5wZ8cF4hJ6gP0sYuEAq7K é\" }");
    let json = Json::read(text.into_bytes(), &toolgate_wire::json::Limits::default()).unwrap();
    assert_eq!(
        Secrets::redact_json(&json).as_str(),
        "{ \"a\" : 1.50, \"t\": \"[redacted:github-token] é\" }"
    );
}

#[test]
fn ids_are_unique_and_fit_the_mark() {
    let mut ids = BTreeMap::new();
    for rule in &file().rule {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        assert!(rule.id.bytes().all(plain), "{}", rule.id);
        assert!(ids.insert(rule.id.clone(), ()).is_none(), "{}", rule.id);
    }
}
