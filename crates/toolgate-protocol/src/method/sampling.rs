//! `sampling/createMessage`: sampling of the client's model by a server, with tools since 2025-11-25.
//!
//! Source: the page on sampling of 2026-07-28.

use super::{content::Content, definition::Definition};
use crate::json::{ArrayWriter, Json, JsonKind, ObjectWriter};

/// Parameters of `sampling/createMessage`: what a server asks the client's model.
///
/// ```
/// use toolgate_protocol::method::sampling::{SamplingMessage, SamplingParams};
///
/// let mut params = SamplingParams::new(100);
/// params.system_prompt = Some("Answer in one word.".to_owned());
/// params.messages.push(SamplingMessage::user("How is the weather?"));
/// let json = params.to_json();
/// assert_eq!(SamplingParams::read(&json), Ok(params));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SamplingParams {
    /// Conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// Maximum length of the model's answer, in tokens; at least 1.
    pub max_tokens: u64,
    /// System prompt that the server wants; the client may change it.
    pub system_prompt: Option<String>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Texts at which the model stops.
    pub stop_sequences: Vec<String>,
    /// Preferences of the server for the choice of a model.
    pub model_preferences: ModelPreferences,
    /// Tools that the model may use. The server runs them, not the client.
    pub tools: Vec<Definition>,
    /// Tool choice: how the model may use the tools.
    pub tool_choice: ToolChoice,
    /// Context of MCP servers that the server asks for: `none`, `thisServer` or `allServers` (deprecated).
    pub include_context: Option<String>,
    /// Metadata for the provider of the model.
    pub metadata: Option<Json>,
}

/// Preferences of a server for the choice of a model (`modelPreferences`). Priorities are from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelPreferences {
    /// Names or parts of names of models, the preferred one first.
    pub hints: Vec<String>,
    /// Importance of low cost.
    pub cost: Option<f64>,
    /// Importance of low latency.
    pub speed: Option<f64>,
    /// Importance of capable models.
    pub intelligence: Option<f64>,
}

/// Use of tools by the sampled model (`toolChoice`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ToolChoice {
    /// The model decides whether to use tools.
    #[default]
    Auto,
    /// The model must use at least one tool.
    Required,
    /// The model must not use tools.
    None,
}

/// Message of a sampled conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingMessage {
    /// True for the role `assistant`, false for `user`.
    pub assistant: bool,
    /// Content blocks of the message.
    pub content: Vec<SamplingContent>,
}

/// Content block of a sampled message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SamplingContent {
    /// Text, image or audio, or a block of an unknown kind.
    Block(Content),
    /// Use of a tool by the model.
    ToolUse(SampledToolUse),
    /// Result of a tool that the model used.
    ToolResult(SampledToolResult),
}

/// Use of a tool by the sampled model (`tool_use`).
#[derive(Clone, Debug, PartialEq)]
pub struct SampledToolUse {
    /// Id of the use, which its result repeats.
    pub id: String,
    /// Name of the used tool.
    pub name: String,
    /// Arguments for the tool, a JSON object.
    pub input: Json,
}

/// Result of a tool that the sampled model used (`tool_result`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampledToolResult {
    /// Id of the use that this result answers.
    pub tool_use_id: String,
    /// Content blocks of the result.
    pub content: Vec<Content>,
    /// Structured content of the result.
    pub structured: Option<Json>,
    /// True if the tool failed.
    pub is_error: bool,
}

/// Result of `sampling/createMessage`: the message of the model.
///
/// ```
/// use toolgate_protocol::method::sampling::{SamplingContent, SamplingResult};
///
/// let result = SamplingResult::text("gpt", "sunny");
/// assert_eq!(result.all_text(), "sunny");
/// assert!(result.tool_uses().next().is_none());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingResult {
    /// Name of the model that answered.
    pub model: String,
    /// Content blocks of the model's message.
    pub content: Vec<SamplingContent>,
    /// Reason why the model stopped, for example `endTurn`, `stopSequence`, `maxTokens` or `toolUse`.
    pub stop_reason: Option<String>,
}

