//! Escaping of untrusted text for people and logs, so that no character is hidden.

use std::borrow::Cow;

/// Escapes invisible and misleading characters of untrusted text as `\uXXXX`. These are characters that are invisible,
/// change the text direction, resemble a plain space or move the cursor. Line feeds stay. JSON remains the same JSON: a
/// character beyond U+FFFF becomes two escapes.
#[doc(hidden)]
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || !is_invisible(c) {
            out.push(c);
            continue;
        }
        write_escape(c, &mut out);
    }
    out
}

/// Escapes untrusted text as [`visible`] does, and line feeds too, so that the text is one line.
#[doc(hidden)]
pub fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\u000a")
}

/// Escapes only line ends, terminal controls and bidi controls, for logs that keep all other characters. JSON remains
/// the same JSON.
#[doc(hidden)]
pub fn escape_bidi(text: &str) -> Cow<'_, str> {
    // Almost all text is ASCII, of which only DEL is escaped.
    let has_steering = match text.is_ascii() {
        true => text.as_bytes().contains(&0x7F),
        false => text.contains(is_steering),
    };
    if !has_steering {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match is_steering(c) {
            false => out.push(c),
            true => write_escape(c, &mut out),
        }
    }
    Cow::Owned(out)
}

/// Returns true for control characters that JSON does not escape, line ends, bidi controls and tag characters.
fn is_steering(c: char) -> bool {
    matches!(u32::from(c), 0x7F..=0x9F | 0xAD | 0x61C | 0x200B | 0x200E | 0x200F | 0x2028..=0x202E
        | 0x2060..=0x206F | 0xFEFF | 0xFFF9..=0xFFFB | 0xE0000..=0xE007F)
}

fn write_escape(c: char, out: &mut String) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        out.push_str(&format!("\\u{unit:04x}"));
    }
}

/// Returns true for control, format and private-use characters, fillers, unusual spaces and noncharacters.
fn is_invisible(c: char) -> bool {
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
    fn escapes_every_invisible_character() {
        assert_eq!(
            visible("a\u{1b}[2J\u{202e}b\u{200b}\u{e0041}\u{a0}\té\n"),
            "a\\u001b[2J\\u202eb\\u200b\\udb40\\udc41\\u00a0\\u0009é\n"
        );
    }

    #[test]
    fn leaves_visible_text_unchanged() {
        for text in ["plain", "naïve", "日本語", "שלום", "👍", "a b\nc"] {
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn escaped_text_is_one_line() {
        assert_eq!(visible_line("a\nb\rc"), "a\\u000ab\\u000dc");
        assert_eq!(
            escape_bidi("a\u{9b}b\u{2028}c\u{202e}d\u{e0041}"),
            "a\\u009bb\\u2028c\\u202ed\\udb40\\udc41"
        );
        let kept = "👩\u{200d}💻 ❤\u{fe0f} می\u{200c}خواهم";
        assert!(matches!(escape_bidi(kept), Cow::Borrowed(_)));
    }

    #[test]
    fn json_stays_the_same_json() {
        let json = "{\"a\u{202e}\":\"x\u{e0041}\u{feff}\u{3000}\"}";
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&visible(json)), read(json));
        assert!(visible(json).is_ascii());
    }
}
