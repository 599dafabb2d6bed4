//! Normalization of content blocks and resource contents.

use super::{
    RepairLog,
    shape::{self, repair_members},
    uri::{is_uri, percent_encoded},
};
use crate::{
    json::{Json, JsonKind},
    method::content::Content,
    placeholder,
};

/// Returns a block that is valid in the newest revision. A block that cannot be repaired becomes text.
pub(super) fn block(json: Json, repairs: &mut RepairLog) -> Json {
    if let Some(text) = json.string() {
        repairs.add("a string in place of a block is read as text".to_owned());
        return Content::text(&text).json;
    }
    let kind = json.get("type").and_then(|kind| kind.string());
    let Some(kind) = kind else {
        let text = json.get("text").and_then(|text| text.string());
        // Without a text the intent is unknown, and the reader rejects the block.
        let Some(text) = text else { return json };
        repairs.add("a block without a \"type\" is read as text".to_owned());
        return Content::text(&text).json;
    };
    let json = repair_members(&json, shape::BLOCK, "", repairs).unwrap_or(json);
    match kind.as_str() {
        "text" => with_text(json, repairs),
        "image" | "audio" => media(json, &kind, repairs),
        "resource" => embedded(json, repairs),
        "resource_link" => link(json, repairs),
        _ => json,
    }
}

/// Returns the value with a string as its `text`.
fn with_text(json: Json, repairs: &mut RepairLog) -> Json {
    let text = json.get("text");
    if text
        .as_ref()
        .is_some_and(|text| text.kind() == JsonKind::String)
    {
        return json;
    }
    repairs.add("a \"text\" that is not a string is written as JSON".to_owned());
    let text = text.filter(|text| !text.is_null());
    let text = text.map_or_else(String::new, |text| text.as_str().to_owned());
    json.with("text", &string(&text))
}

fn media(json: Json, kind: &str, repairs: &mut RepairLog) -> Json {
    let is_text = |key| {
        json.get(key)
            .is_some_and(|value| value.kind() == JsonKind::String)
    };
    if !is_text("data") {
        repairs.add(format!(
            "a block of type {kind} is replaced by text: its \"data\" is missing or not a string"
        ));
        return Content::text(&placeholder::invalid_content(
            kind,
            "\"data\" is missing or not a string",
        ))
        .json;
    }
    if is_text("mimeType") {
        return json;
    }
    repairs.add(format!(
        "the \"mimeType\" of a block of type {kind} is missing or not a string; application/octet-stream is used"
    ));
    json.with("mimeType", &string("application/octet-stream"))
}

fn embedded(json: Json, repairs: &mut RepairLog) -> Json {
    let Some(resource) = json
        .get("resource")
        .filter(|r| r.kind() == JsonKind::Object)
    else {
        repairs
            .add("a block of type resource is replaced by text: its \"resource\" is missing or not an object".to_owned());
        let text =
            placeholder::invalid_content("resource", "\"resource\" is missing or not an object");
        return Content::text(&text).json;
    };
    match contents(&resource, None, repairs) {
        Ok(None) => json,
        Ok(Some(mended)) => json.with("resource", &mended),
        Err(why) => {
            repairs.add(format!(
                "a block of type resource is replaced by text: {why}"
            ));
            let text = resource.get("text").and_then(|text| text.string());
            let text = text.unwrap_or_else(|| placeholder::invalid_content("resource", why));
            Content::text(&text).json
        }
    }
}

fn link(json: Json, repairs: &mut RepairLog) -> Json {
    let json = repair_members(&json, shape::RESOURCE, "", repairs).unwrap_or(json);
    let text = |key: &str| json.get(key).and_then(|value| value.string());
    let Some(uri) = text("uri") else {
        repairs
            .add("a block of type resource_link is replaced by text: its \"uri\" is missing or not a string".to_owned());
        let text =
            placeholder::invalid_content("resource_link", "\"uri\" is missing or not a string");
        return Content::text(&text).json;
    };
    let name = text("name");
    if !is_uri(&uri) {
        repairs.add(
            "a block of type resource_link is replaced by text: its \"uri\" is not a URI"
                .to_owned(),
        );
        let name = name.unwrap_or_default();
        return Content::text(&placeholder::link(&name, &uri)).json;
    }
    match name {
        Some(_) => json,
        None => {
            let (key, label) = text("title").map_or(("uri", uri), |title| ("title", title));
            repairs.add(format!(
                "a block of type resource_link has no \"name\"; its \"{key}\" is used instead"
            ));
            json.with("name", &string(&label))
        }
    }
}

