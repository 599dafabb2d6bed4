//! Trace context of a request: three keys of `_meta` in the W3C formats.

use crate::json::{Json, ObjectWriter};

/// W3C trace context of a request: `traceparent`, `tracestate` and `baggage` in `_meta`. Invalid values are removed, so
/// that they are not forwarded.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TraceContext {
    /// Value of `traceparent`: version, trace id, parent id and flags.
    pub parent: Option<String>,
    /// Value of `tracestate`; only present with a `traceparent`.
    pub state: Option<String>,
    /// Value of the W3C `baggage`.
    pub baggage: Option<String>,
}

/// Longest `tracestate`, in bytes.
const MAX_STATE_BYTES: usize = 512;
/// Most entries of a `tracestate`.
const MAX_STATE_ENTRIES: usize = 32;
/// Longest key or value of a `tracestate`, in bytes.
const MAX_STATE_PART_BYTES: usize = 256;
/// Longest `baggage`, in bytes.
const MAX_BAGGAGE_BYTES: usize = 8192;

impl TraceContext {
    /// Reads the W3C trace context (`traceparent`, `tracestate`, `baggage`) from the `_meta` of a request.
    pub fn read([parent, state, baggage]: [Option<&Json>; 3]) -> TraceContext {
        let text = |of: Option<&Json>| of.and_then(Json::string);
        let parent = text(parent).filter(|p| is_parent(p));
        let state = text(state).filter(|s| parent.is_some() && is_state(s));
        TraceContext {
            parent,
            state,
            baggage: text(baggage).filter(|b| is_baggage(b)),
        }
    }

    /// Reads the W3C trace context from the values of HTTP headers. Invalid values are removed.
    pub fn from_headers([parent, state, baggage]: [Option<&str>; 3]) -> TraceContext {
        let parent = parent.filter(|p| is_parent(p));
        let state = state.filter(|s| parent.is_some() && is_state(s));
        let baggage = baggage.filter(|b| is_baggage(b));
        TraceContext {
            parent: parent.map(str::to_owned),
            state: state.map(str::to_owned),
            baggage: baggage.map(str::to_owned),
        }
    }

    /// Returns true if the request has no trace context.
    pub fn is_empty(&self) -> bool {
        self.parent.is_none() && self.baggage.is_none()
    }

    /// Writes the trace context as members of `_meta`.
    pub fn write(&self, o: &mut ObjectWriter) {
        let all = [
            ("traceparent", &self.parent),
            ("tracestate", &self.state),
            ("baggage", &self.baggage),
        ];
        for (key, value) in all {
            if let Some(value) = value {
                o.str(key, value);
            }
        }
    }
}

/// Returns true for `00-<32 hex>-<16 hex>-<2 hex>` in lower case, no id all zeros. Later versions may have more parts.
fn is_parent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let hex = |part: &str, length: usize| {
        part.len() == length
            && part
                .bytes()
                .all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'))
    };
    let some = |part: &str| part.bytes().any(|b| b != b'0');
    match parts.as_slice() {
        [version, trace, parent, flags, more @ ..] => {
            let known =
                hex(version, 2) && *version != "ff" && (*version != "00" || more.is_empty());
            known
                && hex(trace, 32)
                && some(trace)
                && hex(parent, 16)
                && some(parent)
                && hex(flags, 2)
                && text.len() <= MAX_STATE_BYTES
        }
        _ => false,
    }
}

/// White space that may stand around the parts of a list.
const OPTIONAL_SPACE: [char; 2] = [' ', '\t'];

/// A `tracestate` of Trace Context: entries `key=value` with commas between, each key once. Entries may be empty.
fn is_state(text: &str) -> bool {
    let mut keys = Vec::new();
    for entry in text.split(',').map(|e| e.trim_matches(OPTIONAL_SPACE)) {
        match entry.split_once('=') {
            Some((key, value)) if is_state_key(key) && is_state_value(value) => keys.push(key),
            None if entry.is_empty() => {}
            _ => return false,
        }
    }
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    keys.len() == count && (1..=MAX_STATE_ENTRIES).contains(&count) && text.len() <= MAX_STATE_BYTES
}

