//! Classification of characters for the text sanitizer.
//!
//! Some invisible characters are kept:
//! - the marks U+200E, U+200F and U+061C, one at a time and only in text with right-to-left letters, where they are
//!   part of writing
//! - joiners between emoji and in the scripts that need them
//! - the zero width space between letters of scripts without spaces
//! - variation selectors after characters that have variants
//! - the three flags made of tag characters that emoji sets know
//!
//! All other invisible characters, private use characters and noncharacters are removed.

/// The sanitizer's action for a character.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CharClass {
    /// Keeps it.
    Keep,
    /// Removes it.
    Drop,
    /// Replaces it by a line feed.
    Line,
    /// Removes the terminal sequence that it starts.
    Escape,
    /// Keeps it only if its neighbors allow it; see [`belongs`].
    Stray,
}

pub(super) const fn of(c: char) -> CharClass {
    match c as u32 {
        0x09 | 0x0A => CharClass::Keep,
        0x0D | 0x85 | 0x2028 | 0x2029 => CharClass::Line,
        0x1B | 0x90 | 0x98 | 0x9B | 0x9D..=0x9F => CharClass::Escape,
        0x00..=0x1F | 0x7F..=0x9F => CharClass::Drop,
        0x20..=0x7E => CharClass::Keep,
        0x200B..=0x200F | 0x061C | 0x180B..=0x180F | 0x034F | 0x115F | 0x1160 => CharClass::Stray,
        0xFE00..=0xFE0F | 0xE0100..=0xE01EF | 0xE0020..=0xE007F => CharClass::Stray,
        // Soft hyphen, Khmer inherent vowels, bidirectional overrides, isolates and their deprecated kin, word joiner
        // and invisible operators, Hangul fillers, byte order mark, annotations, shorthand and music.
        0xAD | 0x17B4 | 0x17B5 | 0x202A..=0x202E | 0x2060..=0x206F => CharClass::Drop,
        0x3164 | 0xFFA0 | 0xFEFF | 0xFFF0..=0xFFFB | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A => {
            CharClass::Drop
        }
        // Private use, noncharacters, the rest of the tag plane.
        0xE000..=0xF8FF | 0xFDD0..=0xFDEF | 0xE0000..=0xE0FFF | 0xF0000.. => CharClass::Drop,
        other if other & 0xFFFE == 0xFFFE => CharClass::Drop,
        _ => CharClass::Keep,
    }
}

/// Classifies a character of result content, which an agent may write back to a file.
///
/// Characters of ordinary files that hide and steer nothing stay: the form feed, and the private use characters of
/// icon fonts. Font Awesome uses the first range, Nerd Fonts also use plane 15. Each of those shows as a glyph or a
/// box. Plane 16 has no such use.
pub(super) const fn of_content(c: char) -> CharClass {
    match c as u32 {
        0x0C | 0xE000..=0xF8FF | 0xF0000..=0xFFFFD => CharClass::Keep,
        _ => of(c),
    }
}

/// Lead bytes of two-byte characters that are all kept, by the lower five bits of the byte.
pub(super) const KEPT_LEAD_BYTES: [bool; 32] = {
    let mut kept = [false; 32];
    let mut lead = 2;
    while lead < kept.len() {
        kept[lead] = true;
        let mut low = 0;
        while low < 64 {
            let c = char::from_u32((lead as u32) << 6 | low);
            kept[lead] &= matches!(c, Some(c) if matches!(of(c), CharClass::Keep));
            low += 1;
        }
        lead += 1;
    }
    kept
};

/// Returns whether a stray character belongs between its neighbors: the last kept character and the next one.
pub(super) fn belongs(
    before: Option<char>,
    c: char,
    after: Option<char>,
    right_to_left: bool,
) -> bool {
    // Of several in a row only one can belong; otherwise their order could encode hidden data. After an emoji, a
    // selector may be followed by a joiner.
    let seen = |c: &char| of(*c) == CharClass::Keep;
    let Some(before) = before.filter(|b| seen(b) || (*b == '\u{FE0F}' && c == '\u{200D}')) else {
        // Without a character before it, only a direction mark may start a text.
        return matches!(c as u32, 0x200E | 0x200F | 0x061C) && before.is_none() && right_to_left;
    };
    let after = after.filter(seen);
    match c as u32 {
        0x200B => spaceless(before) && after.is_some_and(spaceless),
        0x200C => joining(before) || before.is_alphanumeric() && after.is_some_and(joining),
        0x200D => {
            let pictures =
                (is_emoji(before) || before == '\u{FE0F}') && after.is_some_and(is_emoji);
            pictures || joining(before) || after.is_some_and(joining)
        }
        0x200E | 0x200F | 0x061C => right_to_left,
        0x034F => matches!(before as u32, 0x0590..=0x05FF),
        0x180B..=0x180F => matches!(before as u32, 0x1800..=0x18AF),
        0x115F => after.is_some_and(jamo),
        0x1160 => jamo(before),
        0xFE0E => is_emoji(before),
        0xFE0F => {
            is_emoji(before) || matches!(before, '0'..='9' | '#' | '*') && after == Some('\u{20E3}')
        }
        0xFE00..=0xFE0D => has_variants(before),
        0xE0100..=0xE01EF => ideograph(before),
        _ => false,
    }
}

