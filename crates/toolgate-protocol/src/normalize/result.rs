//! Normalization of results: unambiguous deviations are repaired.

use super::{RepairLog, content};
use crate::{
    json::{ArrayWriter, Json, JsonKind},
    method::operation::Op,
};

/// Normalizes the result of an operation that a server sent, and returns it with the list of repairs. `uri` is the URI
/// of a read resource. Missing members stay missing; the reader of the result reports them.
pub fn result(op: Op, result: &Json, uri: &str) -> (Json, Vec<String>) {
    let mut repairs = RepairLog::default();
    let mended = match op {
        Op::Tool => list(result, "content", &mut repairs, |block, repairs| {
            Some(content::block(block, repairs))
        }),
        Op::Resource => list(result, "contents", &mut repairs, |part, repairs| {
            let mended = content::contents(&part, Some(uri), repairs).ok()?;
            Some(mended.unwrap_or(part))
        }),
        Op::Prompt => list(result, "messages", &mut repairs, |message, repairs| {
            Some(prompt_message(message, repairs))
        }),
        Op::Complete(_) => completion(result, &mut repairs),
    };
    let mended = match (op, mended.as_ref().unwrap_or(result).get("isError")) {
        (Op::Tool, Some(flag)) if flag.str_cow().as_deref() == Some("true") => {
            repairs.add("\"isError\" is a string; it is read as a boolean".to_owned());
            let yes = Json::from_value(&true.into());
            Some(mended.as_ref().unwrap_or(result).with("isError", &yes))
        }
        _ => mended,
    };
    (mended.unwrap_or_else(|| result.clone()), repairs.0)
}

/// Repairs each element of a list; `None` if all are valid. A single element counts as a list of one.
fn list(
    result: &Json,
    key: &str,
    repairs: &mut RepairLog,
    mend: impl Fn(Json, &mut RepairLog) -> Option<Json>,
) -> Option<Json> {
    let elements = result.get(key)?;
    let alone = matches!(elements.kind(), JsonKind::Object | JsonKind::String);
    let all: Vec<Json> = match elements.kind() {
        JsonKind::Array => elements.items().collect(),
        _ if alone => vec![elements],
        _ => return None,
    };
    let mut same = !alone;
    if alone {
        repairs.add(format!(
            "\"{key}\" is not an array; it is read as an array of one element"
        ));
    }
    let mut mended = Vec::with_capacity(all.len());
    for element in all {
        // An element that cannot be repaired stays, and the reader rejects the result with the reason.
        let new = mend(element.clone(), repairs).unwrap_or_else(|| element.clone());
        same &= new == element;
        mended.push(new);
    }
    if same {
        return None;
    }
    let mut array = ArrayWriter::new();
    mended.iter().for_each(|element| array.raw(element));
    Some(result.with(key, &array.finish()))
}

/// Converts numbers and booleans among the values of a completion to strings.
fn completion(result: &Json, repairs: &mut RepairLog) -> Option<Json> {
    let completion = result.get("completion")?;
    let mended = list(&completion, "values", repairs, |value, repairs| {
        if !matches!(value.kind(), JsonKind::Number | JsonKind::Bool) {
            return Some(value);
        }
        repairs.add(
            "an element of \"completion.values\" is not a string; it is read as one".to_owned(),
        );
        Some(Json::from_value(&value.as_str().into()))
    });
    Some(result.with("completion", &mended?))
}

fn prompt_message(message: Json, repairs: &mut RepairLog) -> Json {
    let Some(came) = message.get("content") else {
        return message;
    };
    let first = match came.kind() {
        // Some servers send an array of one block.
        JsonKind::Array => {
            let mut blocks = came.items();
            match (blocks.next(), blocks.next()) {
                (Some(block), None) => block,
                _ => return message,
            }
        }
        _ => came.clone(),
    };
    let block = content::block(first, repairs);
    match block == came {
        true => message,
        false => message.with("content", &block),
    }
}
