//! A counter with tools, prompts and resources, with rmcp. `crates/toolgate/examples/counter_server.rs` has the same
//! features with Toolgate.

use hyper::http::request::Parts;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    handler::server::wrapper::Parameters,
    model::{
        GetPromptResult, JsonObject, ListResourcesResult, MetaObject, PaginatedRequestParams,
        PromptMessage, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
        Resource, ResourceContents, Role, ServerCapabilities, ServerConfig,
    },
    model::{Implementation, ListResourceTemplatesResult, ResourceTemplate},
    prompt, prompt_handler, prompt_router,
    schemars::{self, JsonSchema},
    service::RequestContext,
    tool, tool_handler, tool_router,
    transport::stdio,
};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

const DIRECTORY: &str = "file:///srv/counter/";
const INSIGHTS: &str = "memo://insights";

#[derive(Deserialize, JsonSchema)]
struct SumArgs {
    /// First summand.
    a: i32,
    /// Second summand.
    b: i32,
}

#[derive(Deserialize, JsonSchema)]
struct ExampleArgs {
    /// Message to put into the prompt.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct AnalysisArgs {
    /// Value to reach.
    #[serde(deserialize_with = "number_from_text")]
    goal: i32,
    /// Preferred strategy: fast or careful.
    strategy: Option<String>,
}

/// Reads a number, or text that is one: clients send the arguments of prompts as text.
fn number_from_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => text.parse().map_err(D::Error::custom),
        value => serde_json::from_value(value).map_err(D::Error::custom),
    }
}

#[derive(Clone, Default)]
struct Counter {
    value: Arc<AtomicI64>,
}

#[tool_router]
impl Counter {
    /// Adds 1 to the counter.
    #[tool]
    fn increment(&self) -> String {
        (self.value.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    }

    /// Subtracts 1 from the counter.
    #[tool]
    fn decrement(&self) -> String {
        (self.value.fetch_sub(1, Ordering::Relaxed) - 1).to_string()
    }

    /// Returns the value of the counter.
    #[tool(annotations(read_only_hint = true))]
    fn get_value(&self) -> String {
        self.value.load(Ordering::Relaxed).to_string()
    }

    /// Runs for ten seconds.
    #[tool(annotations(read_only_hint = true))]
    async fn long_task(&self) -> String {
        tokio::time::sleep(Duration::from_secs(10)).await;
        "completed".to_owned()
    }

    /// Says hello.
    #[tool(annotations(read_only_hint = true))]
    fn say_hello(&self) -> String {
        "hello".to_owned()
    }

    /// Returns its arguments, whatever they are.
    #[tool(annotations(read_only_hint = true))]
    fn echo(&self, Parameters(arguments): Parameters<JsonObject>) -> String {
        Value::Object(arguments).to_string()
    }

    /// Adds two numbers.
    #[tool(annotations(read_only_hint = true))]
    fn sum(&self, Parameters(SumArgs { a, b }): Parameters<SumArgs>) -> String {
        (i64::from(a) + i64::from(b)).to_string()
    }

    /// Returns the id of the HTTP session.
    #[tool(annotations(read_only_hint = true))]
    fn get_session_id(&self, cx: RequestContext<RoleServer>) -> String {
        let parts = cx.extensions.get::<Parts>();
        let id = parts.and_then(|parts| parts.headers.get("mcp-session-id")?.to_str().ok());
        id.unwrap_or("no session").to_owned()
    }
}

#[prompt_router]
impl Counter {
    /// Puts a message into a prompt.
    #[prompt(meta = MetaObject(rmcp::object!({"version": "1"})))]
    async fn example_prompt(
        &self,
        Parameters(args): Parameters<ExampleArgs>,
    ) -> Vec<PromptMessage> {
        let text = format!(
            "This is an example prompt with your message: {}",
            args.message
        );
        vec![PromptMessage::new_text(Role::User, text)]
    }

    /// Analyzes the counter and suggests the next steps.
    #[prompt]
    async fn counter_analysis(
        &self,
        Parameters(args): Parameters<AnalysisArgs>,
    ) -> GetPromptResult {
        let (goal, value) = (i64::from(args.goal), self.value.load(Ordering::Relaxed));
        let strategy = args.strategy.as_deref().unwrap_or("careful");
        let analysis = format!(
            "Value: {value}\nGoal: {goal}\nDifference: {}\nStrategy: {strategy}\n\nHow do I reach the goal?",
            goal - value
        );
        GetPromptResult::new(vec![
            PromptMessage::new_text(Role::Assistant, "I will analyze the counter."),
            PromptMessage::new_text(Role::User, analysis),
        ])
        .with_description(format!("From {value} to {goal}"))
    }
}

#[tool_handler]
#[prompt_handler]
impl ServerHandler for Counter {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("counter", "1.0.0"))
            .with_instructions("Counts up and down.")
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![
            Resource::new(DIRECTORY, "directory"),
            Resource::new(INSIGHTS, "insights"),
        ]))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![
            ResourceTemplate::new("counter://{base}", "value"),
        ]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let value = self.value.load(Ordering::Relaxed);
        let text = match request.uri.as_str() {
            DIRECTORY => "/srv/counter".to_owned(),
            INSIGHTS => "The counter counts.".to_owned(),
            "counter://decimal" => value.to_string(),
            "counter://hexadecimal" => format!("{value:x}"),
            uri => {
                let data = json!({"uri": uri});
                return Err(ErrorData::resource_not_found(
                    "there is no such resource",
                    Some(data),
                ));
            }
        };
        let contents = ResourceContents::text(text, request.uri).with_mime_type("text/plain");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Counter::default().serve(stdio()).await?.waiting().await?;
    Ok(())
}