/// Repairs the contents of a resource; `None` if they are valid. `asked` is the requested URI.
///
/// # Errors
/// Returns the reason if the contents cannot be repaired.
pub(super) fn contents(
    part: &Json,
    asked: Option<&str>,
    repairs: &mut RepairLog,
) -> Result<Option<Json>, &'static str> {
    if part.kind() != JsonKind::Object {
        return Err("\"resource\" is not an object");
    }
    let mut mended = repair_members(part, shape::CONTENTS, "", repairs);
    let now = mended.as_ref().unwrap_or(part);
    let uri = now.get("uri").and_then(|uri| uri.string());
    let good = match (&uri, asked) {
        (Some(uri), _) if is_uri(uri) => None,
        (Some(uri), None) => {
            let escaped = percent_encoded(uri).ok_or("the \"uri\" of the resource is not a URI")?;
            repairs.add("the \"uri\" of a resource is not a URI; it is percent-encoded".to_owned());
            Some(escaped)
        }
        (None, None) => return Err("the \"uri\" of the resource is missing or not a string"),
        (uri, Some(asked)) => {
            let escaped = uri.as_deref().and_then(percent_encoded);
            repairs.add(
                match (uri, &escaped) {
                    (_, Some(_)) => "a \"uri\" in \"contents\" is not a URI; it is percent-encoded",
                    (Some(_), None) => {
                        "a \"uri\" in \"contents\" is not a URI; the requested URI is used"
                    }
                    (None, None) => {
                        "a \"uri\" in \"contents\" is missing or not a string; the requested URI is used"
                    }
                }
                .to_owned(),
            );
            Some(escaped.unwrap_or_else(|| asked.to_owned()))
        }
    };
    if let Some(uri) = good {
        mended = Some(now.with("uri", &string(&uri)));
    }
    let now = mended.as_ref().unwrap_or(part);
    let (text, blob) = (now.get("text"), now.get("blob"));
    let is_text =
        |value: &Option<Json>| value.as_ref().is_some_and(|v| v.kind() == JsonKind::String);
    if is_text(&text) || is_text(&blob) {
        return Ok(mended);
    }
    match text.filter(|text| !text.is_null()) {
        Some(_) => Ok(Some(with_text(now.clone(), repairs))),
        None => Err("the resource has neither a string \"text\" nor a string \"blob\""),
    }
}

fn string(text: &str) -> Json {
    Json::from_value(&text.into())
}

#[cfg(test)]
mod tests {
    use crate::{
        json::{Json, JsonLimits},
        method::operation::Op,
        normalize::result,
        placeholder,
    };

    fn json(text: &str) -> Json {
        Json::read(text.as_bytes().to_vec(), &JsonLimits::default()).unwrap()
    }

    #[test]
    fn finds_each_text_that_replaces_an_invalid_block() {
        for block in [
            r#"{"type":"image"}"#,
            r#"{"type":"audio","data":7}"#,
            r#"{"type":"resource"}"#,
            r#"{"type":"resource","resource":{"uri":"a:b"}}"#,
            r#"{"type":"resource_link","name":"n"}"#,
            r#"{"type":"resource_link","name":"n","uri":"no uri"}"#,
        ] {
            let text = format!(r#"{{"content":[{block}]}}"#);
            let (mended, repairs) = result(Op::Tool, &json(&text), "");
            let block = mended.get("content").and_then(|list| list.items().next());
            let text = block.and_then(|block| block.get("text")?.string());
            let text = text.unwrap_or_default();
            assert!(placeholder::find(&text).is_some(), "{text} {repairs:?}");
        }
    }

    #[test]
    fn names_a_missing_uri_of_contents_as_missing() {
        for (uri, note) in [
            (
                "",
                "a \"uri\" in \"contents\" is missing or not a string; the requested URI is used",
            ),
            (
                r#""uri":"no uri","#,
                "a \"uri\" in \"contents\" is not a URI; the requested URI is used",
            ),
            (
                r#""uri":"a:b c","#,
                "a \"uri\" in \"contents\" is not a URI; it is percent-encoded",
            ),
        ] {
            let text = format!(r#"{{"contents":[{{{uri}"text":"x"}}]}}"#);
            let (_, repairs) = result(Op::Resource, &json(&text), "a:b");
            assert_eq!(repairs, [note]);
        }
    }
}
