//! Validation of elicitation form responses against their `requestedSchema`.

use super::is_url_mode;
use crate::{
    sanitize::text::sanitize_text,
    validation::schema::{self, CheckResult, RequiredDefaults, SchemaBounds, SchemaProblems},
};
use serde_json::{Map, Value};
use std::sync::Arc;
use toolgate_core::{InputRequest, InputRequestKind, InputRequests, Json, Round, SchemaViolation};
use toolgate_protocol::{
    json::{JsonLimits, ObjectWriter},
    method::elicitation::ElicitAnswer,
};

/// Slot with the schemas of the forms whose responses a call awaits.
const FORM_SCHEMAS_SLOT: &str = "asking-forms";

/// Checks the content of a user's response to a form elicitation against the form's `requestedSchema`.
///
/// A field with a default may be left out. A field that the form does not name is rejected.
///
/// # Errors
/// The reason why the response is invalid or the schema is unusable.
#[doc(hidden)]
pub fn check_form_response(requested: &Json, content: &Value) -> Result<(), String> {
    let compiled = schema::compiled(requested, &SchemaBounds::default());
    let found = match schema::check(&compiled, content, RequiredDefaults::Optional) {
        CheckResult::Ready(found) => found,
        // No network caller waits here: only the application itself uses this function.
        CheckResult::Pending(_) => match compiled.as_ref() {
            Ok(schema) => schema::problems(schema, content),
            Err(_) => Vec::new(),
        },
    };
    explain(&compiled, content, found)
}

fn explain(
    compiled: &schema::CompiledSchema,
    content: &Value,
    mut found: Vec<SchemaViolation>,
) -> Result<(), String> {
    let schema = compiled.as_ref().map_err(|why| unusable(why))?;
    found.extend(unknown_fields(&schema.tree, content));
    match found.is_empty() {
        true => Ok(()),
        false => Err(SchemaProblems { problems: found }.sentence()),
    }
}

fn unusable(why: &str) -> String {
    format!(
        "the requestedSchema of the form cannot be used: {why}; the author of the server has to correct it"
    )
}

/// Returns the fields that the form does not name.
fn unknown_fields(requested: &Value, content: &Value) -> Vec<SchemaViolation> {
    let none = Map::new();
    let known = requested.get("properties").and_then(Value::as_object);
    let known = known.unwrap_or(&none);
    let fields = content.as_object().into_iter().flatten();
    let unknown = fields.filter(|(name, _)| !known.contains_key(*name));
    unknown
        .take(schema::MAX_SCHEMA_PROBLEMS)
        .map(|(name, value)| {
            SchemaViolation::new(
                short(&schema::pointer_step("", name)),
                short(&schema::unknown_member("field", name, Some(known))),
                schema::describe_value(value, true),
            )
        })
        .collect()
}

fn short(text: &str) -> String {
    schema::truncate(&sanitize_text(text))
}

/// Stores the schemas of forms with the input requests, so that the responses can be checked.
///
/// # Errors
/// A schema is unusable, so no response could be checked.
pub(super) fn store_form_schemas(questions: &mut InputRequests) -> Result<(), String> {
    let mut forms = ObjectWriter::new();
    let mut some = false;
    for InputRequest { key, kind } in &questions.requests {
        let InputRequestKind::Elicit(params) = kind else {
            continue;
        };
        let Some(requested) = params
            .get("requestedSchema")
            .filter(|_| !is_url_mode(params))
        else {
            continue;
        };
        if let Err(why) = schema::compiled(&requested, &SchemaBounds::default()).as_ref() {
            return Err(unusable(why));
        }
        forms.raw(key, &requested);
        some = true;
    }
    if some {
        let forms = forms.finish();
        questions
            .slots
            .insert(FORM_SCHEMAS_SLOT.to_owned(), forms.as_str().to_owned());
    }
    Ok(())
}

/// Returns true if the previous round sent forms.
pub(super) fn has_form_schemas(round: &Round) -> bool {
    round.slots.contains_key(FORM_SCHEMAS_SLOT)
}

/// Checks the responses in this round to the forms of the previous one.
///
/// # Errors
/// A response does not match its form.
pub(super) async fn check_form_responses(round: &mut Round) -> Result<(), String> {
    let Some(forms) = round.slots.remove(FORM_SCHEMAS_SLOT) else {
        return Ok(());
    };
    let limits = JsonLimits {
        bytes: usize::MAX,
        ..JsonLimits::default()
    };
    let forms = Json::read(forms.into_bytes(), &limits).map_err(|_| {
        "the form of this response is no longer known; call the tool again".to_owned()
    })?;
    for (key, requested) in forms.members() {
        let Some(answer) = round.answer(&key) else {
            continue;
        };
        let content = match ElicitAnswer::read(answer) {
            Some(ElicitAnswer::Accept(content)) => content,
            Some(ElicitAnswer::Decline | ElicitAnswer::Cancel) => continue,
            None => {
                return Err(
                    "its \"action\" must be \"accept\", \"decline\" or \"cancel\"".to_owned(),
                );
            }
        };
        let content =
            content.map_or_else(|| Value::Object(Map::new()), |content| content.to_value());
        let compiled: Arc<_> = schema::compiled(&requested, &SchemaBounds::default());
        let found = match schema::check(&compiled, &content, RequiredDefaults::Optional) {
            CheckResult::Ready(found) => found,
            CheckResult::Pending(found) => found.await.map_err(|why| why.to_string())?,
        };
        explain(&compiled, &content, found)?;
    }
    Ok(())
}
