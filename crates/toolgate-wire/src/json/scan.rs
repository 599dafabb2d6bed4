//! Steps over text, eight bytes at a time.

const ONES: u64 = u64::from_le_bytes([1; 8]);
const LOWS: u64 = u64::from_le_bytes([0x7f; 8]);
const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);

/// The high bit of each byte that needs a look in a string: a quote, a backslash, a control.
pub(super) fn hits(eight: u64) -> u64 {
    let low = eight & LOWS;
    // No sum runs over into the next byte: each is below 0x100.
    let above = low.wrapping_add(ONES * 0x60);
    !((unlike(low, b'"') & unlike(low, b'\\') & above) | eight) & HIGHS
}

/// The high bit of each byte that is a backslash.
pub(super) fn backslashes(eight: u64) -> u64 {
    !(unlike(eight & LOWS, b'\\') | eight) & HIGHS
}

/// The high bit of each byte that is another one, all of them below 0x80.
fn unlike(low: u64, byte: u8) -> u64 {
    (low ^ (ONES * u64::from(byte))).wrapping_add(LOWS)
}

/// Whether none of the bytes needs a look.
#[inline]
pub(super) fn is_plain(bytes: &[u8]) -> bool {
    if let Some(last) = bytes.last_chunk() {
        let (words, _) = bytes.as_chunks();
        // The last eight may be some that were looked at already.
        return words
            .iter()
            .chain([last])
            .all(|word| hits(u64::from_le_bytes(*word)) == 0);
    }
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => {
            let (low, high) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            hits(u64::from(low) | u64::from(high) << 32) == 0
        }
        _ => bytes
            .iter()
            .all(|b| *b >= 0x20 && *b != b'"' && *b != b'\\'),
    }
}

/// Goes over the bytes that need a look in a string, in their order.
pub(super) struct Looks<'a> {
    bytes: &'a [u8],
    /// Where the eight begin that are looked at.
    at: usize,
    /// Those of them that need a look and were not told yet.
    hits: u64,
}

impl<'a> Looks<'a> {
    /// From there on.
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Looks<'a> {
        let mut looks = Looks { bytes, at, hits: 0 };
        looks.look();
        looks
    }

    fn look(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let eight = rest.first_chunk().copied().unwrap_or_else(|| {
            let mut eight = [b' '; 8];
            eight
                .iter_mut()
                .zip(rest)
                .for_each(|(to, from)| *to = *from);
            eight
        });
        self.hits = hits(u64::from_le_bytes(eight));
    }

    /// Where the next one is; behind the end where there is none.
    pub(super) fn next(&mut self) -> usize {
        while self.hits == 0 {
            self.at += 8;
            if self.at >= self.bytes.len() {
                return self.bytes.len();
            }
            self.look();
        }
        let at = self.at + self.hits.trailing_zeros() as usize / 8;
        self.hits &= self.hits - 1;
        at
    }

    /// Goes on there, which is behind those that were told.
    pub(super) fn go_on(&mut self, at: usize) {
        match at - self.at {
            ahead @ 0..8 => self.hits &= u64::MAX << (8 * ahead),
            _ => {
                self.at = at;
                self.look();
            }
        }
    }
}

/// Bytes that are judged at once.
const BLOCK: usize = 32;

/// Goes on within a string over blocks in which no quote or control stands for itself, no backslash is escaped, and no escape is
/// one of four digits. That is told of all bytes of a block at once. It begins and ends where no escape was begun before.
pub(super) fn over_blocks(bytes: &[u8], mut at: usize) -> usize {
    while let Some(window) = at
        .checked_sub(1)
        .and_then(|from| bytes.get(from..)?.first_chunk())
        && is_plain_block(window)
    {
        // An escape that begins with the last byte is looked at once more, with what follows.
        at += BLOCK - usize::from(window[BLOCK] == b'\\');
    }
    at
}

/// Whether each byte of a block is fine beside the one before it; the first of these is before the block.
#[inline]
fn is_plain_block(window: &[u8; BLOCK + 1]) -> bool {
    // The one that is escaped by another one is not told from the one that escapes.
    let mut wrong = u8::from(window[0] == b'\\');
    for (byte, before) in window[1..].iter().zip(&window[..BLOCK]) {
        let (byte, escaped) = (*byte, *before == b'\\');
        let ends = !escaped & (byte == b'"');
        let strange = escaped & !is_short_escape(byte);
        wrong |= u8::from((byte < 0x20) | ends | strange);
    }
    wrong == 0
}

