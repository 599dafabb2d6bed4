//! Hexadecimal text of digests and keys.

/// The two digits of each byte.
const PAIRS: [[u8; 2]; 256] = {
    let digits = *b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < pairs.len() {
        pairs[byte] = [digits[byte / 16], digits[byte % 16]];
        byte += 1;
    }
    pairs
};

/// Encodes bytes as lower-case hexadecimal digits.
pub fn encode(bytes: &[u8]) -> String {
    let pairs = bytes.iter().map(|byte| PAIRS[usize::from(*byte)]);
    let text = pairs.collect::<Vec<_>>().into_flattened();
    // The digits are ASCII.
    String::from_utf8(text).unwrap_or_default()
}

/// Decodes hexadecimal digits in either case; `None` for other text.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok();
    let bytes = pairs.iter().map(byte).collect();
    if rest.is_empty() { bytes } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        let all: Vec<u8> = (0..=255).collect();
        let text = encode(&all);
        assert!(text.starts_with("000102") && text.ends_with("fdfeff"));
        assert_eq!(decode(&text), Some(all.clone()));
        assert_eq!(decode(&text.to_uppercase()), Some(all));
        assert_eq!(decode(""), Some(Vec::new()));
    }

    #[test]
    fn rejects_other_text() {
        for text in ["0", "000", "0g", "+f", "-1", " 0", "0 ", "é", "0x00", "٣٣"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
