//! Tables whose keys are names that the operator chose.

use super::inline_schema::inline_schema;
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use std::{collections::BTreeMap, fmt, marker::PhantomData};

/// Table with names as keys, in the order of the file.
pub(in crate::config) struct NamedSettings<T>(pub(in crate::config) Vec<(String, T)>);

impl<T> Default for NamedSettings<T> {
    fn default() -> NamedSettings<T> {
        NamedSettings(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for NamedSettings<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NamedSettings<T>, D::Error> {
        deserializer.deserialize_map(NamedSettingsVisitor(PhantomData))
    }
}

struct NamedSettingsVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for NamedSettingsVisitor<T> {
    type Value = NamedSettings<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NamedSettings<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(NamedSettings(entries))
    }
}

inline_schema!([T: JsonSchema] NamedSettings<T>, BTreeMap::<String, T>::json_schema);
