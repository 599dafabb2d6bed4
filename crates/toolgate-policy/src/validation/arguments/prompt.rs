//! Validation of prompt arguments and completion parameters.

use crate::{
    sanitize::text::sanitize_text,
    validation::schema::{MAX_SCHEMA_PROBLEMS, truncate},
};
use toolgate_core::{Definition, ItemKind, Json, SchemaViolation};

/// Returns the problems of prompt arguments: missing required ones and unknown ones. A prompt without a list of arguments
/// is free-form; one with an empty list has no arguments.
pub(super) fn problems(prompt: &Definition, arguments: &Json) -> Vec<SchemaViolation> {
    if !prompt.declares_arguments() {
        return Vec::new();
    }
    let known = prompt.prompt_arguments();
    let missing = known
        .iter()
        .filter(|a| a.required && arguments.get(&a.name).is_none())
        .map(|a| {
            problem(
                &a.name,
                "a string, because the prompt requires it".to_owned(),
                "nothing",
            )
        });
    let strange = arguments
        .members()
        .filter(|(name, _)| !known.iter().any(|a| a.name == *name))
        .map(|(name, _)| problem(&name, expected_arguments(prompt), "an unknown argument"));
    missing.chain(strange).take(MAX_SCHEMA_PROBLEMS).collect()
}

/// Returns the problems of completion parameters.
pub(super) fn completion_problems(of: &Definition, arguments: &Json) -> Vec<SchemaViolation> {
    let name = arguments.get("argument").and_then(|a| a.get("name"));
    let name = name.and_then(|n| n.string()).unwrap_or_default();
    // Only the server knows the variables of a template, and the arguments of a free-form prompt.
    let unlisted = match of.kind() {
        ItemKind::Prompt if of.declares_arguments() => None,
        ItemKind::Prompt => Some("the name of an argument of the prompt"),
        _ => Some("the name of a variable of the template"),
    };
    if let Some(expected) = unlisted {
        return match name.is_empty() {
            true => vec![problem(&name, expected.to_owned(), "an empty name")],
            false => Vec::new(),
        };
    }
    if of.prompt_arguments().iter().any(|a| a.name == name) {
        return Vec::new();
    }
    vec![problem(
        &name,
        expected_arguments(of),
        "an unknown argument",
    )]
}

fn expected_arguments(prompt: &Definition) -> String {
    let names: Vec<String> = prompt
        .prompt_arguments()
        .into_iter()
        .map(|a| a.name)
        .collect();
    match names.is_empty() {
        true => "no arguments".to_owned(),
        false => truncate(&sanitize_text(&format!(
            "one of the arguments {}",
            names.join(", ")
        ))),
    }
}

fn problem(name: &str, expected: String, got: &str) -> SchemaViolation {
    SchemaViolation::new(
        truncate(&sanitize_text(&crate::validation::schema::pointer_step(
            "", name,
        ))),
        expected,
        got,
    )
}
