//! Scanning of text, eight bytes at a time.

const ONE_PER_BYTE: u64 = u64::from_le_bytes([1; 8]);
const LOW_BITS_PER_BYTE: u64 = u64::from_le_bytes([0x7f; 8]);
const HIGH_BIT_PER_BYTE: u64 = u64::from_le_bytes([0x80; 8]);

/// Returns a mask with the high bit of each special byte in a string: quote, backslash or control character.
pub(super) fn special_byte_mask(eight: u64) -> u64 {
    let low = eight & LOW_BITS_PER_BYTE;
    // No sum carries into the next byte: each is below 0x100.
    let above = low.wrapping_add(ONE_PER_BYTE * 0x60);
    !((unequal_byte_mask(low, b'"') & unequal_byte_mask(low, b'\\') & above) | eight)
        & HIGH_BIT_PER_BYTE
}

/// Returns a mask with the high bit of each backslash.
pub(super) fn backslash_mask(eight: u64) -> u64 {
    !(unequal_byte_mask(eight & LOW_BITS_PER_BYTE, b'\\') | eight) & HIGH_BIT_PER_BYTE
}

/// Returns a mask with the high bit of each byte that differs from `byte`. All bytes must be below 0x80.
fn unequal_byte_mask(low: u64, byte: u8) -> u64 {
    (low ^ (ONE_PER_BYTE * u64::from(byte))).wrapping_add(LOW_BITS_PER_BYTE)
}

/// Returns true if no byte is special.
#[inline]
pub(super) fn is_plain(bytes: &[u8]) -> bool {
    if let Some(last) = bytes.last_chunk() {
        let (words, _) = bytes.as_chunks();
        // The last eight bytes may overlap those checked before.
        return words
            .iter()
            .chain([last])
            .all(|word| special_byte_mask(u64::from_le_bytes(*word)) == 0);
    }
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => {
            let (low, high) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            special_byte_mask(u64::from(low) | u64::from(high) << 32) == 0
        }
        _ => bytes
            .iter()
            .all(|b| *b >= 0x20 && *b != b'"' && *b != b'\\'),
    }
}

/// Iterator over the special bytes of a string, in their order.
pub(super) struct SpecialBytes<'a> {
    bytes: &'a [u8],
    /// Position of the current eight bytes.
    at: usize,
    /// Mask of their special bytes that were not returned yet.
    mask: u64,
}

