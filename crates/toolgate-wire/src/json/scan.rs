//! Steps over text by the byte.

/// How many bytes at the start need no look in a string: no quote, no backslash, no control. Eight at a time.
pub(super) fn plain(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let hits = hits(u64::from_le_bytes(*eight));
        if hits != 0 {
            return at + hits.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    // The last eight once more: those that were looked at need no look.
    if let Some(eight) = bytes.last_chunk::<8>() {
        let hits = hits(u64::from_le_bytes(*eight));
        return match hits {
            0 => bytes.len(),
            _ => bytes.len() - 8 + hits.trailing_zeros() as usize / 8,
        };
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest
        .iter()
        .position(|b| matches!(b, 0..=0x1f | b'"' | b'\\'))
        .unwrap_or(rest.len())
}

/// The high bit of each byte that needs a look. Bits above the lowest one set may be wrong: a borrow runs upwards.
fn hits(eight: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
    let below = |x: u64, limit: u64| x.wrapping_sub(ONES * limit) & !x & HIGHS;
    let equal = |byte: u8| below(eight ^ (ONES * u64::from(byte)), 1);
    below(eight, 0x20) | equal(b'"') | equal(b'\\')
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Where the string ends whose quote is at `at`, behind its last quote. The text is checked.
pub(super) fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        at += plain(bytes.get(at..).unwrap_or_default());
        match bytes.get(at) {
            None => return at,
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
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
    use super::plain;

    #[test]
    fn plain_stops_at_the_first_special_byte_wherever_it_is() {
        for special in 0..=255_u8 {
            for place in 0..20 {
                let mut bytes = [b'a'; 24];
                bytes[place] = special;
                bytes[place + 1] = b'"';
                let stops = special < 0x20 || special == b'"' || special == b'\\';
                let expected = place + usize::from(!stops);
                assert_eq!(plain(&bytes), expected, "{special:#x} at {place}");
            }
        }
        assert_eq!(plain("é€𐍈 ~\u{7f}".as_bytes()), "é€𐍈 ~\u{7f}".len());
    }
}
