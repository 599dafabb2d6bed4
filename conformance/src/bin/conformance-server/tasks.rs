//! The tools that go on after their answer, for clients that know tasks.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate::{
    Error,
    core::ErrorKind,
    handlers::{
        Cx, HandlerExit, TaskSupport, Tool,
        ask::{self, Question},
    },
};

use crate::schemas::{field, nothing, one, tool};

type Said = Result<String, HandlerExit>;

/// Duration of jobs that report no progress; longer than the timeout of a call.
const WHILE: Duration = Duration::from_secs(1);

/// Every tool of this page.
pub(crate) fn all() -> Vec<Tool> {
    let seconds = json!({"type": "number", "minimum": 0, "maximum": 600});
    let slow = json!({
        "type": "object",
        "properties": {"seconds": seconds, "label": {"type": "string"}},
        "required": ["seconds"],
    });
    let sometimes = [
        tool("slow_compute", slow, slow_compute),
        tool("test_tool_with_task", nothing(), asks_first),
    ];
    let always = [
        tool("failing_job", nothing(), failing),
        tool("protocol_error_job", nothing(), broken),
        tool("confirm_delete", one("filename"), confirm_delete),
        tool("multi_input", nothing(), multi_input),
    ];
    let sometimes = sometimes.map(|tool| tool.task(TaskSupport::Optional));
    let always = always.map(|tool| tool.task(TaskSupport::Required));
    let greet = tool("greet", one("name"), greet).description("Greets at once");
    let slow = sometimes.into_iter().chain(always);
    let slow = slow.map(|tool| tool.description("Takes a while"));
    slow.chain([greet]).collect()
}

async fn greet(arguments: Value, _: Cx) -> Said {
    let name = arguments["name"].as_str().unwrap_or_default();
    Ok(format!("Hello, {name}!"))
}

async fn slow_compute(arguments: Value, _: Cx) -> Said {
    let seconds = arguments["seconds"].as_f64().unwrap_or_default();
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    Ok(format!("computed {}", arguments["label"]))
}

async fn failing(_: Value, _: Cx) -> Said {
    tokio::time::sleep(WHILE).await;
    Err(HandlerExit::new("this job fails on purpose"))
}

async fn broken(_: Value, _: Cx) -> Said {
    Err(HandlerExit::error(Error::new(
        ErrorKind::Bug,
        "this job breaks on purpose",
    )))
}

async fn confirm_delete(arguments: Value, cx: Cx) -> Said {
    let file = arguments["filename"].as_str().unwrap_or_default();
    let sure = ask::form_with(&format!("Delete {file}?"), field("confirm", "boolean"));
    let answer = cx.ask("confirm", sure)?;
    Ok(format!("{file} was confirmed: {}", answer["confirm"]))
}

async fn multi_input(_: Value, cx: Cx) -> Said {
    let (one, two) = cx.ask_all((("one", name("one")), ("two", name("two"))))?;
    Ok(format!("{one} and {two}"))
}

async fn asks_first(_: Value, cx: Cx) -> Said {
    let answer = cx.ask("user_name", name("user"))?;
    tokio::time::sleep(WHILE).await;
    Ok(format!(
        "Hello, {}!",
        answer["name"].as_str().unwrap_or_default()
    ))
}

fn name(of: &str) -> Question<Value> {
    ask::form_with(&format!("The name of {of}?"), field("name", "string"))
}
