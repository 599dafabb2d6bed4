//! Argument validation, before approval and before anything is sent.

mod fixed;
mod prompt;
pub(crate) mod search;
mod uri;

use crate::{
    PerServer,
    schema::{self, Bounds, Checked, Compiled, Explained, RequiredDefaults},
    text::clean,
};
use fixed::Fixed;
use serde_json::{Map, Value};
use std::sync::Arc;
use toolgate_core::{
    Call, Caller, Decision, Error, Item, ItemKind, Json, Kind, Op, Problem, Refusal, Rule, Verdict,
    View,
};
pub use uri::UriSpelling;

/// Rule that validates arguments: of tools against `inputSchema`, of prompts against their declared arguments, and the
/// URIs of resources.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// Permission for arguments that a schema does not name, by server.
    pub unknown: PerServer<bool>,
    /// Allowed spellings of resource URIs, by server.
    pub uris: PerServer<UriSpelling>,
    /// Permission to leave out required arguments with a default, by server. The sent arguments do not change.
    pub required_defaults: PerServer<RequiredDefaults>,
}

impl Default for Arguments {
    /// Returns the defaults: unknown arguments are rejected if the schema is closed (see [`is_closed`]). Required
    /// arguments with a default may be left out.
    fn default() -> Arguments {
        Arguments {
            unknown: PerServer::all(false),
            uris: PerServer::default(),
            required_defaults: PerServer::default(),
        }
    }
}

/// Compiled `inputSchema` of an item.
pub(crate) struct Input(pub(crate) Arc<Compiled>);

impl Input {
    pub(crate) fn of(item: &Item, bounds: &Bounds) -> Input {
        Input(schema::compiled(&item.taken(), bounds))
    }
}

impl Arguments {
    /// Validates arguments of a tool as far as that is fast. The call validates them again in full.
    ///
    /// # Errors
    /// The reason why they are invalid.
    pub fn fit(&self, item: &Item, arguments: &Json) -> Result<(), Error> {
        let (caller, name) = (Caller::new("operator"), item.def.name());
        let call = Call::tool("edit", caller, name, arguments.clone());
        match self.check(&call, item)? {
            Checked::Now(found) => fine(name, found),
            Checked::Soon(_) => Ok(()),
        }
    }

    fn check(&self, call: &Call, item: &Item) -> Result<Checked, Error> {
        Ok(Checked::Now(match call.op {
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

    fn of_uri(&self, item: &Item, uri: &str) -> Vec<Problem> {
        uri::problems(uri, self.uris.of(&item.origin.server))
    }

    fn of_tool(&self, call: &Call, item: &Item) -> Result<Checked, Error> {
        let input = item.memo(|item| Input::of(item, &Bounds::default()));
        let schema =
            input.0.as_ref().as_ref().map_err(|why| {
                refused(format!("the inputSchema of the tool cannot be used: {why}"))
            })?;
        if call.arguments().lossy() {
            return Ok(Checked::Now(vec![Problem {
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
            return Ok(Checked::Now(Vec::new()));
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
        let fixed = Fixed::new(fixed, &schema.tree);
        let mut strangers = fixed.sent(value);
        if refuses {
            strangers.extend(unknown(&fixed.seen, &fixed.without(value)));
        }
        let whole = Value::Object(fixed.with(value));
        let found = match schema::check(&input.0, &whole, defaults) {
            Checked::Now(found) => Checked::Now(fixed.unsaid(found)),
            Checked::Soon(found) => {
                Checked::Soon(Box::pin(async move { Ok(fixed.unsaid(found.await?)) }))
            }
        };
        Ok(with_strangers(found, strangers))
    }
}

fn with_strangers(found: Checked, strangers: Vec<Problem>) -> Checked {
    match found {
        Checked::Now(found) => Checked::Now(joined(found, strangers)),
        Checked::Soon(found) => {
            Checked::Soon(Box::pin(async { Ok(joined(found.await?, strangers)) }))
        }
    }
}

fn joined(mut found: Vec<Problem>, more: Vec<Problem>) -> Vec<Problem> {
    found.extend(more);
    found.truncate(schema::MOST);
    found
}

fn refused(why: String) -> Error {
    Error::new(Kind::Refused(Refusal::Rule), format!("refused: {why}"))
}

fn fine(of: &str, found: Vec<Problem>) -> Result<(), Error> {
    if found.is_empty() {
        return Ok(());
    }
    let explained = Explained { problems: found };
    let text = format!("invalid arguments for {of}: {}", explained.sentence());
    Err(Error::new(Kind::Invalid(explained.problems), text))
}

fn verdict(of: &str, found: Vec<Problem>) -> Verdict {
    match fine(of, found) {
        Ok(()) => Verdict::Allow,
        Err(error) => Verdict::Refuse(error),
    }
}

impl Rule for Arguments {
    fn name(&self) -> &'static str {
        "arguments"
    }

    fn hides_some(&self) -> bool {
        false
    }

    fn hears(&self, item: &Item, uri: &str) -> bool {
        self.of_uri(item, uri).is_empty()
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> Decision<'a> {
        let of = match call.op {
            Op::Resource => "the resource",
            _ => item.def.name(),
        };
        match self.check(call, item) {
            Err(error) => Decision::Now(Verdict::Refuse(error)),
            Ok(Checked::Now(found)) => Decision::Now(verdict(of, found)),
            Ok(Checked::Soon(found)) => Decision::Later(Box::pin(async move {
                match found.await {
                    Ok(found) => verdict(of, found),
                    Err(why) => Verdict::Refuse(refused(format!(
                        "the arguments are too complex to validate: {why}"
                    ))),
                }
            })),
        }
    }
}

/// Keywords by which a schema accepts, or may accept, members that `properties` does not name.
const OPEN: [&str; 14] = [
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
        && !OPEN.iter().any(|key| schema.get(key).is_some())
}

/// Returns members that a closed schema does not name.
///
/// An unexpected member is a channel to leak secrets. `{"type": "object"}` alone accepts all members, as the MCP
/// specification says.
fn unknown(schema: &Value, arguments: &Value) -> Vec<Problem> {
    match is_closed(schema) {
        true => strangers(schema, arguments),
        false => Vec::new(),
    }
}

/// Returns members that `properties` does not name.
fn strangers(schema: &Value, arguments: &Value) -> Vec<Problem> {
    let Some(known) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let arguments = arguments.as_object().into_iter().flatten();
    let unknown = arguments.filter(|(name, _)| !known.contains_key(*name));
    unknown
        .take(schema::MOST)
        .map(|(name, value)| strange(known, name, value))
        .collect()
}

/// Reports whether raw arguments have members that `properties` does not name.
fn has_strangers(schema: &Value, arguments: &View<'_>) -> bool {
    let known = schema.get("properties").and_then(Value::as_object);
    known.is_some_and(|known| {
        let mut names = arguments.members();
        names.any(|(name, _)| !known.contains_key(&*name))
    })
}

fn strange(known: &Map<String, Value>, name: &str, value: &Value) -> Problem {
    let text = |text: String| schema::short(&clean(&text));
    Problem {
        path: text(schema::step("", name)),
        expected: text(schema::stranger("argument", name, Some(known))),
        got: schema::kind(value, true),
    }
}
