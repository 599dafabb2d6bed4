//! Operations: the four methods that use an item, and their parameters.

use super::{
    definition::ItemKind, definition::completion_reference, prompts_get, resources_read, tools_call,
};
use crate::json::{Json, JsonKind, JsonView, ObjectWriter};

/// Method name `completion/complete`, which suggests values of a prompt or template argument.
pub const COMPLETE: &str = "completion/complete";

/// Operation on an item of a server: `tools/call`, `resources/read`, `prompts/get` or `completion/complete`. Exhaustive
/// on purpose: a new variant breaks the build wherever it matters.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Op {
    /// `tools/call`: calls a tool.
    Tool,
    /// `resources/read`: reads a resource.
    Resource,
    /// `prompts/get`: gets a prompt.
    Prompt,
    /// `completion/complete`: completes an argument of a prompt or of a resource template.
    Complete(ItemKind),
}

impl Op {
    /// Returns the MCP method name of the operation, for example `tools/call`.
    pub fn method(self) -> &'static str {
        match self {
            Op::Tool => tools_call::NAME,
            Op::Resource => resources_read::NAME,
            Op::Prompt => prompts_get::NAME,
            Op::Complete(_) => COMPLETE,
        }
    }

    /// Returns the kinds of items that the operation applies to, in lookup order.
    pub fn kinds(self) -> &'static [ItemKind] {
        match self {
            Op::Tool => &[ItemKind::Tool],
            // Skills come first, because the digests of their files apply wherever else the files are listed.
            Op::Resource => &[ItemKind::Skill, ItemKind::Resource, ItemKind::Template],
            Op::Prompt => &[ItemKind::Prompt],
            Op::Complete(ItemKind::Prompt) => &[ItemKind::Prompt],
            Op::Complete(_) => &[ItemKind::Template, ItemKind::Resource],
        }
    }
}

/// Returns true if the method uses an item: `tools/call`, `resources/read`, `prompts/get` or `completion/complete`.
pub fn is_operation(method: &str) -> bool {
    [
        tools_call::NAME,
        resources_read::NAME,
        prompts_get::NAME,
        COMPLETE,
    ]
    .contains(&method)
}

/// Parameters of `tools/call`, `resources/read`, `prompts/get` or `completion/complete`.
#[derive(Clone, Debug)]
pub struct OperationParams {
    /// Operation that the parameters belong to.
    pub op: Op,
    /// Name of the tool or prompt, or URI of the resource, as the client wrote it.
    pub name: String,
    /// Arguments of the operation, unchanged; `{}` if there are none. For a resource its `uri`; for a completion all
    /// parameters except `ref`.
    pub arguments: Json,
    /// Answers of the client to the input requests of the previous round (2026-07-28).
    pub answers: Vec<(String, Json)>,
    /// Member `requestState` that the client returns from the previous round (2026-07-28).
    pub state: Option<String>,
}

impl OperationParams {
    /// Reads the parameters of an operation's method, such as `tools/call`.
    ///
    /// # Errors
    /// Returns the reason if a member is missing or wrong.
    pub fn read(method: &str, params: Option<&Json>) -> Result<OperationParams, &'static str> {
        let whole = params.ok_or("\"params\" is missing")?;
        let params = &OperationMembers::of(whole);
        let (op, name, arguments) = match method {
            resources_read::NAME => {
                let uri = string(&params.uri).ok_or("\"params.uri\" must be a string")?;
                let mut o = ObjectWriter::new();
                o.str("uri", &uri);
                (Op::Resource, uri, o.finish())
            }
            COMPLETE => completion(whole, params)?,
            _ => {
                let name = string(&params.name).ok_or("\"params.name\" must be a string")?;
                let op = match method {
                    prompts_get::NAME => Op::Prompt,
                    _ => Op::Tool,
                };
                (op, name, arguments(whole, params)?)
            }
        };
        if op == Op::Prompt
            && arguments
                .members()
                .any(|(_, v)| v.kind() != JsonKind::String)
        {
            return Err("all members of \"params.arguments\" must be strings for a prompt");
        }
        let answers = match &params.answers {
            None => Vec::new(),
            Some(a) if a.kind() == JsonKind::Object => {
                let members = a.members();
                members
                    .map(|(k, v)| (k.into_owned(), whole.part(&v)))
                    .collect()
            }
            Some(_) => return Err("\"params.inputResponses\" must be an object"),
        };
        let state = match &params.state {
            None => None,
            Some(s) => Some(
                s.str_cow()
                    .ok_or("\"params.requestState\" must be a string")?
                    .into_owned(),
            ),
        };
        Ok(OperationParams {
            op,
            name,
            arguments,
            answers,
            state,
        })
    }
}

