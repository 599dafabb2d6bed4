//! The `traceparent` of W3C Trace Context, as numbers.

/// Parsed `traceparent`: trace id, id of the parent span, and flags.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TraceParent {
    /// Trace id; not zero.
    pub trace_id: [u8; 16],
    /// Id of the parent span; not zero.
    pub span_id: u64,
    /// Flags; the lowest bit says that the caller recorded its span.
    pub flags: u8,
}

/// Flag of a span that is recorded.
pub(crate) const SAMPLED_FLAG: u8 = 1;

impl TraceParent {
    /// Parses a valid `traceparent`; `None` if its form is another.
    pub fn parse(text: &str) -> Option<TraceParent> {
        let bytes = text.as_bytes();
        if bytes.len() < 55 || bytes[2] != b'-' || bytes[35] != b'-' || bytes[52] != b'-' {
            return None;
        }
        let mut trace_id = [0; 16];
        for (at, byte) in trace_id.iter_mut().enumerate() {
            *byte = hex_byte(bytes, 3 + 2 * at)?;
        }
        let mut span_id = 0;
        for at in 0..8 {
            span_id = span_id << 8 | u64::from(hex_byte(bytes, 36 + 2 * at)?);
        }
        let flags = hex_byte(bytes, 53)?;
        (trace_id != [0; 16] && span_id != 0).then_some(TraceParent {
            trace_id,
            span_id,
            flags,
        })
    }

    /// Returns whether the span is recorded.
    pub fn is_sampled(self) -> bool {
        self.flags & SAMPLED_FLAG != 0
    }

    /// Returns the text, in version 00.
    pub fn text(self) -> String {
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        let (head, rest) = text.split_at_mut(35);
        put_hex(&mut head[3..], &self.trace_id);
        let (span, flags) = rest.split_at_mut(18);
        put_hex(&mut span[1..17], &self.span_id.to_be_bytes());
        put_hex(flags, &[self.flags]);
        // Digits and hyphens are UTF-8.
        String::from_utf8(text.to_vec()).unwrap_or_default()
    }
}

impl std::fmt::Display for TraceParent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

/// The two digits of each byte.
const HEX_PAIRS: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

fn put_hex(out: &mut [u8], bytes: &[u8]) {
    for (pair, byte) in out.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&HEX_PAIRS[usize::from(*byte)]);
    }
}

fn hex_byte(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| (*bytes.get(at)? as char).to_digit(16);
    Some((digit(at)? << 4 | digit(at + 1)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_survives_parsing_and_writing() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let parent = TraceParent::parse(text).unwrap();
        assert_eq!(
            (parent.text(), parent.is_sampled()),
            (text.to_owned(), true)
        );
        for bad in [
            "",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319x-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceParent::parse(bad), None, "{bad}");
        }
    }
}
