//! Arguments that are text: those of prompts, and the variables of resource templates.

use super::argument_error::ArgumentProblem;
use serde::{
    de::{
        self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess,
        Visitor, value::MapAccessDeserializer,
    },
    forward_to_deserialize_any,
};
use serde_json::Value;
use std::fmt;
use toolgate_core::{Error, ErrorKind, Json, SchemaViolation};
use toolgate_protocol::json::JsonKind;

/// Deserializes the arguments of a prompt: numbers, booleans and enums are parsed from text, and lists and objects from
/// JSON text.
///
/// # Errors
/// An argument cannot be read as its type. The error names it and what is expected.
pub(super) fn read<A: DeserializeOwned>(arguments: &Json) -> Result<A, Error> {
    let members = arguments.members();
    let members = members.filter(|(_, value)| value.kind() != JsonKind::Null);
    let members = members.map(|(name, value)| {
        let text = match value.string() {
            Some(text) => ArgumentText {
                text,
                is_text: true,
            },
            None => ArgumentText {
                text: value.to_value().to_string(),
                is_text: false,
            },
        };
        (name.into_owned(), text)
    });
    deserialize(members).map_err(|error| {
        let named = error.argument.as_ref().and_then(|name| arguments.get(name));
        let value = named.unwrap_or_else(|| arguments.clone()).to_value();
        error.without_values(&value).into_error()
    })
}

/// Deserializes the variables of a resource template, as the arguments of a prompt.
///
/// # Errors
/// A variable cannot be read as its type. The text names it and what is expected.
pub(super) fn read_variables<A: DeserializeOwned>(
    variables: impl Iterator<Item = (String, String)>,
) -> Result<A, String> {
    let members = variables.map(|(name, text)| {
        let is_text = true;
        (name, ArgumentText { text, is_text })
    });
    deserialize(members).map_err(|error| {
        let error = error.without_values(&Value::Null);
        match error.argument {
            Some(name) => format!("variable `{name}`: {}", error.reason),
            None => error.reason,
        }
    })
}

fn deserialize<A: DeserializeOwned>(
    members: impl Iterator<Item = (String, ArgumentText)>,
) -> Result<A, ArgumentError> {
    let current = None;
    A::deserialize(MapAccessDeserializer::new(ArgumentMap { members, current }))
}

/// Error of one argument, or of all if it names none.
#[derive(Debug)]
struct ArgumentError {
    argument: Option<String>,
    reason: String,
    received: &'static str,
}

impl ArgumentError {
    fn expected(what: impl fmt::Display) -> ArgumentError {
        de::Error::custom(format_args!("expected {what}"))
    }

    /// Names the argument, unless the error already does.
    fn at(mut self, name: &str) -> ArgumentError {
        self.argument.get_or_insert_with(|| name.to_owned());
        self
    }

    /// Removes the value of the argument, which `serde` quotes.
    fn without_values(mut self, value: &Value) -> ArgumentError {
        self.reason = ArgumentProblem::read(&self.reason, value).to_string();
        self
    }

    fn into_error(self) -> Error {
        let text = format!("the arguments are invalid: {self}");
        let problem = SchemaViolation::new(
            match self.argument {
                Some(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
                None => String::new(),
            },
            self.reason,
            self.received.to_owned(),
        );
        Error::new(ErrorKind::InvalidArguments(vec![problem]), text)
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.argument {
            Some(name) => write!(f, "argument `{name}`: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for ArgumentError {}

impl de::Error for ArgumentError {
    fn custom<T: fmt::Display>(text: T) -> ArgumentError {
        ArgumentError {
            argument: None,
            reason: text.to_string(),
            received: "a value that does not match",
        }
    }

    fn missing_field(field: &'static str) -> ArgumentError {
        ArgumentError {
            argument: Some(field.to_owned()),
            reason: "a value is required".to_owned(),
            received: "nothing",
        }
    }
}

/// The arguments as a map for `serde`.
struct ArgumentMap<I> {
    members: I,
    current: Option<(String, ArgumentText)>,
}

impl<'de, I: Iterator<Item = (String, ArgumentText)>> MapAccess<'de> for ArgumentMap<I> {
    type Error = ArgumentError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ArgumentError> {
        self.current = self.members.next();
        let name = self.current.as_ref().map(|(name, _)| name.as_str());
        name.map(|name| seed.deserialize(name.into_deserializer()))
            .transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, ArgumentError> {
        let next = self.current.take();
        let (name, text) = next.ok_or_else(|| ArgumentError::expected("a name before a value"))?;
        seed.deserialize(text).map_err(|error| error.at(&name))
    }
}

/// Text of one argument. Of a client that sends another JSON value instead, it is the JSON text of that value.
struct ArgumentText {
    text: String,
    is_text: bool,
}

impl ArgumentText {
    fn into_json(self) -> Result<Value, ArgumentError> {
        serde_json::from_str(&self.text).map_err(|_| ArgumentError::expected("JSON"))
    }
}

/// Methods that parse the text as a number.
macro_rules! parse_numbers {
    ($($method:ident, $visit:ident, $type:ty;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
            match self.text.parse::<$type>() {
                Ok(number) => visitor.$visit(number),
                Err(_) => Err(ArgumentError::expected(format_args!(
                    "a whole number from {} to {}", <$type>::MIN, <$type>::MAX,
                ))),
            }
        }
    )*};
}

/// Methods that read the text as JSON.
macro_rules! read_json {
    ($($method:ident ( $($parameter:ident : $type:ty),* );)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($parameter: $type,)* visitor: V) -> Result<V::Value, ArgumentError> {
            self.into_json()?.$method($($parameter,)* visitor).map_err(de::Error::custom)
        }
    )*};
}

impl<'de> Deserializer<'de> for ArgumentText {
    type Error = ArgumentError;

    parse_numbers! {
        deserialize_i8, visit_i8, i8;
        deserialize_i16, visit_i16, i16;
        deserialize_i32, visit_i32, i32;
        deserialize_i64, visit_i64, i64;
        deserialize_i128, visit_i128, i128;
        deserialize_u8, visit_u8, u8;
        deserialize_u16, visit_u16, u16;
        deserialize_u32, visit_u32, u32;
        deserialize_u64, visit_u64, u64;
        deserialize_u128, visit_u128, u128;
    }

    read_json! {
        deserialize_seq();
        deserialize_map();
        deserialize_tuple(len: usize);
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_tuple_struct(name: &'static str, len: usize);
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        match self.text.parse() {
            Ok(number) => visitor.visit_f64(number),
            Err(_) => Err(ArgumentError::expected("a number")),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        match self.text.parse() {
            Ok(is) => visitor.visit_bool(is),
            Err(_) => Err(ArgumentError::expected("`true` or `false`")),
        }
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        if self.is_text {
            return visitor.visit_string(self.text);
        }
        let value = self.into_json()?;
        value.deserialize_any(visitor).map_err(de::Error::custom)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        visitor.visit_enum(self.text.into_deserializer())
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct identifier ignored_any
    }
}
