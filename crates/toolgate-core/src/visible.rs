//! Foreign text for a person: nothing in it hides.

/// The text with everything spelled out as `\uXXXX` that cannot be seen, turns other signs around, looks like a plain
/// space or moves a cursor; line feeds stay. JSON stays the same JSON: a sign beyond U+FFFF is two escapes.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || !hides(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    out
}

/// Control, format and private characters, fillers, odd spaces, and those that will never have a meaning.
fn hides(c: char) -> bool {
    let other_control = c.is_control() || u32::from(c) & 0xFFFE == 0xFFFE;
    other_control
        || (c != ' ' && c.is_whitespace())
        || matches!(u32::from(c),
            0xAD | 0x34F | 0x61C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F
            | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F | 0x2800 | 0x3164
            | 0xE000..=0xF8FF | 0xFDD0..=0xFDEF | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB
            | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides() {
        assert_eq!(
            visible("a\u{1b}[2J\u{202e}b\u{200b}\u{e0041}\u{a0}\té\n"),
            "a\\u001b[2J\\u202eb\\u200b\\udb40\\udc41\\u00a0\\u0009é\n"
        );
    }

    #[test]
    fn what_is_seen_stays() {
        for text in ["plain", "naïve", "日本語", "שלום", "👍", "a b\nc"] {
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn json_stays_the_same_json() {
        let json = "{\"a\u{202e}\":\"x\u{e0041}\u{feff}\u{3000}\"}";
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&visible(json)), read(json));
        assert!(visible(json).is_ascii());
    }
}