impl<'a> SpecialBytes<'a> {
    /// Starts at a position.
    pub(super) fn new(bytes: &'a [u8], at: usize) -> SpecialBytes<'a> {
        let mut looks = SpecialBytes { bytes, at, mask: 0 };
        looks.load();
        looks
    }

    fn load(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let eight = rest.first_chunk().copied().unwrap_or_else(|| {
            let mut eight = [b' '; 8];
            eight
                .iter_mut()
                .zip(rest)
                .for_each(|(to, from)| *to = *from);
            eight
        });
        self.mask = special_byte_mask(u64::from_le_bytes(eight));
    }

    /// Returns the position of the next special byte, or the end of the text.
    pub(super) fn next(&mut self) -> usize {
        while self.mask == 0 {
            self.at += 8;
            if self.at >= self.bytes.len() {
                return self.bytes.len();
            }
            self.load();
        }
        let at = self.at + self.mask.trailing_zeros() as usize / 8;
        self.mask &= self.mask - 1;
        at
    }

    /// Continues at a position behind all returned ones.
    pub(super) fn skip_to(&mut self, at: usize) {
        match at - self.at {
            ahead @ 0..8 => self.mask &= u64::MAX << (8 * ahead),
            _ => {
                self.at = at;
                self.load();
            }
        }
    }
}

/// Size of a block that is checked at once, in bytes.
const BLOCK_BYTES: usize = 32;

/// Skips blocks within a string that have no unescaped quote, no control character, no escaped backslash and no `\u`
/// escape. All bytes of a block are checked at once. Start and end are positions outside of escapes.
pub(super) fn skip_plain_blocks(bytes: &[u8], mut at: usize) -> usize {
    while let Some(window) = at
        .checked_sub(1)
        .and_then(|from| bytes.get(from..)?.first_chunk())
        && is_plain_block(window)
    {
        // An escape that begins with the last byte is checked again with the next block.
        at += BLOCK_BYTES - usize::from(window[BLOCK_BYTES] == b'\\');
    }
    at
}

/// Returns true if each byte of a block is fine after the one before it. The first byte of the window precedes the
/// block.
#[inline]
fn is_plain_block(window: &[u8; BLOCK_BYTES + 1]) -> bool {
    // An escaped backslash looks the same as one that escapes.
    let mut wrong = u8::from(window[0] == b'\\');
    for (byte, before) in window[1..].iter().zip(&window[..BLOCK_BYTES]) {
        let (byte, escaped) = (*byte, *before == b'\\');
        let ends = !escaped & (byte == b'"');
        let strange = escaped & !is_short_escape(byte);
        wrong |= u8::from((byte < 0x20) | ends | strange);
    }
    wrong == 0
}

/// Returns true if a byte ends a two-character escape, except for the backslash.
const fn is_short_escape(byte: u8) -> bool {
    (byte == b'"')
        | (byte == b'/')
        | (byte == b'b')
        | (byte == b'f')
        | (byte == b'n')
        | (byte == b'r')
        | (byte == b't')
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Number of bytes of a string that are checked individually before trying blocks; most strings are shorter.
pub(super) const MIN_BYTES_BETWEEN_BLOCKS: usize = 64;

/// Returns the end of the string with the opening quote at `at`, after its closing quote. The text is validated.
pub(super) fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut looks = SpecialBytes::new(bytes, at + 1);
    let mut blocks = at + MIN_BYTES_BETWEEN_BLOCKS;
    loop {
        let at = looks.next();
        match bytes.get(at) {
            None => return at,
            Some(b'"') => return at + 1,
            Some(b'\\') if at < blocks => looks.skip_to(at + 2),
            Some(b'\\') => {
                let end = skip_plain_blocks(bytes, at);
                blocks = end + MIN_BYTES_BETWEEN_BLOCKS;
                match end == at {
                    true => looks.skip_to(at + 2),
                    false => looks = SpecialBytes::new(bytes, end),
                }
            }
            Some(_) => {}
        }
    }
}

/// Returns the end of the number or literal that begins at `at`. The text is validated.
pub(super) fn scalar_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let ends = |b: &u8| is_space(*b) || matches!(b, b',' | b'}' | b']');
    at + rest.iter().position(ends).unwrap_or(rest.len())
}

