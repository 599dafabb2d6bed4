//! Argument validation, before approval and before anything is sent.

mod fixed;
mod prompt;
pub(crate) mod search;
mod uri;

use crate::{
    PerServer,
    schema::{self, CheckResult, CompiledSchema, RequiredDefaults, SchemaBounds, SchemaProblems},
    text::clean,
};
use fixed::FixedArguments;
use serde_json::{Map, Value};
use std::sync::Arc;
use toolgate_core::{
    Call, Caller, Error, ErrorKind, Item, ItemKind, Json, JsonView, MaybeReady, Op, RefusalReason,
    Rule, RuleDecision, SchemaViolation,
};
pub use uri::UriSpelling;

/// Rule that validates arguments: of tools against `inputSchema`, of prompts against their declared arguments, and the
/// URIs of resources.
#[derive(Clone, Debug)]
pub struct ArgumentValidation {
    /// Permission for arguments that a schema does not name, by server.
    pub unknown: PerServer<bool>,
    /// Allowed spellings of resource URIs, by server.
    pub uris: PerServer<UriSpelling>,
    /// Permission to leave out required arguments with a default, by server. The sent arguments do not change.
    pub required_defaults: PerServer<RequiredDefaults>,
}

impl Default for ArgumentValidation {
    /// Returns the defaults: unknown arguments are rejected if the schema is closed (see [`is_closed`]). Required
    /// arguments with a default may be left out.
    fn default() -> ArgumentValidation {
        ArgumentValidation {
            unknown: PerServer::all(false),
            uris: PerServer::default(),
            required_defaults: PerServer::default(),
        }
    }
}

/// Compiled `inputSchema` of an item.
pub(crate) struct CompiledInputSchema(pub(crate) Arc<CompiledSchema>);

impl CompiledInputSchema {
    pub(crate) fn of(item: &Item, bounds: &SchemaBounds) -> CompiledInputSchema {
        CompiledInputSchema(schema::compiled(&item.taken(), bounds))
    }
}

impl ArgumentValidation {
    /// Validates arguments of a tool as far as that is fast. The call validates them again in full.
    ///
    /// # Errors
    /// The reason why they are invalid.
    pub fn fit(&self, item: &Item, arguments: &Json) -> Result<(), Error> {
        let (caller, name) = (Caller::new("operator"), item.def.name());
        let call = Call::tool("edit", caller, name, arguments.clone());
        match self.check(&call, item)? {
            CheckResult::Now(found) => fine(name, found),
            CheckResult::Soon(_) => Ok(()),
        }
    }

    fn check(&self, call: &Call, item: &Item) -> Result<CheckResult, Error> {
        Ok(CheckResult::Now(match call.op {
            Op::Tool => return self.of_tool(call, item),
            Op::Prompt => prompt::problems(&item.def, call.arguments().raw()),
            Op::Resource => self.of_uri(item, call.name()),
            // A completion reference to a resource names a template, or a URI that matches one.
            Op::Complete(_)
                if item.kind() == ItemKind::Template && call.name() != item.def.name() =>
            {
                joined(
                    self.of_uri(item, call.name()),
                    prompt::completed(&item.def, call.arguments().raw()),
                )
            }
            Op::Complete(_) => prompt::completed(&item.def, call.arguments().raw()),
        }))
    }

    fn of_uri(&self, item: &Item, uri: &str) -> Vec<SchemaViolation> {
        uri::problems(uri, self.uris.of(&item.origin.server))
    }

