//! Tools of a client in swiftide: what the model sees, and the checks of the client.
#![allow(missing_docs)]

use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use swiftide_core::{
    Tool, ToolBox,
    chat_completion::{ToolCall, ToolOutput},
};
use toolgate::{
    Client, HandlerExit, Server,
    client::{ClientBuilder, ClientGroup},
    tool,
};
use toolgate_swiftide::ClientToolBox;

/// Divides two numbers.
#[tool(name = "math.divide", read_only)]
fn divide(number: f64, by: f64) -> Result<String, HandlerExit> {
    match by {
        0.0 => Err(HandlerExit::new("division by zero")),
        by => Ok((number / by).to_string()),
    }
}

async fn client(with: ClientBuilder) -> Client {
    with.in_process(Server::new("math", "1").tool(divide))
        .await
        .unwrap()
}

async fn tools(with: ClientBuilder) -> Vec<Box<dyn Tool>> {
    let toolbox = ClientToolBox::new(client(with).await);
    toolbox.available_tools().await.unwrap()
}

async fn invoke(tool: &dyn Tool, arguments: Value) -> ToolOutput {
    let call = ToolCall::builder()
        .id("c1")
        .name(tool.name())
        .args(arguments.to_string())
        .build()
        .unwrap();
    tool.invoke(&(), &call).await.unwrap()
}

#[tokio::test]
async fn a_tool_has_a_name_that_models_accept_and_runs() {
    let tools = tools(Client::builder()).await;
    let spec = tools[0].tool_spec();
    assert_eq!(
        (spec.name.as_str(), spec.description.as_str()),
        ("math-divide", "Divides two numbers.")
    );
    let schema = serde_json::to_value(spec.parameters_schema).unwrap();
    assert_eq!(schema["required"], json!(["number", "by"]));
    let output = invoke(&*tools[0], json!({"number": 1, "by": 4})).await;
    assert_eq!(output, ToolOutput::text("0.25"));
}

#[tokio::test]
async fn failures_and_wrong_arguments_reach_the_model() {
    let tools = tools(Client::builder()).await;
    let failed = invoke(&*tools[0], json!({"number": 1, "by": 0})).await;
    assert_eq!(failed, ToolOutput::fail("division by zero"));
    let wrong = invoke(&*tools[0], json!({"number": "one", "by": 4})).await;
    assert!(wrong.as_fail().unwrap().contains("number"), "{wrong}");
    let no_json = ToolCall::builder()
        .id("c")
        .name("math-divide")
        .args("{")
        .build()
        .unwrap();
    let no_json = tools[0].invoke(&(), &no_json).await.unwrap();
    assert!(
        no_json.as_fail().unwrap().contains("JSON object"),
        "{no_json}"
    );
}

#[tokio::test]
async fn a_call_that_the_user_denies_is_refused() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let with = Client::builder().confirm(move |call| {
        count.fetch_add(1, Ordering::Relaxed);
        async move { Err(format!("no {} today", call.tool.name())) }
    });
    let tools = tools(with).await;
    let denied = invoke(&*tools[0], json!({"number": 1, "by": 4})).await;
    assert!(
        denied.as_fail().unwrap().contains("no math.divide today"),
        "{denied}"
    );
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_group_of_servers_is_one_toolbox() {
    let clients = [
        ("a", client(Client::builder()).await),
        ("b", client(Client::builder()).await),
    ];
    let toolbox = ClientToolBox::new(ClientGroup::new(clients).unwrap());
    let tools = toolbox.available_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name().into_owned()).collect();
    assert_eq!(names, ["a_math-divide", "b_math-divide"]);
    let output = invoke(&*tools[1], json!({"number": 3, "by": 2})).await;
    assert_eq!(output, ToolOutput::text("1.5"));
}