/// Returns the end of the object or array that begins at `at`. The text is validated.
pub(super) fn nested_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at;
    let mut depth = 0_usize;
    loop {
        match bytes.get(at) {
            None => return at,
            Some(b'"') => {
                at = string_end(bytes, at);
                continue;
            }
            Some(b'{' | b'[') => depth += 1,
            Some(b'}' | b']') if depth <= 1 => return at + 1,
            Some(b'}' | b']') => depth -= 1,
            Some(_) => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_special(byte: u8) -> bool {
        byte < 0x20 || byte == b'"' || byte == b'\\'
    }

    #[test]
    fn detects_special_bytes_at_every_position() {
        for byte in 0..=255_u8 {
            for neighbour in [
                0, b' ', b'!', b'"', b'[', b'\\', b'a', 0x7f, 0x80, 0xa2, 0xdc, 0xff,
            ] {
                for place in 0..8 {
                    let mut eight = [neighbour; 8];
                    eight[place] = byte;
                    let told = |is: &dyn Fn(u8) -> bool| {
                        u64::from_le_bytes(eight.map(|b| if is(b) { 0x80 } else { 0 }))
                    };
                    let word = u64::from_le_bytes(eight);
                    assert_eq!(special_byte_mask(word), told(&is_special), "{eight:?}");
                    assert_eq!(backslash_mask(word), told(&|b| b == b'\\'), "{eight:?}");
                }
            }
        }
    }

    #[test]
    fn returns_each_special_byte_once_and_in_order() {
        for special in 0..=255_u8 {
            for place in 0..20 {
                for length in place + 1..24 {
                    let mut bytes = vec![b'a'; length];
                    bytes[place] = special;
                    bytes[length - 1] = b'"';
                    for from in 0..length {
                        let mut looks = SpecialBytes::new(&bytes, from);
                        let expected = (from..length).filter(|at| is_special(bytes[*at]));
                        for at in expected.chain([length, length]) {
                            assert_eq!(looks.next(), at, "{special:#x} at {place} of {length}");
                        }
                    }
                }
            }
        }
    }

    /// Returns the end of the string that begins at 0, character by character.
    fn slow_end(bytes: &[u8]) -> usize {
        let mut at = 1;
        loop {
            match bytes.get(at) {
                None => return bytes.len(),
                Some(b'"') => return at + 1,
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
            }
        }
    }

    #[test]
    fn finds_the_end_of_long_strings() {
        let pieces = [
            r"\\", r#"\""#, r"\n", r"\u0022", r#"\\\""#, r"\\\\", "é", r#"\\""#, r#"""#,
        ];
        for before in 0..BLOCK_BYTES + 2 {
            for dense in [r"\n\n\n", r"abcdef\t", r"\\\n"] {
                for one in pieces {
                    for two in pieces {
                        let lead = dense.repeat(before);
                        let text = [
                            "\"",
                            &lead[..],
                            one,
                            "a",
                            two,
                            &"b".repeat(BLOCK_BYTES),
                            "\"",
                            &"c".repeat(2 * BLOCK_BYTES),
                        ];
                        let text = text.concat();
                        assert_eq!(
                            string_end(text.as_bytes(), 0),
                            slow_end(text.as_bytes()),
                            "{text}"
                        );
                    }
                }
            }
        }
    }

    /// Returns the positions of escapes and other bytes in the string content that begins at `at`. It stops at a
    /// closing quote, an error, or a byte that has to be checked individually.
    fn positions_outside_escapes(bytes: &[u8], at: usize) -> Vec<usize> {
        let mut places = vec![at];
        while let Some(last) = places.last().copied() {
            match bytes.get(last) {
                Some(b'\\') if bytes.get(last + 1).is_some_and(|b| is_short_escape(*b)) => {
                    places.push(last + 2)
                }
                Some(b'"' | b'\\' | 0..0x20) | None => break,
                Some(_) => places.push(last + 1),
            }
        }
        places
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_gone_over_that_needs_a_look(
            parts in proptest::collection::vec((0_usize..40, 0_usize..12), 1..16),
        ) {
            const PIECES: [&str; 12] = [
                r"\n", r#"\""#, r"\\", r"\\\\", r"\u0041", "\"", "\u{1}", r"\x", "é中", r"\/\b\f\r\t", "", "",
            ];
            let parts = parts.iter().flat_map(|(n, piece)| ["a".repeat(*n), PIECES[*piece].to_owned()]);
            let text: String = parts.collect();
            let mut at = 0;
            while at < text.len() {
                let end = skip_plain_blocks(text.as_bytes(), at);
                proptest::prop_assert!(positions_outside_escapes(text.as_bytes(), at).contains(&end), "{at} to {end} of {text:?}");
                // The next position outside of escapes.
                at = match text.as_bytes()[at] {
                    b'\\' => at + 2,
                    _ => at + 1,
                };
            }
        }
    }

    #[test]
    fn a_text_without_special_bytes_is_plain() {
        for length in 0..40 {
            let mut bytes = vec![b'a'; length];
            assert!(is_plain(&bytes), "{length}");
            for place in 0..length {
                for byte in 0..=255_u8 {
                    bytes[place] = byte;
                    assert_eq!(
                        is_plain(&bytes),
                        !is_special(byte),
                        "{byte:#x} at {place} of {length}"
                    );
                }
                bytes[place] = b'a';
            }
        }
    }

    #[test]
    fn does_not_return_skipped_bytes() {
        let bytes = b"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"";
        for from in 0..bytes.len() {
            for to in from..bytes.len() {
                let mut looks = SpecialBytes::new(bytes, from);
                looks.next();
                looks.skip_to(to);
                assert_eq!(
                    looks.next(),
                    to.max(from + usize::from(to == from)),
                    "{from} {to}"
                );
            }
        }
    }
}