    fn of_tool(&self, call: &Call, item: &Item) -> Result<CheckResult, Error> {
        let input = item.memo(|item| CompiledInputSchema::of(item, &SchemaBounds::default()));
        let schema =
            input.0.as_ref().as_ref().map_err(|why| {
                refused(format!("the inputSchema of the tool cannot be used: {why}"))
            })?;
        if call.arguments().lossy() {
            return Ok(CheckResult::Now(vec![SchemaViolation {
                path: String::new(),
                expected: "numbers that fit 64 bits exactly".to_owned(),
                got: "a number that would be rounded; send it as a string if the tool takes one"
                    .to_owned(),
            }]));
        }
        let refuses = !self.unknown.of(&item.origin.server);
        let defaults = self.required_defaults.of(&item.origin.server);
        if let (None, Some(short)) = (item.fixed(), call.arguments().short())
            && !(refuses && schema.closed && has_strangers(&schema.tree, &short))
            && schema::fits_short(&input.0, &short)
        {
            return Ok(CheckResult::Now(Vec::new()));
        }
        let value = call.arguments().value();
        let Some(fixed) = item.fixed() else {
            let strangers = match refuses && schema.closed {
                true => strangers(&schema.tree, value),
                false => Vec::new(),
            };
            return Ok(with_strangers(
                schema::check(&input.0, value, defaults),
                strangers,
            ));
        };
        let fixed = FixedArguments::new(fixed, &schema.tree);
        let mut strangers = fixed.sent(value);
        if refuses {
            strangers.extend(unknown(&fixed.seen, &fixed.without(value)));
        }
        let whole = Value::Object(fixed.with(value));
        let found = match schema::check(&input.0, &whole, defaults) {
            CheckResult::Now(found) => CheckResult::Now(fixed.unsaid(found)),
            CheckResult::Soon(found) => {
                CheckResult::Soon(Box::pin(async move { Ok(fixed.unsaid(found.await?)) }))
            }
        };
        Ok(with_strangers(found, strangers))
    }
}

fn with_strangers(found: CheckResult, strangers: Vec<SchemaViolation>) -> CheckResult {
    match found {
        CheckResult::Now(found) => CheckResult::Now(joined(found, strangers)),
        CheckResult::Soon(found) => {
            CheckResult::Soon(Box::pin(async { Ok(joined(found.await?, strangers)) }))
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

fn fine(of: &str, found: Vec<SchemaViolation>) -> Result<(), Error> {
    if found.is_empty() {
        return Ok(());
    }
    let explained = SchemaProblems { problems: found };
    let text = format!("invalid arguments for {of}: {}", explained.sentence());
    Err(Error::new(ErrorKind::Invalid(explained.problems), text))
}

fn verdict(of: &str, found: Vec<SchemaViolation>) -> RuleDecision {
    match fine(of, found) {
        Ok(()) => RuleDecision::Allow,
        Err(error) => RuleDecision::Refuse(error),
    }
}

impl Rule for ArgumentValidation {
    fn name(&self) -> &'static str {
        "arguments"
    }

    fn hides_some(&self) -> bool {
        false
    }

    fn hears(&self, item: &Item, uri: &str) -> bool {
        self.of_uri(item, uri).is_empty()
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        let of = match call.op {
            Op::Resource => "the resource",
            _ => item.def.name(),
        };
        match self.check(call, item) {
            Err(error) => MaybeReady::Now(RuleDecision::Refuse(error)),
            Ok(CheckResult::Now(found)) => MaybeReady::Now(verdict(of, found)),
            Ok(CheckResult::Soon(found)) => MaybeReady::Later(Box::pin(async move {
                match found.await {
                    Ok(found) => verdict(of, found),
                    Err(why) => RuleDecision::Refuse(refused(format!(
                        "the arguments are too complex to validate: {why}"
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

/// Reports whether a schema only accepts the members that it names.
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
fn unknown(schema: &Value, arguments: &Value) -> Vec<SchemaViolation> {
    match is_closed(schema) {
        true => strangers(schema, arguments),
        false => Vec::new(),
    }
}

/// Returns members that `properties` does not name.
fn strangers(schema: &Value, arguments: &Value) -> Vec<SchemaViolation> {
    let Some(known) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let arguments = arguments.as_object().into_iter().flatten();
    let unknown = arguments.filter(|(name, _)| !known.contains_key(*name));
    unknown
        .take(schema::MAX_SCHEMA_PROBLEMS)
        .map(|(name, value)| strange(known, name, value))
        .collect()
}

/// Reports whether raw arguments have members that `properties` does not name.
fn has_strangers(schema: &Value, arguments: &JsonView<'_>) -> bool {
    let known = schema.get("properties").and_then(Value::as_object);
    known.is_some_and(|known| {
        let mut names = arguments.members();
        names.any(|(name, _)| !known.contains_key(&*name))
    })
}

fn strange(known: &Map<String, Value>, name: &str, value: &Value) -> SchemaViolation {
    let text = |text: String| schema::short(&clean(&text));
    SchemaViolation {
        path: text(schema::step("", name)),
        expected: text(schema::stranger("argument", name, Some(known))),
        got: schema::kind(value, true),
    }
}
