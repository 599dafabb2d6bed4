//! Batches of JSON-RPC messages.

use crate::{
    json::{Json, JsonKind},
    message::{JsonRpcMessage, MalformedMessage},
    method::initialize,
};

/// Maximum number of JSON-RPC messages in one batch array; a larger batch is malformed.
pub const MAX_BATCH_MESSAGES: usize = 64;

/// Reads each message of a JSON-RPC batch array. Only 2025-03-26 has batches.
///
/// # Errors
/// Returns [`MalformedMessage`] if the value is not an array, is empty, or has more than [`MAX_BATCH_MESSAGES`] members. A member fails
/// like [`JsonRpcMessage::read`], and if it is `initialize`, which a batch must not contain.
pub fn read_batch(
    json: &Json,
) -> Result<Vec<Result<JsonRpcMessage, MalformedMessage>>, MalformedMessage> {
    let wrong = |reason| {
        Err(MalformedMessage {
            id: None,
            reason,
            reply: false,
            notification: false,
        })
    };
    if json.kind() != JsonKind::Array {
        return wrong("a batch must be a JSON array");
    }
    match json.items().take(MAX_BATCH_MESSAGES + 1).count() {
        0 => wrong("a batch must have at least one message"),
        1..=MAX_BATCH_MESSAGES => Ok(json
            .items()
            .map(|element| read_batch_member(&element))
            .collect()),
        _ => wrong("a batch must have at most 64 messages"),
    }
}

fn read_batch_member(json: &Json) -> Result<JsonRpcMessage, MalformedMessage> {
    if json.kind() != JsonKind::Object {
        return Err(MalformedMessage {
            id: None,
            reason: "each message of a batch must be a JSON object",
            reply: false,
            notification: false,
        });
    }
    match JsonRpcMessage::read(json)? {
        JsonRpcMessage::Request { id, method, .. } if method == initialize::NAME => {
            Err(MalformedMessage {
                id: Some(id),
                reason: "a batch must not contain initialize",
                reply: false,
                notification: false,
            })
        }
        message => Ok(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::JsonLimits;

    /// Holds: BASE-13, LIFE-02.
    #[test]
    fn a_batch_is_read_member_by_member() {
        let batch = |text: &str| {
            read_batch(&Json::read(text.as_bytes().to_vec(), &JsonLimits::default()).unwrap())
        };
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let open = r#"{"jsonrpc":"2.0","id":2,"method":"initialize"}"#;
        let read = batch(&format!(r#"[{ping},7,[{ping}],{open},{ping}]"#)).unwrap();
        let good: Vec<bool> = read.iter().map(Result::is_ok).collect();
        assert_eq!(good, [true, false, false, false, true]);
        let refused = read[3].as_ref().unwrap_err();
        assert!(refused.reason.contains("initialize"), "{refused:?}");
        assert!(refused.id.is_some());
        assert!(batch("[]").unwrap_err().reason.contains("at least one"));
        assert!(batch(ping).unwrap_err().reason.contains("array"));
        let many = |n: usize| format!("[{}]", vec![ping; n].join(","));
        assert_eq!(
            batch(&many(MAX_BATCH_MESSAGES)).unwrap().len(),
            MAX_BATCH_MESSAGES
        );
        let reason = batch(&many(MAX_BATCH_MESSAGES + 1)).unwrap_err().reason;
        assert!(reason.contains(&MAX_BATCH_MESSAGES.to_string()), "{reason}");
    }
}
