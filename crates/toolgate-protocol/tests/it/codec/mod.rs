//! Round trips: written values are read back equal, in every revision that can express them.

mod about;
mod envelopes;
mod lists;
mod outputs;
mod tasks;

use proptest::prelude::*;
use serde_json::Value;
use toolgate_protocol::json::{Json, JsonLimits};

/// Text as it may come: anything but U+0000 in keys.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,12}", "\\PC{0,12}", ".{0,12}"]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z/._-]{1,12}", "[^\0]{1,6}"]
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        (-1e300..1e300f64).prop_map(Into::into),
        text().prop_map(Into::into),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            object_of(inner),
        ]
    })
}

fn object_of(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::hash_map(key(), inner, 0..4)
        .prop_map(|m| Value::Object(m.into_iter().collect()))
}

fn object() -> impl Strategy<Value = Value> {
    object_of(value())
}

/// A `_meta` without keys of the protocol, or none.
fn meta() -> impl Strategy<Value = Option<Json>> {
    let members = prop::collection::hash_map("[a-z.]{1,8}/[a-z]{1,4}", value(), 1..3);
    let json = members.prop_map(|m| json(&Value::Object(m.into_iter().collect())));
    prop::option::of(json.prop_filter("of nobody", |m| {
        !m.as_str().contains("modelcontextprotocol")
    }))
}

fn json(value: &Value) -> Json {
    let read = Json::read(value.to_string().into_bytes(), &JsonLimits::default());
    read.expect("good JSON")
}
