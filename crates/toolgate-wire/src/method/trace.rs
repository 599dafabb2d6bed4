//! The trace that a request belongs to: three keys of `_meta` in the formats of the W3C.

use crate::json::{Json, ObjectWriter};

/// The trace that a request belongs to. Values in other formats are left out, so that none is passed on.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TraceContext {
    /// `traceparent`: version, trace, parent and flags.
    pub parent: Option<String>,
    /// `tracestate`, only where there is a parent.
    pub state: Option<String>,
    /// `baggage`.
    pub baggage: Option<String>,
}

/// The longest `tracestate`, in bytes.
const STATE: usize = 512;
/// The longest `baggage`, in bytes.
const BAGGAGE: usize = 8192;

impl TraceContext {
    /// Reads `traceparent`, `tracestate` and `baggage` of the `_meta` of a request.
    pub fn read([parent, state, baggage]: [Option<&Json>; 3]) -> TraceContext {
        let text = |of: Option<&Json>| of.and_then(Json::string);
        let parent = text(parent).filter(|p| is_parent(p));
        let state = text(state).filter(|s| parent.is_some() && is_list(s, STATE));
        TraceContext {
            parent,
            state,
            baggage: text(baggage).filter(|b| is_list(b, BAGGAGE)),
        }
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.parent.is_none() && self.baggage.is_none()
    }

    /// Writes the members of `_meta`.
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

/// `00-<32 hex>-<16 hex>-<2 hex>` in lower case; no part all noughts. Later versions may have more parts.
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
                && text.len() <= STATE
        }
        _ => false,
    }
}

/// Pairs of a key and a value with commas between, in visible ASCII.
fn is_list(text: &str, longest: usize) -> bool {
    let pair = |pair: &str| {
        pair.trim()
            .split_once('=')
            .is_some_and(|(key, _)| !key.is_empty())
    };
    text.len() <= longest
        && text.bytes().all(|b| (0x20..0x7f).contains(&b))
        && text.split(',').all(pair)
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
}
