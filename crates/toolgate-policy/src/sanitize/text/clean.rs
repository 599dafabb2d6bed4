//! Text sanitizer: removes everything that a person would not see, and leaves every script and emoji unchanged.
//!
//! It runs two passes. The first removes what never belongs in text: terminal sequences, control characters,
//! bidirectional overrides, unassignable characters. The second judges the invisible characters that some script or
//! emoji needs, each by its neighbors. A neighbor counts only if the first pass keeps it, so sanitizing is
//! idempotent.
//!
//! Names, definitions and messages are sanitized strictly. The content of results also keeps harmless characters of
//! files: `\r` before `\n`, form feeds, a byte order mark at the start, and private use characters.

use super::classes::{self, CharClass};
use std::borrow::Cow;

/// Returns the text without control characters and invisible characters; borrowed if nothing was removed.
///
/// ```
/// use toolgate_policy::sanitize_text;
///
/// assert_eq!(sanitize_text("read\u{200b} me\u{1b}[2J"), "read me");
/// ```
pub fn sanitize_text(text: &str) -> Cow<'_, str> {
    sanitized(text, TextKind::Message, &mut 0)
}

/// The set of characters that are kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TextKind {
    /// Characters of names and messages.
    Message,
    /// Characters of messages and of files.
    Content,
    /// Characters of content without the byte order mark: two keys could differ in it alone.
    Key,
}

impl TextKind {
    fn class(self, c: char) -> CharClass {
        match self {
            TextKind::Message => classes::of(c),
            TextKind::Content | TextKind::Key => classes::of_content(c),
        }
    }
}

/// The byte order mark, which some editors write at the start of a file.
const BOM: char = '\u{feff}';

/// Sanitizes a text of a kind. Adds the number of characters that were removed, or replaced by a line feed, to
/// `removed`.
pub(super) fn sanitized<'a>(text: &'a str, kind: TextKind, removed: &mut u64) -> Cow<'a, str> {
    let (mark, rest) = match (kind, text.strip_prefix(BOM)) {
        (TextKind::Content, Some(rest)) => (&text[..BOM.len_utf8()], rest),
        _ => ("", text),
    };
    if is_clean_text(rest, kind) {
        return Cow::Borrowed(text);
    }
    let first = without_controls(rest, kind, removed);
    let second = without_strays(&first, removed);
    match second == rest {
        true => Cow::Borrowed(text),
        false if mark.is_empty() => Cow::Owned(second),
        false => Cow::Owned([mark, &second].concat()),
    }
}

/// Returns whether every character of a text is kept.
pub(super) fn is_clean_text(text: &str, kind: TextKind) -> bool {
    let scan = ScanOptions {
        kind,
        escapes: false,
    };
    kept(text, scan)
}

/// Returns whether nothing in the strings of a JSON text must be removed. Also `false` if an escape could hide a
/// character.
pub(super) fn is_clean(raw: &str, kind: TextKind) -> bool {
    let scan = ScanOptions {
        kind,
        escapes: true,
    };
    kept(raw, scan)
}

/// Options of a scan.
#[derive(Clone, Copy)]
struct ScanOptions {
    kind: TextKind,
    /// True if the text has JSON escapes.
    escapes: bool,
}

/// Returns whether every character is kept. Nearly all text is checked block by block.
fn kept(text: &str, scan: ScanOptions) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        // `at` is at the start of a character that is not part of an escape.
        at = plain_end(bytes, at, scan.escapes);
        if at >= bytes.len() {
            return true;
        }
        match kept_up_to(text, at, bytes.len().min(at + SCAN_STEP_BYTES), scan) {
            Some(end) => at = end,
            None => return false,
        }
    }
}

/// Bytes that are checked at once.
const SCAN_BLOCK_BYTES: usize = 32;

/// Bytes that are checked one by one after a block failed.
const SCAN_STEP_BYTES: usize = 64;