fn is_state_key(key: &str) -> bool {
    let first = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let later = |b: &u8| first(b) || b"_-*/@".contains(b);
    let bytes = key.as_bytes();
    bytes.first().is_some_and(first) && bytes.iter().all(later) && key.len() <= MAX_STATE_PART_BYTES
}

fn is_state_value(value: &str) -> bool {
    let visible = |b: u8| matches!(b, 0x20..=0x7e) && b != b',' && b != b'=';
    !value.is_empty() && value.bytes().all(visible) && value.len() <= MAX_STATE_PART_BYTES
}

/// A `baggage`: entries `key=value` with commas between, each with properties behind semicolons.
fn is_baggage(text: &str) -> bool {
    let entry = |entry: &str| {
        let mut parts = entry.split(';');
        parts.next().is_some_and(is_baggage_pair)
            && parts
                .all(|part| is_token(part.trim_matches(OPTIONAL_SPACE)) || is_baggage_pair(part))
    };
    text.len() <= MAX_BAGGAGE_BYTES && text.split(',').all(entry)
}

fn is_baggage_pair(pair: &str) -> bool {
    let octet = |b: u8| matches!(b, 0x21..=0x7e) && !b"\"\\".contains(&b);
    pair.split_once('=').is_some_and(|(key, value)| {
        is_token(key.trim_matches(OPTIONAL_SPACE))
            && value.trim_matches(OPTIONAL_SPACE).bytes().all(octet)
    })
}

/// A token of HTTP.
fn is_token(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn read(parent: &str, state: &str, baggage: &str) -> TraceContext {
        let values = [parent, state, baggage].map(|text| Json::from_value(&text.into()));
        TraceContext::read(values.each_ref().map(Some))
    }

    /// Holds: BASE-43
    #[test]
    fn only_the_formats_of_the_w3c_pass() {
        let good = read(GOOD, "a=1,b=2", "user=x;p=1, k=v");
        assert!(good.parent.is_some() && good.state.is_some() && good.baggage.is_some());
        for bad in [
            "",
            "00-0-0-01",
            &GOOD.to_uppercase(),
            &GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &format!("{GOOD}-more"),
            &GOOD.replacen("00", "ff", 1),
        ] {
            let read = read(bad, "a=1", "no pair");
            assert!(read.is_empty() && read.state.is_none(), "{bad}");
        }
        assert!(read("x", "y", "k=a\nb").is_empty());
    }

    /// Holds: BASE-43
    #[test]
    fn lists_of_the_trace_have_the_formats_of_the_w3c() {
        let long = |length: usize| "x".repeat(length);
        let many: Vec<String> = (0..33).map(|n| format!("k{n}=v")).collect();
        let state = |text: &str| read(GOOD, text, "").state.is_some();
        for good in [
            "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
            "a=1 , ,b=2",
            "0tenant@system=a b",
            "a_-*/=!~",
            &format!("a={}", long(256)),
            &many[..32].join(","),
        ] {
            assert!(state(good), "{good}");
        }
        for bad in [
            "",
            ",",
            "a",
            "a=",
            "=1",
            "A=1",
            "_a=1",
            "a b=1",
            "a=1=2",
            "a=1,a=2",
            "a=\u{e9}",
            "a=1\n",
            &format!("a={}", long(257)),
            &many.join(","),
        ] {
            assert!(!state(bad), "{bad}");
        }
        let baggage = |text: &str| read("", "", text).baggage.is_some();
        for good in [
            "k=",
            "user=x;p=1;secure, K.2 = v%20 ; p = 1 ",
            "k=a=b",
            &format!("k={}", long(8190)),
        ] {
            assert!(baggage(good), "{good}");
        }
        for bad in [
            "",
            "k",
            "=v",
            "k k=v",
            "k=a b",
            "k=\"v\"",
            "k=a\\b",
            "k=v,",
            "k=v;",
            "k=v;p p",
            "k=\u{e9}",
            &format!("k={}", long(8191)),
        ] {
            assert!(!baggage(bad), "{bad}");
        }
    }
}
