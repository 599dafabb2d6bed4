//! A host: a chat in which a model calls the tools of several servers, with rmcp.
//! `crates/toolgate/examples/chat_host.rs` has the same features with Toolgate.

#![allow(
    clippy::disallowed_methods,
    reason = "a peer of the tests; the bans are for the gateway"
)]

use rmcp::{
    ClientLifecycleMode, ClientServiceExt, RoleClient,
    model::{CallToolRequestParams, ClientConfig, JsonObject, ProtocolVersion},
    service::RunningService,
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    io::{self, BufRead},
};
use tokio::process::Command;

/// Most tool calls for one message of the user.
const MAX_ROUNDS: usize = 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    mcp_servers: BTreeMap<String, ServerConfig>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ServerConfig {
    Remote {
        url: String,
    },
    Local {
        command: String,
        #[serde(default)]
        args: Vec<String>,
    },
}

type Client = RunningService<RoleClient, ClientConfig>;

impl ServerConfig {
    async fn connect(self) -> Result<Client, Box<dyn Error>> {
        let life = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        let client = ClientConfig::default();
        Ok(match self {
            ServerConfig::Remote { url } => {
                let transport = StreamableHttpClientTransport::from_uri(url);
                client.serve_with_lifecycle(transport, life).await?
            }
            ServerConfig::Local { command, args } => {
                let mut command = Command::new(command);
                command.args(args);
                let transport = TokioChildProcess::new(command)?;
                client.serve_with_lifecycle(transport, life).await?
            }
        })
    }
}

/// A tool as the model sees it.
struct Tool {
    server: String,
    name: String,
    description: String,
}

#[derive(Default)]
struct Tools {
    clients: BTreeMap<String, Client>,
    /// By the name for the model: that of the server, then that of the tool.
    tools: BTreeMap<String, Tool>,
}

impl Tools {
    async fn open(config: Config) -> Result<Tools, Box<dyn Error>> {
        let mut all = Tools::default();
        for (server, config) in config.mcp_servers {
            let client = config.connect().await?;
            for tool in client.list_all_tools().await? {
                let entry = Tool {
                    server: server.clone(),
                    name: tool.name.to_string(),
                    description: tool.description.unwrap_or_default().to_string(),
                };
                all.tools.insert(format!("{server}_{}", tool.name), entry);
            }
            all.clients.insert(server, client);
        }
        Ok(all)
    }

    async fn call(&self, call: ToolCall) -> Message {
        let result = self.run(call).await;
        result.unwrap_or_else(|error| Message::ToolError(error.to_string()))
    }

    async fn run(&self, call: ToolCall) -> Result<Message, Box<dyn Error>> {
        let tool = self.tools.get(&call.name).ok_or("there is no such tool")?;
        let client = self
            .clients
            .get(&tool.server)
            .ok_or("there is no such server")?;
        let params = CallToolRequestParams::new(tool.name.clone()).with_arguments(call.arguments);
        let result = client.call_tool(params).await?;
        let texts = result
            .content
            .iter()
            .filter_map(|content| content.as_text());
        let text = texts
            .map(|text| text.text.as_str())
            .collect::<Vec<_>>()
            .join("\n");
        Ok(match result.is_error {
            Some(true) => Message::ToolError(text),
            _ => Message::ToolResult(text),
        })
    }
}

enum Message {
    User(String),
    Assistant(String),
    ToolResult(String),
    ToolError(String),
}

struct ToolCall {
    name: String,
    arguments: JsonObject,
}

enum Reply {
    Text(String),
    Call(ToolCall),
}

/// A language model. A real one sends the messages and the tools to a provider.
trait Model {
    async fn reply(&self, messages: &[Message], tools: &BTreeMap<String, Tool>) -> Reply;
}

/// A model that does what it is told: `call TOOL ARGUMENTS`, or `tools`.
struct ScriptedModel;

impl Model for ScriptedModel {
    async fn reply(&self, messages: &[Message], tools: &BTreeMap<String, Tool>) -> Reply {
        Reply::Text(match messages.last() {
            Some(Message::ToolResult(text)) => format!("The tool returned: {text}"),
            Some(Message::ToolError(text)) => format!("The tool failed: {text}"),
            Some(Message::User(text)) if text == "tools" => {
                let lines = tools
                    .iter()
                    .map(|(name, tool)| format!("{name}: {}", tool.description));
                lines.collect::<Vec<_>>().join("\n")
            }
            Some(Message::User(text)) => match tool_call(text) {
                Some(call) => return Reply::Call(call),
                None => format!("You said: {text}"),
            },
            Some(Message::Assistant(text)) => text.clone(),
            None => "Hello!".to_owned(),
        })
    }
}

fn tool_call(text: &str) -> Option<ToolCall> {
    let (name, arguments) = text.strip_prefix("call ")?.split_once(' ')?;
    let Ok(Value::Object(arguments)) = serde_json::from_str(arguments) else {
        return None;
    };
    let name = name.to_owned();
    Some(ToolCall { name, arguments })
}

/// Lets the model call tools until it answers.
async fn answer(model: &impl Model, tools: &Tools, messages: &mut Vec<Message>) -> String {
    for _ in 0..MAX_ROUNDS {
        match model.reply(messages, &tools.tools).await {
            Reply::Text(text) => {
                messages.push(Message::Assistant(text.clone()));
                return text;
            }
            Reply::Call(call) => {
                println!("calling {}", call.name);
                messages.push(tools.call(call).await);
            }
        }
    }
    "That took too many calls.".to_owned()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: chat_host CONFIG")?;
    let tools = Tools::open(serde_json::from_str(&fs::read_to_string(path)?)?).await?;
    let mut messages = Vec::new();
    for line in io::stdin().lock().lines() {
        messages.push(Message::User(line?));
        println!("{}", answer(&ScriptedModel, &tools, &mut messages).await);
    }
    Ok(())
}
