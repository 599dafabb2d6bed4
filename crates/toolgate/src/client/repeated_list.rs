//! List replies that repeat an earlier one byte for byte, except for the id.
//!
//! A server without cache hints is asked again for each list, and nearly always sends the same text again. Comparing the
//! text is a hundred times cheaper than reading it.

use std::{
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
};
use toolgate_protocol::{
    json::{Json, JsonKind},
    message::Id,
    method::definition::ItemKind,
};

/// Minimum length of a list reply that is remembered, in bytes. Shorter ones are read quickly.
const MIN_REPLY_BYTES: usize = 4 << 10;
/// Maximum length of the id of a repeated reply, in digits.
const MAX_ID_DIGITS: usize = 18;

/// Last complete list reply of each kind. The items of the list share its text, so that it takes no more memory.
#[derive(Default)]
pub(super) struct RepeatedListReplies(Mutex<[Option<ListReply>; ItemKind::ALL.len()]>);

/// Reply to a list request.
struct ListReply {
    message: Json,
    /// Place of the id in the text of the message.
    id: Range<usize>,
    result: Json,
}

impl RepeatedListReplies {
    /// Remembers a reply to a list request.
    pub(super) fn remember(&self, message: &Json, result: &Json) {
        if message.as_str().len() < MIN_REPLY_BYTES || result.get("nextCursor").is_some() {
            return;
        }
        let is_list = |kind: &ItemKind| {
            let items = result.get(kind.list_member());
            items.is_some_and(|items| items.kind() == JsonKind::Array)
        };
        let kind = ItemKind::ALL.into_iter().find(is_list);
        let id = message.get("id").and_then(|id| id.range_in(message));
        if let (Some(kind), Some(id)) = (kind, id) {
            self.lock()[kind as usize] = Some(ListReply {
                message: message.clone(),
                id,
                result: result.clone(),
            });
        }
    }

    /// Returns the id and the result of a message that repeats a reply under another numeric id.
    pub(super) fn find(&self, message: &[u8]) -> Option<(Id, Json)> {
        if message.len() < MIN_REPLY_BYTES {
            return None;
        }
        let replies = self.lock();
        let mut replies = replies.iter().flatten();
        replies.find_map(|reply| Some((reply.repeated_id(message)?, reply.result.clone())))
    }

    fn lock(&self) -> MutexGuard<'_, [Option<ListReply>; ItemKind::ALL.len()]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ListReply {
    /// Returns the id of a message that otherwise equals this reply.
    fn repeated_id(&self, message: &[u8]) -> Option<Id> {
        let text = self.message.as_str().as_bytes();
        let (before, after) = (text.get(..self.id.start)?, text.get(self.id.end..)?);
        let id = message.strip_prefix(before)?.strip_suffix(after)?;
        let is_number = (1..=MAX_ID_DIGITS).contains(&id.len())
            && id.iter().all(u8::is_ascii_digit)
            && (id.len() == 1 || !id.starts_with(b"0"));
        let digits = std::str::from_utf8(id).ok().filter(|_| is_number)?;
        digits.parse().ok().map(Id::number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_protocol::json::JsonLimits;

    fn message(id: &str, description: &str) -> Vec<u8> {
        let padding = "x".repeat(MIN_REPLY_BYTES);
        let tool = format!(r#"{{"name":"t","description":"{description}{padding}"}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{tool}]}}}}"#).into_bytes()
    }

    fn remembered(text: Vec<u8>) -> (RepeatedListReplies, Json) {
        let replies = RepeatedListReplies::default();
        let message = Json::read(text, &JsonLimits::default()).unwrap();
        let result = message.get("result").unwrap();
        replies.remember(&message, &result);
        (replies, result)
    }

    #[test]
    fn finds_a_reply_that_differs_only_in_its_id() {
        let (replies, result) = remembered(message("7", "a"));
        let (id, found) = replies.find(&message("1234", "a")).unwrap();
        assert_eq!(id, Id::number(1234));
        assert!(found.is_same_text(&result));
    }

    #[test]
    fn every_other_difference_is_read() {
        let (replies, _) = remembered(message("7", "a"));
        let others = [
            message("8", "b"),
            message("8", "aa"),
            message("\"8\"", "a"),
            message("08", "a"),
            message("8.0", "a"),
            message("-8", "a"),
            message("", "a"),
            message("null", "a"),
            message("8,\"id\":9", "a"),
            message("1234567890123456789", "a"),
        ];
        for other in others {
            let text = String::from_utf8_lossy(&other[..40]).into_owned();
            assert!(replies.find(&other).is_none(), "{text}");
        }
    }

    #[test]
    fn a_page_of_a_longer_list_is_not_remembered() {
        let text = String::from_utf8(message("7", "a")).unwrap();
        let paged = text.replace(r#"{"tools""#, r#"{"nextCursor":"2","tools""#);
        let (replies, _) = remembered(paged.clone().into_bytes());
        assert!(replies.find(paged.as_bytes()).is_none());
    }
}
