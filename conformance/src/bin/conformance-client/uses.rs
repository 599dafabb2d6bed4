//! What is used in which scenario.

use serde_json::{Value, json};
use toolgate::{
    Call, Caller, Catalog, ItemKind, Json, List, Op, Outcome, Round, Service, client::Remote,
};
use toolgate_wire::json::Limits;

/// Most rounds of one call.
const ROUNDS: u32 = 8;

/// Looks at all lists, and uses what the scenario wants used.
///
/// # Errors
/// What did not work, where it should have.
pub(super) async fn all(remote: &Remote, scenario: &str, context: &str) -> Result<(), String> {
    let tools = list(remote, ItemKind::Tool).await?;
    match scenario {
        "tools_call" => {
            let tool = tools.items().first().ok_or("no tools")?;
            used(remote, Op::Tool, tool.def.name(), &json!({"a": 2, "b": 3})).await
        }
        "http-custom-headers" => custom(remote, context).await,
        "http-invalid-tool-headers" => every(remote, &tools).await,
        "sep-2322-client-request-state" => rounds(remote).await,
        "json-schema-2020-12-preservation" => echoed(remote, &tools).await,
        "initialize" | "json-schema-ref-no-deref" => Ok(()),
        _ => {
            every(remote, &tools).await?;
            rest(remote).await
        }
    }
}

async fn list(remote: &Remote, kind: ItemKind) -> Result<Catalog, String> {
    let list = remote.list(List::all(caller(), kind)).await;
    list.map_err(|error| error.public().to_owned())
}

/// Every tool, with the simplest arguments. What a tool thinks of them does not matter.
async fn every(remote: &Remote, tools: &Catalog) -> Result<(), String> {
    for tool in tools.items() {
        let arguments = simplest(&tool.def.input_schema().to_value());
        let _ = used(remote, Op::Tool, tool.def.name(), &arguments).await;
    }
    Ok(())
}

/// Every resource and every prompt.
async fn rest(remote: &Remote) -> Result<(), String> {
    for resource in list(remote, ItemKind::Resource).await?.items() {
        let uri = resource.def.name();
        used(remote, Op::Resource, uri, &json!({"uri": uri})).await?;
    }
    for prompt in list(remote, ItemKind::Prompt).await?.items() {
        used(remote, Op::Prompt, prompt.def.name(), &json!({})).await?;
    }
    Ok(())
}

async fn custom(remote: &Remote, context: &str) -> Result<(), String> {
    let context: Value = serde_json::from_str(context).map_err(|error| error.to_string())?;
    for wanted in context["toolCalls"].as_array().into_iter().flatten() {
        let name = wanted["name"].as_str().unwrap_or_default();
        used(remote, Op::Tool, name, &wanted["arguments"]).await?;
    }
    Ok(())
}

async fn rounds(remote: &Remote) -> Result<(), String> {
    let names = [
        "test_mrtr_echo_state",
        "test_mrtr_unrelated",
        "test_mrtr_no_state",
        "test_mrtr_no_result_type",
    ];
    for name in names {
        used(remote, Op::Tool, name, &json!({})).await?;
    }
    Ok(())
}

async fn echoed(remote: &Remote, tools: &Catalog) -> Result<(), String> {
    let tool = tools
        .find("json_schema_2020_12_tool")
        .ok_or("the tool is missing")?;
    let schema = tool.def.input_schema().to_value();
    used(
        remote,
        Op::Tool,
        "json_schema_echo",
        &json!({"schema": schema}),
    )
    .await
}

/// One use, with a yes to all questions.
async fn used(remote: &Remote, op: Op, name: &str, arguments: &Value) -> Result<(), String> {
    let arguments = Json::read(arguments.to_string().into_bytes(), &Limits::default())
        .map_err(|error| error.to_string())?;
    let mut call = Call::new("c", caller(), op, name, arguments);
    call.abilities.elicitation = true;
    for _ in 0..ROUNDS {
        match remote.call(call.clone()).await {
            Ok(Outcome::Done(_)) => return Ok(()),
            Ok(Outcome::Ask(questions)) => {
                let yes = json!({"action": "accept", "content": {"confirmed": true}});
                let yes = Json::from_value(&yes);
                let keys = questions.asks.into_iter().map(|ask| ask.key);
                call.round = Round {
                    number: call.round.number + 1,
                    answers: keys.map(|key| (key, yes.clone())).collect(),
                    slots: questions.slots,
                };
            }
            Err(error) => return Err(format!("{name}: {}", error.public())),
        }
    }
    Err(format!("{name} asks without end"))
}

/// The least that fits a schema of a tool.
fn simplest(schema: &Value) -> Value {
    let value = |property: &Value| match property["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("x"),
    };
    let properties = schema["properties"].as_object();
    let wanted = |name: &String| {
        let required = schema["required"].as_array();
        required.is_some_and(|required| required.iter().any(|r| r.as_str() == Some(name)))
    };
    let properties = properties.into_iter().flatten();
    properties
        .filter(|(name, _)| wanted(name))
        .map(|(name, property)| (name.clone(), value(property)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn caller() -> Caller {
    Caller::new("suite")
}
