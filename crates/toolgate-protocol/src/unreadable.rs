//! Classification of text that cannot be parsed as a message: whether it was meant as a reply, and to which request.

use crate::{
    json::{Json, JsonLimits},
    message::Id,
};

/// Number of bytes at the start of a text that are stored, to distinguish a fragment of a message from other text.
const MAX_HEAD_BYTES: usize = 256;
/// Maximum length of a compared key, in bytes; `jsonrpc` is the longest relevant key.
const MAX_KEY_BYTES: usize = 8;
/// Maximum number of reply ids that one text yields: those of one batch.
const MAX_REPLIES: usize = crate::batch::MAX_BATCH_MESSAGES;

/// Classification of a text that cannot be parsed as a JSON-RPC message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnreadableText {
    /// Ids of the requests that the text replies to: the only id at the top level of each object that is a reply.
    pub replies: Vec<Id>,
    /// True if the text has a reply, or a fragment of a message, without a reliable id.
    pub has_unidentified_reply: bool,
    /// True if the text has a request or a notification.
    pub has_request: bool,
}

impl UnreadableText {
    /// Classifies a complete text that cannot be parsed as a JSON-RPC message.
    pub fn of(text: &[u8]) -> UnreadableText {
        let mut scanner = UnreadableScanner::default();
        scanner.feed(text);
        scanner.finish()
    }

    /// Returns true if nothing in the text resembles a JSON-RPC message, as in a line of a log.
    pub fn is_no_message(&self) -> bool {
        self.replies.is_empty() && !self.has_unidentified_reply && !self.has_request
    }
}

/// Incremental classifier of an unparsable text of any length, which stores only a few bytes of it.
///
/// It follows only strings and braces, so it continues where the strict reader stops: beyond a limit, at a `NaN`, at
/// bytes that are not UTF-8, or at single quotes, such as in a printed Python dictionary. Only members at the top level
/// of an object count, and not what is inside a result.
#[derive(Debug, Default)]
pub struct UnreadableScanner {
    head: Vec<u8>,
    /// Number of open objects and arrays; 0 is the surrounding text.
    depth: usize,
    in_string: bool,
    /// The quote that ends the string.
    quote: u8,
    escaped: bool,
    /// The last byte that is not white space, outside of strings.
    last: u8,
    part: TopLevelState,
    object: EnvelopeMembers,
    found: UnreadableText,
}

/// Parser state at the top level of an object.
#[derive(Debug, Default)]
enum TopLevelState {
    /// Between members.
    #[default]
    Between,
    /// In a key, with its first bytes.
    Key(Vec<u8>),
    /// After a key.
    Colon(Vec<u8>),
    /// In the value of the id.
    Id(Vec<u8>),
    /// In any other value.
    Value,
}

/// Members of one object that were found.
#[derive(Debug, Default)]
struct EnvelopeMembers {
    ids: Vec<Vec<u8>>,
    jsonrpc: bool,
    method: bool,
    answer: bool,
}

impl UnreadableScanner {
    /// Feeds the next bytes of the text to the classifier; [`UnreadableScanner::finish`] returns the classification.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        let more = MAX_HEAD_BYTES.saturating_sub(self.head.len());
        self.head.extend(bytes.iter().take(more));
        while let Some((byte, rest)) = bytes.split_first() {
            // Most bytes are in the strings of a result.
            if self.in_string && !self.escaped && self.depth > 1 {
                let Some(at) = memchr::memchr2(self.quote, b'\\', bytes) else {
                    return;
                };
                let end = bytes.get(at).copied().unwrap_or_default();
                (self.in_string, self.escaped) = (end == b'\\', end == b'\\');
                bytes = bytes.get(at + 1..).unwrap_or_default();
                continue;
            }
            self.step(*byte);
            bytes = rest;
        }
    }

    /// Completes the text and returns its classification.
    pub fn finish(mut self) -> UnreadableText {
        self.end_of_value();
        if self.depth > 0 {
            self.end_of_object();
        }
        if self.found.is_no_message() {
            // A line of a message that was written over many lines.
            let has = |word: &[u8]| memchr::memmem::find(&self.head, word).is_some();
            self.found.has_unidentified_reply = has(b"\"jsonrpc\"") || has(b"'jsonrpc'");
        }
        self.found
    }

    fn step(&mut self, byte: u8) {
        if self.depth == 0 {
            if byte == b'{' {
                (self.depth, self.part, self.last) = (1, TopLevelState::Between, byte);
                self.object = EnvelopeMembers::default();
            }
            return;
        }
        if self.in_string {
            return self.step_in_string(byte);
        }
        // An apostrophe within a word begins no string.
        let may_begin = matches!(self.last, b'{' | b'[' | b',' | b':');
        if !byte.is_ascii_whitespace() {
            self.last = byte;
        }
        match byte {
            b'"' => self.begin_string(byte),
            b'\'' if may_begin => self.begin_string(byte),
            b'{' | b'[' => {
                self.value();
                self.keep(byte);
                self.depth += 1;
            }
            b'}' | b']' => {
                self.depth -= 1;
                if self.depth == 0 {
                    self.end_of_value();
                    self.end_of_object();
                }
            }
            b',' if self.depth == 1 => self.end_of_value(),
            b':' if self.depth == 1 => self.end_of_key(),
            byte if byte.is_ascii_whitespace() => {}
            _ => self.keep(byte),
        }
    }

    fn step_in_string(&mut self, byte: u8) {
        let ends = byte == self.quote && !self.escaped;
        self.keep(if ends { b'"' } else { byte });
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            _ if ends => self.end_of_string(),
            _ => {}
        }
    }

    fn begin_string(&mut self, quote: u8) {
        (self.in_string, self.quote) = (true, quote);
        match &self.part {
            TopLevelState::Between if self.depth == 1 => self.part = TopLevelState::Key(Vec::new()),
            _ => self.keep(b'"'),
        }
    }

    fn end_of_string(&mut self) {
        self.in_string = false;
        if let TopLevelState::Key(key) = &mut self.part {
            self.part = TopLevelState::Colon(std::mem::take(key));
        }
    }

    fn end_of_key(&mut self) {
        let TopLevelState::Colon(key) = &self.part else {
            return;
        };
        let object = &mut self.object;
        // The stored key ends with its quote.
        self.part = match key.as_slice() {
            b"id\"" => TopLevelState::Id(Vec::new()),
            b"jsonrpc\"" => {
                object.jsonrpc = true;
                TopLevelState::Value
            }
            b"method\"" => {
                object.method = true;
                TopLevelState::Value
            }
            b"result\"" | b"error\"" => {
                object.answer = true;
                TopLevelState::Value
            }
            _ => TopLevelState::Value,
        };
    }

    /// Starts a value other than a string.
    fn value(&mut self) {
        if matches!(self.part, TopLevelState::Between) {
            self.part = TopLevelState::Value;
        }
    }

    fn keep(&mut self, byte: u8) {
        let (kept, limit) = match &mut self.part {
            TopLevelState::Key(key) => (key, MAX_KEY_BYTES + 1),
            TopLevelState::Id(id) => (id, Id::MAX_ID_BYTES + 1),
            _ => return,
        };
        if kept.len() < limit {
            kept.push(byte);
        }
    }

    fn end_of_value(&mut self) {
        if let TopLevelState::Id(id) = std::mem::take(&mut self.part) {
            self.object.ids.push(id);
        }
    }

    fn end_of_object(&mut self) {
        let object = &self.object;
        if object.method {
            self.found.has_request = true;
            return;
        }
        if !object.answer && !object.jsonrpc {
            return;
        }
        let whole = self.depth == 0;
        let id = match object.ids.as_slice() {
            [one] if object.answer || whole => read_id(one),
            _ => None,
        };
        match id {
            Some(id) if self.found.replies.len() < MAX_REPLIES => self.found.replies.push(id),
            _ => self.found.has_unidentified_reply = true,
        }
    }
}

