//! The tools that ask by their result and are called again with the answers (2026-07-28).

use serde_json::{Value, json};
use toolgate::{AskKind, Call, Error, Outcome};

use crate::content::{asked, form, said, sample};
use crate::schemas;

const PREFIX: &str = "test_input_required_result_";
const TOOLS: [&str; 8] = [
    "elicitation",
    "sampling",
    "list_roots",
    "request_state",
    "multiple_inputs",
    "multi_round",
    "tampered_state",
    "capabilities",
];

/// Every tool of this page.
pub(crate) fn definitions() -> Vec<Value> {
    let one = |name: &str| {
        let schema = json!({"type": "object"});
        schemas::tool(&format!("{PREFIX}{name}"), "Asks before it answers", schema)
    };
    TOOLS.into_iter().map(one).collect()
}

/// Whether a tool is one of this page.
pub(crate) fn is_one(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Uses one of them.
pub(crate) fn call(call: &Call) -> Result<Outcome, Error> {
    match call.name().strip_prefix(PREFIX) {
        Some("elicitation") => greet(call),
        Some("sampling") => all_of(
            call,
            vec![("capital", sample("What is the capital of France?"))],
        ),
        Some("list_roots") => all_of(call, vec![("roots", AskKind::Roots)]),
        Some("request_state" | "tampered_state") => all_of(call, vec![("confirm", confirm())]),
        Some("multiple_inputs") => all_of(call, everything()),
        Some("multi_round") => two_rounds(call),
        Some("capabilities") => what_it_can(call),
        _ => Err(call.unknown()),
    }
}

/// A field that the user filled in, where the answer has it.
pub(crate) fn answer(call: &Call, key: &str, field: &str) -> Option<String> {
    let answer = call.round.answer(key)?.to_value();
    answer["content"][field].as_str().map(str::to_owned)
}

/// The question of the prompt.
pub(crate) fn ask_context() -> Result<Outcome, Error> {
    let context = json!({"context": {"type": "string"}});
    let question = form(
        "What context should the prompt use?",
        context,
        json!(["context"]),
    );
    asked(vec![("user_context", question)])
}

fn name() -> AskKind {
    form("What is your name?", schemas::name(), json!(["name"]))
}

fn confirm() -> AskKind {
    form(
        "Please confirm",
        json!({"ok": {"type": "boolean"}}),
        json!(["ok"]),
    )
}

fn everything() -> Vec<(&'static str, AskKind)> {
    vec![
        ("user_name", name()),
        ("greeting", sample("Generate a greeting")),
        ("roots", AskKind::Roots),
    ]
}

fn greet(call: &Call) -> Result<Outcome, Error> {
    match answer(call, "user_name", "name") {
        Some(name) => said(&format!("Hello, {name}!")),
        None => asked(vec![("user_name", name())]),
    }
}

/// Asks until every question has an answer, and shows the answers.
fn all_of(call: &Call, asks: Vec<(&str, AskKind)>) -> Result<Outcome, Error> {
    let answers: Option<Vec<&str>> = asks
        .iter()
        .map(|(key, _)| call.round.answer(key).map(|answer| answer.as_str()))
        .collect();
    match answers {
        Some(answers) => said(&format!(
            "state-ok, all inputs received: {}",
            answers.join(", ")
        )),
        None => asked(asks),
    }
}

fn two_rounds(call: &Call) -> Result<Outcome, Error> {
    match call.round.number {
        0 => asked(vec![("step1", name())]),
        1 => {
            let colour = json!({"color": {"type": "string"}});
            asked(vec![(
                "step2",
                form("Which colour?", colour, json!(["color"])),
            )])
        }
        _ => said("both rounds are done"),
    }
}

/// Asks only what the client declared.
fn what_it_can(call: &Call) -> Result<Outcome, Error> {
    let can = |kind: &AskKind| match kind {
        AskKind::Elicit(_) => call.abilities.elicitation,
        AskKind::Sample(_) => call.abilities.sampling,
        AskKind::Roots => call.abilities.roots,
        AskKind::Approve(_) => false,
    };
    let asks = everything()
        .into_iter()
        .filter(|(_, kind)| can(kind))
        .collect();
    all_of(call, asks)
}