/// Skips blocks in which every byte is fine next to the byte before it. All bytes of a block are tested at once, and
/// some fine blocks fail the test.
fn plain_end(bytes: &[u8], mut at: usize, escapes: bool) -> usize {
    // One byte stays behind the last block, so that an escape always has its end.
    while let Some([window @ .., _]) = at
        .checked_sub(1)
        .and_then(|from| bytes.get(from..)?.first_chunk::<{ SCAN_BLOCK_BYTES + 2 }>())
        && is_fine(window)
        && (!escapes || is_fine_escaped(window))
    {
        // If a character or an escape begins with the last byte, that byte is checked again with what follows.
        let backslashes = window[1..].iter().rev().take_while(|byte| **byte == b'\\');
        let begins = window[SCAN_BLOCK_BYTES] >= 0xc0 || (escapes && backslashes.count() % 2 == 1);
        at += SCAN_BLOCK_BYTES - usize::from(begins);
    }
    at
}

/// Returns whether all bytes are printable ASCII, line feeds, tabs, or part of two-byte characters with a lead byte
/// that guarantees that they are kept.
fn is_fine([_, block @ ..]: &[u8; SCAN_BLOCK_BYTES + 1]) -> bool {
    let wrong = block.iter().fold(0, |wrong, byte| {
        let printable = (b' '..=b'~').contains(byte);
        let blank = (*byte == b'\n') | (*byte == b'\t');
        wrong | u8::from(!(printable | blank | is_within(*byte) | is_lead(*byte)))
    });
    wrong == 0
}

/// Returns whether a byte is a continuation byte. If all lead bytes are kept, so are these.
const fn is_within(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Returns whether a byte leads kept two-byte characters; by ranges instead of a table, so that it vectorizes.
const fn is_lead(byte: u8) -> bool {
    (byte.wrapping_sub(0xc3) < 10) | (byte.wrapping_sub(0xce) < 10) | (byte.wrapping_sub(0xd9) < 7)
}

const _: () = {
    let mut byte = 0xc0;
    while byte < 0xff {
        assert!(is_lead(byte) == (byte < 0xe0 && classes::KEPT_LEAD_BYTES[(byte & 0x1f) as usize]));
        byte += 1;
    }
};

/// Returns whether each byte after a backslash forms an escape of a kept character. A byte after two backslashes is
/// not an escape, but is treated as one.
fn is_fine_escaped(window: &[u8; SCAN_BLOCK_BYTES + 1]) -> bool {
    let pairs = window[1..].iter().zip(&window[..SCAN_BLOCK_BYTES]);
    let wrong = pairs.fold(0, |wrong, (byte, before)| {
        wrong | u8::from((*before == b'\\') & !is_kept_escape(*byte))
    });
    wrong == 0
}

/// Returns whether an escape with this letter stands for a kept character.
const fn is_kept_escape(letter: u8) -> bool {
    (letter == b'"') | (letter == b'\\') | (letter == b'/') | (letter == b'n') | (letter == b't')
}

/// Checks each character from `at` to `end`, eight bytes at a time. Returns the end position, which is past `end` if
/// a character or an escape crosses it; `None` if a character is not kept.
fn kept_up_to(text: &str, mut at: usize, end: usize, scan: ScanOptions) -> Option<usize> {
    let bytes = text.as_bytes();
    while at + 8 <= end
        && let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>)
    {
        let mut hits = suspect_bytes(u64::from_le_bytes(*eight), scan.escapes);
        let mut next = at + 8;
        while hits != 0 {
            let place = hits.trailing_zeros() as usize / 8;
            let length = kept_at(text, at + place, scan)?;
            // The other bytes of this character or escape are not characters of their own.
            match place + length {
                behind @ 0..8 => hits &= u64::MAX << (8 * behind),
                behind => {
                    next = at + behind;
                    break;
                }
            }
        }
        at = next;
    }
    while at < end {
        at += kept_at(text, at, scan)?;
    }
    Some(at)
}

