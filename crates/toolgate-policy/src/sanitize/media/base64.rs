//! Base64 validation and decoding.

/// Number of Base64 characters that are decoded to detect the format.
const SNIFF_BASE64_CHARS: usize = 64;

/// Decodes the first bytes; `None` if the text is not Base64 in the standard alphabet (RFC 4648, section 4).
pub(super) fn decode_start(text: &str) -> Option<Vec<u8>> {
    let letters = letters(text)?;
    Some(decode(letters.get(..SNIFF_BASE64_CHARS).unwrap_or(letters)))
}

/// Decodes the whole text; `None` if it is not Base64.
pub(crate) fn decode_all(text: &str) -> Option<Vec<u8>> {
    letters(text).map(decode)
}

fn letters(text: &str) -> Option<&[u8]> {
    let bare = text.trim_end_matches('=');
    let padding = text.len() - bare.len();
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    let whole = match padding {
        // Some encoders omit the padding.
        0 => bare.len() % 4 != 1,
        1 | 2 => text.len().is_multiple_of(4),
        _ => false,
    };
    (whole && bare.bytes().all(letter)).then_some(bare.as_bytes())
}

/// Decodes Base64 characters; leftover bits are dropped.
fn decode(letters: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(letters.len());
    let (mut bits, mut held) = (0_u32, 0_u32);
    for letter in letters {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        held = (held << 6) | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    out
}
