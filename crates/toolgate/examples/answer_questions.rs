//! A client that can be asked: it calls a tool, and puts the questions of the server to whoever sits at the terminal.
//!
//! `cargo run --example answer_questions -- PROGRAM TOOL ARGUMENTS`, for example with `target/debug/examples/weather`,
//! `forecast` and `{"place": "Oslo"}`.

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use serde_json::{Value, json};
use std::{env, error::Error, io};
use toolgate::{
    Client,
    client::{FormElicitation, sanitize_line},
    handlers::ask::Reply,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [program, tool, arguments] = words.as_slice() else {
        return Err("usage: answer_questions PROGRAM TOOL ARGUMENTS".into());
    };
    let arguments: Value = serde_json::from_str(arguments)?;
    // A client with such a function says that it can be asked. Without it, no server asks.
    let server = Client::builder()
        .on_elicit(|form| async move { answer(&form).unwrap_or(Reply::Cancelled) })
        .spawn([program])
        .await?;
    let result = server.call(tool, arguments).await?;
    println!("{}", sanitize_line(&result.text(), 10_000));
    Ok(())
}

/// One line for each field; an empty one is a no to all of it.
fn answer(form: &FormElicitation) -> io::Result<Reply<Value>> {
    // Texts of a server may hold what a terminal obeys. Say who asks: it is not this program.
    println!(
        "{} asks: {}",
        form.server,
        sanitize_line(&form.message, 500)
    );
    let mut content = json!({});
    for (name, field) in form.schema["properties"].as_object().into_iter().flatten() {
        let words = field.get("enum").map(|words| format!(", one of {words}"));
        let prompt = format!("{name}{}:", words.unwrap_or_default());
        println!("{}", sanitize_line(&prompt, 500));
        let mut line = String::new();
        io::stdin().read_line(&mut line)?;
        match line.trim() {
            "" => return Ok(Reply::Declined),
            line => content[name] = typed(field, line),
        }
    }
    Ok(Reply::Accepted(content))
}

/// What was typed, as the type of the field. Whether it fits is checked before it is sent.
fn typed(field: &Value, line: &str) -> Value {
    match field["type"].as_str() {
        Some("boolean") => json!(line == "yes"),
        Some("integer" | "number") => serde_json::from_str(line).unwrap_or_else(|_| json!(line)),
        _ => json!(line),
    }
}
