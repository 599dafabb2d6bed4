//! Prompts with typed arguments, state and errors.
//!
//! `cargo run --example prompt_server` serves over stdio. The book compares this program with the same in rmcp and in
//! FastMCP.

use toolgate::{
    Content, Cx, Server, ToolError,
    core::{PromptMessage, PromptResult},
    tools,
};

#[derive(Clone, Copy)]
struct Preferences {
    language: &'static str,
    level: &'static str,
}

struct PromptServer {
    preferences: Preferences,
}

fn user(text: impl AsRef<str>) -> PromptMessage {
    PromptMessage::user(Content::text(text.as_ref()))
}

fn assistant(text: impl AsRef<str>) -> PromptMessage {
    PromptMessage::assistant(Content::text(text.as_ref()))
}

fn described(description: String, messages: Vec<PromptMessage>) -> PromptResult {
    PromptResult {
        description: Some(description),
        messages,
        ..PromptResult::default()
    }
}

#[tools]
impl PromptServer {
    /// Greets, to start a conversation.
    #[prompt]
    fn greeting(&self) -> Vec<PromptMessage> {
        vec![
            user("Hello! I would like to talk."),
            assistant("Hello! What would you like to talk about?"),
        ]
    }

    /// Reviews code with the best practices of its language.
    #[prompt]
    fn code_review(
        &self,
        /// Programming language of the code.
        language: String,
        /// Path of the file.
        file_path: String,
        /// What to look at, as a JSON list.
        focus_areas: Option<Vec<String>>,
    ) -> PromptResult {
        let focus = focus_areas.map(|areas| areas.join(", "));
        let focus = focus.unwrap_or_else(|| "correctness, performance".to_owned());
        let level = self.preferences.level;
        let messages = vec![
            assistant(format!(
                "You review {language} code for a reader of {level} level."
            )),
            user(format!("Review the code of {file_path}. Focus on: {focus}")),
        ];
        described(format!("Review of {file_path}"), messages)
    }

    /// Analyzes data.
    #[prompt]
    fn data_analysis(
        &self,
        /// Type of the data: csv, json or logs.
        data_type: String,
        /// Kind of analysis.
        analysis_type: String,
        /// More about the data.
        context: Option<String>,
        cx: Cx,
    ) -> Vec<PromptMessage> {
        let context = context.unwrap_or_else(|| "none".to_owned());
        vec![
            user(format!(
                "My {data_type} data needs a {analysis_type} analysis. Context: {context}"
            )),
            assistant(format!(
                "I will write the analysis over MCP {}.",
                cx.revision()
            )),
        ]
    }

    /// Helps to write a text, point by point.
    #[prompt]
    fn writing_assistant(
        &self,
        /// Type of the text: email, documentation or blog.
        content_type: String,
        /// Readers of the text.
        audience: String,
        /// Tone of the text.
        tone: Option<String>,
        /// Points to make, as a JSON list.
        key_points: Vec<String>,
    ) -> PromptResult {
        let tone = tone.as_deref().unwrap_or("professional");
        let mut messages = vec![assistant(format!(
            "I help to write a {content_type} for {audience} in a {tone} tone."
        ))];
        for (number, point) in (1..).zip(&key_points) {
            messages.push(user(format!(
                "Point {number}: {point}. What do you suggest?"
            )));
            messages.push(assistant(format!("For {point} I suggest:")));
        }
        described(format!("A {content_type} for {audience}"), messages)
    }

    /// Helps to find the cause of an error.
    #[prompt]
    fn debug_assistant(
        &self,
        /// Error message or symptom.
        error_message: String,
        /// Technologies in use, as a JSON list.
        stack: Vec<String>,
        /// What did not help, as a JSON list.
        tried_solutions: Option<Vec<String>>,
    ) -> Result<PromptResult, ToolError> {
        let Some(first) = stack.first() else {
            return Err(ToolError::new("the stack is empty"));
        };
        let mut messages = vec![
            assistant(format!("You debug programs with {}.", stack.join(", "))),
            user(format!("I get this error: {error_message}")),
        ];
        if let Some(tried) = tried_solutions.filter(|tried| !tried.is_empty()) {
            messages.push(user(format!("I have tried: {}", tried.join(", "))));
        }
        Ok(described(format!("An error in {first}"), messages))
    }

    /// Plans what to learn next, by the preferences of the user.
    #[prompt]
    fn learning_path(&self) -> Vec<PromptMessage> {
        let Preferences { language, level } = self.preferences;
        vec![
            assistant(format!(
                "You plan lessons in {language} for the level {level}."
            )),
            user("What should I learn next?"),
        ]
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), toolgate::ServeError> {
    let preferences = Preferences {
        language: "English",
        level: "intermediate",
    };
    let server = Server::new("prompts", "1.0.0")
        .instructions("Prompts for code, data, texts, errors and lessons.")
        .tools(PromptServer { preferences });
    toolgate::stdio(server).await
}
