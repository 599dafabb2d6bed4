//! Function definitions for a model API, and the way back from its calls.

use super::{
    ModelApi, ModelCall, ToolCaller,
    call::{RawModelCall, read_arguments},
    result,
    schema::ModelSchema,
};
use crate::{
    aggregate::WireNames,
    client::{CallResult, ListedItem, app::call_builder::any_json, app::errors::invalid_arguments},
};
use serde::Serialize;
use std::collections::HashMap;
use toolgate_core::{Error, ErrorKind, Json};
use toolgate_protocol::json::ObjectWriter;

/// Tools in the format of one model API: the definitions for its requests, and the way back from a model's call to a
/// tool call and its response. [`ToolList`](super::ToolList) creates it.
///
/// A name that the API does not accept is changed. The changed name depends only on the tools in the list, so it stays
/// the same from one request to the next.
///
/// ```
/// use serde_json::Value;
/// use toolgate::{Client, Error, client::{ModelCall, ModelFunction, ModelTools}};
///
/// /// Describes the tools for a framework that writes the requests to the model itself.
/// fn describe(tools: &ModelTools) -> Vec<String> {
///     let line = |ModelFunction { name, description, .. }| format!("{name}: {description}");
///     tools.functions().map(line).collect()
/// }
///
/// /// Runs a call of the model, unless the application rejects it.
/// async fn run(client: &Client, tools: &ModelTools, call: &Value) -> Result<Value, Error> {
///     let ModelCall { id, tool, arguments, .. } = tools.read_call(call)?;
///     println!("the model calls {tool}");
///     Ok(match client.call(&tool, arguments).await {
///         Ok(result) => tools.response(&id, &result),
///         Err(error) => tools.error_response(&id, &error),
///     })
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ModelTools {
    api: ModelApi,
    tools: Vec<ModelTool>,
    definitions: Vec<Json>,
    /// Positions by the API's names.
    by_name: HashMap<String, usize>,
}

/// Function definition of a tool, for a framework that writes the request to the model API itself.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ModelFunction<'a> {
    /// Name for the API.
    pub name: &'a str,
    /// Description for the model; empty if the tool has none.
    pub description: &'a str,
    /// JSON Schema of the arguments.
    pub parameters: &'a Json,
}

#[derive(Clone, Debug)]
struct ModelTool {
    /// Name for the API.
    name: String,
    description: String,
    parameters: Json,
    /// Name in the client's list.
    own: String,
    renamed_keys: Vec<(String, String)>,
}

impl ModelTools {
    pub(super) fn new(api: ModelApi, tools: &[ListedItem]) -> ModelTools {
        let own: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
        let names = WireNames::within("", api.name_limits()).assign(&own);
        let by_name = names.iter().cloned().zip(0..).collect();
        let (mut listed, mut definitions) = (Vec::new(), Vec::new());
        for (tool, name) in tools.iter().zip(names) {
            let schema = ModelSchema::of(api, &tool.input_schema());
            let texts = [tool.description(), schema.note];
            let description: Vec<String> = texts.into_iter().flatten().collect();
            let tool = ModelTool {
                name,
                description: description.join("\n\n"),
                parameters: schema.parameters,
                own: tool.name().to_owned(),
                renamed_keys: schema.renamed_keys,
            };
            definitions.push(definition(api, &tool.function()));
            listed.push(tool);
        }
        ModelTools {
            api,
            tools: listed,
            definitions,
            by_name,
        }
    }

    /// Returns the function definitions, for the member `tools` of a request to the API.
    pub fn definitions(&self) -> &[Json] {
        &self.definitions
    }