impl SamplingParams {
    /// Creates parameters without messages, with this maximum length of the answer in tokens.
    pub fn new(max_tokens: u64) -> SamplingParams {
        SamplingParams {
            max_tokens,
            ..SamplingParams::default()
        }
    }

    /// Reads the parameters of `sampling/createMessage`.
    ///
    /// # Errors
    /// Returns the reason if a member is missing or wrong.
    pub fn read(params: &Json) -> Result<SamplingParams, &'static str> {
        let text = |key: &str| params.get(key).and_then(|value| value.string());
        let max_tokens = params.get("maxTokens").and_then(|n| n.u64());
        let max_tokens = max_tokens.filter(|n| *n > 0);
        let messages = array(params, "messages").ok_or("\"messages\" must be an array")?;
        let tools = array(params, "tools").unwrap_or_default();
        Ok(SamplingParams {
            messages: read_all(messages, SamplingMessage::read)?,
            max_tokens: max_tokens.ok_or("\"maxTokens\" must be an integer above 0")?,
            system_prompt: text("systemPrompt"),
            temperature: params.get("temperature").and_then(|n| n.f64()),
            stop_sequences: strings(params.get("stopSequences")),
            model_preferences: ModelPreferences::read(params.get("modelPreferences").as_ref()),
            tools: read_all(tools, Definition::tool)?,
            tool_choice: ToolChoice::read(params.get("toolChoice").as_ref())?,
            include_context: text("includeContext"),
            metadata: params.get("metadata"),
        })
    }

    /// Returns the parameters as JSON.
    pub fn to_json(&self) -> Json {
        let mut o = ObjectWriter::new();
        o.array("messages", |a| {
            self.messages.iter().for_each(|m| a.raw(&m.to_json()));
        });
        o.int(
            "maxTokens",
            i64::try_from(self.max_tokens).unwrap_or(i64::MAX),
        );
        optional_text(&mut o, "systemPrompt", self.system_prompt.as_ref());
        optional_number(&mut o, "temperature", self.temperature);
        if !self.stop_sequences.is_empty() {
            o.array("stopSequences", |a| {
                self.stop_sequences.iter().for_each(|text| a.str(text));
            });
        }
        self.model_preferences.write(&mut o);
        if !self.tools.is_empty() {
            o.array("tools", |a| self.tools.iter().for_each(|t| a.raw(t.json())));
        }
        if self.tool_choice != ToolChoice::Auto {
            o.object("toolChoice", |c| c.str("mode", self.tool_choice.as_str()));
        }
        optional_text(&mut o, "includeContext", self.include_context.as_ref());
        if let Some(metadata) = &self.metadata {
            o.raw("metadata", metadata);
        }
        o.finish()
    }
}

impl ModelPreferences {
    fn read(json: Option<&Json>) -> ModelPreferences {
        let Some(json) = json else {
            return ModelPreferences::default();
        };
        let number = |key: &str| json.get(key).and_then(|n| n.f64());
        let hints = array(json, "hints").unwrap_or_default();
        let hints = hints.iter().filter_map(|hint| hint.get("name")?.string());
        ModelPreferences {
            hints: hints.collect(),
            cost: number("costPriority"),
            speed: number("speedPriority"),
            intelligence: number("intelligencePriority"),
        }
    }

    fn write(&self, o: &mut ObjectWriter) {
        if *self == ModelPreferences::default() {
            return;
        }
        o.object("modelPreferences", |p| {
            if !self.hints.is_empty() {
                p.array("hints", |a| {
                    let hints = self.hints.iter();
                    hints.for_each(|name| a.object(|hint| hint.str("name", name)));
                });
            }
            optional_number(p, "costPriority", self.cost);
            optional_number(p, "speedPriority", self.speed);
            optional_number(p, "intelligencePriority", self.intelligence);
        });
    }
}

