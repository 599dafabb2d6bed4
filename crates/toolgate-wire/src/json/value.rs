//! Conversion to a `serde_json` tree. It is done here because `serde_json` interprets some keys as more JSON and rounds
//! differently from `std`.

use super::{
    Kind, Limits,
    lex::{Lexer, Token},
    number,
    text::unescape,
};
use serde_json::{Map, Value};

/// Object or array that is not closed yet.
enum Open {
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
    let mut tokens = Lexer::new(text);
    let mut open: Vec<Open> = Vec::new();
    while let Some((token, range)) = tokens.next() {
        let value = match token {
            Token::Key(key) => {
                if let Some(Open::Object(_, next)) = open.last_mut() {
                    *next = unescape(key).into_owned();
                }
                continue;
            }
            Token::Open(_) if open.len() >= Limits::DEEPEST => {
                let over = tokens.over(range.start);
                lossy |= number::lossy(over);
                Value::String(over.to_owned())
            }
            Token::Open(kind) => {
                open.push(begin(kind));
                continue;
            }
            Token::Close => match open.pop() {
                Some(Open::Object(map, _)) => Value::Object(map),
                Some(Open::Array(items)) => Value::Array(items),
                None => break,
            },
            Token::String(inner) => Value::String(unescape(inner).into_owned()),
            Token::Scalar(word) => {
                lossy |= number::is_lossy(word);
                scalar(word)
            }
        };
        match open.last_mut() {
            Some(Open::Object(map, key)) => _ = map.insert(std::mem::take(key), value),
            Some(Open::Array(items)) => items.push(value),
            None => return (value, lossy),
        }
    }
    (Value::Null, lossy)
}

fn begin(kind: Kind) -> Open {
    if kind == Kind::Object {
        Open::Object(Map::new(), String::new())
    } else {
        Open::Array(Vec::new())
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
