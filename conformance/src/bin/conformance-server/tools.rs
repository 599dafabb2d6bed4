//! The tools that answer without a question.

use std::time::Duration;

use serde_json::Value;
use toolgate::{
    Content,
    core::RequiredCapability,
    handlers::{Cx, HandlerExit, LogLevel, Prompt, Tool},
};

use crate::content::{audio, embedded, image};
use crate::schemas::{self, nothing, tool};

/// Interval between the messages of one call, so that they are not merged.
const APART: Duration = Duration::from_millis(50);

type Done<T> = Result<T, HandlerExit>;

/// Every tool of this page.
pub(crate) fn all() -> Vec<Tool> {
    let mut all = Vec::from(plain());
    all.extend(telling());
    all.extend([
        tool("test_custom_header", schemas::custom_header(), again)
            .description("Takes an argument that a header repeats"),
        tool(
            "json_schema_2020_12_tool",
            schemas::json_schema_2020_12(),
            again,
        )
        .description("Tool with JSON Schema 2020-12 features"),
    ]);
    all
}

/// Those that give one kind of content each.
fn plain() -> [Tool; 7] {
    [
        tool("test_simple_text", nothing(), simple_text).description("Gives one line of text"),
        tool("test_image_content", nothing(), image_content).description("Gives a picture"),
        tool("test_audio_content", nothing(), audio_content).description("Gives a sound"),
        tool("test_embedded_resource", nothing(), embedded_resource)
            .description("Gives a resource, whole"),
        tool(
            "test_multiple_content_types",
            nothing(),
            multiple_content_types,
        )
        .description("Gives text, a picture and a resource"),
        tool("test_error_handling", nothing(), error_handling).description("Fails"),
        tool("test_reconnection", nothing(), reconnection).description("Answers after a while"),
    ]
}

/// Those that tell something on the way, or need something of the client.
fn telling() -> [Tool; 7] {
    [
        tool("test_tool_with_logging", nothing(), logging).description("Logs three messages"),
        tool("test_logging_tool", nothing(), logging).description("Logs where it may"),
        tool("test_tool_with_progress", nothing(), progress).description("Tells how far it is"),
        tool("test_streaming_elicitation", nothing(), progress)
            .description("Tells how far it is, and asks nothing"),
        tool("test_missing_capability", nothing(), missing_capability)
            .description("Needs a client that samples"),
        tool("test_trigger_tool_change", nothing(), change_tools).description("Changes the tools"),
        tool("test_trigger_prompt_change", nothing(), change_prompts)
            .description("Changes the prompts"),
    ]
}

async fn simple_text(_: Value, _: Cx) -> Done<&'static str> {
    Ok("This is a simple text response for testing.")
}

async fn image_content(_: Value, _: Cx) -> Done<Content> {
    Ok(image())
}

async fn audio_content(_: Value, _: Cx) -> Done<Content> {
    Ok(audio())
}

async fn embedded_resource(_: Value, _: Cx) -> Done<Content> {
    Ok(embedded("test://embedded-resource"))
}

async fn multiple_content_types(_: Value, _: Cx) -> Done<Vec<Content>> {
    let resource = embedded("test://mixed-content-resource");
    Ok(vec![
        Content::text("several kinds of content:"),
        image(),
        resource,
    ])
}

async fn error_handling(_: Value, _: Cx) -> Done<()> {
    Err(HandlerExit::new("this tool fails on purpose"))
}

async fn reconnection(_: Value, _: Cx) -> Done<&'static str> {
    // Longer than a connection of its stream lasts.
    tokio::time::sleep(40 * APART).await;
    Ok("the stream was closed and opened again")
}

async fn again(arguments: Value, _: Cx) -> Done<String> {
    Ok(arguments.to_string())
}

async fn logging(_: Value, cx: Cx) -> Done<&'static str> {
    for step in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        cx.log(LogLevel::Info, step);
        tokio::time::sleep(APART).await;
    }
    Ok("three messages were logged")
}

async fn progress(_: Value, cx: Cx) -> Done<&'static str> {
    for done in [0.0, 50.0, 100.0] {
        cx.progress(done, 100.0, &format!("{done} of 100"));
        tokio::time::sleep(APART).await;
    }
    Ok("done")
}

async fn missing_capability(_: Value, cx: Cx) -> Done<&'static str> {
    cx.require(RequiredCapability::Sampling)?;
    Ok("the client samples")
}

/// Adds a tool, or removes it again: each call changes the list, as the suite expects.
async fn change_tools(_: Value, cx: Cx) -> Done<&'static str> {
    let name = "test_that_came_later";
    if cx.registry().remove_tool(name) {
        return Ok("a tool was removed");
    }
    let new = tool(name, nothing(), simple_text);
    cx.registry().set_tool(new.description("Came later"))?;
    Ok("a tool was added")
}

/// Adds a prompt, or removes it again.
async fn change_prompts(_: Value, cx: Cx) -> Done<&'static str> {
    let name = "test_prompt_that_came_later";
    if cx.registry().remove_prompt(name) {
        return Ok("a prompt was removed");
    }
    let new = Prompt::new(name, |_, _| async { Done::Ok("Later.") });
    cx.registry().set_prompt(new.description("Came later"))?;
    Ok("a prompt was added")
}