/// Returns the length of the character or escape at `at`; `None` if it is not kept, or possibly not.
#[inline]
fn kept_at(text: &str, at: usize, scan: ScanOptions) -> Option<usize> {
    let bytes = text.as_bytes();
    let content = scan.kind != TextKind::Message;
    match bytes.get(at)? {
        b'\\' if scan.escapes => match bytes.get(at + 1) {
            Some(letter) if is_kept_escape(*letter) => Some(2),
            Some(b'f') if content => Some(2),
            Some(b'r') if content && bytes[at + 2..].starts_with(b"\\n") => Some(4),
            _ => None,
        },
        b' '..=b'~' | b'\n' | b'\t' => Some(1),
        b'\r' if content && bytes.get(at + 1) == Some(&b'\n') => Some(2),
        lead @ 0xc0..=0xdf if classes::KEPT_LEAD_BYTES[usize::from(lead & 0x1f)] => Some(2),
        _ => kept_char(text.get(at..)?, scan.kind),
    }
}

#[inline(never)]
fn kept_char(text: &str, kind: TextKind) -> Option<usize> {
    let c = text.chars().next()?;
    (kind.class(c) == CharClass::Keep).then_some(c.len_utf8())
}

const BYTE_ONES: u64 = u64::from_le_bytes([1; 8]);
const BYTE_LOW_BITS: u64 = u64::from_le_bytes([0x7f; 8]);
const BYTE_HIGH_BITS: u64 = u64::from_le_bytes([0x80; 8]);

/// Sets the high bit of each byte to inspect: not printable ASCII, or a backslash if there are escapes.
fn suspect_bytes(eight: u64, escapes: bool) -> u64 {
    let low = eight & BYTE_LOW_BITS;
    // No sum overflows into the next byte: each is below 0x100.
    let unlike = |byte: u8| (low ^ (BYTE_ONES * u64::from(byte))).wrapping_add(BYTE_LOW_BITS);
    let mut fine = low.wrapping_add(BYTE_ONES * 0x60) & unlike(0x7f);
    if escapes {
        fine &= unlike(b'\\');
    }
    (!fine | eight) & BYTE_HIGH_BITS
}

fn without_controls(text: &str, kind: TextKind, removed: &mut u64) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut escapes = TerminalEscapes::default();
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match kind.class(c) {
            CharClass::Escape => {
                let (sequence, after) = rest.split_at(escapes.length(rest));
                *removed += sequence.chars().count() as u64;
                after
            }
            CharClass::Line => match after.strip_prefix('\n').filter(|_| c == '\r') {
                Some(after) if kind != TextKind::Message => {
                    out.push_str("\r\n");
                    after
                }
                after_both => {
                    *removed += 1;
                    out.push('\n');
                    after_both.unwrap_or(after)
                }
            },
            CharClass::Drop => {
                *removed += 1;
                after
            }
            CharClass::Keep | CharClass::Stray => {
                out.push(c);
                after
            }
        };
    }
    out
}

/// Finds the ends of terminal sequences.
#[derive(Default)]
struct TerminalEscapes {
    /// True if no string terminator follows: remembered, so that a text full of string openers is read once.
    unclosed: bool,
}

impl TerminalEscapes {
    /// Returns the length of the sequence at the start of `text`; of an unclosed one, only its introducer.
    fn length(&mut self, text: &str) -> usize {
        let (lead, kind) = match text.strip_prefix('\u{1b}') {
            Some(rest) => match rest.bytes().next() {
                Some(kind @ (b'[' | b']' | b'P' | b'X' | b'^' | b'_')) => (2, kind),
                _ => return 1 + short(rest.as_bytes()),
            },
            // The C1 form, one character: U+009B is ESC [, and so on.
            None => (2, text.as_bytes()[1] - 0x40),
        };
        let rest = &text[lead..];
        lead + if kind == b'[' {
            control(rest.as_bytes())
        } else {
            self.string(rest)
        }
    }

