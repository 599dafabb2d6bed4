//! Features of programs that exist with Toolgate, with rmcp and with FastMCP. The tests of the command-line program
//! include this module for the last two.

mod chat_host;
mod counter_server;
mod differences;
mod prompt_server;
mod raw_server;
mod structured_output;

pub(crate) use self::{
    chat_host::chat_host,
    counter_server::counter_server,
    differences::{Accepts, differences},
    prompt_server::prompt_server,
    structured_output::structured_output,
};
use raw_server::RawServer;

use serde_json::{Value, json};
use toolgate::{Client, client::ListedItem, core::PromptResult};

/// The program and its arguments.
type ProgramCommand = Vec<String>;

fn sorted_names(items: &[ListedItem]) -> Vec<&str> {
    let mut names: Vec<&str> = items.iter().map(|item| item.name()).collect();
    names.sort_unstable();
    names
}

fn definition(items: &[ListedItem], name: &str) -> Value {
    let item = items.iter().find(|item| item.name() == name);
    item.expect(name).json().to_value()
}

/// Calls a tool that must succeed, and returns its text.
async fn text(client: &Client, tool: &str, arguments: Value) -> String {
    let result = client.call(tool, arguments).await.unwrap();
    assert!(!result.is_error(), "{tool}: {}", result.text());
    result.text()
}

/// Checks that the server rejects these calls.
async fn rejects_calls(command: &ProgramCommand, calls: &[(&str, Value)]) {
    let mut server = RawServer::start(command).await;
    for (tool, arguments) in calls {
        let accepted = server.accepts_call(tool, arguments.clone()).await;
        assert!(!accepted, "{tool} accepts {arguments}");
    }
}

/// Checks that the server rejects these arguments of prompts.
async fn rejects_prompts(command: &ProgramCommand, prompts: &[(&str, Value)]) {
    let mut server = RawServer::start(command).await;
    for (prompt, arguments) in prompts {
        let accepted = server.accepts_prompt(prompt, arguments.clone()).await;
        assert!(!accepted, "{prompt} accepts {arguments}");
    }
}

/// Returns the messages of a prompt as pairs of role and text.
fn messages(prompt: &PromptResult) -> Vec<(&'static str, String)> {
    let message = |message: &toolgate::core::PromptMessage| {
        let role = if message.assistant {
            "assistant"
        } else {
            "user"
        };
        let text = message.content.json.get("text").unwrap().string();
        (role, text.unwrap())
    };
    prompt.messages.iter().map(message).collect()
}

/// Checks the arguments of a prompt: their names, whether they are required, and the beginnings of their descriptions.
fn assert_arguments(prompts: &[ListedItem], prompt: &str, expected: &[(&str, bool, &str)]) {
    let definition = definition(prompts, prompt);
    let none = Vec::new();
    let arguments = definition["arguments"].as_array().unwrap_or(&none);
    assert_eq!(arguments.len(), expected.len(), "{definition}");
    for (name, required, description) in expected {
        let argument = arguments.iter().find(|argument| argument["name"] == *name);
        let argument = argument.expect(name);
        let is_required = argument["required"].as_bool().unwrap_or(false);
        assert_eq!(is_required, *required, "{argument}");
        let text = argument["description"].as_str().unwrap_or_default();
        assert!(text.starts_with(description), "{argument}");
    }
}

/// Returns the text of a resource.
async fn read(client: &Client, uri: &str) -> String {
    let result = client.read(uri).await.unwrap();
    result.contents[0].get("text").unwrap().string().unwrap()
}

fn empty() -> Value {
    json!({})
}
