//! Conversion to a `serde_json` tree. It is done here because `serde_json` interprets some keys as more JSON and rounds
//! differently from `std`.

use super::{
    JsonKind, JsonLimits,
    lexer::{JsonLexer, JsonToken},
    number,
    text::unescape,
};
use serde_json::{Map, Value};

/// Object or array that is not closed yet.
enum TreeFrame {
    Object(Map<String, Value>, String),
    Array(Vec<Value>),
}

/// Returns the tree, and true if a number does not survive in it, in one pass. Building needs no stack, but dropping
/// does: text nested deeper than any reader accepts becomes a string.
pub(super) fn read(text: &str) -> (Value, bool) {
    let whole = text.strip_prefix('"');
    if let Some(inner) = whole.and_then(|rest| rest.strip_suffix('"')) {
        return (Value::String(unescape(inner).into_owned()), false);
    }
    let mut lossy = false;
    let mut tokens = JsonLexer::new(text);
    let mut open: Vec<TreeFrame> = Vec::new();
    while let Some((token, range)) = tokens.next() {
        let value = match token {
            JsonToken::Key(key) => {
                if let Some(TreeFrame::Object(_, next)) = open.last_mut() {
                    *next = unescape(key).into_owned();
                }
                continue;
            }
            JsonToken::Open(_) if open.len() >= JsonLimits::MAX_DEPTH => {
                let over = tokens.skip_nested(range.start);
                lossy |= number::lossy(over);
                Value::String(over.to_owned())
            }
            JsonToken::Open(kind) => {
                open.push(begin(kind));
                continue;
            }
            JsonToken::Close => match open.pop() {
                Some(TreeFrame::Object(map, _)) => Value::Object(map),
                Some(TreeFrame::Array(items)) => Value::Array(items),
                None => break,
            },
            JsonToken::String(inner) => Value::String(unescape(inner).into_owned()),
            JsonToken::Scalar(word) => {
                lossy |= number::is_lossy(word);
                scalar(word)
            }
        };
        match open.last_mut() {
            Some(TreeFrame::Object(map, key)) => _ = map.insert(std::mem::take(key), value),
            Some(TreeFrame::Array(items)) => items.push(value),
            None => return (value, lossy),
        }
    }
    (Value::Null, lossy)
}

fn begin(kind: JsonKind) -> TreeFrame {
    if kind == JsonKind::Object {
        TreeFrame::Object(Map::new(), String::new())
    } else {
        TreeFrame::Array(Vec::new())
    }
}

fn scalar(word: &str) -> Value {
    match word {
        "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        number => number::to_value(number),
    }
}
