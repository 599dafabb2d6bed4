//! Server-sent events (SSE): a strict parser with a size limit.
//!
//! Source: the chapter on server-sent events of the HTML standard.

use std::{mem, time::Duration};

/// Maximum length of an event id, in bytes: it is sent in a header.
const MAX_EVENT_ID_BYTES: usize = 1024;
/// Maximum length of an event type, in bytes; longer ones are cut.
const MAX_EVENT_TYPE_BYTES: usize = 64;

/// Event with data.
#[derive(Debug, PartialEq)]
pub(crate) struct SseEvent {
    /// Event type; empty means `message`.
    pub(crate) kind: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

/// Error for an event, or a line, that exceeds the limit. Nothing after it is read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SseEventTooLarge;

/// Incremental SSE parser.
pub(crate) struct SseParser {
    limit: usize,
    line: Vec<u8>,
    /// Set if the last byte was CR, so that an LF belongs to it.
    after_cr: bool,
    first: bool,
    data: Vec<u8>,
    has_data: bool,
    kind: Vec<u8>,
    id: Option<Vec<u8>>,
    /// Id of the last complete event that had one.
    pub(super) last_id: Option<Vec<u8>>,
    /// Reconnection time that the server suggested.
    pub(super) retry: Option<Duration>,
}

impl SseParser {
    /// Returns a parser for events of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> SseParser {
        SseParser {
            limit,
            line: Vec::new(),
            after_cr: false,
            first: true,
            data: Vec::new(),
            has_data: false,
            kind: Vec::new(),
            id: None,
            last_id: None,
            retry: None,
        }
    }

