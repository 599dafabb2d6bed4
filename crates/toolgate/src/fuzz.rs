//! Entry points for fuzz targets. Not public API: it changes without notice.

use crate::client::http::sse::SseParser;

/// Type and data of a parsed server-sent event, as bytes.
pub type ParsedEvent = (Vec<u8>, Vec<u8>);

/// Parses a stream of server-sent events (SSE) in parts of `part_bytes`, for fuzzing. Returns the events, or `None` if
/// one exceeds the limit.
pub fn sse_events(stream: &[u8], part_bytes: usize, limit: usize) -> Option<Vec<ParsedEvent>> {
    let mut parser = SseParser::new(limit);
    let mut events = Vec::new();
    for part in stream.chunks(part_bytes.max(1)) {
        let mut rest = part;
        while !rest.is_empty() {
            let (used, event) = parser.feed(rest).ok()?;
            rest = rest.get(used..).unwrap_or_default();
            events.extend(event.map(|event| (event.kind, event.data)));
        }
    }
    Some(events)
}
