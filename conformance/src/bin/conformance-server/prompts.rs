//! The prompts, and the completion of their arguments.

use serde_json::{Value, json};
use toolgate::{Call, CompleteResult, Error, Outcome, Output, PromptMessage, PromptResult};

use crate::content::{block, embedded, image, text};
use crate::input;

pub(crate) fn definitions() -> Vec<Value> {
    let one = |name: &str, arguments: &[&str]| {
        let argument =
            |name: &&str| json!({"name": name, "description": "a word", "required": true});
        let arguments: Vec<Value> = arguments.iter().map(argument).collect();
        json!({"name": name, "description": format!("{name} for testing"), "arguments": arguments})
    };
    vec![
        one("test_simple_prompt", &[]),
        one("test_prompt_with_arguments", &["arg1", "arg2"]),
        one("test_prompt_with_embedded_resource", &["resourceUri"]),
        one("test_prompt_with_image", &[]),
        one("test_input_required_result_prompt", &[]),
    ]
}

/// Fetches one.
pub(crate) fn get(call: &Call) -> Result<Outcome, Error> {
    let argument = |name: &str| call.arguments().value()[name].as_str().unwrap_or_default();
    match call.name() {
        "test_simple_prompt" => messages(&[text("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1"), argument("arg2"));
            messages(&[text(&format!(
                "Prompt with arguments: arg1='{one}', arg2='{two}'"
            ))])
        }
        "test_prompt_with_embedded_resource" => {
            let resource = embedded(argument("resourceUri"));
            messages(&[
                resource,
                text("Please process the embedded resource above."),
            ])
        }
        "test_prompt_with_image" => messages(&[image(), text("Please look at the image above.")]),
        "test_input_required_result_prompt" => match input::answer(call, "user_context", "context")
        {
            Some(context) => messages(&[text(&format!("Use this context: {context}"))]),
            None => input::ask_context(),
        },
        _ => Err(call.unknown()),
    }
}

/// Words that begin like what was typed.
pub(crate) fn complete(call: &Call) -> Outcome {
    let typed = call.arguments().value()["argument"]["value"]
        .as_str()
        .unwrap_or_default();
    let words = ["paris", "park", "party", "test", "testing"];
    let values = words.iter().filter(|word| word.starts_with(typed));
    Outcome::Done(Output::Complete(CompleteResult {
        values: values.map(|word| (*word).to_owned()).collect(),
        more: Some(false),
        ..CompleteResult::default()
    }))
}

fn messages(contents: &[Value]) -> Result<Outcome, Error> {
    let message = |content: &Value| {
        Ok(PromptMessage {
            assistant: false,
            content: block(content)?,
        })
    };
    let messages = contents.iter().map(message).collect::<Result<_, Error>>()?;
    Ok(Outcome::Done(Output::Prompt(PromptResult {
        messages,
        ..PromptResult::default()
    })))
}
