//! Tools of a client in rig: what the model sees, and the checks of the client.
#![allow(missing_docs)]

use rig_core::tool::{DynamicTool, ToolErrorKind};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use toolgate::{
    Client, HandlerExit, Server,
    client::{ClientBuilder, ClientGroup},
    core::Content,
    tool,
};

/// PNG of one pixel, in Base64.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Divides two numbers.
#[tool(name = "math.divide", read_only)]
fn divide(number: f64, by: f64) -> Result<String, HandlerExit> {
    match by {
        0.0 => Err(HandlerExit::new("division by zero")),
        by => Ok((number / by).to_string()),
    }
}

/// Draws a dot.
#[tool(read_only)]
fn draw() -> Content {
    Content::image(PIXEL, "image/png")
}

async fn client(with: ClientBuilder) -> Client {
    let server = Server::new("math", "1").tool(divide).tool(draw);
    with.in_process(server).await.unwrap()
}

async fn tools(client: &Client) -> Vec<DynamicTool> {
    toolgate_rig::tools(Arc::new(client.clone()), &client.tools().await.unwrap())
}

#[tokio::test]
async fn a_tool_has_a_name_that_models_accept_and_runs() {
    let tools = tools(&client(Client::builder()).await).await;
    let definition = tools[0].definition();
    assert_eq!(definition.name.as_str(), "math-divide");
    assert_eq!(definition.description, "Divides two numbers.");
    assert_eq!(definition.parameters["required"], json!(["number", "by"]));
    let output = tools[0]
        .execute(json!({"number": 1, "by": 4}))
        .await
        .unwrap();
    assert_eq!(output.as_text(), Some("0.25"));
    let image = tools[1].execute(json!({})).await.unwrap();
    assert!(matches!(
        image.as_content()[0],
        rig_core::message::ToolResultContent::Image(_)
    ));
}

#[tokio::test]
async fn a_failed_tool_tells_the_model_why() {
    let tools = tools(&client(Client::builder()).await).await;
    let error = tools[0]
        .execute(json!({"number": 1, "by": 0}))
        .await
        .unwrap_err();
    assert_eq!(error.model_output().as_text(), Some("division by zero"));
}

#[tokio::test]
async fn arguments_are_checked_by_the_client() {
    let tools = tools(&client(Client::builder()).await).await;
    let error = tools[0]
        .execute(json!({"number": "one", "by": 4}))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ToolErrorKind::InvalidArgs);
    assert!(error.model_feedback().unwrap().contains("number"));
}

#[tokio::test]
async fn a_call_that_the_user_denies_is_refused() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let with = Client::builder().confirm(move |call| {
        count.fetch_add(1, Ordering::Relaxed);
        async move { Err(format!("no {} today", call.tool.name())) }
    });
    let tools = tools(&client(with).await).await;
    let error = tools[0]
        .execute(json!({"number": 1, "by": 4}))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ToolErrorKind::PermissionDenied);
    assert!(
        error
            .model_feedback()
            .unwrap()
            .contains("no math.divide today")
    );
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_group_of_servers_has_one_list_of_tools() {
    let clients = [
        ("a", client(Client::builder()).await),
        ("b", client(Client::builder()).await),
    ];
    let group = ClientGroup::new(clients).unwrap();
    let tools = toolgate_rig::tools(Arc::new(group.clone()), &group.tools().await.unwrap());
    let names: Vec<&str> = tools.iter().map(|tool| tool.name().as_str()).collect();
    assert_eq!(
        names,
        ["a_math-divide", "a_draw", "b_math-divide", "b_draw"]
    );
    let output = tools[2]
        .execute(json!({"number": 3, "by": 2}))
        .await
        .unwrap();
    assert_eq!(output.as_text(), Some("1.5"));
}
