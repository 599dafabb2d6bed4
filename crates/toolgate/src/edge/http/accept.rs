//! What a client takes and sends, by media type.

use http::{HeaderMap, header};

/// Whether `Accept` lists the type, by itself or by a range, with a quality above nought.
pub(crate) fn accepts(headers: &HeaderMap, kind: &str, sub: &str) -> bool {
    let values = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|v| v.to_str().ok());
    values
        .flat_map(|v| v.split(','))
        .any(|range| matches(range, kind, sub))
}

fn matches(range: &str, kind: &str, sub: &str) -> bool {
    let mut parts = range.split(';').map(str::trim);
    let Some((t, s)) = parts.next().and_then(|r| r.split_once('/')) else {
        return false;
    };
    let wanted = parts
        .filter_map(|p| p.split_once('='))
        .find(|(k, _)| k.trim().eq_ignore_ascii_case("q"));
    let quality = wanted
        .and_then(|(_, q)| q.trim().parse::<f32>().ok())
        .unwrap_or(1.0);
    let same = |have: &str, want: &str| have == "*" || have.eq_ignore_ascii_case(want);
    quality > 0.0 && same(t, kind) && same(s, sub)
}

/// Whether the body is said to be JSON, plain.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let kind = value
        .to_str()
        .ok()
        .and_then(|v| v.split(';').next())
        .unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
        && !headers.contains_key(header::CONTENT_ENCODING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_and_ranges_count() {
        let check = |value: &str, expected: bool| {
            let headers = HeaderMap::from_iter([(header::ACCEPT, value.parse().unwrap())]);
            assert_eq!(
                accepts(&headers, "text", "event-stream"),
                expected,
                "{value}"
            );
        };
        check("application/json, text/event-stream", true);
        check("text/event-stream;q=0.5", true);
        check("text/event-stream;q=0", false);
        check("text/event-stream; Q=0.0", false);
        check("*/*", true);
        check("text/*", true);
        check("application/json", false);
        check("nonsense", false);
    }
}