    /// Returns the name, description and schema of each function.
    pub fn functions(&self) -> impl Iterator<Item = ModelFunction<'_>> {
        self.tools.iter().map(ModelTool::function)
    }

    /// Returns the API's name of a tool, for example for `tool_choice`.
    pub fn name_of(&self, tool: &str) -> Option<&str> {
        let found = self.tools.iter().find(|known| known.own == tool);
        found.map(|known| known.name.as_str())
    }

    /// Reads a call of the model: an item of `tool_calls` (Chat Completions), a `function_call` item (Responses), or a
    /// `tool_use` block (Anthropic).
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`](crate::core::ErrorKind::NotFound): the model calls a function that does not exist.
    /// - [`ErrorKind::InvalidArguments`](crate::core::ErrorKind::InvalidArguments): the call has no id or name, or its
    ///   arguments are not a JSON object.
    pub fn read_call(&self, call: impl Serialize) -> Result<ModelCall, Error> {
        let raw = self.read_raw(call)?;
        self.own_call(&raw.id, &raw.name, raw.arguments?)
    }

    /// Reads a call of the model from its parts. `arguments` is a JSON object, or a string with the JSON text of one.
    ///
    /// # Errors
    /// As [`ModelTools::read_call`].
    pub fn read_parts(
        &self,
        id: &str,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<ModelCall, Error> {
        let arguments = read_arguments(Some(any_json(arguments)?))?;
        self.own_call(id, name, arguments)
    }

    /// Returns the response to a model's call, for its API: a `tool` message (Chat Completions), a
    /// `function_call_output` item (Responses) or a `tool_result` block (Anthropic). A failure of the tool is a
    /// response too.
    ///
    /// Content that the API does not accept in a response becomes text that describes it.
    pub fn response(&self, call_id: &str, result: &CallResult) -> serde_json::Value {
        result::response(self.api, call_id, result)
    }

    /// Returns the response to a call that could not be made, with the text of the error for the model.
    pub fn error_response(&self, call_id: &str, error: &Error) -> serde_json::Value {
        let text = toolgate_core::ToolResult::error(error.public_message());
        self.response(call_id, &text.into())
    }

    /// Runs a call of the model with all checks of the client, and returns the response for the API. If the call is
    /// denied, invalid or fails, the response tells the model why.
    ///
    /// # Errors
    /// The call has no id or no name, so that no response can name it.
    pub async fn run(
        &self,
        client: &impl ToolCaller,
        call: impl Serialize,
    ) -> Result<serde_json::Value, Error> {
        let raw = self.read_raw(call)?;
        let id = raw.id.clone();
        let read = raw
            .arguments
            .and_then(|arguments| self.own_call(&raw.id, &raw.name, arguments));
        let result = match read {
            Ok(call) => client.call_tool(&call.tool, call.arguments).await,
            Err(error) => Err(error),
        };
        Ok(match result {
            Ok(result) => self.response(&id, &result),
            Err(error) => self.error_response(&id, &error),
        })
    }

    fn read_raw(&self, call: impl Serialize) -> Result<RawModelCall, Error> {
        RawModelCall::read(self.api, &any_json(call)?)
            .ok_or_else(|| invalid_arguments("a call with an id and a name", "something else"))
    }

    fn own_call(&self, id: &str, name: &str, arguments: Json) -> Result<ModelCall, Error> {
        let Some(tool) = self.by_name.get(name).and_then(|at| self.tools.get(*at)) else {
            let text = format!("there is no function {name:?}; call one of those that are defined");
            return Err(Error::new(ErrorKind::NotFound, text));
        };
        Ok(ModelCall {
            id: id.to_owned(),
            tool: tool.own.clone(),
            arguments: ModelSchema::own_arguments(&tool.renamed_keys, arguments),
        })
    }
}

impl ModelTool {
    fn function(&self) -> ModelFunction<'_> {
        ModelFunction {
            name: &self.name,
            description: &self.description,
            parameters: &self.parameters,
        }
    }
}

/// Returns the definition of one function.
fn definition(api: ModelApi, function: &ModelFunction<'_>) -> Json {
    let common = |o: &mut ObjectWriter, parameters: &str| {
        o.str("name", function.name);
        if !function.description.is_empty() {
            o.str("description", function.description);
        }
        o.raw(parameters, function.parameters);
    };
    let mut o = ObjectWriter::new();
    match api {
        ModelApi::OpenAiChat => {
            o.str("type", "function");
            o.object("function", |f| common(f, "parameters"));
        }
        ModelApi::OpenAiResponses => {
            o.str("type", "function");
            common(&mut o, "parameters");
            // The default of this API allows only closed schemas in which every property is required.
            o.bool("strict", false);
        }
        ModelApi::Anthropic => common(&mut o, "input_schema"),
    }
    o.finish()
}
