//! The tools that answer at once, and those of the revisions with sessions that ask in the middle.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate::{
    AskKind, Call, Error, Event, ItemKind, Json, Kind, LogMessage, Need, Outcome, Output, Progress,
    ToolResult,
};

use crate::content::{asked, audio, blocks, embedded, form, image, said, sample, text};
use crate::everything::Everything;
use crate::schemas;

const NOTHING: &str = r#"{"type": "object"}"#;
/// How far apart messages of one call are, so that they are not told as one.
const APART: Duration = Duration::from_millis(50);

/// Every tool of this page.
pub(crate) fn definitions() -> Vec<Value> {
    let plain = [
        ("test_simple_text", "Gives one line of text"),
        ("test_image_content", "Gives a picture"),
        ("test_audio_content", "Gives a sound"),
        ("test_embedded_resource", "Gives a resource, whole"),
        (
            "test_multiple_content_types",
            "Gives text, a picture and a resource",
        ),
        ("test_tool_with_logging", "Logs three messages"),
        ("test_tool_with_progress", "Tells three times how far it is"),
        ("test_error_handling", "Fails"),
        ("test_elicitation_sep1034_defaults", "Asks with defaults"),
        ("test_elicitation_sep1330_enums", "Asks for choices"),
        ("test_reconnection", "Answers after a while"),
        ("test_missing_capability", "Needs a client that samples"),
        (
            "test_streaming_elicitation",
            "Tells progress and asks nothing",
        ),
        ("test_logging_tool", "Logs where it may"),
        ("test_trigger_tool_change", "Tells that the tools changed"),
        (
            "test_trigger_prompt_change",
            "Tells that the prompts changed",
        ),
    ];
    let nothing: Value = serde_json::from_str(NOTHING).unwrap_or_default();
    let mut all: Vec<Value> = plain
        .into_iter()
        .map(|(name, description)| schemas::tool(name, description, nothing.clone()))
        .collect();
    all.push(schemas::tool(
        "test_sampling",
        "Asks the model",
        schemas::one("prompt"),
    ));
    all.push(schemas::tool(
        "test_elicitation",
        "Asks the user",
        schemas::one("message"),
    ));
    all.push(schemas::custom_header());
    all.push(schemas::json_schema_2020_12());
    all
}

/// Uses one of them.
pub(crate) async fn call(all: &Everything, call: &Call) -> Result<Outcome, Error> {
    match call.name() {
        "test_simple_text" => said("This is a simple text response for testing."),
        "test_image_content" => blocks(&[image()]),
        "test_audio_content" => blocks(&[audio()]),
        "test_embedded_resource" => blocks(&[embedded("test://embedded-resource")]),
        "test_multiple_content_types" => {
            let resource = embedded("test://mixed-content-resource");
            blocks(&[text("several kinds of content:"), image(), resource])
        }
        "test_tool_with_logging" | "test_logging_tool" => logging(call).await,
        "test_tool_with_progress" | "test_streaming_elicitation" => progress(call).await,
        "test_error_handling" => Ok(Outcome::Done(Output::Tool(ToolResult::error(
            "this tool fails on purpose",
        )))),
        "test_reconnection" => {
            tokio::time::sleep(2 * APART).await;
            said("the stream was closed and opened again")
        }
        "test_missing_capability" => needs_sampling(call),
        "test_trigger_tool_change" => changed(all, ItemKind::Tool),
        "test_trigger_prompt_change" => changed(all, ItemKind::Prompt),
        "test_sampling" => model(call),
        "test_elicitation" => user(
            call,
            form(&argument(call, "message"), schemas::user(), json!([])),
        ),
        "test_elicitation_sep1034_defaults" => user(
            call,
            form("Look through the defaults", schemas::defaults(), json!([])),
        ),
        "test_elicitation_sep1330_enums" => {
            user(call, form("Choose", schemas::choices(), json!([])))
        }
        "test_custom_header" | "json_schema_2020_12_tool" => said(call.arguments().raw().as_str()),
        _ => Err(call.unknown()),
    }
}

fn argument(call: &Call, name: &str) -> String {
    let value = &call.arguments().value()[name];
    value.as_str().unwrap_or_default().to_owned()
}

async fn logging(call: &Call) -> Result<Outcome, Error> {
    for step in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        call.reporter.tell(Event::Log(LogMessage {
            level: "info".to_owned(),
            logger: Some("fixture".to_owned()),
            data: Json::from_value(&step.into()),
        }));
        tokio::time::sleep(APART).await;
    }
    said("three messages were logged")
}

async fn progress(call: &Call) -> Result<Outcome, Error> {
    for progress in [0.0, 50.0, 100.0] {
        call.reporter.tell(Event::Progress(Progress {
            progress,
            total: Some(100.0),
            message: Some(format!("{progress} of 100")),
        }));
        tokio::time::sleep(APART).await;
    }
    said("done")
}

fn needs_sampling(call: &Call) -> Result<Outcome, Error> {
    if call.abilities.sampling {
        return said("the client samples");
    }
    let why = "this tool needs a client that declares sampling";
    Err(Error::new(Kind::Unsupported(Need::Sampling), why))
}

fn changed(all: &Everything, kind: ItemKind) -> Result<Outcome, Error> {
    all.changed(kind);
    said("told")
}

fn model(call: &Call) -> Result<Outcome, Error> {
    match call.round.answer("model") {
        None => asked(vec![("model", sample(&argument(call, "prompt")))]),
        Some(answer) => {
            let answer = answer.to_value();
            let text = answer["content"]["text"].as_str().unwrap_or_default();
            said(&format!("LLM response: {text}"))
        }
    }
}

fn user(call: &Call, question: AskKind) -> Result<Outcome, Error> {
    match call.round.answer("user") {
        None => asked(vec![("user", question)]),
        Some(answer) => {
            let answer = answer.to_value();
            let action = answer["action"].as_str().unwrap_or_default();
            said(&format!(
                "Elicitation completed: action={action}, content={}",
                answer["content"]
            ))
        }
    }
}
