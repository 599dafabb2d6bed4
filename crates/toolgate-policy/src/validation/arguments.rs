//! Argument validation, before approval and before anything is sent.

mod fixed;
mod prompt;
pub(crate) mod search;
mod uri;

use crate::{
    PerServer,
    sanitize::text::sanitize_text,
    validation::schema::{
        self, CheckFailure, CheckResult, CompiledSchema, RequiredDefaults, SchemaBounds,
        SchemaProblems,
    },
};
use fixed::FixedArguments;
use serde_json::{Map, Value};
use std::sync::Arc;
use toolgate_core::{
    Call, Caller, Error, ErrorKind, Item, ItemKind, Json, JsonView, MaybeReady, Op, RefusalReason,
    Rule, RuleDecision, SchemaViolation,
};
pub use uri::UriSpelling;

/// Rule that validates call arguments: of tools against `inputSchema`, of prompts against their declared arguments, and
/// the URIs of resources.
///
/// Specification: [tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools),
/// [JSON Schema usage](https://modelcontextprotocol.io/specification/2026-07-28/basic#json-schema-usage).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ArgumentValidation {
    /// True to allow arguments that the tool's `inputSchema` does not name, by server.
    pub allow_unknown: PerServer<bool>,
    /// Accepted spellings of resource URIs, by server.
    pub uri_spelling: PerServer<UriSpelling>,
    /// Policy for required arguments that have a default in the schema, by server. The sent arguments do not change.
    pub required_defaults: PerServer<RequiredDefaults>,
}

impl Default for ArgumentValidation {
    /// Returns the defaults: unknown arguments are rejected if the schema is closed (see [`is_closed`]). Required
    /// arguments with a default may be left out.
    fn default() -> ArgumentValidation {
        ArgumentValidation {
            allow_unknown: PerServer::all(false),
            uri_spelling: PerServer::default(),
            required_defaults: PerServer::default(),
        }
    }
}

/// Compiled `inputSchema` of an item.
pub(crate) struct CompiledInputSchema(pub(crate) Arc<CompiledSchema>);

impl CompiledInputSchema {
    pub(crate) fn of(item: &Item, bounds: &SchemaBounds) -> CompiledInputSchema {
        CompiledInputSchema(schema::compiled(&item.upstream_input_schema(), bounds))
    }
}

impl ArgumentValidation {
    /// Validates arguments of a tool against its `inputSchema` as far as that is fast. The call validates them again in
    /// full.
    ///
    /// # Errors
    /// The reason why they are invalid.
    pub fn validate(&self, item: &Item, arguments: &Json) -> Result<(), Error> {
        let (caller, name) = (Caller::new("operator"), item.def.name());
        let call = Call::tool("edit", caller, name, arguments.clone());
        match self.check(&call, item)? {
            CheckResult::Ready(found) => into_result(name, found),
            CheckResult::Pending(_) => Ok(()),
        }
    }

    fn check(&self, call: &Call, item: &Item) -> Result<CheckResult, Error> {
        Ok(CheckResult::Ready(match call.op {
            Op::Tool => return self.of_tool(call, item),
            Op::Prompt => prompt::problems(&item.def, call.arguments().raw()),
            Op::Resource => self.of_uri(item, call.name()),
            // A completion reference to a resource names a template, or a URI that matches one.
            Op::Complete(_)
                if item.kind() == ItemKind::Template && call.name() != item.def.name() =>
            {
                joined(
                    self.of_uri(item, call.name()),
                    prompt::completion_problems(&item.def, call.arguments().raw()),
                )
            }
            Op::Complete(_) => prompt::completion_problems(&item.def, call.arguments().raw()),
        }))
    }

    fn of_uri(&self, item: &Item, uri: &str) -> Vec<SchemaViolation> {
        uri::problems(uri, self.uri_spelling.of(&item.origin.server))
    }

    fn of_tool(&self, call: &Call, item: &Item) -> Result<CheckResult, Error> {
        let input = item.cached(|item| CompiledInputSchema::of(item, &SchemaBounds::default()));
        let schema = input.0.as_ref().as_ref().map_err(|why| {
            refused(format!(
                "the inputSchema of the tool cannot be used: {why}; {}",
                schema::USER_ADVICE
            ))
        })?;
        if call.arguments().is_lossy() {
            return Ok(CheckResult::Ready(vec![SchemaViolation::new(
                "",
                "numbers that fit 64 bits exactly",
                "a number that would be rounded (send it as a string if the tool accepts one)",
            )]));
        }
        let refuses = !self.allow_unknown.of(&item.origin.server);
        let defaults = self.required_defaults.of(&item.origin.server);
        if let (None, Some(short)) = (item.fixed_arguments(), call.arguments().unparsed_view())
            && !(refuses && schema.closed && has_undeclared(&schema.tree, &short))
            && schema::fits_short(&input.0, &short)
        {
            return Ok(CheckResult::Ready(Vec::new()));
        }
        let value = call.arguments().value();
        let Some(fixed) = item.fixed_arguments() else {
            let strangers = match refuses && schema.closed {
                true => undeclared_members(&schema.tree, value),
                false => Vec::new(),
            };
            return Ok(with_undeclared(
                schema::check(&input.0, value, defaults),
                strangers,
            ));
        };
        let fixed = FixedArguments::new(fixed, &schema.tree);
        let mut strangers = fixed.sent_by_caller(value);
        if refuses {
            strangers.extend(undeclared_in_closed(
                &fixed.visible_schema,
                &fixed.without(value),
            ));
        }
        let whole = Value::Object(fixed.with(value));
        let found = match schema::check(&input.0, &whole, defaults) {
            CheckResult::Ready(found) => CheckResult::Ready(fixed.without_values(found)),
            CheckResult::Pending(found) => {
                CheckResult::Pending(Box::pin(
                    async move { Ok(fixed.without_values(found.await?)) },
                ))
            }
        };
        Ok(with_undeclared(found, strangers))
    }
}

