//! The arguments of prompts: those that are needed are there, and no others.

use crate::{
    schema::{MOST, short},
    text::clean,
};
use toolgate_core::{Definition, ItemKind, Json, Problem};

/// What is wrong with the arguments of a prompt.
pub(super) fn problems(prompt: &Definition, arguments: &Json) -> Vec<Problem> {
    let known = prompt.prompt_arguments();
    let missing = known
        .iter()
        .filter(|a| a.required && arguments.get(&a.name).is_none())
        .map(|a| {
            problem(
                &a.name,
                "a string; the prompt needs it".to_owned(),
                "nothing",
            )
        });
    let strange = arguments
        .members()
        .filter(|(name, _)| !known.iter().any(|a| a.name == *name))
        .map(|(name, _)| problem(&name, takes(prompt), "an argument that it does not take"));
    missing.chain(strange).take(MOST).collect()
}

/// What is wrong with the parameters of a completion.
pub(super) fn completed(of: &Definition, arguments: &Json) -> Vec<Problem> {
    let name = arguments.get("argument").and_then(|a| a.get("name"));
    let name = name.and_then(|n| n.string()).unwrap_or_default();
    let known = match of.kind() {
        ItemKind::Prompt => of.prompt_arguments().iter().any(|a| a.name == name),
        // The variables of a template are its server's to know.
        _ => !name.is_empty(),
    };
    if known {
        return Vec::new();
    }
    vec![problem(
        &name,
        takes(of),
        "an argument that it does not take",
    )]
}

fn takes(prompt: &Definition) -> String {
    let names: Vec<String> = prompt
        .prompt_arguments()
        .into_iter()
        .map(|a| a.name)
        .collect();
    match names.is_empty() {
        true => "no arguments".to_owned(),
        false => short(&clean(&format!("one of {}", names.join(", ")))),
    }
}

fn problem(name: &str, expected: String, got: &str) -> Problem {
    Problem {
        path: short(&clean(&crate::schema::step("", name))),
        expected,
        got: got.to_owned(),
    }
}
