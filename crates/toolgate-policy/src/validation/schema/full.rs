//! The complete checker: schemas are compiled by the `jsonschema` crate, within bounds.

use super::{
    PATTERN_KEYWORD, SchemaBounds, SchemaValidator, backtracking,
    dialect::SchemaDraft,
    explain::{
        MAX_SCHEMA_PROBLEMS, article, describe_value, is_secret_schema, names, pointer_step,
        subschema_at, there_are, truncate, unknown_member,
    },
    position, repair, truncate_message,
};
use crate::sanitize::text::sanitize_text;
use jsonschema::{
    Draft, PatternOptions, ValidationError, ValidationOptions, Validator,
    error::{TypeKind, ValidationErrorKind as Wrong},
};
use serde_json::Value;
use std::sync::OnceLock;
use toolgate_core::SchemaViolation;
use toolgate_protocol::plural::count_of;

/// Maximum size of one compiled regular expression, and of its cache, in bytes.
pub(super) const MAX_REGEX_BYTES: usize = 512 * 1024;
/// Maximum size of all compiled regular expressions of a schema, in bytes.
const MAX_SCHEMA_REGEX_BYTES: usize = 4 * 1024 * 1024;

/// Advice to the author of a schema that cannot be used.
pub(super) const AUTHOR_ADVICE: &str = "correct it";
/// Advice to others about a schema that cannot be used.
pub(crate) const USER_ADVICE: &str = "the author of the server has to correct it";

/// The compiled validator of a schema, built on first use.
#[derive(Default)]
pub(super) struct CompiledChecker(OnceLock<Result<Validator, String>>);

impl SchemaDraft {
    fn of_compiler(self) -> Draft {
        match self {
            SchemaDraft::Draft6 => Draft::Draft6,
            SchemaDraft::Draft7 => Draft::Draft7,
            SchemaDraft::Draft201909 => Draft::Draft201909,
            SchemaDraft::Draft202012 => Draft::Draft202012,
        }
    }
}

/// Compiles a schema that is not plain. Keywords that cannot be checked are skipped.
///
/// # Errors
/// Returns the reason if the schema cannot be used even without them.
pub(super) fn compile(
    schema: SchemaValidator,
    bounds: &SchemaBounds,
) -> Result<SchemaValidator, String> {
    match schema.validator() {
        Ok(_) => Ok(schema),
        Err(_) => schema.repaired(bounds),
    }
}

impl SchemaValidator {
    /// Returns the schema without the keywords that cannot be checked.
    fn repaired(self, bounds: &SchemaBounds) -> Result<SchemaValidator, String> {
        let max_bytes = self.max_pattern_bytes();
        let repaired = repair::repair(self.tree, self.draft, max_bytes);
        let mut schema = SchemaValidator::of(repaired.tree, self.draft, bounds)?;
        let holds_keyword =
            |part: &position::LocatedSchema<'_>| part.schema.contains_key(PATTERN_KEYWORD);
        schema.backtracks = position::schemas(&schema.tree).iter().any(holds_keyword);
        schema.backtracking_names = repaired.backtracking_names;
        schema.skipped = repaired.skipped;
        schema.validator()?;
        Ok(schema)
    }

    /// Returns the compiled validator, built on first use, or at once if the schema is not plain.
    ///
    /// # Errors
    /// Returns the reason if the schema does not compile; a plain schema always does.
    pub(crate) fn validator(&self) -> Result<&Validator, String> {
        let made = self.compiled.0.get_or_init(|| self.build());
        made.as_ref().map_err(Clone::clone)
    }

    fn max_pattern_bytes(&self) -> usize {
        MAX_REGEX_BYTES.min(MAX_SCHEMA_REGEX_BYTES / self.patterns.max(1))
    }

    fn build(&self) -> Result<Validator, String> {
        #[cfg(test)]
        super::tests::BUILT.set(super::tests::BUILT.get() + 1);
        let max_bytes = self.max_pattern_bytes();
        let options = options(self.draft, max_bytes);
        let options = match self.backtracking_names {
            true => options.with_pattern_options(
                PatternOptions::fancy_regex()
                    .backtrack_limit(backtracking::MAX_NAME_STEPS)
                    .size_limit(max_bytes)
                    .dfa_size_limit(max_bytes),
            ),
            false => options,
        };
        let built = options.build(&self.tree);
        built.map_err(|error| truncate_message(&error.to_string()))
    }
}

/// Returns the compiler options, with linear-time regular expressions of at most `max_pattern_bytes` each.
pub(super) fn options(draft: SchemaDraft, max_pattern_bytes: usize) -> ValidationOptions<'static> {
    let patterns = PatternOptions::regex()
        .size_limit(max_pattern_bytes)
        .dfa_size_limit(max_pattern_bytes);
    jsonschema::options()
        .with_draft(draft.of_compiler())
        .offline()
        // A value that is itself a regular expression would be compiled, however large it becomes.
        .with_format("regex", |_: &str| true)
        .with_pattern_options(patterns)
        .with_keyword(PATTERN_KEYWORD, move |_, value, _| {
            backtracking::keyword(value, max_pattern_bytes)
        })
}

