//! A client that can be asked: it calls a tool, and puts the questions of the server to whoever sits at the terminal.
//!
//! `cargo run --example answer_questions -- PROGRAM TOOL ARGUMENTS`, for example with `target/debug/examples/weather`,
//! `forecast` and `{"place": "Oslo"}`.

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use serde_json::{Value, json};
use std::{env, error::Error, io, process::Stdio};
use tokio::process::Command;
use toolgate::{
    Ask, AskKind, Call, Caller, Json, Origin, Outcome, Round, Service,
    client::{Remote, RemoteOptions, harmless},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [program, tool, arguments] = words.as_slice() else {
        return Err("usage: answer_questions PROGRAM TOOL ARGUMENTS".into());
    };
    #[allow(clippy::disallowed_methods, reason = "a client starts its server")]
    let mut server = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let input = server.stdin.take().ok_or("no standard input")?;
    let output = server.stdout.take().ok_or("no standard output")?;
    let origin = Origin {
        server: "server".into(),
        trusted: false,
    };
    let remote = Remote::open(output, input, RemoteOptions::new(origin)).await?;
    let arguments = Json::from_value(&serde_json::from_str(arguments)?);
    let mut call = Call::tool("c-1", Caller::new("me"), tool, arguments);
    // Who does not say so is not asked.
    call.abilities.elicitation = true;
    loop {
        let questions = match remote.call(call.clone()).await? {
            Outcome::Done(output) => {
                for block in output.into_tool().unwrap_or_default().content {
                    println!("{}", block.json.as_str());
                }
                return Ok(());
            }
            Outcome::Ask(questions) => questions,
        };
        // The same call comes again, with the answers, and with what the server wants to find again.
        call.round = Round {
            number: call.round.number + 1,
            answers: questions
                .asks
                .iter()
                .map(answered)
                .collect::<Result<_, _>>()?,
            slots: questions.slots,
        };
    }
}

/// The answer of the user to one question, under its key.
fn answered(ask: &Ask) -> Result<(String, Json), Box<dyn Error>> {
    let AskKind::Elicit(form) = &ask.kind else {
        return Err("the server asks for something that this program does not have".into());
    };
    let form = form.to_value();
    // Texts of a server may hold what a terminal obeys.
    println!(
        "{}",
        harmless(form["message"].as_str().unwrap_or_default(), 500)
    );
    let answer = match fill_in(&form["requestedSchema"])? {
        Some(content) => json!({"action": "accept", "content": content}),
        None => json!({"action": "decline"}),
    };
    Ok((ask.key.clone(), Json::from_value(&answer)))
}

/// One line for each field; `None` where a line is empty.
fn fill_in(schema: &Value) -> io::Result<Option<Value>> {
    let mut content = json!({});
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        match &field["enum"] {
            Value::Array(words) => println!("{name}, one of {}:", json!(words)),
            _ => println!("{name}:"),
        }
        let mut line = String::new();
        io::stdin().read_line(&mut line)?;
        let line = line.trim();
        if line.is_empty() {
            return Ok(None);
        }
        content[name] = match field["type"].as_str() {
            Some("boolean") => json!(line == "yes"),
            // A number is written as in JSON. The server checks what fits.
            Some("integer" | "number") => serde_json::from_str(line).unwrap_or(json!(line)),
            _ => json!(line),
        };
    }
    Ok(Some(content))
}