impl ToolChoice {
    /// Returns the protocol value of `toolChoice.mode`, for example `auto`.
    pub fn as_str(self) -> &'static str {
        match self {
            ToolChoice::Auto => "auto",
            ToolChoice::Required => "required",
            ToolChoice::None => "none",
        }
    }

    fn read(json: Option<&Json>) -> Result<ToolChoice, &'static str> {
        let mode = json.and_then(|json| json.get("mode"));
        match mode.and_then(|mode| mode.string()).as_deref() {
            None | Some("auto") => Ok(ToolChoice::Auto),
            Some("required") => Ok(ToolChoice::Required),
            Some("none") => Ok(ToolChoice::None),
            Some(_) => Err("\"toolChoice.mode\" must be \"auto\", \"required\" or \"none\""),
        }
    }
}

impl SamplingMessage {
    /// Creates a text message of the role `user`.
    pub fn user(text: &str) -> SamplingMessage {
        SamplingMessage {
            assistant: false,
            content: vec![SamplingContent::text(text)],
        }
    }

    /// Creates a text message of the role `assistant`.
    pub fn assistant(text: &str) -> SamplingMessage {
        SamplingMessage {
            assistant: true,
            content: vec![SamplingContent::text(text)],
        }
    }

    fn read(json: Json) -> Result<SamplingMessage, &'static str> {
        let role = json.get("role").and_then(|role| role.string());
        let assistant = match role.as_deref() {
            Some("assistant") => true,
            Some("user") => false,
            _ => return Err("a message needs the role \"user\" or \"assistant\""),
        };
        Ok(SamplingMessage {
            assistant,
            content: read_content(&json)?,
        })
    }

    fn to_json(&self) -> Json {
        let mut o = ObjectWriter::new();
        o.str("role", if self.assistant { "assistant" } else { "user" });
        write_content(&mut o, &self.content);
        o.finish()
    }
}

impl SamplingContent {
    /// Creates a text block.
    pub fn text(text: &str) -> SamplingContent {
        SamplingContent::Block(Content::text(text))
    }

    /// Returns the text of a text block; `None` for other kinds.
    pub fn as_text(&self) -> Option<String> {
        match self {
            SamplingContent::Block(block) => block.as_text(),
            _ => None,
        }
    }

    fn read(json: Json) -> Result<SamplingContent, &'static str> {
        let text = |key: &str| json.get(key).and_then(|value| value.string());
        match text("type").as_deref() {
            Some("tool_use") => Ok(SamplingContent::ToolUse(SampledToolUse {
                id: text("id").ok_or("a tool use has no \"id\"")?,
                name: text("name").ok_or("a tool use has no \"name\"")?,
                input: json
                    .get("input")
                    .unwrap_or_else(|| ObjectWriter::new().finish()),
            })),
            Some("tool_result") => {
                let blocks = array(&json, "content").unwrap_or_default();
                let block = |json| Content::read(json).ok_or("a content block has no \"type\"");
                Ok(SamplingContent::ToolResult(SampledToolResult {
                    tool_use_id: text("toolUseId").ok_or("a tool result has no \"toolUseId\"")?,
                    content: read_all(blocks, block)?,
                    structured: json.get("structuredContent"),
                    is_error: json.get("isError").and_then(|e| e.bool()).unwrap_or(false),
                }))
            }
            _ => Content::read(json)
                .map(SamplingContent::Block)
                .ok_or("a content block has no \"type\""),
        }
    }

    fn to_json(&self) -> Json {
        let mut o = ObjectWriter::new();
        match self {
            SamplingContent::Block(block) => return block.json.clone(),
            SamplingContent::ToolUse(used) => {
                o.str("type", "tool_use");
                o.str("id", &used.id);
                o.str("name", &used.name);
                o.raw("input", &used.input);
            }
            SamplingContent::ToolResult(result) => {
                o.str("type", "tool_result");
                o.str("toolUseId", &result.tool_use_id);
                o.array("content", |a| {
                    result.content.iter().for_each(|block| a.raw(&block.json));
                });
                if let Some(structured) = &result.structured {
                    o.raw("structuredContent", structured);
                }
                if result.is_error {
                    o.bool("isError", true);
                }
            }
        }
        o.finish()
    }
}

