//! serde deserializer for a TOML tree. The deserializer of the TOML library reports errors as text; this one keeps the
//! path of the setting and the kind of the problem, from which messages with near names and examples are made.

use super::{
    setting_error::SettingError,
    setting_path::SettingPath,
    text_values::{CONFIG_PATH, expand_path},
};
use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor},
    forward_to_deserialize_any,
};
use std::{borrow::Cow, os::unix::ffi::OsStrExt, path::Path};
use toml::{
    Spanned,
    de::{DeInteger, DeTable, DeValue},
};

/// Deserializer for one value. Relative paths start at `base`.
pub(super) struct ValueDeserializer<'r, 'a> {
    pub(super) value: &'r DeValue<'a>,
    pub(super) path: SettingPath,
    pub(super) base: &'r Path,
}

impl ValueDeserializer<'_, '_> {
    /// Reads the value; an error without a place gets the path of the value.
    pub(super) fn read<'de, S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<S::Value, SettingError> {
        let path = self.path.clone();
        seed.deserialize(self)
            .map_err(|error| error.or_at(&path, false))
    }
}

impl<'de> Deserializer<'de> for ValueDeserializer<'_, '_> {
    type Error = SettingError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingError> {
        match self.value {
            DeValue::String(text) => check_text(text).and_then(|text| visitor.visit_str(text)),
            DeValue::Integer(digits) => visit_integer(digits, visitor),
            DeValue::Float(digits) => match digits.as_str().parse::<f64>() {
                Ok(number) if number.is_finite() => visitor.visit_f64(number),
                _ => Err(SettingError::custom(
                    "has a number that JSON cannot represent; remove inf and nan",
                )),
            },
            DeValue::Boolean(on) => visitor.visit_bool(*on),
            DeValue::Datetime(_) => Err(SettingError::custom(
                "has a date-time; write it as a string in quotes",
            )),
            DeValue::Array(list) => visitor.visit_seq(ArrayAccess {
                rest: list.iter().enumerate(),
                path: self.path,
                base: self.base,
            }),
            DeValue::Table(table) => {
                visitor.visit_map(TableAccess::new(table, self.path, self.base))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, SettingError> {
        match (name, self.value) {
            (CONFIG_PATH, DeValue::String(text)) => check_text(text)
                .and_then(|text| expand_path(text).map_err(SettingError::custom))
                .and_then(|path| visitor.visit_bytes(self.base.join(path).as_os_str().as_bytes())),
            (CONFIG_PATH, _) => Err(SettingError::mismatch()),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SettingError> {
        // Structs that serde derives would read an array too.
        match self.value {
            DeValue::Table(_) => self.deserialize_any(visitor),
            _ => Err(SettingError::mismatch()),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SettingError> {
        match self.value {
            DeValue::String(word) => visitor.visit_enum(word.as_ref().into_deserializer()),
            _ => Err(SettingError::mismatch()),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

fn check_text(text: &str) -> Result<&str, SettingError> {
    match text.contains('\0') {
        true => Err(SettingError::custom("contains a NUL character; remove it")),
        false => Ok(text),
    }
}

fn visit_integer<'de, V: Visitor<'de>>(
    digits: &DeInteger<'_>,
    visitor: V,
) -> Result<V::Value, SettingError> {
    let (text, radix) = (digits.as_str(), digits.radix());
    if let Ok(number) = u64::from_str_radix(text, radix) {
        return visitor.visit_u64(number);
    }
    match i64::from_str_radix(text, radix) {
        Ok(number) => visitor.visit_i64(number),
        Err(_) => Err(SettingError::mismatch()),
    }
}

/// Entries of a table, in the order of the file.
struct TableAccess<'r, 'a> {
    entries: std::vec::IntoIter<(&'r Spanned<Cow<'a, str>>, &'r Spanned<DeValue<'a>>)>,
    current: Option<ValueDeserializer<'r, 'a>>,
    path: SettingPath,
    base: &'r Path,
}

impl<'r, 'a> TableAccess<'r, 'a> {
    fn new(table: &'r DeTable<'a>, path: SettingPath, base: &'r Path) -> TableAccess<'r, 'a> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        TableAccess {
            entries: entries.into_iter(),
            current: None,
            path,
            base,
        }
    }
}

impl<'de> MapAccess<'de> for TableAccess<'_, '_> {
    type Error = SettingError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, SettingError> {
        let Some((key, value)) = self.entries.next() else {
            return Ok(None);
        };
        let key: &str = key.get_ref();
        let path = self.path.key(key);
        let read = seed.deserialize(key.into_deserializer());
        let read = read.map_err(|error: SettingError| error.or_at(&path, true))?;
        self.current = Some(ValueDeserializer {
            value: value.get_ref(),
            path,
            base: self.base,
        });
        Ok(Some(read))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, SettingError> {
        match self.current.take() {
            Some(value) => value.read(seed),
            None => Err(SettingError::custom(
                "cannot be read because of a bug in toolgate; report it (a value was read before its key)",
            )),
        }
    }
}

/// Elements of an array.
struct ArrayAccess<'r, 'a> {
    rest: std::iter::Enumerate<std::slice::Iter<'r, Spanned<DeValue<'a>>>>,
    path: SettingPath,
    base: &'r Path,
}

impl<'de> SeqAccess<'de> for ArrayAccess<'_, '_> {
    type Error = SettingError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, SettingError> {
        let Some((at, value)) = self.rest.next() else {
            return Ok(None);
        };
        let value = ValueDeserializer {
            value: value.get_ref(),
            path: self.path.index(at),
            base: self.base,
        };
        value.read(seed).map(Some)
    }
}
