//! Targets of `toolgate-policy`: conditions, globs, secret rules, schemas and sanitizers.

use crate::protocol::read;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;
use toolgate_core::{
    CallArguments, Caller, Content, Definition, Item, Json, Origin, Output, Sanitizer, ToolResult,
    UntrustedContent,
};
use toolgate_policy::{
    CelCondition, CelLimits, ConditionFacts, GlobPattern, MediaSanitizer, SchemaBounds,
    SecretRedactor, SecretRules, sanitize_text, unchecked_keywords, validate_value,
};

/// Text before the first newline, and after it.
fn two_lines(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, "{}"))
}

/// Conditions of rules: an expression, a newline, the arguments of a call.
pub fn cel(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (condition, arguments) = two_lines(&text);
    let mut limits = CelLimits::default();
    limits.steps = 2_000;
    let (Ok(condition), Some(arguments)) = (
        CelCondition::compile_within(condition, &limits),
        read(arguments.as_bytes()),
    ) else {
        return;
    };
    let tool = json!({"name": "write", "inputSchema": {"type": "object"}});
    let Ok(tool) = Definition::tool(Json::from_value(&tool)) else {
        return;
    };
    let origin = Origin {
        server: "files".into(),
        trusted: true,
    };
    let (caller, item) = (Caller::new("key:ci"), Item::new(origin, tool));
    let arguments = CallArguments::new(arguments);
    let facts = ConditionFacts::new(&caller, &item).with(&arguments);
    assert_eq!(condition.evaluate(&facts), condition.evaluate(&facts));
}

/// Glob patterns: a pattern, a newline, a name. Compares with a table of all positions.
pub fn glob(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (pattern, name) = two_lines(&text);
    if pattern.len() * name.len() > 4096 {
        return;
    }
    let matched = GlobPattern::new(pattern).matches(name);
    assert_eq!(
        matched,
        matches_by_table(pattern, name),
        "{pattern:?} on {name:?}"
    );
}

fn matches_by_table(pattern: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for part in pattern.chars() {
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            next[at] = match part {
                '*' => reached[at] || at > 0 && next[at - 1],
                '?' => at > 0 && reached[at - 1],
                part => at > 0 && reached[at - 1] && name[at - 1] == part,
            };
        }
        reached = next;
    }
    reached[name.len()]
}

/// Reader of files with rules for secrets.
pub fn secret_rules(bytes: &[u8]) {
    if bytes.len() > 4096 {
        return;
    }
    match SecretRules::parse(&String::from_utf8_lossy(bytes)) {
        Ok(rules) => assert!(rules.notes().len() <= bytes.len()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Schema compiler and validator: a schema, a newline, a value.
pub fn schema(bytes: &[u8]) {
    if bytes.len() > 4096 {
        return;
    }
    let text = String::from_utf8_lossy(bytes);
    let (schema, value) = two_lines(&text);
    let Some(schema) = read(schema.as_bytes()) else {
        return;
    };
    let bounds = SchemaBounds::default();
    let skipped = unchecked_keywords(&schema, &bounds);
    if let Some(value) = read(value.as_bytes()) {
        let valid = validate_value(&schema, &value.to_value(), &bounds);
        assert_eq!(valid.is_err(), skipped.is_err());
    }
}

/// Check of the headers of images and sounds: a type, a newline, the bytes.
pub fn media(bytes: &[u8]) {
    let at = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (mime, data) = bytes.split_at(at);
    let mime = String::from_utf8_lossy(mime);
    let raw = String::from_utf8_lossy(data);
    let encoded = STANDARD.encode(data.get(1..).unwrap_or_default());
    for (kind, data) in [("image", &*encoded), ("audio", &*encoded), ("image", &*raw)] {
        let block = json!({"type": kind, "mimeType": mime, "data": data});
        let Some(block) = Content::read(Json::from_value(&block)) else {
            continue;
        };
        let mut output = Output::Tool(ToolResult {
            content: vec![block],
            ..ToolResult::default()
        });
        let sanitizer = MediaSanitizer::default();
        let _ = sanitizer.sanitize(None, None, UntrustedContent::Output(&mut output));
    }
}

/// Sanitizer of text and redaction of secrets: sanitized text needs no second pass.
pub fn text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let once = sanitize_text(&text);
    assert_eq!(sanitize_text(&once), once, "sanitized twice");
    let _ = SecretRedactor::redact_text(&text);
    let _ = SecretRedactor::redact_for_display(&text);
}
