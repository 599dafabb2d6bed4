//! Explanations of values that the plain checks reject, for builds without a compiled validator.

use super::{PlainCheck, PlainSchema, TYPES};
use crate::{
    sanitize::text::sanitize_text,
    validation::schema::explain::{
        MAX_SCHEMA_PROBLEMS, article, describe_value, is_secret_schema, pointer_step, subschema_at,
        truncate, unknown_member,
    },
};
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;
use toolgate_core::SchemaViolation;
use toolgate_protocol::plural::count_of;

/// Collector of problems, with the schema that decides which values are secret.
struct ProblemCollector<'a> {
    tree: &'a Value,
    found: Vec<SchemaViolation>,
}

impl PlainSchema {
    /// Returns the first problems of a value. It is not empty if the checks reject the value.
    pub(in crate::validation::schema) fn problems(
        &self,
        tree: &Value,
        value: &Value,
    ) -> Vec<SchemaViolation> {
        let found = Vec::new();
        let mut collector = ProblemCollector { tree, found };
        collector.schema(self, value, "");
        collector.found.truncate(MAX_SCHEMA_PROBLEMS);
        collector.found
    }
}

impl ProblemCollector<'_> {
    fn schema(&mut self, plain: &PlainSchema, value: &Value, path: &str) {
        for check in &plain.0 {
            if self.found.len() >= MAX_SCHEMA_PROBLEMS {
                return;
            }
            if !check.accepts(value) {
                self.check(check, value, path);
            }
        }
    }

    fn check(&mut self, check: &PlainCheck, value: &Value, path: &str) {
        match (check, value) {
            (PlainCheck::Properties(named, others), Value::Object(map)) => {
                self.members(named, others, map, path);
            }
            (PlainCheck::Each(plain), Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    self.schema(plain, item, &format!("{path}/{at}"));
                }
            }
            (PlainCheck::All(all), _) => {
                all.iter().for_each(|plain| self.schema(plain, value, path));
            }
            (PlainCheck::Required(names), Value::Object(map)) => {
                for name in names.iter().filter(|name| !map.contains_key(*name)) {
                    let expected = "a value, because it is required".to_owned();
                    self.add(&pointer_step(path, name), &expected, "nothing".to_owned());
                }
            }
            _ => {
                let place = subschema_at(self.tree, path);
                let got = describe_value(value, place.is_some_and(is_secret_schema));
                self.add(path, &expected(check), got);
            }
        }
    }

    fn members(
        &mut self,
        named: &[(String, PlainSchema)],
        others: &PlainSchema,
        map: &Map<String, Value>,
        path: &str,
    ) {
        for (name, value) in map {
            let path = pointer_step(path, name);
            match named.binary_search_by(|(known, _)| known.as_str().cmp(name)) {
                Ok(at) => self.schema(&named[at].1, value, &path),
                Err(_) if matches!(others.0.as_slice(), [PlainCheck::Never]) => {
                    let known = named.iter().map(|(name, _)| (name.clone(), Value::Null));
                    let known: Map<String, Value> = known.collect();
                    let expected = unknown_member("member", name, Some(&known));
                    self.add(&path, &expected, describe_value(value, true));
                }
                Err(_) => self.schema(others, value, &path),
            }
        }
    }

    fn add(&mut self, path: &str, expected: &str, received: String) {
        self.found.push(SchemaViolation::new(
            truncate(&sanitize_text(path)),
            truncate(&sanitize_text(expected)),
            received,
        ));
    }
}

fn expected(check: &PlainCheck) -> String {
    match check {
        PlainCheck::Never => "nothing here".to_owned(),
        PlainCheck::Type(types) => {
            let names = TYPES.iter().enumerate();
            let names = names.filter(|(bit, _)| types & (1 << bit) != 0);
            let names: Vec<String> = names.map(|(_, name)| article(name)).collect();
            names.join(" or ")
        }
        PlainCheck::Enum(values) => match values.as_slice() {
            [one] => format!("exactly {one}"),
            _ => format!("one of {}", Value::Array(values.clone())),
        },
        PlainCheck::Limit(limit, holds) => bound(limit, *holds),
        PlainCheck::Length(least, most) => count(*least, *most, "character"),
        PlainCheck::Items(least, most) => count(*least, *most, "item"),
        PlainCheck::Members(least, most) => count(*least, *most, "member"),
        PlainCheck::Any(_) | PlainCheck::One(_) => {
            "a value that fits one of the forms in the schema".to_owned()
        }
        PlainCheck::Not(_) => "another value, because the schema excludes this one".to_owned(),
        _ => "a value that fits the schema".to_owned(),
    }
}

fn bound(limit: &Number, holds: fn(Ordering) -> bool) -> String {
    let words = match (holds(Ordering::Greater), holds(Ordering::Equal)) {
        (true, true) => "at least",
        (true, false) => "more than",
        (false, true) => "at most",
        (false, false) => "less than",
    };
    format!("{words} {limit}")
}

fn count(least: u64, most: u64, of: &str) -> String {
    match most {
        u64::MAX => format!("at least {}", count_of(least, of)),
        most => format!("at most {}", count_of(most, of)),
    }
}
