//! The tools that ask before they answer: in the middle of the call in sessions, by their result since 2026-07-28. The
//! functions do not know the difference; the suite has other names for the two.

use serde_json::{Value, json};
use toolgate::handlers::ask::{self, Question};
use toolgate::handlers::{Cx, HandlerExit, Tool};

use crate::schemas::{self, field, nothing, tool};

type Said = Result<String, HandlerExit>;

/// Every tool of this page.
pub(crate) fn all() -> Vec<Tool> {
    let of_sessions = [
        tool("test_sampling", schemas::one("prompt"), sampling),
        tool("test_elicitation", schemas::one("message"), elicitation),
        tool("test_elicitation_sep1034_defaults", nothing(), defaults),
        tool("test_elicitation_sep1330_enums", nothing(), choices),
    ];
    let modern = [
        tool("test_input_required_result_elicitation", nothing(), greet),
        tool("test_input_required_result_sampling", nothing(), capital),
        tool("test_input_required_result_list_roots", nothing(), roots),
        tool(
            "test_input_required_result_request_state",
            nothing(),
            confirm,
        ),
        tool(
            "test_input_required_result_tampered_state",
            nothing(),
            confirm,
        ),
        tool(
            "test_input_required_result_multiple_inputs",
            nothing(),
            at_once,
        ),
        tool(
            "test_input_required_result_multi_round",
            nothing(),
            one_by_one,
        ),
        tool(
            "test_input_required_result_capabilities",
            nothing(),
            what_it_can,
        ),
    ];
    let all = of_sessions.into_iter().chain(modern);
    all.map(|tool| tool.description("Asks before it answers"))
        .collect()
}

async fn sampling(arguments: Value, cx: Cx) -> Said {
    let prompt = arguments["prompt"].as_str().unwrap_or_default();
    let answer = cx.ask("model", ask::model(prompt, 100))?;
    Ok(format!("LLM response: {answer}"))
}

async fn elicitation(arguments: Value, cx: Cx) -> Said {
    let message = arguments["message"].as_str().unwrap_or_default();
    user(&cx, ask::form_with(message, schemas::user()))
}

async fn defaults(_: Value, cx: Cx) -> Said {
    user(
        &cx,
        ask::form_with("Look through the defaults", schemas::defaults()),
    )
}

async fn choices(_: Value, cx: Cx) -> Said {
    user(&cx, ask::form_with("Choose", schemas::choices()))
}

/// A no of the user is an answer too.
fn user(cx: &Cx, question: Question<Value>) -> Said {
    let reply = cx.ask_reply("user", question)?;
    Ok(format!("the user's reply: {reply:?}"))
}

async fn greet(_: Value, cx: Cx) -> Said {
    let answer = cx.ask("user_name", name())?;
    Ok(format!(
        "Hello, {}!",
        answer["name"].as_str().unwrap_or_default()
    ))
}

async fn capital(_: Value, cx: Cx) -> Said {
    cx.ask("capital", ask::model("What is the capital of France?", 100))
}

async fn roots(_: Value, cx: Cx) -> Said {
    let roots = cx.ask("roots", ask::roots())?;
    Ok(format!("roots: {roots:?}"))
}

async fn confirm(_: Value, cx: Cx) -> Said {
    cx.ask(
        "confirm",
        ask::form_with("Please confirm", field("ok", "boolean")),
    )?;
    Ok("Confirmed: state-ok".to_owned())
}

async fn at_once(_: Value, cx: Cx) -> Said {
    let greeting = ask::model("Generate a greeting", 100);
    let all = (
        ("user_name", name()),
        ("greeting", greeting),
        ("roots", ask::roots()),
    );
    let (name, greeting, roots) = cx.ask_all(all)?;
    Ok(format!("{greeting}, {name}, of {} roots", roots.len()))
}

async fn one_by_one(_: Value, cx: Cx) -> Said {
    let name = cx.ask("step1", name())?;
    let colour = cx.ask(
        "step2",
        ask::form_with("Which colour?", field("color", "string")),
    )?;
    Ok(format!("{name} likes {colour}"))
}

/// Asks only what the client declared.
async fn what_it_can(_: Value, cx: Cx) -> Said {
    let able = cx.client_capabilities().clone();
    let mut answers = Vec::new();
    if able.elicitation {
        answers.push(cx.ask("user_name", name())?);
    }
    if able.sampling {
        answers.push(json!(
            cx.ask("greeting", ask::model("Generate a greeting", 100))?
        ));
    }
    if able.roots {
        answers.push(json!(cx.ask("roots", ask::roots())?.len()));
    }
    Ok(format!("answers: {}", Value::from(answers)))
}

fn name() -> Question<Value> {
    ask::form_with("What is your name?", field("name", "string"))
}
