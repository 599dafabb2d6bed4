//! Normalization of definitions: repaired, withheld or rejected, with reasons.

use super::{
    RepairLog, schema,
    shape::{self, repair_members},
    uri::{is_uri, is_uri_template},
};
use crate::{
    json::{ArrayWriter, Json, JsonKind},
    method::definition::{Definition, ItemKind},
};

/// Definition of an item after normalization, valid on the wire, with the list of repairs.
#[derive(Debug)]
pub struct NormalizedDefinition {
    /// Valid definition of the item. Parts that needed no repair keep their original bytes.
    pub definition: Definition,
    /// Descriptions of the repairs to the definition, one line each.
    pub repairs: Vec<String>,
    /// Reason why callers must not see the item; `None` if they may.
    pub withheld: Option<String>,
}

/// Normalizes the definition of a tool, resource, template, prompt or skill that a server sent.
///
/// # Errors
/// Returns the reason if the definition cannot be repaired.
pub fn definition(kind: ItemKind, json: Json) -> Result<NormalizedDefinition, &'static str> {
    if json.kind() != JsonKind::Object {
        return Err("the definition is not an object");
    }
    let mut repairs = RepairLog::default();
    let members = match kind {
        ItemKind::Tool => shape::TOOL,
        ItemKind::Resource => shape::RESOURCE,
        ItemKind::Template => shape::TEMPLATE,
        ItemKind::Prompt => shape::PROMPT,
        ItemKind::Skill => &[],
    };
    let mut json = repair_members(&json, members, "", &mut repairs).unwrap_or(json);
    let mut withheld = None;
    match kind {
        ItemKind::Tool => (json, withheld) = tool(json, &mut repairs),
        ItemKind::Prompt => json = prompt(json, &mut repairs),
        ItemKind::Resource | ItemKind::Template => {
            json = named(json, kind, &mut repairs);
            withheld = invalid_uri_reason(kind, &json);
        }
        ItemKind::Skill => {}
    }
    Ok(NormalizedDefinition {
        definition: Definition::read(kind, json)?,
        repairs: repairs.0,
        withheld,
    })
}

fn tool(json: Json, repairs: &mut RepairLog) -> (Json, Option<String>) {
    let came = json.get("inputSchema");
    let (input, withheld) = schema::input(came.clone(), repairs);
    let mut json = match came == Some(input.clone()) {
        true => json,
        false => json.with("inputSchema", &input),
    };
    if let Some(came) = json.get("outputSchema") {
        json = match schema::output(came.clone(), repairs) {
            Some(output) if output == came => json,
            Some(output) => json.with("outputSchema", &output),
            None => json.without("outputSchema"),
        };
    }
    (json, withheld)
}

fn prompt(json: Json, repairs: &mut RepairLog) -> Json {
    let Some(arguments) = json.get("arguments") else {
        return json;
    };
    if arguments.kind() != JsonKind::Array {
        let nothing = arguments.is_null()
            || (arguments.kind() == JsonKind::Object && arguments.members().next().is_none());
        if nothing {
            repairs
                .add("\"arguments\" is not an array and has no elements; it is ignored".to_owned());
            return json.without("arguments");
        }
        return json;
    }
    let (mut same, mut mended) = (true, ArrayWriter::new());
    for (at, argument) in arguments.items().enumerate() {
        let path = format!("arguments[{at}].");
        match repair_members(&argument, shape::ARGUMENT, &path, repairs) {
            Some(argument) => {
                same = false;
                mended.raw(&argument);
            }
            None => mended.raw(&argument),
        }
    }
    match same {
        true => json,
        false => json.with("arguments", &mended.finish()),
    }
}

/// Adds a missing name to a resource. It is a label only, so the title or URI can replace it.
fn named(json: Json, kind: ItemKind, repairs: &mut RepairLog) -> Json {
    let is_text = |value: &Json| value.kind() == JsonKind::String;
    if json.get("name").as_ref().is_some_and(is_text) {
        return json;
    }
    for key in ["title", kind.key_member()] {
        if let Some(label) = json.get(key).filter(is_text) {
            repairs.add(format!(
                "\"name\" is missing or not a string; \"{key}\" is used instead"
            ));
            return json.with("name", &label);
        }
    }
    json
}

fn invalid_uri_reason(kind: ItemKind, json: &Json) -> Option<String> {
    let uri = json.get(kind.key_member())?.string()?;
    let why = match kind {
        ItemKind::Template if !is_uri_template(&uri) => {
            "its \"uriTemplate\" is not a URI template (RFC 6570)"
        }
        ItemKind::Resource if !is_uri(&uri) => {
            "its \"uri\" is not a URI (RFC 3986): it needs a scheme, and spaces and other characters that are not allowed in URIs must be percent-encoded"
        }
        _ => return None,
    };
    Some(why.to_owned())
}
