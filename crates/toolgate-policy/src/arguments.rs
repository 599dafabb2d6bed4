//! Arguments fit what the tool, prompt or resource takes before anybody is asked and before anything leaves.

mod prompt;
mod uri;

use crate::{
    PerServer,
    schema::{self, Bounds, Explained, Schema, problems},
    text::clean,
};
use serde_json::{Map, Value};
use toolgate_core::{
    Call, Caller, Decision, Error, Item, Json, Kind, Op, Problem, Refusal, Rule, Verdict,
};

/// Checks arguments: of a tool against its `inputSchema`, of a prompt against what it names, and URIs of resources.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// Whether arguments that a schema does not name are let through.
    pub unknown: PerServer<bool>,
}

impl Default for Arguments {
    /// Unknown arguments are refused where the schema names its arguments and nothing in it leaves it open.
    fn default() -> Arguments {
        Arguments {
            unknown: PerServer::all(false),
        }
    }
}

/// The compiled `inputSchema` of an item.
pub(crate) struct Input(pub(crate) Result<Schema, String>);

impl Input {
    pub(crate) fn of(item: &Item, bounds: &Bounds) -> Input {
        Input(Schema::compile(&item.def.input_schema(), bounds))
    }
}

impl Arguments {
    /// Whether arguments fit a tool.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn fit(&self, item: &Item, arguments: &Json) -> Result<(), Error> {
        let caller = Caller::new("operator");
        self.check(
            &Call::tool("edit", caller, item.def.name(), arguments.clone()),
            item,
        )
    }

    fn check(&self, call: &Call, item: &Item) -> Result<(), Error> {
        let (found, of) = match call.op {
            Op::Tool => (self.of_tool(call, item)?, item.def.name()),
            Op::Prompt => (
                prompt::problems(&item.def, call.arguments().raw()),
                item.def.name(),
            ),
            Op::Resource => (uri::problems(call.name()), "the resource"),
            Op::Complete(_) => (
                prompt::completed(&item.def, call.arguments().raw()),
                item.def.name(),
            ),
        };
        if found.is_empty() {
            return Ok(());
        }
        let explained = Explained { problems: found };
        let text = format!("invalid arguments for {of}: {}", explained.sentence());
        Err(Error::new(Kind::Invalid(explained.problems), text))
    }

    fn of_tool(&self, call: &Call, item: &Item) -> Result<Vec<Problem>, Error> {
        let input = item.memo(|item| Input::of(item, &Bounds::default()));
        let schema = input.0.as_ref().map_err(|why| {
            Error::new(
                Kind::Refused(Refusal::Rule),
                format!("refused: the inputSchema of the tool cannot be used: {why}"),
            )
        })?;
        let mut found = Vec::new();
        if call.arguments().raw().lossy() {
            found.push(Problem {
                path: String::new(),
                expected: "numbers that fit 64 bits exactly".to_owned(),
                got: "a number that would be rounded; send it as a string if the tool takes one"
                    .to_owned(),
            });
        } else {
            let value = call.arguments().value();
            found.extend(problems(schema, value));
            if !self.unknown.of(&item.origin.server) {
                found.extend(unknown(&schema.tree, value));
            }
        }
        found.truncate(schema::MOST);
        Ok(found)
    }
}

impl Rule for Arguments {
    fn name(&self) -> &'static str {
        "arguments"
    }

    fn hides_some(&self) -> bool {
        false
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> Decision<'a> {
        Decision::Now(match self.check(call, item) {
            Ok(()) => Verdict::Allow,
            Err(error) => Verdict::Refuse(error),
        })
    }
}

/// Keywords by which a schema takes members that `properties` does not name, or may.
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

/// Members that the schema does not name, where it names some and nothing leaves it open.
///
/// A member that nobody expects is a way to carry secrets out. `{"type": "object"}` alone takes all members, as the
/// specification of the protocol says.
fn unknown(schema: &Value, arguments: &Value) -> Vec<Problem> {
    let Some(known) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    if OPEN.iter().any(|key| schema.get(key).is_some()) {
        return Vec::new();
    }
    let arguments = arguments.as_object().into_iter().flatten();
    let unknown = arguments.filter(|(name, _)| !known.contains_key(*name));
    unknown
        .take(schema::MOST)
        .map(|(name, value)| strange(known, name, value))
        .collect()
}

fn strange(known: &Map<String, Value>, name: &str, value: &Value) -> Problem {
    let text = |text: String| schema::short(&clean(&text));
    Problem {
        path: text(schema::step("", name)),
        expected: text(schema::stranger("argument", name, Some(known))),
        got: schema::kind(value, true),
    }
}
