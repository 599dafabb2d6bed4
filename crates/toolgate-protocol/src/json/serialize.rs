//! `serde::Serialize` for JSON values: the raw text, without a copy.

use super::Json;
use serde_core::{Serialize, Serializer, ser::Error};
use serde_json::value::RawValue;

/// Writes the raw text, so numbers of any size and the order of members survive. Only `serde_json` can write raw text;
/// its `to_value` parses it.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.as_str()).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}
