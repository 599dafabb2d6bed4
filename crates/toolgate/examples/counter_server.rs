//! A counter with tools, prompts, resources and a template over one state.
//!
//! `cargo run --example counter_server` serves over stdio. The book compares this program with the same in rmcp and in
//! FastMCP.

use serde::Deserialize;
use serde_json::json;
use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};
use toolgate::{
    Content, Cx, HandlerExit, Server, Tool,
    core::{PromptMessage, PromptResult},
    prompt, tools,
};

#[derive(Default)]
struct Counter {
    value: AtomicI64,
}

/// Base in which the counter is written.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Base {
    Decimal,
    Hexadecimal,
}

#[tools]
impl Counter {
    /// Adds 1 to the counter.
    #[tool(destructive = false, open_world = false)]
    fn increment(&self) -> String {
        (self.value.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    }

    /// Subtracts 1 from the counter.
    #[tool(destructive = false, open_world = false)]
    fn decrement(&self) -> String {
        (self.value.fetch_sub(1, Ordering::Relaxed) - 1).to_string()
    }

    /// Returns the value of the counter.
    #[tool(read_only)]
    fn get_value(&self) -> String {
        self.value.load(Ordering::Relaxed).to_string()
    }

    /// Runs for ten seconds.
    #[tool(read_only)]
    async fn long_task(&self) -> &'static str {
        tokio::time::sleep(Duration::from_secs(10)).await;
        "completed"
    }

    /// Says hello.
    #[tool(read_only)]
    fn say_hello(&self) -> &'static str {
        "hello"
    }

    /// Adds two numbers.
    #[tool(read_only)]
    fn sum(
        &self,
        /// First summand.
        a: i32,
        /// Second summand.
        b: i32,
    ) -> String {
        (i64::from(a) + i64::from(b)).to_string()
    }

    /// Returns the id of the HTTP session.
    #[tool(read_only)]
    fn get_session_id(&self, cx: Cx) -> String {
        cx.session_id().unwrap_or("no session").to_owned()
    }

    /// Analyzes the counter and suggests the next steps.
    #[prompt]
    fn counter_analysis(
        &self,
        /// Value to reach.
        goal: i32,
        /// Preferred strategy: fast or careful.
        strategy: Option<String>,
    ) -> PromptResult {
        let value = self.value.load(Ordering::Relaxed);
        let strategy = strategy.as_deref().unwrap_or("careful");
        let analysis = format!(
            "Value: {value}\nGoal: {goal}\nDifference: {}\nStrategy: {strategy}\n\nHow do I reach the goal?",
            i64::from(goal) - value
        );
        PromptResult {
            description: Some(format!("From {value} to {goal}")),
            messages: vec![
                PromptMessage::assistant(Content::text("I will analyze the counter.")),
                PromptMessage::user(Content::text(&analysis)),
            ],
            ..PromptResult::default()
        }
    }

    #[resource("file:///srv/counter/", mime = "text/plain")]
    fn directory(&self) -> &'static str {
        "/srv/counter"
    }

    #[resource("memo://insights", mime = "text/plain")]
    fn insights(&self) -> &'static str {
        "The counter counts."
    }

    #[template("counter://{base}", mime = "text/plain")]
    fn value(&self, base: Base) -> String {
        let value = self.value.load(Ordering::Relaxed);
        match base {
            Base::Decimal => value.to_string(),
            Base::Hexadecimal => format!("{value:x}"),
        }
    }
}

/// Puts a message into a prompt.
#[prompt]
fn example_prompt(
    /// Message to put into the prompt.
    message: String,
) -> String {
    format!("This is an example prompt with your message: {message}")
}

/// A tool with arguments of any names.
fn echo() -> Tool {
    let schema = json!({"type": "object"});
    let echo = |arguments, _cx: Cx| async move { Ok::<_, HandlerExit>(format!("{arguments}")) };
    Tool::dynamic("echo", schema, echo)
        .description("Returns its arguments, whatever they are.")
        .read_only()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), toolgate::ServeError> {
    let server = Server::new("counter", "1.0.0")
        .instructions("Counts up and down.")
        .tools(Counter::default())
        .tool(echo)
        .prompt(example_prompt().meta("version", "1"));
    toolgate::stdio(server).await
}
