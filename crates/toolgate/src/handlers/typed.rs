//! Typed arguments.

use serde::{
    de::{DeserializeOwned, Deserializer, Visitor, value::MapDeserializer},
    forward_to_deserialize_any,
};
use serde_json::{Error, Value};
use toolgate_core::{CallArguments, JsonView};
use toolgate_protocol::json::JsonKind;

/// Deserializes the arguments of a call.
///
/// # Errors
/// The error of `serde_json` if they do not match the type.
pub(super) fn read<A: DeserializeOwned>(arguments: &CallArguments) -> Result<A, Error> {
    match arguments.unparsed_view() {
        Some(short) if short.kind() == JsonKind::Object => A::deserialize(ShortArguments(short)),
        _ => A::deserialize(arguments.value()),
    }
}

/// Deserializer for a short object. It gives the same result as its `Value`; the members of a struct, the usual type of
/// arguments, need no `Value` of the whole object.
struct ShortArguments<'a>(JsonView<'a>);

impl ShortArguments<'_> {
    fn tree(&self) -> Value {
        self.0.to_value()
    }
}

impl<'de> Deserializer<'de> for ShortArguments<'de> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let members = self.0.members();
        let members = MapDeserializer::new(members.map(|(key, value)| (key, value.to_value())));
        members.deserialize_any(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.tree().deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.tree().deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.tree().deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::{collections::BTreeMap, fmt::Debug};
    use toolgate_core::Json;
    use toolgate_protocol::json::JsonLimits;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Closed {
        name: String,
        #[serde(default)]
        count: Option<i64>,
        #[serde(default)]
        more: Vec<Inner>,
        at: Option<f64>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Inner {
        by: BTreeMap<u32, char>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Wrapped(Closed);

    #[derive(Debug, Deserialize, PartialEq)]
    struct Flat {
        name: String,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case")]
    enum Choice {
        Name(String),
        More { count: i64 },
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(tag = "name", rename_all = "snake_case")]
    enum Tagged {
        Ada { count: u8 },
    }

    /// Checks that the short form gives the same value, or the same error, as the `Value`.
    fn same<A: DeserializeOwned + Debug + PartialEq>(text: &str) {
        let json = Json::read(text.as_bytes().to_vec(), &JsonLimits::default()).unwrap();
        let arguments = CallArguments::new(json);
        assert!(arguments.unparsed_view().is_some());
        let short = read::<A>(&arguments).map_err(|error| error.to_string());
        let tree = A::deserialize(arguments.value()).map_err(|error| error.to_string());
        assert!(arguments.unparsed_view().is_none(), "there is a tree now");
        assert_eq!(short, tree, "{text}");
        assert_eq!(
            read::<A>(&arguments).map_err(|error| error.to_string()),
            tree
        );
    }

    #[test]
    fn they_are_read_as_their_tree_is() {
        for text in [
            r#"{"name":"Ada"}"#,
            r#" { "n\u0061me" : "A\u0064a\n" , "count":-7 } "#,
            r#"{"name":"a","count":null,"more":[{"by":{"1":"x","22":"é"}},{"by":{}}],"at":0.1}"#,
            r#"{"name":"a","at":12345678.12345678,"count":9007199254740993}"#,
            r#"{"name":"a","at":3}"#,
            r#"{"name":7}"#,
            r#"{"name":"a","count":1.0}"#,
            r#"{"name":"a","count":18446744073709551615}"#,
            r#"{"name":"a","other":{"x":[1]}}"#,
            r#"{"count":3}"#,
            r#"{"name":"ada","count":3}"#,
            r#"{"more":{"count":3}}"#,
            r#"{"1":"x"}"#,
            "{}",
        ] {
            same::<Closed>(text);
            same::<Option<Closed>>(text);
            same::<Wrapped>(text);
            same::<Flat>(text);
            same::<Choice>(text);
            same::<Tagged>(text);
            same::<BTreeMap<u32, char>>(text);
            same::<Value>(text);
            same::<()>(text);
            same::<Vec<i64>>(text);
        }
    }
}
