//! The prompts, and the completion of their arguments.

use std::collections::BTreeMap;

use toolgate::Content;
use toolgate::handlers::{Cx, HandlerExit, Message, Prompt, ask};

use crate::content::{embedded, image};
use crate::schemas::field;

type Arguments = BTreeMap<String, String>;

/// Every prompt.
pub(crate) fn all() -> Vec<Prompt> {
    let all = [
        Prompt::new("test_simple_prompt", simple),
        Prompt::new("test_prompt_with_arguments", with_arguments)
            .argument("arg1", "The first word", true)
            .argument("arg2", "The second word", true)
            .complete("arg1", words),
        Prompt::new("test_prompt_with_embedded_resource", with_resource).argument(
            "resourceUri",
            "Which resource",
            true,
        ),
        Prompt::new("test_prompt_with_image", with_image),
        Prompt::new("test_input_required_result_prompt", with_question),
    ];
    all.map(|prompt| prompt.description("A prompt for testing"))
        .into()
}

async fn simple(_: Arguments, _: Cx) -> Result<&'static str, HandlerExit> {
    Ok("This is a simple prompt for testing.")
}

async fn with_arguments(arguments: Arguments, _: Cx) -> Result<String, HandlerExit> {
    let word = |name: &str| arguments.get(name).cloned().unwrap_or_default();
    Ok(format!(
        "Prompt with arguments: arg1='{}', arg2='{}'",
        word("arg1"),
        word("arg2")
    ))
}

async fn with_resource(arguments: Arguments, _: Cx) -> Result<Vec<Message>, HandlerExit> {
    let uri = arguments.get("resourceUri").cloned().unwrap_or_default();
    let look = Content::text("Please look at the resource above.");
    Ok(vec![Message::user(embedded(&uri)), Message::user(look)])
}

async fn with_image(_: Arguments, _: Cx) -> Result<Vec<Message>, HandlerExit> {
    let look = Content::text("Please look at the image above.");
    Ok(vec![Message::user(image()), Message::user(look)])
}

async fn with_question(_: Arguments, cx: Cx) -> Result<String, HandlerExit> {
    let question = ask::form_with(
        "What context should the prompt use?",
        field("context", "string"),
    );
    let context = cx.ask("user_context", question)?;
    Ok(format!("Use this: {}", context["context"]))
}

/// Words that begin like what was typed.
async fn words(typed: String, _: Cx) -> Result<Vec<String>, HandlerExit> {
    let words = ["paris", "park", "party", "test", "testing"];
    let found = words.iter().filter(|word| word.starts_with(&typed));
    Ok(found.map(|word| (*word).to_owned()).collect())
}