/// Whether a byte makes an escape of two signs, but for the backslash.
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

/// Bytes of a string that are looked at one by one between blocks: most strings are shorter.
pub(super) const STEP: usize = 64;

/// Where the string ends whose quote is at `at`, behind its last quote. The text is checked.
pub(super) fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut looks = Looks::new(bytes, at + 1);
    let mut blocks = at + STEP;
    loop {
        let at = looks.next();
        match bytes.get(at) {
            None => return at,
            Some(b'"') => return at + 1,
            Some(b'\\') if at < blocks => looks.go_on(at + 2),
            Some(b'\\') => {
                let end = over_blocks(bytes, at);
                blocks = end + STEP;
                match end == at {
                    true => looks.go_on(at + 2),
                    false => looks = Looks::new(bytes, end),
                }
            }
            Some(_) => {}
        }
    }
}

/// Where the number or word ends that begins at `at`. The text is checked.
pub(super) fn scalar_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let ends = |b: &u8| is_space(*b) || matches!(b, b',' | b'}' | b']');
    at + rest.iter().position(ends).unwrap_or(rest.len())
}

/// Where the object or array ends that begins at `at`. The text is checked.
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

    fn needs_a_look(byte: u8) -> bool {
        byte < 0x20 || byte == b'"' || byte == b'\\'
    }

    #[test]
    fn each_byte_is_told_from_all_others_wherever_it_is() {
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
                    assert_eq!(hits(word), told(&needs_a_look), "{eight:?}");
                    assert_eq!(backslashes(word), told(&|b| b == b'\\'), "{eight:?}");
                }
            }
        }
    }

    #[test]
    fn all_that_need_a_look_are_told_once_and_in_their_order() {
        for special in 0..=255_u8 {
            for place in 0..20 {
                for length in place + 1..24 {
                    let mut bytes = vec![b'a'; length];
                    bytes[place] = special;
                    bytes[length - 1] = b'"';
                    for from in 0..length {
                        let mut looks = Looks::new(&bytes, from);
                        let expected = (from..length).filter(|at| needs_a_look(bytes[*at]));
                        for at in expected.chain([length, length]) {
                            assert_eq!(looks.next(), at, "{special:#x} at {place} of {length}");
                        }
                    }
                }
            }
        }
    }

    /// The end of the string that begins at nought, sign by sign.
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
    fn long_strings_end_where_they_do() {
        let pieces = [
            r"\\", r#"\""#, r"\n", r"\u0022", r#"\\\""#, r"\\\\", "é", r#"\\""#, r#"""#,
        ];
        for before in 0..BLOCK + 2 {
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
                            &"b".repeat(BLOCK),
                            "\"",
                            &"c".repeat(2 * BLOCK),
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

    /// Where the inside of a string that begins at `at` has its escapes and other bytes, each as its length; none behind what
    /// ends it, is wrong or has to be looked at one by one.
    fn fine(bytes: &[u8], at: usize) -> Vec<usize> {
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
                let end = over_blocks(text.as_bytes(), at);
                proptest::prop_assert!(fine(text.as_bytes(), at).contains(&end), "{at} to {end} of {text:?}");
                // The next place where no escape was begun.
                at = match text.as_bytes()[at] {
                    b'\\' => at + 2,
                    _ => at + 1,
                };
            }
        }
    }

    #[test]
    fn a_text_is_plain_where_no_byte_needs_a_look() {
        for length in 0..40 {
            let mut bytes = vec![b'a'; length];
            assert!(is_plain(&bytes), "{length}");
            for place in 0..length {
                for byte in 0..=255_u8 {
                    bytes[place] = byte;
                    assert_eq!(
                        is_plain(&bytes),
                        !needs_a_look(byte),
                        "{byte:#x} at {place} of {length}"
                    );
                }
                bytes[place] = b'a';
            }
        }
    }

    #[test]
    fn what_is_stepped_over_is_not_told() {
        let bytes = b"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"";
        for from in 0..bytes.len() {
            for to in from..bytes.len() {
                let mut looks = Looks::new(bytes, from);
                looks.next();
                looks.go_on(to);
                assert_eq!(
                    looks.next(),
                    to.max(from + usize::from(to == from)),
                    "{from} {to}"
                );
            }
        }
    }
}
