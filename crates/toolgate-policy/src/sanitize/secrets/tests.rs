//! Tests with the samples of the rules, and property tests.

#![allow(clippy::print_stdout, reason = "figures for people")]

use super::{
    SecretRedactor,
    field::FIELD_RULE,
    find,
    rule_set::SecretRules,
    rules::{ActiveRules, rules},
};
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use toolgate_core::Json;

/// The content of `samples.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rule: Vec<Samples>,
    field: FieldSamples,
}

/// Texts that a rule must match, and texts that it must not.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Samples {
    id: String,
    yes: Vec<String>,
    no: Vec<String>,
}

/// The same for members, with their names.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldSamples {
    id: String,
    yes: Vec<(String, String)>,
    no: Vec<(String, String)>,
}

fn file() -> File {
    toml::from_str(include_str!("samples.toml")).unwrap()
}

#[test]
fn each_rule_has_samples_and_compiles() {
    let file = file();
    let sampled: BTreeSet<String> = file.rule.iter().map(|rule| rule.id.clone()).collect();
    let formats: BTreeMap<String, Vec<String>> =
        toml::from_str(include_str!("formats.toml")).unwrap();
    let sampled: BTreeSet<String> = sampled.into_iter().chain(formats.into_keys()).collect();
    let rules = rules();
    let known: BTreeSet<String> = rules.rules.iter().map(|rule| rule.id.to_string()).collect();
    assert_eq!(sampled, known);
    assert_eq!(file.field.id, FIELD_RULE.id);
    for rule in &rules.rules {
        assert!(rule.compiled().is_some(), "{}", rule.id);
    }
}

/// Removes the character that hides a sample from other secret scanners.
fn sample(text: &str) -> String {
    text.replace('¦', "")
}

