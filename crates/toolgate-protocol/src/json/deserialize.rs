//! `serde::Deserialize` for JSON values: the raw text where the format has one, else JSON written from its values.

use super::{Json, JsonLimits, text::write_string};
use serde_core::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Unexpected, Visitor},
};
use std::fmt;

/// Name and only key by which `serde_json` passes raw text to `RawValue`.
const RAW_TEXT: &str = "$serde_json::private::RawValue";

/// Reads the value with [`Json::read`] and the default [`JsonLimits`]. `serde_json` passes the raw text, so numbers of
/// any size and the order of members survive. In other formats, and within untagged or flattened types, numbers are
/// those of `serde`.
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        let mut text = String::new();
        deserializer.deserialize_newtype_struct(RAW_TEXT, ValueText::raw(&mut text))?;
        Json::read(text.into_bytes(), &JsonLimits::default()).map_err(D::Error::custom)
    }
}

/// Writes one value of any format as JSON.
struct ValueText<'a> {
    text: &'a mut String,
    /// True if `serde_json` may pass the raw text. Within a value, its key is a key like any other.
    raw: bool,
}

impl<'de> DeserializeSeed<'de> for ValueText<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> ValueText<'a> {
    fn raw(text: &'a mut String) -> ValueText<'a> {
        ValueText { text, raw: true }
    }

    fn nested(text: &'a mut String) -> ValueText<'a> {
        ValueText { text, raw: false }
    }

    fn push(self, value: impl fmt::Display) {
        // Writing to a string cannot fail.
        _ = fmt::Write::write_fmt(self.text, format_args!("{value}"));
    }
}

impl<'de> Visitor<'de> for ValueText<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON can represent")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.push(value);
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.push(value);
        Ok(())
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<(), E> {
        self.push(value);
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.push(value);
        Ok(())
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<(), E> {
        self.push(value);
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        let Some(number) = serde_json::Number::from_f64(value) else {
            return Err(E::invalid_value(Unexpected::Float(value), &self));
        };
        self.push(number);
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        write_string(self.text, value);
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.text.push_str("null");
        Ok(())
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<(), D::Error> {
        self.deserialize(inner)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<(), D::Error> {
        ValueText::nested(self.text).deserialize(inner)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.text.push('[');
        let begin = self.text.len();
        while seq.next_element_seed(NextItem(self.text, begin))?.is_some() {}
        self.text.push(']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let first = map.next_key::<String>()?;
        if self.raw && first.as_deref() == Some(RAW_TEXT) {
            *self.text = map.next_value()?;
            return Ok(());
        }
        write_members(self.text, first, map)
    }
}

/// Writes the next item of an array that begins at this position, with the comma before it.
struct NextItem<'a>(&'a mut String, usize);

impl<'de> DeserializeSeed<'de> for NextItem<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.0.len() > self.1 {
            self.0.push(',');
        }
        ValueText::nested(self.0).deserialize(deserializer)
    }
}

/// Writes an object with the members of a map whose first key was read.
fn write_members<'de, A: MapAccess<'de>>(
    text: &mut String,
    first: Option<String>,
    mut map: A,
) -> Result<(), A::Error> {
    text.push('{');
    let mut next = first;
    while let Some(key) = next {
        write_string(text, &key);
        text.push(':');
        map.next_value_seed(ValueText::nested(text))?;
        next = map.next_key()?;
        if next.is_some() {
            text.push(',');
        }
    }
    text.push('}');
    Ok(())
}
