//! Targets of `toolgate-protocol`: JSON text, messages and URIs.

use serde_json::Value;
use toolgate_protocol::{
    batch,
    json::{Json, JsonLimits},
    memory_budget::MemoryPermit,
    message::{self, JsonRpcMessage},
    method::{skills, uri_template},
    normalize,
    unreadable::{UnreadableScanner, UnreadableText},
};

/// Reads a text with the strict reader. Shared by targets that need a value.
pub(crate) fn read(bytes: &[u8]) -> Option<Json> {
    Json::read(bytes.to_vec(), &JsonLimits::default()).ok()
}

/// Strict JSON reader: it accepts no text that `serde_json` rejects, reads the same values, and has one canonical form.
pub fn json(bytes: &[u8]) {
    let Some(json) = read(bytes) else {
        return;
    };
    match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => assert_eq!(json.to_value(), value, "two readers, two values"),
        Err(error) => assert!(
            error.to_string().starts_with("number out of range"),
            "only the strict reader accepts it: {error}"
        ),
    }
    let canonical = json.canonical();
    let again = read(canonical.as_bytes()).map(|json| json.canonical());
    assert_eq!(again, Some(canonical), "the canonical form is not stable");
    for (key, part) in json.members() {
        assert_eq!(
            json.get(&key).map(|found| found.as_str().to_owned()),
            Some(part.as_str().to_owned())
        );
    }
    let items: Vec<Json> = json.items().collect();
    assert!(
        items
            .iter()
            .all(|item| read(item.as_str().as_bytes()).is_some())
    );
}

/// Reader of the text of a server, which repairs lone surrogates and tolerates duplicate keys in lists.
pub fn server_json(bytes: &[u8]) {
    let limits = JsonLimits::default();
    for lists in [false, true] {
        let text = Json::read_server_text(bytes.to_vec(), &limits, MemoryPermit::default(), lists);
        let Ok(text) = text else {
            continue;
        };
        if !text.has_duplicate_keys {
            assert!(read(text.json.as_str().as_bytes()).is_some(), "not strict");
        }
        if !text.repaired && !text.has_duplicate_keys {
            assert!(read(bytes).is_some(), "a repair is not reported");
        }
    }
}

/// Readers of a JSON-RPC message and of a batch.
pub fn message(bytes: &[u8]) {
    let Some(json) = read(bytes) else {
        return;
    };
    if let Ok(members) = batch::read_batch(&json) {
        assert!(!members.is_empty() && members.len() <= batch::MAX_BATCH_MESSAGES);
    }
    match JsonRpcMessage::read(&json) {
        Ok(JsonRpcMessage::Request {
            id, method, params, ..
        }) => {
            let written = message::request(&id, &method, params.as_ref());
            let again = read(written.as_bytes()).map(|json| JsonRpcMessage::read(&json));
            let same =
                matches!(again, Some(Ok(JsonRpcMessage::Request { method: m, .. })) if m == method);
            assert!(same, "a written request is read as something else");
        }
        Ok(_) => {}
        Err(malformed) => assert!(!malformed.reason.is_empty()),
    }
}

/// Classifier of text that is not JSON: the result does not depend on how the text is divided.
pub fn unreadable_text(bytes: &[u8]) {
    let whole = UnreadableText::of(bytes);
    let at = bytes.first().map_or(0, |first| usize::from(*first)) % (bytes.len() + 1);
    let (head, tail) = bytes.split_at(at);
    let mut scanner = UnreadableScanner::default();
    scanner.feed(head);
    scanner.feed(tail);
    assert_eq!(scanner.finish(), whole, "divided at {at}");
}

/// Readers of URIs and of URI templates: a template, a newline, a URI.
pub fn uri(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (template, uri) = text.split_once('\n').unwrap_or((&text, ""));
    // RFC 6570 has no apostrophe in literals.
    if normalize::is_uri(uri) && !uri.contains('\'') {
        assert!(
            normalize::is_uri_template(uri),
            "a URI is a template without variables"
        );
    }
    normalize::is_uri_template(template);
    let variables = uri_template::variables(template, uri);
    assert_eq!(
        variables.is_some(),
        uri_template::matches_template(template, uri)
    );
}

/// Reader of the frontmatter of a skill.
pub fn frontmatter(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(value) = skills::read_frontmatter(&text) {
        assert!(skills::equal_values(&value, &value));
    }
}