/// T49: each rule finds its own samples, and none of the counterexamples.
#[test]
fn rules_find_their_samples() {
    let mut wrong = Vec::new();
    let (mut yes, mut no) = (0, 0);
    for rule in &file().rule {
        assert!(!rule.yes.is_empty() && !rule.no.is_empty(), "{}", rule.id);
        for text in rule.yes.iter().map(|t| sample(t)) {
            yes += 1;
            let found = find::find(&text);
            if !found.iter().any(|f| *f.rule == *rule.id) {
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

/// Words of assignments, and text around them.
const PIECES: [&str; 24] = [
    "password",
    "Passwords",
    "PASSWD",
    "db_pwd",
    "passphrase",
    "secret",
    "client_Secret_KEY",
    "api-key",
    "auth_token",
    "access_key",
    "aws_secret_access_key_id",
    "token",
    ";pwd",
    " ",
    "\n\t",
    "\\\\",
    "\"",
    "'",
    "=",
    ":",
    "=>",
    ":=",
    "k3R9vQ2mX7bT1nL5",
    "wJalrXUtnFEMI7K2MDENGbPxRfiCYzq81Ks0Lm3t",
];

proptest::proptest! {
    /// A rule that the cheap test excludes would not match.
    #[test]
    fn no_assignment_is_overlooked(parts in proptest::collection::vec(0_usize..24, 0..14)) {
        let text: String = parts.iter().map(|n| PIECES[*n]).collect();
        for rule in &rules().rules {
            if rule.compiled().unwrap().pattern.is_match(&text) {
                proptest::prop_assert!(rule.may_match(text.as_bytes()), "{} in {text:?}", rule.id);
            }
        }
    }
}

#[test]
fn a_pattern_is_compiled_when_it_may_find_something() {
    let rules = ActiveRules::with(&[]);
    let compiled = || rules.rules.iter().filter(|rule| rule.is_compiled()).count();
    let look = |text: &str| find::find_by_rules(&rules, text).len();
    assert_eq!(look("a broken token of prose: none, and a pwd"), 0);
    assert_eq!(compiled(), 0);
    assert_eq!(look("passphrase=k3R9vQ2mX7bT1nL5"), 1);
    assert_eq!(compiled(), 1);
}

#[test]
fn fields_find_their_samples() {
    let field = file().field;
    for (key, value) in &field.yes {
        let (key, value) = (sample(key), sample(value));
        let json = Json::from_value(&json!({"a": {key.as_str(): value}}));
        let redacted = SecretRedactor::redact_json(&json);
        assert!(redacted.as_str().contains("[redacted:"), "{key}: {value}");
        assert!(!redacted.as_str().contains(&value), "{key}: {value}");
    }
    for (key, value) in &field.no {
        let json = Json::from_value(&json!({key.as_str(): sample(value)}));
        assert_eq!(SecretRedactor::redact_json(&json), json);
    }
}

/// T46 for secrets: sanitizing is idempotent.
#[test]
fn redacting_twice_changes_nothing_more() {
    for rule in &file().rule {
        for text in &rule.yes {
            let once = SecretRedactor::redact_text(&sample(text)).into_owned();
            assert_eq!(SecretRedactor::redact_text(&once), once, "{}", rule.id);
        }
    }
}

#[test]
fn all_but_the_secret_stays() {
    let text = sample("{ \"a\" : 1.50, \"t\": \"gh¦p_k3R9vQ2mX7bT1nL5wZ8cF4hJ6gP0sYuEAq7K é\" }");
    let json = Json::read(
        text.into_bytes(),
        &toolgate_protocol::json::JsonLimits::default(),
    )
    .unwrap();
    assert_eq!(
        SecretRedactor::redact_json(&json).as_str(),
        "{ \"a\" : 1.50, \"t\": \"[redacted:github-token] é\" }"
    );
}

/// T49: detection of the samples in other encodings. Only the plain ones are guaranteed.
#[test]
fn recall_by_encoding() {
    use ::base64::{Engine, engine::general_purpose::STANDARD};
    let file = file();
    let samples: Vec<String> = file
        .rule
        .iter()
        .flat_map(|r| &r.yes)
        .map(|t| sample(t))
        .collect();
    let share = |what: &str, found: &dyn Fn(&str) -> bool| {
        let hits = samples.iter().filter(|text| found(text)).count();
        println!("T49: {what}: {hits} of {} found", samples.len());
        hits
    };
    let marked = |json: &serde_json::Value| {
        let json = Json::from_value(json);
        super::is_marked(SecretRedactor::redact_json(&json).as_str())
    };
    let plain = share("plain", &|text| marked(&json!({"a": text})));
    assert_eq!(plain, samples.len());
    share("JSON in a text", &|text| {
        marked(&json!({"a": json!({"b": text}).to_string()}))
    });
    share("split over two fields", &|text| {
        let half = (0..=text.len() / 2)
            .rev()
            .find(|at| text.is_char_boundary(*at));
        let (a, b) = text.split_at(half.unwrap_or(0));
        marked(&json!({"a": a, "b": b}))
    });
    share("Base64", &|text| {
        marked(&json!({"a": STANDARD.encode(text)}))
    });
}

/// T49: false positives in our own documents, by paragraph.
#[test]
fn false_positives_in_our_own_documents() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut all, mut wrong) = (0, Vec::new());
    for folder in [root.clone(), root.join("docs")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "md") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for part in text.split("\n\n") {
                all += 1;
                wrong.extend(find::find(part).into_iter().map(|f| (path.clone(), f)));
            }
        }
    }
    println!(
        "T49: {} of {all} paragraphs of our documents are redacted: {wrong:?}",
        wrong.len()
    );
    assert!(all > 300 && wrong.len() * 200 <= all, "{wrong:?}");
}

/// T49: cost of the search; printed, not asserted. Only the figures of a `--release` build count.
#[test]
fn cost() {
    let line = "The quick brown fox, 12 of them, ran over {\"a\": [1, 2]} and more. ";
    for (name, seed) in [
        ("without keywords", ""),
        ("with a keyword each 1 KiB", "a token "),
    ] {
        for size in [4096, 65536] {
            let kib = [seed, &line.repeat(1024 / line.len())].concat();
            let text = kib.repeat(size / kib.len());
            let times = if cfg!(debug_assertions) { 3 } else { 2000 };
            let start = std::time::Instant::now();
            let found: usize = (0..times).map(|_| find::find(&text).len()).sum();
            let each = start.elapsed().as_nanos() / times;
            assert_eq!(found, 0);
            println!("T49: {each} ns for {} bytes {name}", text.len());
        }
    }
}

