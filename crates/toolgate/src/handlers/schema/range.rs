//! Number formats as ranges.

use serde_json::{Map, Value, json};

/// Replaces the format of a number with the equivalent range. Some clients reject unknown formats.
pub(super) fn replace_format(schema: &mut Map<String, Value>) {
    let range = match schema.get("format").and_then(Value::as_str) {
        Some("uint8") => Some((json!(0), json!(u8::MAX))),
        Some("uint16") => Some((json!(0), json!(u16::MAX))),
        Some("uint32") => Some((json!(0), json!(u32::MAX))),
        Some("int8") => Some((json!(i8::MIN), json!(i8::MAX))),
        Some("int16") => Some((json!(i16::MIN), json!(i16::MAX))),
        Some("int32") => Some((json!(i32::MIN), json!(i32::MAX))),
        // The limits of these types are of no use to a model, and not every client can represent them.
        Some("uint64" | "uint128" | "uint" | "int64" | "int128" | "int" | "float" | "double") => {
            None
        }
        _ => return,
    };
    schema.remove("format");
    if let Some((minimum, maximum)) = range {
        if !schema.contains_key("exclusiveMinimum") {
            schema.entry("minimum").or_insert(minimum);
        }
        if !schema.contains_key("exclusiveMaximum") {
            schema.entry("maximum").or_insert(maximum);
        }
    }
}
