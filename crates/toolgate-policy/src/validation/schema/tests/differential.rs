//! Differential fuzz test of the fast path against the crate `jsonschema`, over random schemas and instances near them.
//!
//! Every result has to be equal. A result that is only stricter could not be allowed in a part of a schema: below `not`
//! and `oneOf`, it makes the whole laxer.

mod coverage;
mod instances;
mod random;
mod schemas;
mod spelling;

use super::super::{
    dialect::SchemaDraft,
    full::{MAX_REGEX_BYTES, options},
    plain::PlainSchema,
};
use coverage::Coverage;

use random::Random;
use serde_json::Value;
use toolgate_core::Json;
use toolgate_protocol::json::JsonLimits;

/// Cases of an ordinary run: pairs of a schema with a fast path and an instance.
const CASES: u64 = 20_000;
/// Instances for each schema.
const INSTANCES_PER_SCHEMA: u64 = 10;

/// Returns a number from the environment.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// `TOOLGATE_FUZZ_CASES` and `TOOLGATE_FUZZ_SEED` change the run.
#[test]
#[allow(clippy::print_stdout, reason = "the figures of a run are its report")]
fn fuzz_the_fast_path_agrees_with_jsonschema() {
    let seed = number("TOOLGATE_FUZZ_SEED", 1);
    let cases = number("TOOLGATE_FUZZ_CASES", CASES);
    let began = std::time::Instant::now();
    let mut coverage = Coverage::default();
    let mut nth = 0;
    while coverage.cases < cases {
        let random = Random::new(seed, nth);
        check_schema(
            &random,
            &mut coverage,
            &format!("seed {seed}, schema {nth}"),
        );
        nth += 1;
    }
    println!(
        "seed {seed}: {coverage}, {} ms",
        began.elapsed().as_millis()
    );
    coverage.check();
}

/// Compares one random schema on instances near it.
fn check_schema(random: &Random, coverage: &mut Coverage, place: &str) {
    let draft = random.pick(&[
        SchemaDraft::Draft202012,
        SchemaDraft::Draft202012,
        SchemaDraft::Draft7,
    ]);
    let schema = schemas::schema(random, draft);
    // Numbers and strings of a schema pass the strict reader too.
    let schema = read(&spelling::spell(random, &schema)).to_value();
    coverage.schemas += 1;
    let Some(plain) = PlainSchema::of(&schema, draft) else {
        return;
    };
    coverage.add_schema(&schema);
    let compiled = options(draft, MAX_REGEX_BYTES).build(&schema);
    let compiled = compiled.unwrap_or_else(|why| panic!("{place}: plain, but {why}: {schema}"));
    for _ in 0..INSTANCES_PER_SCHEMA {
        let text = spelling::spell(random, &instances::near(random, &schema));
        let json = read(&text);
        let value = json.to_value();
        let expected = compiled.is_valid(&value);
        for (form, accepted) in [
            ("tree", plain.accepts(&value)),
            ("text", plain.accepts_text(&json.view())),
        ] {
            let kind = if accepted { "laxer" } else { "stricter" };
            assert_eq!(
                accepted, expected,
                "{place}: the fast path is {kind} on the {form} {text} in {draft:?} {schema}"
            );
        }
        coverage.add_result(expected);
    }
}

fn read(text: &str) -> Json {
    let limits = JsonLimits {
        depth: JsonLimits::MAX_DEPTH,
        ..JsonLimits::default()
    };
    Json::read(text.as_bytes().to_vec(), &limits).unwrap_or_else(|why| panic!("{why}: {text}"))
}

/// Returns the subschemas of a schema that the generator nests, the schema itself included.
fn each_schema<'a>(schema: &'a Value, found: &mut dyn FnMut(&'a serde_json::Map<String, Value>)) {
    let Value::Object(schema) = schema else {
        return;
    };
    found(schema);
    for (key, value) in schema {
        match (key.as_str(), value) {
            ("items" | "not" | "additionalProperties", part) => each_schema(part, found),
            ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => {
                parts.iter().for_each(|part| each_schema(part, found));
            }
            ("properties", Value::Object(parts)) => {
                parts.values().for_each(|part| each_schema(part, found));
            }
            _ => {}
        }
    }
}
