//! JSON values and content blocks as fields of the types of users.

use super::json;
use serde::{Deserialize, Serialize, de::IntoDeserializer};
use std::collections::BTreeMap;
use toolgate_protocol::{
    json::Json,
    method::{content::Content, resource_contents::ResourceContents},
};

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Saved {
    name: String,
    value: Json,
}

const EXACT: &str = r#"{"b":123456789012345678901234567890,"a":1.10,"c":[1e400,"\u00e9"]}"#;

#[test]
fn a_field_keeps_the_raw_text_of_numbers_and_members() {
    let text = format!(r#"{{"name":"n","value":{EXACT}}}"#);
    let saved: Saved = serde_json::from_str(&text).unwrap();
    assert_eq!(saved.value.as_str(), EXACT);
    assert_eq!(serde_json::to_string(&saved).unwrap(), text);
}

#[test]
fn the_strict_reader_reads_deserialized_text() {
    let twice = r#"{"name":"n","value":{"a":1,"a":2}}"#;
    assert!(serde_json::from_str::<Saved>(twice).is_err());
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    assert!(serde_json::from_str::<Json>(&deep).is_err());
}

/// The keys by which `serde_json` passes raw text are no way around the reader.
#[test]
fn a_key_of_serde_json_stays_a_key() {
    let text = r#"[{"$serde_json::private::RawValue":"{\"a\":1}"}]"#;
    let read: Json = serde_json::from_str(text).unwrap();
    assert_eq!(read.as_str(), text);
}

#[test]
fn a_value_tree_converts_both_ways() {
    let tree = serde_json::json!({"a": [1, -2, 0.5, true, null, "x\n"], "b": {}});
    let read: Json = serde_json::from_value(tree.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), tree);
}

/// Flattened, untagged and internally tagged types buffer their fields.
#[test]
fn buffered_types_get_the_value() {
    #[derive(Deserialize)]
    struct Open {
        #[serde(flatten)]
        rest: BTreeMap<String, Json>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(u8),
        Other(Json),
    }
    let text = r#"{"a":{"x":[1,-2,0.25,"\u0007",null,true,{}]},"b":"t"}"#;
    let open: Open = serde_json::from_str(text).unwrap();
    assert_eq!(
        open.rest["a"],
        json(r#"{"x":[1,-2,0.25,"\u0007",null,true,{}]}"#)
    );
    assert_eq!(open.rest["b"], json(r#""t""#));
    let other: Either = serde_json::from_str(r#"{"k":[]}"#).unwrap();
    assert!(matches!(other, Either::Other(value) if value.as_str() == r#"{"k":[]}"#));
    assert!(matches!(
        serde_json::from_str("7").unwrap(),
        Either::Number(7)
    ));
}

#[test]
fn a_number_that_json_cannot_represent_is_an_error() {
    type Plain = serde::de::value::Error;
    let read = |n: f64| Json::deserialize(IntoDeserializer::<Plain>::into_deserializer(vec![n]));
    assert_eq!(read(0.5).unwrap().as_str(), "[0.5]");
    assert!(read(f64::NAN).is_err());
}

#[test]
fn media_is_decoded_and_encoded() {
    let bytes: Vec<u8> = (0..=255).collect();
    for block in [
        Content::image_bytes(&bytes, "image/png"),
        Content::audio_bytes(&bytes, "image/png"),
        ResourceContents::from_bytes("file:///a", "image/png", &bytes).into(),
    ] {
        assert_eq!(block.bytes(), Some(bytes.clone()), "{:?}", block.kind);
        assert_eq!(
            block.mime_type().as_deref(),
            Some("image/png"),
            "{:?}",
            block.kind
        );
        assert_eq!(block.as_text(), None);
    }
    assert_eq!(
        Content::image("Zg", "image/png").bytes().as_deref(),
        Some(&b"f"[..])
    );
    assert_eq!(Content::image("Zg=!", "image/png").bytes(), None);
}

#[test]
fn links_and_embedded_resources_are_read() {
    let link = json(
        r#"{"type":"resource_link","uri":"file:///a","name":"a","mimeType":"text/plain",
            "annotations":{"audience":["user"],"priority":0.5,"lastModified":"2026-01-01T00:00:00Z"},"_meta":{"k":1}}"#,
    );
    let link = Content::read(link).unwrap();
    assert_eq!(link.uri().as_deref(), Some("file:///a"));
    assert_eq!(link.link_name().as_deref(), Some("a"));
    assert_eq!(link.mime_type().as_deref(), Some("text/plain"));
    let annotations = link.annotations();
    assert_eq!(annotations.audience, ["user"]);
    assert_eq!(annotations.priority, Some(0.5));
    assert_eq!(
        annotations.last_modified.as_deref(),
        Some("2026-01-01T00:00:00Z")
    );
    assert_eq!(link.meta(), Some(json(r#"{"k":1}"#)));
    let notes = Content::from(ResourceContents::from_text("file:///n", "text/plain", "hi"));
    assert_eq!(notes.uri().as_deref(), Some("file:///n"));
    assert_eq!(
        notes.resource_contents().unwrap().text().as_deref(),
        Some("hi")
    );
    assert_eq!(notes.bytes(), None);
}

#[test]
fn an_unknown_kind_of_content_survives_serde() {
    let text = r#"{"type":"hologram","big":123456789012345678901234567890}"#;
    let block: Content = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&block).unwrap(), text);
    assert!(
        serde_json::from_str::<Content>(r#"{"text":"x"}"#).is_err(),
        "it has no type"
    );
}
