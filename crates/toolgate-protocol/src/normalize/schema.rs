//! Normalization of tool schemas: the root type is `object`, and properties are schemas.

use super::{RepairLog, shape::describe};
use crate::json::{ArrayWriter, Json, JsonKind, ObjectWriter};

/// Returns a valid input schema, and the reason to withhold the tool if no arguments can match.
pub(super) fn input(schema: Option<Json>, repairs: &mut RepairLog) -> (Json, Option<String>) {
    let any = || empty().with("type", &text("object"));
    let Some(schema) = schema else {
        repairs.add("\"inputSchema\" is missing; it is read as \"type\": \"object\"".to_owned());
        return (any(), None);
    };
    match schema.kind() {
        JsonKind::Object => object_root(schema, repairs),
        JsonKind::Bool if schema.bool() == Some(false) => {
            let never = any().with("not", &empty());
            (
                never,
                Some("its \"inputSchema\" is false, which no arguments match".to_owned()),
            )
        }
        JsonKind::Null | JsonKind::Bool => {
            let what = schema.as_str();
            repairs.add(format!(
                "\"inputSchema\" is {what}; it is read as \"type\": \"object\""
            ));
            (any(), None)
        }
        JsonKind::Array if is_empty(&schema) => {
            repairs.add("\"inputSchema\" is []; it is read as \"type\": \"object\"".to_owned());
            (any(), None)
        }
        _ => {
            let why = format!("its \"inputSchema\" is {}, not a schema", describe(&schema));
            (any(), Some(why))
        }
    }
}

fn object_root(schema: Json, repairs: &mut RepairLog) -> (Json, Option<String>) {
    let root = schema.get("type");
    let object = text("object");
    let schema = match &root {
        Some(root) if root.str_cow().as_deref() == Some("object") => schema,
        Some(root) if allows_object(root) => {
            repairs.add("the root \"type\" of \"inputSchema\" is read as \"object\"".to_owned());
            schema.with("type", &object)
        }
        None => {
            repairs
                .add("\"inputSchema\" has no root \"type\"; it is read as \"object\"".to_owned());
            schema.with("type", &object)
        }
        Some(_) => {
            let why = "the root \"type\" of its \"inputSchema\" is not \"object\", and arguments are always an object";
            // The original schema stays visible below `allOf`; the root is valid in all revisions.
            let mut all = ArrayWriter::new();
            all.raw(&schema);
            let shown = empty().with("type", &object).with("allOf", &all.finish());
            return (shown, Some(why.to_owned()));
        }
    };
    let (schema, bad) = members(schema, "inputSchema", repairs);
    (schema, bad)
}

/// Returns true if a root type other than `object` includes objects.
fn allows_object(root: &Json) -> bool {
    let word = |word: &Json| word.str_cow().is_some_and(|w| w == "object" || w == "any");
    root.is_null() || word(root) || root.items().any(|one| word(&one))
}

/// Returns a valid output schema; `None` if it has no meaning.
pub(super) fn output(schema: Json, repairs: &mut RepairLog) -> Option<Json> {
    if schema.kind() != JsonKind::Object {
        let what = describe(&schema);
        repairs.add(format!("\"outputSchema\" is {what}; it is ignored"));
        return None;
    }
    let (schema, bad) = members(schema, "outputSchema", repairs);
    match bad {
        None => Some(schema),
        Some(why) => {
            repairs.add(format!("{why}; it is ignored"));
            None
        }
    }
}

/// Repairs the root members that the protocol itself types: `$schema`, `properties` and `required`.
fn members(mut schema: Json, of: &str, repairs: &mut RepairLog) -> (Json, Option<String>) {
    if schema
        .get("$schema")
        .is_some_and(|s| s.kind() != JsonKind::String)
    {
        repairs.add(format!("\"{of}.$schema\" is not a string; it is ignored"));
        schema = schema.without("$schema");
    }
    if let Some(required) = schema.get("required")
        && let Some(names) = required_names(&required, of, repairs)
    {
        schema = match names {
            Some(names) => schema.with("required", &names),
            None => schema.without("required"),
        };
    }
    let Some(properties) = schema.get("properties") else {
        return (schema, None);
    };
    match properties.kind() {
        JsonKind::Object => {
            let mended = property_schemas(&properties, of, repairs);
            let schema = match mended {
                Some(mended) => schema.with("properties", &mended),
                None => schema,
            };
            (schema, None)
        }
        JsonKind::Null => {
            repairs.add(format!("\"{of}.properties\" is null; it is ignored"));
            (schema.without("properties"), None)
        }
        JsonKind::Array if is_empty(&properties) => {
            repairs.add(format!("\"{of}.properties\" is []; it is read as {{}}"));
            (schema.with("properties", &empty()), None)
        }
        _ => {
            let why = format!(
                "its \"{of}.properties\" is {}, not an object",
                describe(&properties)
            );
            (schema.without("properties"), Some(why))
        }
    }
}

/// Returns `required` as an array of names; `Some(None)` if it must be removed, `None` if it is valid.
fn required_names(required: &Json, of: &str, repairs: &mut RepairLog) -> Option<Option<Json>> {
    let is_name = |name: &Json| name.kind() == JsonKind::String;
    if required.kind() != JsonKind::Array {
        let what = describe(required);
        repairs.add(format!("\"{of}.required\" is {what}; it is ignored"));
        return Some(None);
    }
    if required.items().all(|name| is_name(&name)) {
        return None;
    }
    repairs.add(format!(
        "\"{of}.required\" has elements that are not strings; they are ignored"
    ));
    let mut names = ArrayWriter::new();
    required
        .items()
        .filter(is_name)
        .for_each(|name| names.raw(&name));
    Some(Some(names.finish()))
}

/// Replaces property schemas that are neither objects nor booleans.
fn property_schemas(properties: &Json, of: &str, repairs: &mut RepairLog) -> Option<Json> {
    let mut mended = None;
    for (name, schema) in properties.members() {
        if matches!(schema.kind(), JsonKind::Object | JsonKind::Bool) {
            continue;
        }
        let short: String = name.chars().take(64).collect();
        let what = describe(&schema);
        repairs.add(format!(
            "the schema of \"{short}\" in \"{of}\" is {what}; it is read as {{}}"
        ));
        mended = Some(mended.as_ref().unwrap_or(properties).with(&name, &empty()));
    }
    mended
}

/// Replaces boolean property schemas for revisions that allow only objects: `true` becomes `{}`, and `false` becomes
/// `{"not": {}}`. Returns `None` if there are none, and an error if a property has no schema.
pub(crate) fn without_booleans(schema: &Json) -> Result<Option<Json>, &'static str> {
    let Some(properties) = schema.get("properties") else {
        return Ok(None);
    };
    if properties.kind() != JsonKind::Object {
        return Err("the \"properties\" of \"inputSchema\" are not an object");
    }
    let mut mended: Option<Json> = None;
    for (name, property) in properties.members() {
        let new = match (property.kind(), property.bool()) {
            (JsonKind::Object, _) => continue,
            (_, Some(true)) => empty(),
            (_, Some(false)) => empty().with("not", &empty()),
            _ => {
                return Err(
                    "the schema of a property in \"inputSchema\" is neither an object nor a boolean",
                );
            }
        };
        mended = Some(mended.as_ref().unwrap_or(&properties).with(&name, &new));
    }
    Ok(mended.map(|properties| schema.with("properties", &properties)))
}

fn empty() -> Json {
    ObjectWriter::new().finish()
}

fn text(text: &str) -> Json {
    Json::from_value(&text.into())
}

fn is_empty(array: &Json) -> bool {
    array.items().next().is_none()
}