    /// Parses bytes up to the end of the first event with data. Returns the number of bytes used.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
    ) -> Result<(usize, Option<SseEvent>), SseEventTooLarge> {
        let mut at = 0;
        while at < bytes.len() {
            if mem::take(&mut self.after_cr) && bytes[at] == b'\n' {
                at += 1;
                continue;
            }
            let rest = &bytes[at..];
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = &rest[..end.unwrap_or(rest.len())];
            if self.line.len() + part.len() + self.data.len() > self.limit {
                return Err(SseEventTooLarge);
            }
            self.line.extend_from_slice(part);
            at += part.len();
            if end.is_none() {
                break;
            }
            self.after_cr = bytes[at] == b'\r';
            at += 1;
            if let Some(event) = self.end_of_line() {
                return Ok((at, Some(event)));
            }
        }
        Ok((at, None))
    }

    /// Returns the size of the incomplete event, in bytes.
    pub(super) fn pending_bytes(&self) -> usize {
        self.line.len() + self.data.len()
    }

    fn end_of_line(&mut self) -> Option<SseEvent> {
        let mut line = mem::take(&mut self.line);
        if mem::take(&mut self.first) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => {
                let value = &line[at + 1..];
                (&line[..at], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (&line[..], &b""[..]),
        };
        self.field(name, value);
        None
    }

    /// Handles one field. Unknown names and comments, whose name is empty, are ignored.
    fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"data" => {
                if mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            // A type that was cut matches none that is known.
            b"event" => self.kind = value.get(..MAX_EVENT_TYPE_BYTES).unwrap_or(value).to_vec(),
            b"id" if value.len() <= MAX_EVENT_ID_BYTES && !value.contains(&0) => {
                self.id = Some(value.to_vec())
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let millis = std::str::from_utf8(value).ok().map(str::parse);
                // Too many digits also mean a long time.
                let millis = millis.map_or(u64::MAX, |millis| millis.unwrap_or(u64::MAX));
                self.retry = Some(Duration::from_millis(millis));
            }
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        if let Some(id) = self.id.take() {
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
        let (kind, data) = (mem::take(&mut self.kind), mem::take(&mut self.data));
        let has_data = mem::take(&mut self.has_data);
        (has_data && !data.is_empty()).then_some(SseEvent { kind, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(
        parser: &mut SseParser,
        pieces: &[&[u8]],
    ) -> Result<Vec<(String, String)>, SseEventTooLarge> {
        let mut seen = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                let (used, event) = parser.feed(rest)?;
                rest = &rest[used..];
                seen.extend(event.map(|event| {
                    let text = |bytes| String::from_utf8(bytes).unwrap();
                    (text(event.kind), text(event.data))
                }));
            }
        }
        Ok(seen)
    }

    fn check(stream: &str, expected: &[&str]) {
        let seen = events(&mut SseParser::new(1000), &[stream.as_bytes()]).unwrap();
        let data: Vec<&str> = seen.iter().map(|(_, data)| data.as_str()).collect();
        assert_eq!(data, expected, "{stream:?}");
    }

    #[test]
    fn lines_end_in_three_ways_and_data_may_have_many() {
        check("data: a\n\ndata: b\n\n", &["a", "b"]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
        check("data: a\r\rdata: b\r\r", &["a", "b"]);
        check("data: a\ndata: b\ndata:\ndata:  c\n\n", &["a\nb\n\n c"]);
        check("data:a\n\n", &["a"]);
        check("\u{feff}data: a\n\n", &["a"]);
        check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["a"]);
    }

    /// Holds: HTTPM-15.
    #[test]
    fn what_is_no_event_is_none() {
        check(": hello\n\n:\n\n", &[]);
        check("id: 1\ndata:\n\n", &[]);
        check("data\n\n", &[]);
        check("data: a", &[]);
        check("data: a\n", &[]);
        check("datum: a\nDATA: b\n data: c\n\n", &[]);
    }

    #[test]
    fn the_place_is_that_of_the_last_whole_event() {
        let mut parser = SseParser::new(1000);
        let seen = events(
            &mut parser,
            &[b"id: 1\nretry: 500\ndata:\n\nevent: ping\nid: 2\ndata: x\n\nid: 3\ndata: y\n"],
        );
        assert_eq!(seen.unwrap(), [("ping".to_owned(), "x".to_owned())]);
        assert_eq!(parser.last_id.as_deref(), Some(&b"2"[..]));
        assert_eq!(parser.retry, Some(Duration::from_millis(500)));
        events(
            &mut parser,
            &[b"\nretry: 1e3\n\nretry: 99999999999999999999999\n\nid: a\0b\n\n"],
        )
        .unwrap();
        assert_eq!(parser.last_id.as_deref(), Some(&b"3"[..]));
        assert_eq!(parser.retry, Some(Duration::from_millis(u64::MAX)));
    }

    #[test]
    fn what_is_too_big_ends_it() {
        let long = format!("data: {}\n\n", "x".repeat(95));
        assert_eq!(
            events(&mut SseParser::new(100), &[long.as_bytes()]),
            Err(SseEventTooLarge)
        );
        let many = "data: x\n".repeat(100);
        assert_eq!(
            events(&mut SseParser::new(100), &[many.as_bytes()]),
            Err(SseEventTooLarge)
        );
        let fine = "data: xxxxxxxx\n\n".repeat(100);
        assert_eq!(
            events(&mut SseParser::new(100), &[fine.as_bytes()])
                .unwrap()
                .len(),
            100
        );
    }

    proptest! {
        /// The chunk boundaries of a stream have no effect.
        #[test]
        fn cuts_do_not_matter(text in "(data|id|event|retry|:|: |\r|\n|\r\n|x|é){0,60}", cut in 0..200_usize) {
            let bytes = text.as_bytes();
            let cut = cut.min(bytes.len());
            let whole = events(&mut SseParser::new(1000), &[bytes]);
            prop_assert_eq!(events(&mut SseParser::new(1000), &[&bytes[..cut], &bytes[cut..]]), whole.clone());
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(events(&mut SseParser::new(1000), &single), whole);
        }
    }
}