/// Returns the problems of a value that the plain checks do not accept.
pub(super) fn problems(schema: &SchemaValidator, value: &Value) -> Vec<SchemaViolation> {
    let validator = match schema.validator() {
        Ok(validator) => validator,
        Err(why) => {
            return vec![SchemaViolation::new(
                "",
                "a usable schema",
                format!("a schema that cannot be used: {why}"),
            )];
        }
    };
    let time = schema.time * backtracking::MAX_MATCH_TIME_FACTOR;
    let found = backtracking::bounded(time, || found(schema, validator, value));
    found.unwrap_or_else(|pattern| {
        vec![SchemaViolation::new("", truncate(&sanitize_text(&format!(
                "text that the pattern {pattern} can be matched against in bounded time (it has look-around or back-references)"
            ))), "text for which it takes too long")]
    })
}

fn found(schema: &SchemaValidator, validator: &Validator, value: &Value) -> Vec<SchemaViolation> {
    if validator.is_valid(value) {
        return Vec::new();
    }
    if !schema.cost.may_list_errors(value) {
        return vec![SchemaViolation::new(
            "",
            "a value that fits the schema (there are too many errors to list)",
            describe_value(value, true),
        )];
    }
    validator
        .iter_errors(value)
        .take(MAX_SCHEMA_PROBLEMS)
        .map(|error| problem(schema, &error))
        .collect()
}

fn problem(schema: &SchemaValidator, error: &ValidationError<'_>) -> SchemaViolation {
    let mut path = error.instance_path().to_string();
    let place = subschema_at(&schema.tree, &path);
    let mut got = describe_value(error.instance(), place.is_some_and(is_secret_schema));
    let mut expected = expected(error.kind());
    match error.kind() {
        Wrong::Required { property } => {
            path = pointer_step(&path, property.as_str().unwrap_or_default());
            got = "nothing".to_owned();
        }
        Wrong::AdditionalProperties { unexpected }
        | Wrong::UnevaluatedProperties { unexpected } => {
            let known = place.and_then(|s| s.get("properties")?.as_object());
            if let [name] = unexpected.as_slice() {
                path = pointer_step(&path, name);
                expected = unknown_member("member", name, known);
                got = error
                    .instance()
                    .get(name)
                    .map_or(got, |v| describe_value(v, true));
            } else {
                expected = format!("no members {}{}", names(unexpected), there_are(known));
            }
        }
        Wrong::FalseSchema
            if error
                .schema_path()
                .to_string()
                .ends_with("/additionalProperties") =>
        {
            expected = "no members".to_owned();
        }
        _ => {}
    }
    SchemaViolation::new(
        truncate(&sanitize_text(&path)),
        truncate(&sanitize_text(&expected)),
        got,
    )
}

fn expected(wrong: &Wrong) -> String {
    match wrong {
        Wrong::Type {
            kind: TypeKind::Single(one),
        } => article(&one.to_string()),
        Wrong::Type {
            kind: TypeKind::Multiple(set),
        } => set
            .into_iter()
            .map(|one| article(&one.to_string()))
            .collect::<Vec<_>>()
            .join(" or "),
        Wrong::Required { .. } => "a value, because it is required".to_owned(),
        Wrong::Enum { options } => format!("one of {options}"),
        Wrong::Constant { expected_value } => format!("exactly {expected_value}"),
        Wrong::Maximum { limit } => format!("at most {limit}"),
        Wrong::Minimum { limit } => format!("at least {limit}"),
        Wrong::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Wrong::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Wrong::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Wrong::MaxLength { limit } => format!("at most {}", count_of(*limit, "character")),
        Wrong::MinLength { limit } => format!("at least {}", count_of(*limit, "character")),
        Wrong::MaxItems { limit } => format!("at most {}", count_of(*limit, "item")),
        Wrong::MinItems { limit } => format!("at least {}", count_of(*limit, "item")),
        Wrong::MaxProperties { limit } => format!("at most {}", count_of(*limit, "member")),
        Wrong::MinProperties { limit } => format!("at least {}", count_of(*limit, "member")),
        Wrong::AdditionalItems { limit } => format!("at most {}", count_of(*limit as u64, "item")),
        Wrong::UniqueItems => "unique items".to_owned(),
        Wrong::Contains => "an item that fits \"contains\" of the schema".to_owned(),
        Wrong::Pattern { pattern } => format!("text that fits the pattern {pattern}"),
        Wrong::Format { format } => format!("text in the format {format}"),
        Wrong::UnevaluatedItems { .. } => "no further items".to_owned(),
        Wrong::PropertyNames { .. } => "members with names that the schema allows".to_owned(),
        Wrong::AnyOf { .. } | Wrong::OneOfNotValid { .. } => {
            "a value that fits one of the forms in the schema".to_owned()
        }
        Wrong::OneOfMultipleValid { .. } => {
            "a value that fits only one of the forms in the schema, not several".to_owned()
        }
        Wrong::Not { .. } => "another value, because the schema excludes this one".to_owned(),
        Wrong::FalseSchema => "nothing here".to_owned(),
        Wrong::Custom { message, .. } => message.clone(),
        Wrong::BacktrackLimitExceeded { .. } => {
            "names of members that the patterns of the schema can be matched against in bounded time".to_owned()
        }
        other => format!("a value that fits \"{}\" of the schema", other.keyword()),
    }
}