    /// Returns the length of a string up to BEL or ST.
    fn string(&mut self, rest: &str) -> usize {
        if self.unclosed {
            return 0;
        }
        let ends = ["\u{7}", "\u{1b}\\", "\u{9c}"];
        let end = rest.char_indices().find_map(|(at, _)| {
            let end = ends.iter().find(|end| rest[at..].starts_with(**end))?;
            Some(at + end.len())
        });
        self.unclosed = end.is_none();
        end.unwrap_or(0)
    }
}

/// Returns the length of the parameters, intermediates and final byte of a control sequence; 0 if it is incomplete.
fn control(rest: &[u8]) -> usize {
    let parameters = rest.iter().take_while(|b| matches!(b, 0x30..=0x3F)).count();
    let between = rest[parameters..]
        .iter()
        .take_while(|b| matches!(b, 0x20..=0x2F))
        .count();
    match rest.get(parameters + between) {
        Some(0x40..=0x7E) => parameters + between + 1,
        _ => 0,
    }
}

/// Returns the length of the rest of a short escape sequence, for example `(B`.
fn short(rest: &[u8]) -> usize {
    let between = rest.iter().take_while(|b| matches!(b, 0x20..=0x2F)).count();
    match rest.get(between) {
        Some(0x30..=0x7E) => between + 1,
        _ => 0,
    }
}

fn without_strays(text: &str, removed: &mut u64) -> String {
    let right_to_left = text.chars().any(classes::right_to_left);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let before = out.chars().next_back();
        if let Some(flag) = classes::flag(before, rest) {
            out.push_str(&rest[..flag]);
            rest = &rest[flag..];
            continue;
        }
        if classes::of(c) != CharClass::Stray
            || classes::belongs(before, c, after.chars().next(), right_to_left)
        {
            out.push(c);
        } else {
            *removed += 1;
        }
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference implementation of [`kept`], character by character.
    fn slowly_kept(text: &str, scan: ScanOptions) -> bool {
        let mut at = 0;
        while at < text.len() {
            let Some(length) = kept_at(text, at, scan) else {
                return false;
            };
            at += length;
        }
        true
    }

    /// Both kinds of text, with and without escapes.
    fn scans() -> impl Iterator<Item = ScanOptions> {
        let kinds = [TextKind::Message, TextKind::Content].into_iter();
        kinds.flat_map(|kind| [false, true].map(|escapes| ScanOptions { kind, escapes }))
    }

    const PIECES: [&str; 24] = [
        r"\\", r#"\""#, r"\/", r"\n", r"\t", r"\r", r"\r\n", r"\f", "\r\n", "\u{e000}", r"\u202e",
        "é", "ß", "中", "😀", "\\u", "\n", "\\", "\u{ad}", "\u{61c}", "\u{34f}", "\u{202e}",
        "\u{7f}", "\r",
    ];

    /// One piece, or two, at every position in a block.
    #[test]
    fn scan_agrees_with_the_reference() {
        for before in 0..2 * SCAN_BLOCK_BYTES + SCAN_STEP_BYTES + 4 {
            for one in PIECES {
                for two in PIECES {
                    for behind in [0, 1, SCAN_BLOCK_BYTES, 3 * SCAN_BLOCK_BYTES] {
                        let text = [&"a".repeat(before), one, two, &"a".repeat(behind)].concat();
                        for scan in scans() {
                            let expected = slowly_kept(&text, scan);
                            assert_eq!(kept(&text, scan), expected, "{text:?}");
                        }
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn runs_of_backslashes_are_told_apart(
            parts in prop::collection::vec((0_usize..40, 0_usize..70, 0_usize..PIECES.len() + 40), 1..12),
        ) {
            let parts = parts.into_iter().map(|(plain, run, nth)| {
                ["a".repeat(plain), r"\\".repeat(run), PIECES.get(nth).copied().unwrap_or("x").to_owned()].concat()
            });
            let text: String = parts.collect();
            for scan in scans() {
                prop_assert_eq!(kept(&text, scan), slowly_kept(&text, scan), "{:?}", text);
            }
        }
    }
}
