//! Content negotiation: the media types that a client accepts and sends.

use http::{HeaderMap, header};

/// Returns whether `Accept` includes the media type, written as `type/subtype`, by name or range, with a quality above 0.
pub(crate) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let values = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|v| v.to_str().ok());
    values
        .flat_map(|v| v.as_bytes().split(|b| *b == b','))
        .any(|range| range_matches(range, media_type.as_bytes()))
}

fn range_matches(range: &[u8], media_type: &[u8]) -> bool {
    let (media, params) = split_at_first(range, b';').unwrap_or((range, &[]));
    let media = media.trim_ascii();
    // Most ranges are media types without parameters.
    (media.eq_ignore_ascii_case(media_type) || wildcard_matches(media, media_type))
        && (params.is_empty() || quality(params) > 0.0)
}

/// Returns whether a range with `*` for the type or the subtype includes the media type.
fn wildcard_matches(range: &[u8], media_type: &[u8]) -> bool {
    let same = |have: &[u8], want: &[u8]| have == b"*" || have.eq_ignore_ascii_case(want);
    range.contains(&b'*')
        && match (
            split_at_first(range, b'/'),
            split_at_first(media_type, b'/'),
        ) {
            (Some(range), Some(media)) => same(range.0, media.0) && same(range.1, media.1),
            _ => false,
        }
}

/// Splits at the first `sign`.
fn split_at_first(text: &[u8], sign: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(sign, text)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Returns the first `q` parameter of a media range; 1 if there is none.
fn quality(params: &[u8]) -> f32 {
    let wanted = params
        .split(|b| *b == b';')
        .filter_map(|param| split_at_first(param, b'='))
        .find(|(name, _)| name.trim_ascii().eq_ignore_ascii_case(b"q"));
    wanted
        .and_then(|(_, q)| std::str::from_utf8(q.trim_ascii()).ok()?.parse().ok())
        .unwrap_or(1.0)
}

/// Returns whether the body is declared as JSON without a content encoding.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let text = value.to_str().unwrap_or_default().as_bytes();
    let kind = split_at_first(text, b';').map_or(text, |(kind, _)| kind);
    kind.trim_ascii().eq_ignore_ascii_case(b"application/json")
        && !headers.contains_key(header::CONTENT_ENCODING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_and_ranges_count() {
        let check = |value: &str, expected: bool| {
            let headers = HeaderMap::from_iter([(header::ACCEPT, value.parse().unwrap())]);
            assert_eq!(accepts(&headers, "text/event-stream"), expected, "{value}");
        };
        check("application/json, text/event-stream", true);
        check("text/event-stream;q=0.5", true);
        check("text/event-stream;q=0", false);
        check("text/event-stream; Q=0.0", false);
        check("*/*", true);
        check("text/*", true);
        check("*/event-stream;q=1", true);
        check("Text/Event-Stream", true);
        check("application/*", false);
        check("application/json", false);
        check("nonsense", false);
    }
}