impl SamplingResult {
    /// Creates the result of a model that ended its turn with this text.
    pub fn text(model: &str, text: &str) -> SamplingResult {
        SamplingResult {
            model: model.to_owned(),
            content: vec![SamplingContent::text(text)],
            stop_reason: Some("endTurn".to_owned()),
        }
    }

    /// Creates the result of a model that uses tools.
    pub fn using_tools(model: &str, uses: Vec<SampledToolUse>) -> SamplingResult {
        SamplingResult {
            model: model.to_owned(),
            content: uses.into_iter().map(SamplingContent::ToolUse).collect(),
            stop_reason: Some("toolUse".to_owned()),
        }
    }

    /// Reads the result of `sampling/createMessage`.
    ///
    /// # Errors
    /// Returns the reason if a member is missing or wrong.
    pub fn read(result: &Json) -> Result<SamplingResult, &'static str> {
        let text = |key: &str| result.get(key).and_then(|value| value.string());
        Ok(SamplingResult {
            model: text("model").unwrap_or_default(),
            content: read_content(result)?,
            stop_reason: text("stopReason"),
        })
    }

    /// Returns the result as JSON.
    pub fn to_json(&self) -> Json {
        let mut o = ObjectWriter::new();
        o.str("role", "assistant");
        write_content(&mut o, &self.content);
        o.str("model", &self.model);
        optional_text(&mut o, "stopReason", self.stop_reason.as_ref());
        o.finish()
    }

    /// Returns the text of all text blocks, joined with newlines.
    pub fn all_text(&self) -> String {
        let texts = self.content.iter().filter_map(SamplingContent::as_text);
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns the tools that the model wants to use. The server runs them and samples again with their results.
    pub fn tool_uses(&self) -> impl Iterator<Item = &SampledToolUse> {
        self.content.iter().filter_map(|block| match block {
            SamplingContent::ToolUse(used) => Some(used),
            _ => None,
        })
    }
}

/// Reads `content`: one block, or an array of them.
fn read_content(json: &Json) -> Result<Vec<SamplingContent>, &'static str> {
    let content = json.get("content").ok_or("a message has no \"content\"")?;
    match content.kind() {
        JsonKind::Array => read_all(content.items().collect(), SamplingContent::read),
        _ => Ok(vec![SamplingContent::read(content)?]),
    }
}

/// Writes `content`. A single block is no array, as revisions before 2025-11-25 require.
fn write_content(o: &mut ObjectWriter, content: &[SamplingContent]) {
    match content {
        [block] => o.raw("content", &block.to_json()),
        blocks => {
            let mut list = ArrayWriter::new();
            blocks.iter().for_each(|block| list.raw(&block.to_json()));
            o.raw("content", &list.finish());
        }
    }
}

fn array(json: &Json, key: &str) -> Option<Vec<Json>> {
    let list = json
        .get(key)
        .filter(|list| list.kind() == JsonKind::Array)?;
    Some(list.items().collect())
}

fn read_all<T>(
    items: Vec<Json>,
    read: impl Fn(Json) -> Result<T, &'static str>,
) -> Result<Vec<T>, &'static str> {
    items.into_iter().map(read).collect()
}

fn strings(list: Option<Json>) -> Vec<String> {
    let texts = list.iter().flat_map(Json::items);
    texts.filter_map(|text| text.string()).collect()
}

fn optional_text(o: &mut ObjectWriter, key: &str, text: Option<&String>) {
    if let Some(text) = text {
        o.str(key, text);
    }
}

fn optional_number(o: &mut ObjectWriter, key: &str, number: Option<f64>) {
    if let Some(number) = number {
        o.raw(key, &Json::from_value(&number.into()));
    }
}
