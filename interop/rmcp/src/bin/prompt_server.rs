//! Prompts with typed arguments, state and errors, with rmcp. `crates/toolgate/examples/prompt_server.rs` has the same
//! features with Toolgate.

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    handler::server::wrapper::Parameters,
    model::{
        GetPromptResult, Implementation, PromptMessage, Role, ServerCapabilities, ServerConfig,
    },
    prompt, prompt_handler, prompt_router,
    schemars::{self, JsonSchema},
    service::RequestContext,
    transport::stdio,
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error},
};
use serde_json::Value;
use std::sync::Arc;

#[derive(Deserialize, JsonSchema)]
struct CodeReviewArgs {
    /// Programming language of the code.
    language: String,
    /// Path of the file.
    file_path: String,
    /// What to look at, as a JSON list.
    #[serde(default, deserialize_with = "from_text")]
    focus_areas: Option<Vec<String>>,
}

#[derive(Deserialize, JsonSchema)]
struct DataAnalysisArgs {
    /// Type of the data: csv, json or logs.
    data_type: String,
    /// Kind of analysis.
    analysis_type: String,
    /// More about the data.
    context: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct WritingArgs {
    /// Type of the text: email, documentation or blog.
    content_type: String,
    /// Readers of the text.
    audience: String,
    /// Tone of the text.
    tone: Option<String>,
    /// Points to make, as a JSON list.
    #[serde(deserialize_with = "from_text")]
    key_points: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct DebugArgs {
    /// Error message or symptom.
    error_message: String,
    /// Technologies in use, as a JSON list.
    #[serde(deserialize_with = "from_text")]
    stack: Vec<String>,
    /// What did not help, as a JSON list.
    #[serde(default, deserialize_with = "from_text")]
    tried_solutions: Option<Vec<String>>,
}

/// Reads a value, or the JSON text of one: clients send the arguments of prompts as text.
fn from_text<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let value = match Value::deserialize(deserializer)? {
        Value::String(text) => serde_json::from_str(&text),
        value => serde_json::from_value(value),
    };
    value.map_err(D::Error::custom)
}

struct Preferences {
    language: &'static str,
    level: &'static str,
}

#[derive(Clone)]
struct PromptServer {
    preferences: Arc<Preferences>,
}

fn user(text: impl Into<String>) -> PromptMessage {
    PromptMessage::new_text(Role::User, text)
}

fn assistant(text: impl Into<String>) -> PromptMessage {
    PromptMessage::new_text(Role::Assistant, text)
}

#[prompt_router]
impl PromptServer {
    /// Greets, to start a conversation.
    #[prompt]
    async fn greeting(&self) -> Vec<PromptMessage> {
        vec![
            user("Hello! I would like to talk."),
            assistant("Hello! What would you like to talk about?"),
        ]
    }

    /// Reviews code with the best practices of its language.
    #[prompt]
    async fn code_review(&self, Parameters(args): Parameters<CodeReviewArgs>) -> GetPromptResult {
        let (language, path) = (args.language, args.file_path);
        let focus = args.focus_areas.map(|areas| areas.join(", "));
        let focus = focus.unwrap_or_else(|| "correctness, performance".to_owned());
        GetPromptResult::new(vec![
            assistant(format!(
                "You review {language} code for a reader of {} level.",
                self.preferences.level
            )),
            user(format!("Review the code of {path}. Focus on: {focus}")),
        ])
        .with_description(format!("Review of {path}"))
    }

    /// Analyzes data.
    #[prompt]
    async fn data_analysis(
        &self,
        Parameters(args): Parameters<DataAnalysisArgs>,
        cx: RequestContext<RoleServer>,
    ) -> Vec<PromptMessage> {
        let revision = cx.protocol_version().map(|version| version.to_string());
        let revision = revision.unwrap_or_else(|| "of an unknown revision".to_owned());
        let context = args.context.unwrap_or_else(|| "none".to_owned());
        vec![
            user(format!(
                "My {} data needs a {} analysis. Context: {context}",
                args.data_type, args.analysis_type
            )),
            assistant(format!("I will write the analysis over MCP {revision}.")),
        ]
    }

    /// Helps to write a text, point by point.
    #[prompt]
    async fn writing_assistant(
        &self,
        Parameters(args): Parameters<WritingArgs>,
    ) -> GetPromptResult {
        let tone = args.tone.as_deref().unwrap_or("professional");
        let mut messages = vec![assistant(format!(
            "I help to write a {} for {} in a {tone} tone.",
            args.content_type, args.audience
        ))];
        for (number, point) in (1..).zip(&args.key_points) {
            messages.push(user(format!(
                "Point {number}: {point}. What do you suggest?"
            )));
            messages.push(assistant(format!("For {point} I suggest:")));
        }
        GetPromptResult::new(messages)
            .with_description(format!("A {} for {}", args.content_type, args.audience))
    }

    /// Helps to find the cause of an error.
    #[prompt]
    async fn debug_assistant(
        &self,
        Parameters(args): Parameters<DebugArgs>,
    ) -> Result<GetPromptResult, ErrorData> {
        let Some(first) = args.stack.first() else {
            return Err(ErrorData::invalid_params("the stack is empty", None));
        };
        let stack = args.stack.join(", ");
        let mut messages = vec![
            assistant(format!("You debug programs with {stack}.")),
            user(format!("I get this error: {}", args.error_message)),
        ];
        if let Some(tried) = args.tried_solutions.filter(|tried| !tried.is_empty()) {
            messages.push(user(format!("I have tried: {}", tried.join(", "))));
        }
        Ok(GetPromptResult::new(messages).with_description(format!("An error in {first}")))
    }

    /// Plans what to learn next, by the preferences of the user.
    #[prompt]
    async fn learning_path(&self) -> Vec<PromptMessage> {
        let Preferences { language, level } = *self.preferences;
        vec![
            assistant(format!(
                "You plan lessons in {language} for the level {level}."
            )),
            user("What should I learn next?"),
        ]
    }
}

#[prompt_handler]
impl ServerHandler for PromptServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_prompts().build())
            .with_server_info(Implementation::new("prompts", "1.0.0"))
            .with_instructions("Prompts for code, data, texts, errors and lessons.")
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let preferences = Preferences {
        language: "English",
        level: "intermediate",
    };
    let server = PromptServer {
        preferences: Arc::new(preferences),
    };
    server.serve(stdio()).await?.waiting().await?;
    Ok(())
}