/// Writes the parameters of an operation: the name or URI of the item, and its arguments.
pub fn write(o: &mut ObjectWriter, op: Op, name: &str, arguments: &Json) {
    match op {
        Op::Tool => {
            o.str("name", name);
            o.raw("arguments", arguments);
        }
        Op::Prompt => {
            o.str("name", name);
            if arguments.members().next().is_some() {
                o.raw("arguments", arguments);
            }
        }
        Op::Resource => o.str("uri", name),
        Op::Complete(kind) => {
            o.raw("ref", &completion_reference(kind, name));
            arguments.members().for_each(|(k, v)| o.raw(&k, &v));
        }
    }
}

/// Members that the four methods define, read in one pass.
#[derive(Default)]
struct OperationMembers<'a> {
    name: Option<JsonView<'a>>,
    uri: Option<JsonView<'a>>,
    arguments: Option<JsonView<'a>>,
    of: Option<JsonView<'a>>,
    argument: Option<JsonView<'a>>,
    context: Option<JsonView<'a>>,
    answers: Option<JsonView<'a>>,
    state: Option<JsonView<'a>>,
}

impl<'a> OperationMembers<'a> {
    fn of(params: &'a Json) -> OperationMembers<'a> {
        let mut said = OperationMembers::default();
        for (key, value) in params.view().members() {
            let place = match key.as_ref() {
                "name" => &mut said.name,
                "uri" => &mut said.uri,
                "arguments" => &mut said.arguments,
                "ref" => &mut said.of,
                "argument" => &mut said.argument,
                "context" => &mut said.context,
                "inputResponses" => &mut said.answers,
                "requestState" => &mut said.state,
                _ => continue,
            };
            *place = Some(value);
        }
        said
    }
}

fn string(of: &Option<JsonView<'_>>) -> Option<String> {
    Some(of.as_ref()?.str_cow()?.into_owned())
}

fn text(of: &JsonView<'_>, key: &str) -> Option<String> {
    Some(of.get(key)?.str_cow()?.into_owned())
}

fn empty() -> Json {
    ObjectWriter::new().finish()
}

fn arguments(whole: &Json, params: &OperationMembers) -> Result<Json, &'static str> {
    match &params.arguments {
        None => Ok(empty()),
        Some(a) if a.is_null() => Ok(empty()),
        Some(a) if a.kind() == JsonKind::Object => Ok(whole.part(a)),
        Some(_) => Err("\"params.arguments\" must be an object"),
    }
}

fn completion(whole: &Json, params: &OperationMembers) -> Result<(Op, String, Json), &'static str> {
    let of = params.of.as_ref().ok_or("\"params.ref\" is missing")?;
    let (kind, key) = match text(of, "type").as_deref() {
        Some("ref/prompt") => (ItemKind::Prompt, "name"),
        Some("ref/resource") => (ItemKind::Template, "uri"),
        _ => return Err("\"params.ref.type\" must be \"ref/prompt\" or \"ref/resource\""),
    };
    let name = text(of, key).ok_or("\"params.ref\" must have a string \"name\" for a prompt, or a string \"uri\" for a resource template")?;
    let argument = params
        .argument
        .as_ref()
        .filter(|a| text(a, "name").is_some() && text(a, "value").is_some())
        .ok_or("\"params.argument\" must have the strings \"name\" and \"value\"")?;
    let context = params.context.as_ref();
    if context.is_some_and(|c| c.kind() != JsonKind::Object) {
        return Err("\"params.context\" must be an object");
    }
    let mut o = ObjectWriter::new();
    o.raw("argument", &whole.part(argument));
    if let Some(context) = context {
        o.raw("context", &whole.part(context));
    }
    Ok((Op::Complete(kind), name, o.finish()))
}