fn with_undeclared(found: CheckResult, strangers: Vec<SchemaViolation>) -> CheckResult {
    match found {
        CheckResult::Ready(found) => CheckResult::Ready(joined(found, strangers)),
        CheckResult::Pending(found) => {
            CheckResult::Pending(Box::pin(async { Ok(joined(found.await?, strangers)) }))
        }
    }
}

fn joined(mut found: Vec<SchemaViolation>, more: Vec<SchemaViolation>) -> Vec<SchemaViolation> {
    found.extend(more);
    found.truncate(schema::MAX_SCHEMA_PROBLEMS);
    found
}

fn refused(why: String) -> Error {
    Error::new(
        ErrorKind::Refused(RefusalReason::Rule),
        format!("refused: {why}"),
    )
}

fn into_result(of: &str, found: Vec<SchemaViolation>) -> Result<(), Error> {
    if found.is_empty() {
        return Ok(());
    }
    let explained = SchemaProblems { problems: found };
    let text = format!("invalid arguments for {of}: {}", explained.sentence());
    Err(Error::new(
        ErrorKind::InvalidArguments(explained.problems),
        text,
    ))
}

fn verdict(of: &str, found: Vec<SchemaViolation>) -> RuleDecision {
    match into_result(of, found) {
        Ok(()) => RuleDecision::Allow,
        Err(error) => RuleDecision::Deny(error),
    }
}

impl Rule for ArgumentValidation {
    fn name(&self) -> &'static str {
        "arguments"
    }

    fn may_hide_items(&self) -> bool {
        false
    }

    fn allows_subscription(&self, item: &Item, uri: &str) -> bool {
        self.of_uri(item, uri).is_empty()
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        let of = match call.op {
            Op::Resource => "the resource",
            _ => item.def.name(),
        };
        match self.check(call, item) {
            Err(error) => MaybeReady::Ready(RuleDecision::Deny(error)),
            Ok(CheckResult::Ready(found)) => MaybeReady::Ready(verdict(of, found)),
            Ok(CheckResult::Pending(found)) => MaybeReady::Pending(Box::pin(async move {
                match found.await {
                    Ok(found) => verdict(of, found),
                    Err(why @ CheckFailure::TimedOut(_)) => RuleDecision::Deny(refused(format!(
                        "the arguments are too complex: {why}; send fewer or shorter values"
                    ))),
                    Err(why @ CheckFailure::Stopped) => RuleDecision::Deny(refused(format!(
                        "the arguments cannot be checked: {why}; report it to the operator"
                    ))),
                }
            })),
        }
    }
}

/// Keywords by which a schema accepts, or may accept, members that `properties` does not name.
const OPEN_SCHEMA_KEYWORDS: [&str; 14] = [
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "$ref",
    "$dynamicRef",
    "dependentSchemas",
    "dependencies",
];

/// Reports whether a JSON Schema of an object only accepts the members that it names.
#[doc(hidden)]
pub fn is_closed(schema: &Value) -> bool {
    schema.get("properties").is_some_and(Value::is_object)
        && !OPEN_SCHEMA_KEYWORDS
            .iter()
            .any(|key| schema.get(key).is_some())
}

/// Returns members that a closed schema does not name.
///
/// An unexpected member is a channel to leak secrets. `{"type": "object"}` alone accepts all members, as the MCP
/// specification says.
fn undeclared_in_closed(schema: &Value, arguments: &Value) -> Vec<SchemaViolation> {
    match is_closed(schema) {
        true => undeclared_members(schema, arguments),
        false => Vec::new(),
    }
}

/// Returns members that `properties` does not name.
fn undeclared_members(schema: &Value, arguments: &Value) -> Vec<SchemaViolation> {
    let Some(known) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let arguments = arguments.as_object().into_iter().flatten();
    let unknown = arguments.filter(|(name, _)| !known.contains_key(*name));
    unknown
        .take(schema::MAX_SCHEMA_PROBLEMS)
        .map(|(name, value)| undeclared_problem(known, name, value))
        .collect()
}

/// Reports whether raw arguments have members that `properties` does not name.
fn has_undeclared(schema: &Value, arguments: &JsonView<'_>) -> bool {
    let known = schema.get("properties").and_then(Value::as_object);
    known.is_some_and(|known| {
        let mut names = arguments.members();
        names.any(|(name, _)| !known.contains_key(&*name))
    })
}

fn undeclared_problem(known: &Map<String, Value>, name: &str, value: &Value) -> SchemaViolation {
    let text = |text: String| schema::truncate(&sanitize_text(&text));
    SchemaViolation::new(
        text(schema::pointer_step("", name)),
        text(schema::unknown_member("argument", name, Some(known))),
        schema::describe_value(value, true),
    )
}