/// Returns the length in bytes of the tags after a black flag that make the flag of England, Scotland or Wales.
pub(super) fn flag(before: Option<char>, rest: &str) -> Option<usize> {
    if before != Some('\u{1F3F4}') {
        return None;
    }
    let flags = ["gbeng", "gbsct", "gbwls"];
    flags.iter().find_map(|flag| {
        let mut chars = rest.chars();
        let tags = flag
            .bytes()
            .map(|b| 0xE0000 + u32::from(b))
            .chain([0xE007F]);
        let all = tags
            .into_iter()
            .all(|tag| chars.next().is_some_and(|c| c as u32 == tag));
        all.then(|| rest.len() - chars.as_str().len())
    })
}

/// Returns whether a character is a right-to-left letter.
pub(super) fn right_to_left(c: char) -> bool {
    let c = c as u32;
    let letters = matches!(c, 0x0590..=0x08FF | 0xFB1D..=0xFDCF | 0xFDF0..=0xFDFF | 0xFE70..=0xFEFC)
        || matches!(c, 0x10800..=0x10FFF | 0x1E800..=0x1EFFF);
    letters && c != 0x061C
}

/// Returns whether the letters of its script change their shape with their neighbors.
fn joining(c: char) -> bool {
    let c = c as u32;
    let arabic = matches!(c, 0x0600..=0x08FF | 0xFB50..=0xFDCF | 0xFDF0..=0xFDFF | 0xFE70..=0xFEFC | 0x1E900..=0x1E95F);
    let indic = matches!(c, 0x0900..=0x0DFF | 0x0F00..=0x109F | 0x1780..=0x18AF | 0x1900..=0x1CFF | 0xA800..=0xAAFF | 0xABC0..=0xABFF);
    arabic || indic || matches!(c, 0x10A00..=0x11FFF)
}

/// Returns whether its script puts no spaces between words.
fn spaceless(c: char) -> bool {
    matches!(c as u32, 0x0E00..=0x0FFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x1950..=0x19FF | 0x1A20..=0x1AAF | 0x3040..=0x30FF | 0xAA60..=0xAA7F)
        || ideograph(c)
}

/// Returns whether a character can be shown as emoji, or is a skin tone modifier.
fn is_emoji(c: char) -> bool {
    matches!(c as u32, 0xA9 | 0xAE | 0x203C | 0x2049 | 0x2122 | 0x2139 | 0x2190..=0x21FF | 0x2300..=0x23FF | 0x24C2
        | 0x25A0..=0x27BF | 0x2900..=0x297F | 0x2B00..=0x2BFF | 0x3030 | 0x303D | 0x3297 | 0x3299 | 0x1F000..=0x1FAFF)
}

fn ideograph(c: char) -> bool {
    matches!(c as u32, 0x2E80..=0x2FDF | 0x3005..=0x3007 | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

/// Returns whether a character has standardized variants and is not an emoji.
fn has_variants(c: char) -> bool {
    let c = c as u32;
    let symbols = matches!(c, 0x2200..=0x22FF | 0x2A00..=0x2AFF | 0x3000..=0x303F | 0xFF00..=0xFFEF | 0x1D400..=0x1D7FF);
    let scripts = matches!(c, 0x1000..=0x109F | 0x1800..=0x18AF | 0xA840..=0xA87F | 0xAA60..=0xAA7F | 0x13000..=0x1345F);
    symbols || scripts || char::from_u32(c).is_some_and(ideograph)
}

fn jamo(c: char) -> bool {
    matches!(c as u32, 0x1100..=0x115E | 0x1161..=0x11FF | 0xA960..=0xA97F | 0xD7B0..=0xD7FF)
}
