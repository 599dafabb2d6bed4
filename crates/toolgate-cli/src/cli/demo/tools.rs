//! Demo tools: definitions and implementations.

use super::{DemoService, invalid};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::{io::Write, sync::PoisonError, time::Duration};
use toolgate_core::{
    Call, Content, Error, InputRequest, InputRequestKind, InputRequests, Json, Outcome, Output,
    Progress, ReporterEvent, ToolResult,
};

/// Returns the definitions as a server would publish them.
pub(crate) fn definitions() -> Vec<Value> {
    let tool = |name: &str, description: &str, hints: Value, properties: Value, required: Value| {
        json!({
            "name": name, "description": description, "annotations": hints,
            "inputSchema": {"type": "object", "properties": properties, "required": required, "additionalProperties": false},
        })
    };
    let read = || json!({"readOnlyHint": true, "openWorldHint": false});
    let number = |what: &str| json!({"type": "number", "description": what});
    let text = |what: &str| json!({"type": "string", "description": what, "minLength": 1, "maxLength": 200});
    let mut add = tool(
        "add",
        "Adds two numbers. Read-only, so it needs no approval; the result is structured.",
        read(),
        json!({"a": number("The first number."), "b": number("The second number.")}),
        json!(["a", "b"]),
    );
    add["outputSchema"] =
        json!({"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]});
    vec![
        add,
        tool(
            "note",
            "Writes a note. Not read-only, so it needs an approval.",
            json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false}),
            json!({"name": text("Name of the note."), "text": text("Text of the note.")}),
            json!(["name", "text"]),
        ),
        tool(
            "delete_note",
            "Deletes a note permanently. Destructive, so every call needs an approval.",
            json!({"readOnlyHint": false, "destructiveHint": true, "openWorldHint": false}),
            json!({"name": text("Name of the note.")}),
            json!(["name"]),
        ),
        tool(
            "slow_count",
            "Counts slowly and reports its progress. You can cancel it.",
            read(),
            json!({
                "to": {"type": "integer", "minimum": 1, "maximum": 10000, "description": "Last number."},
                "delay_ms": {"type": "integer", "minimum": 1, "maximum": 60000, "default": 500, "description": "Milliseconds for each step."},
            }),
            json!(["to"]),
        ),
        tool(
            "ask_name",
            "Asks the user for a name in the middle of the call, then greets.",
            read(),
            json!({}),
            json!([]),
        ),
        tool(
            "picture",
            "Returns a picture.",
            read(),
            json!({}),
            json!([]),
        ),
        tool(
            "fail",
            "Always fails, to show an error.",
            read(),
            json!({}),
            json!([]),
        ),
    ]
}

/// Calls a demo tool.
pub(crate) async fn call(demo: &DemoService, call: &Call) -> Result<Outcome, Error> {
    let arguments = call.arguments().value();
    let done = |result| Ok(Outcome::Done(Output::Tool(result)));
    match call.name() {
        "add" => done(add(arguments)?),
        "note" => done(note(demo, arguments)?),
        "delete_note" => done(delete_note(demo, arguments)?),
        "slow_count" => done(slow_count(call, arguments).await?),
        "ask_name" => Ok(ask_name(call)),
        "picture" => done(ToolResult {
            content: vec![Content::image(
                &STANDARD.encode(include_bytes!("picture.png")),
                "image/png",
            )],
            ..ToolResult::default()
        }),
        _ => done(ToolResult::error(
            "this tool always fails: the printer is on fire",
        )),
    }
}

fn add(arguments: &Value) -> Result<ToolResult, Error> {
    let (Some(a), Some(b)) = (arguments["a"].as_f64(), arguments["b"].as_f64()) else {
        return Err(invalid("\"a\" and \"b\" must be numbers"));
    };
    let whole = |n: f64| {
        if n.fract() == 0.0 && n.abs() < 9e15 {
            json!(n as i64)
        } else {
            json!(n)
        }
    };
    let structured = Json::from_value(&json!({"sum": whole(a + b)}));
    Ok(ToolResult {
        structured: Some(structured.clone()),
        ..ToolResult::text(structured.as_str())
    })
}

fn text_argument<'a>(arguments: &'a Value, key: &'static str) -> Result<&'a str, Error> {
    arguments[key].as_str().ok_or_else(|| match key {
        "name" => invalid("\"name\" must be a string"),
        _ => invalid("\"text\" must be a string"),
    })
}

fn note(demo: &DemoService, arguments: &Value) -> Result<ToolResult, Error> {
    let (name, text) = (
        text_argument(arguments, "name")?,
        text_argument(arguments, "text")?,
    );
    let mut notes = demo.notes.lock().unwrap_or_else(PoisonError::into_inner);
    if notes.len() >= 1000 && !notes.contains_key(name) {
        return Ok(ToolResult::error(
            "there are 1000 notes already; delete one first",
        ));
    }
    notes.insert(name.to_owned(), text.to_owned());
    Ok(ToolResult::text(&format!("the note {name:?} is written")))
}

fn delete_note(demo: &DemoService, arguments: &Value) -> Result<ToolResult, Error> {
    let name = text_argument(arguments, "name")?;
    let gone = demo
        .notes
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(name);
    Ok(match gone {
        Some(_) => ToolResult::text(&format!("the note {name:?} is deleted")),
        None => ToolResult::error(&format!("there is no note {name:?}")),
    })
}

async fn slow_count(call: &Call, arguments: &Value) -> Result<ToolResult, Error> {
    let Some(to) = arguments["to"].as_u64() else {
        return Err(invalid("\"to\" must be an integer"));
    };
    let step = Duration::from_millis(arguments["delay_ms"].as_u64().unwrap_or(500));
    for n in 1..=to {
        tokio::time::sleep(step).await;
        trace(n);
        let message = Some(format!("{n} of {to}"));
        call.reporter.send(ReporterEvent::Progress(Progress {
            progress: n as f64,
            total: Some(to as f64),
            message,
        }));
    }
    Ok(ToolResult::text(&format!("counted to {to}")))
}

/// Appends a line to the file in `TOOLGATE_DEMO_TRACE`, so that tests and users can see a cancellation take effect.
fn trace(n: u64) {
    let Some(path) = std::env::var_os("TOOLGATE_DEMO_TRACE") else {
        return;
    };
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path);
    if let Err(error) = file.and_then(|mut file| writeln!(file, "tick {n}")) {
        eprintln!(
            "toolgate demo-server: the file that TOOLGATE_DEMO_TRACE names cannot be written: {error}"
        );
    }
}

fn ask_name(call: &Call) -> Outcome {
    let Some(answer) = call.round.answer("name") else {
        let form = json!({
            "mode": "form",
            "message": "What is your name?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]},
        });
        let ask = InputRequest {
            key: "name".to_owned(),
            kind: InputRequestKind::Elicit(Json::from_value(&form)),
        };
        return Outcome::InputRequired(InputRequests::new(vec![ask]));
    };
    let action = answer.get("action").and_then(|a| a.string());
    let name = answer
        .get("content")
        .and_then(|c| c.get("name"))
        .and_then(|n| n.string());
    Outcome::Done(Output::Tool(match (action.as_deref(), name) {
        (Some("accept"), Some(name)) => ToolResult::text(&format!("hello, {name}")),
        _ => ToolResult::text("hello, stranger"),
    }))
}