/// Operator rules, and what they find in a text.
fn found_by(file: &str, text: &str) -> Vec<String> {
    let rules = ActiveRules::with(&[SecretRules::parse(file).unwrap()]);
    let found = find::find_by_rules(&rules, text).into_iter();
    found
        .map(|found| format!("{} {}", found.rule, &text[found.range]))
        .collect()
}

#[test]
fn rules_of_an_operator_are_read_as_gitleaks_writes_them() {
    let file = r#"
title = "ours"
[[rules]]
id = "acme-token"
description = "Token of Acme"
regex = '''(?i)acme[a-z_ .,-]{0,20}[=:]\s*["']?([0-9a-f]{16})["']?'''
secretGroup = 1
entropy = 2.0
keywords = ["ACME"]
[[rules.allowlists]]
regexTarget = "line"
regexes = ['''^# ''']
[[rules.allowlists]]
stopwords = ["DEADBEEF"]

[[rules]]
id = "short"
regex = "zed-[0-9]{8}"

[[rules]]
id = "of-files"
regex = "x{10}"
path = '''\.env$'''

[allowlist]
paths = ['''vendor/''']
regexes = ["zed-99"]
"#;
    let rules = SecretRules::parse(file).unwrap();
    assert_eq!(rules.len(), 2);
    assert_eq!(
        rules.notes(),
        ["rule \"of-files\" is skipped: it applies to file paths, but only text is searched"]
    );
    let found = |text: &str| found_by(file, text).join("; ");
    assert_eq!(
        found("Acme_Key = 0123456789abcdef"),
        "acme-token 0123456789abcdef"
    );
    for none in [
        "Acme_Key = 0000000000000000",
        "# acme_key = 0123456789abcdef",
        "acme_key = deadbeef01234567",
        "zed-99999999",
    ] {
        assert_eq!(found(none), "", "{none}");
    }
    // A match far from its keyword, and a match without a keyword.
    let far = format!("{} ZED-, zed-12345678", "acme ".repeat(100));
    assert_eq!(found(&far), "short zed-12345678");
}

#[test]
fn a_negated_class_ignores_case_where_the_rule_of_an_operator_does() {
    let file = "[[rules]]\nid = \"acme\"\nregex = \"(?i)acme-[^a-z]{6}\"\nkeywords = [\"acme\"]";
    assert_eq!(found_by(file, "ACME-123456"), ["acme ACME-123456"]);
    assert_eq!(found_by(file, "acme-ABCDEF"), [""; 0]);
}

#[test]
fn a_rule_that_cannot_be_used_is_an_error_that_names_it() {
    let rule = |more: &str| format!("[[rules]]\nid = \"acme\"\n{more}\n");
    for (file, at, says) in [
        (
            rule("regex = \"a(b\"\nkeywords = [\"abc\"]"),
            30,
            "the regex of rule \"acme\" cannot be used: unclosed group",
        ),
        (
            rule("regex = \"a(?=b)\"\nkeywords = [\"abc\"]"),
            30,
            "the regex of rule \"acme\" cannot be used: look-around",
        ),
        (
            rule("regex = \"[0-9]{9}\""),
            30,
            "rule \"acme\" has no keywords",
        ),
        (
            rule("regex = \"abcd\"\nkeywords = [\"ab\"]"),
            49,
            "the keyword \"ab\" of rule \"acme\" must be 3 to 64 bytes long",
        ),
        (
            rule("regex = \"abcd\"\nsecretGroup = 1"),
            51,
            "the secretGroup of rule \"acme\" is 1, but the regex of the rule has only 0 groups",
        ),
        (rule("regx = \"abcd\""), 22, "unknown field `regx`"),
        (
            rule("regex = \"abcd\"\n[[rules]]\nid = \"acme\"\nregex = \"x\""),
            52,
            "another rule already has the id \"acme\"",
        ),
        (
            "[[rules]]\nid = \"A b\"\nregex = \"abcd\"".to_owned(),
            15,
            "the rule id \"A b\" cannot be used in a redaction placeholder",
        ),
    ] {
        let error = SecretRules::parse(&file).unwrap_err();
        assert!(error.message.contains(says), "{error} for {file}");
        assert_eq!(error.at, at, "{error} for {file}");
    }
}