fn read_id(text: &[u8]) -> Option<Id> {
    let json = Json::read(text.to_vec(), &JsonLimits::default()).ok()?;
    Id::read(&json)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (Vec<String>, bool) {
        let whole = UnreadableText::of(text.as_bytes());
        let mut scanner = UnreadableScanner::default();
        text.as_bytes().chunks(1).for_each(|one| scanner.feed(one));
        assert_eq!(scanner.finish(), whole, "piece by piece: {text}");
        let ids = whole.replies.iter().map(|id| id.json().as_str().to_owned());
        (ids.collect(), whole.has_unidentified_reply)
    }

    fn answers(text: &str, id: &str) {
        assert_eq!(of(text), (vec![id.to_owned()], false), "{text}");
    }

    #[test]
    fn finds_the_id_of_a_reply_that_cannot_be_read() {
        answers(r#"{"jsonrpc":"2.0","id":7,"result":{"a":NaN}}"#, "7");
        answers(
            r#"{"result":{"id":1,"x":[{"id":2}]},"jsonrpc":"2.0","id" : 8 }"#,
            "8",
        );
        answers(
            r#"{"jsonrpc":"2.0","id":"7","result":{"a":1,"a":2}}"#,
            "\"7\"",
        );
        answers(r#"INFO 3 done {"jsonrpc":"2.0","id":7,"result":{}}"#, "7");
        answers(r#"{"jsonrpc":"2.0","id":7,"result":{}} took 3 ms"#, "7");
        answers(r#"{info} {"jsonrpc":"2.0","id":7,"error":{"code":1}}"#, "7");
        answers(
            r#"{'jsonrpc': '2.0', 'id': 7, 'result': {'t': 'a "b', 'u': "it's", 'id': 8}}"#,
            "7",
        );
        answers(
            r#"{'id': 'seven', 'jsonrpc': '2.0', 'result': {}}"#,
            "\"seven\"",
        );
        answers(r#"{don't} {"jsonrpc":"2.0","id":7,"result":{}}"#, "7");
        // A line end within a string: the first half names its request.
        answers(r#"{"jsonrpc":"2.0","id":7,"result":{"text":"a"#, "7");
        answers(
            r#"{"jsonrpc":"2.0","id":7,"result":{"t":"\\\"}],\"id\":9"}}"#,
            "7",
        );
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":7,"result":{}}}"#,
            "[".repeat(99) + &"]".repeat(99)
        );
        answers(&deep, "7");
        let two = r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]"#;
        assert_eq!(of(two), (vec!["1".to_owned(), "2".to_owned()], false));
    }

    #[test]
    fn never_returns_an_ambiguous_id() {
        for unnamed in [
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#,
            r#"{"jsonrpc":"2.0","id":7,"id":8,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":{"a":7},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
            r#"{"jsonrpc":"2.0","result":{"x":1,"id":9}"#,
            r#"{"jsonrpc":"2.0","id":7,"resu"#,
            r#"  "jsonrpc": "2.0","#,
            r#"  'jsonrpc': '2.0',"#,
        ] {
            assert_eq!(of(unnamed), (vec![], true), "{unnamed}");
        }
        for other in [
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":NaN}}"#,
            r#"{"method":"notifications/x","params":{"result":1,"id":7}"#,
            r#"{"level":"info","id":7,"x":NaN}"#,
            r#"{'level': 'info', 'id': 7}"#,
            "Server ready on stdio",
            "{ a: 1 }",
            "{",
            "",
        ] {
            assert_eq!(of(other), (vec![], false), "{other}");
        }
    }
}
