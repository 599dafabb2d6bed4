//! Multi-pattern search for the keywords of all rules, in one pass.
//!
//! Each keyword has an anchor: those three bytes in a row of it that are rarest in text. Wherever the anchor is in a text,
//! its first two or its last two bytes are at an even position. So the search looks up each pair of bytes at an even
//! position in a bitmap of the pairs of all anchors, and for a pair of an anchor, it looks up the hashes of the two
//! possible anchors in a bitmap of all anchors. It compares keywords only where it finds an anchor. The bitmaps ignore
//! case. A keyword without upper-case letters matches in any case.

use std::borrow::Cow;

/// A search table for all keywords.
pub(super) struct KeywordSearch {
    words: Vec<RuleKeyword>,
    /// One bit for each pair of bytes.
    pairs: Bitmap,
    /// One bit for each hash of an anchor.
    hashes: Bitmap,
    /// A hash table of the keywords: for each bucket, the index of its first one.
    buckets: Vec<Option<usize>>,
}

/// A keyword.
struct RuleKeyword {
    text: Cow<'static, str>,
    /// Index of its rule.
    rule: usize,
    /// True if the comparison is case-sensitive.
    is_exact: bool,
    /// The rarest three bytes in a row.
    anchor: u32,
    /// Offset of the anchor in the keyword.
    offset: usize,
    /// Index of the next keyword in the same bucket.
    next: Option<usize>,
}

/// Length of an anchor in bytes, which is the minimum length of a keyword.
const ANCHOR_BYTES: usize = 3;

/// One bit for each number of 16 bits.
struct Bitmap(Box<[u64; BITMAP_BLOCKS]>);

/// Number of blocks of a bitmap.
const BITMAP_BLOCKS: usize = (1 << u16::BITS) / 64;

impl Bitmap {
    fn new() -> Bitmap {
        Bitmap(Box::new([0; BITMAP_BLOCKS]))
    }

    fn insert(&mut self, number: u16) {
        self.0[usize::from(number / 64)] |= 1 << (number % 64);
    }

    fn contains(&self, number: u16) -> bool {
        self.0[usize::from(number / 64)] >> (number % 64) & 1 != 0
    }
}

impl KeywordSearch {
    /// Builds the table for the keywords of rules, in rule order. Each keyword must have three bytes or more.
    pub(super) fn new<'a>(rules: impl Iterator<Item = &'a [Cow<'static, str>]>) -> KeywordSearch {
        let texts = rules
            .enumerate()
            .flat_map(|(rule, words)| words.iter().map(move |text| (rule, text)));
        let mut words: Vec<RuleKeyword> = texts
            .filter_map(|(rule, text)| {
                let (offset, anchor) = rarest(text.as_bytes())?;
                Some(RuleKeyword {
                    text: text.clone(),
                    rule,
                    is_exact: text.bytes().any(|b| b.is_ascii_uppercase()),
                    anchor,
                    offset,
                    next: None,
                })
            })
            .collect();
        let (mut pairs, mut hashes) = (Bitmap::new(), Bitmap::new());
        let mut buckets = vec![None; words.len().next_power_of_two()];
        for (index, word) in words.iter_mut().enumerate() {
            let [_, first, second, third] = word.anchor.to_be_bytes();
            pairs.insert(pair_without_case([first, second]));
            pairs.insert(pair_without_case([second, third]));
            hashes.insert(anchor_hash(word.anchor));
            let bucket = bucket_of(word.anchor, buckets.len());
            word.next = buckets[bucket].replace(index);
        }
        KeywordSearch {
            words,
            pairs,
            hashes,
            buckets,
        }
    }

    /// Returns whether the text contains a keyword.
    pub(super) fn any(&self, text: &str) -> bool {
        self.visit(text.as_bytes(), |_, _| true)
    }

    /// Calls `seen` with the position of each keyword and the index of its rule, in no particular order.
    pub(super) fn each(&self, text: &str, seen: &mut dyn FnMut(usize, usize)) {
        self.visit(text.as_bytes(), |at, rule| {
            seen(at, rule);
            false
        });
    }

    /// Calls `enough` for each match until it returns true. Returns whether it did.
    fn visit(&self, text: &[u8], mut enough: impl FnMut(usize, usize) -> bool) -> bool {
        let pairs = text.as_chunks().0.iter().enumerate();
        let mut found = pairs.filter(|(_, pair)| self.pairs.contains(pair_without_case(**pair)));
        found.any(|(nth, pair)| {
            let at = nth * pair.len();
            self.visit_at(text, at, &mut enough)
                || at
                    .checked_sub(1)
                    .is_some_and(|before| self.visit_at(text, before, &mut enough))
        })
    }

    /// Calls `enough` for each keyword whose anchor is at an offset of the text, until it returns true. Returns whether it
    /// did.
    fn visit_at(
        &self,
        text: &[u8],
        at: usize,
        enough: &mut impl FnMut(usize, usize) -> bool,
    ) -> bool {
        let bytes = text.get(at..).and_then(<[u8]>::first_chunk::<ANCHOR_BYTES>);
        let Some(anchor) = bytes.map(anchor_of) else {
            return false;
        };
        self.hashes.contains(anchor_hash(anchor)) && self.compare(text, at, anchor, enough)
    }

    /// Compares the keywords of the anchor at an offset of the text.
    #[cold]
    fn compare(
        &self,
        text: &[u8],
        at: usize,
        anchor: u32,
        enough: &mut impl FnMut(usize, usize) -> bool,
    ) -> bool {
        let mut next = self.buckets[bucket_of(anchor, self.buckets.len())];
        while let Some(keyword) = next.and_then(|index| self.words.get(index)) {
            next = keyword.next;
            let begin = at.checked_sub(keyword.offset);
            if keyword.anchor == anchor
                && let Some(begin) = begin.filter(|begin| keyword.begins_at(text, *begin))
                && enough(begin, keyword.rule)
            {
                return true;
            }
        }
        false
    }
}

impl RuleKeyword {
    fn begins_at(&self, text: &[u8], at: usize) -> bool {
        let word = self.text.as_bytes();
        let Some(here) = text.get(at..at + word.len()) else {
            return false;
        };
        match self.is_exact {
            true => here == word,
            false => here.eq_ignore_ascii_case(word),
        }
    }
}

/// The bit that distinguishes the cases of a letter. It is set in anchors and pairs.
const CASE: u8 = b'a' ^ b'A';

/// Returns the anchor of three bytes. Both cases of a letter give the same one.
fn anchor_of(bytes: &[u8; ANCHOR_BYTES]) -> u32 {
    let with_byte = |anchor: u32, byte: &u8| anchor << 8 | u32::from(byte | CASE);
    bytes.iter().fold(0, with_byte)
}

/// Returns a pair of bytes as a number. Both cases of a letter give the same one.
fn pair_without_case(pair: [u8; 2]) -> u16 {
    u16::from_le_bytes(pair) | u16::from_le_bytes([CASE; 2])
}

/// Returns the hash of an anchor.
fn anchor_hash(anchor: u32) -> u16 {
    // A prime spreads similar anchors.
    (anchor.wrapping_mul(0x9e37_79b1) >> u16::BITS) as u16
}

/// Returns the bucket of an anchor; the number of buckets is a power of two.
fn bucket_of(anchor: u32, buckets: usize) -> usize {
    usize::from(anchor_hash(anchor)) & (buckets - 1)
}

/// Returns the anchor of a keyword, and its offset: the rarest three bytes.
fn rarest(word: &[u8]) -> Option<(usize, u32)> {
    let windows = word.windows(ANCHOR_BYTES).enumerate();
    let rank = |byte: &u8| usize::from(FREQUENCY_RANKS[usize::from(*byte)]);
    let rarity = |bytes: &[u8]| -> usize { bytes.iter().map(rank).sum() };
    let (offset, bytes) = windows.min_by_key(|(_, bytes)| rarity(bytes))?;
    Some((offset, anchor_of(bytes.first_chunk()?)))
}

/// The approximate frequency rank of each byte in text; 0 is rare.
const FREQUENCY_RANKS: [u8; 256] = {
    let letters = b"zqxjkvbywgpfmucdlhrsnioate ";
    let mut ranks = [0; 256];
    let mut rank = 0;
    while rank < letters.len() {
        ranks[letters[rank] as usize] = rank as u8 + 1;
        ranks[letters[rank].to_ascii_uppercase() as usize] = rank as u8 + 1;
        rank += 1;
    }
    ranks
};

#[cfg(test)]
mod tests {
    use super::super::{rule_set::MIN_KEYWORD_BYTES, rules::rules};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Returns the position and rule of each keyword, by naive search.
    fn sought(text: &str) -> BTreeSet<(usize, usize)> {
        let rules = rules();
        let mut sought = BTreeSet::new();
        for word in &rules.keywords.words {
            for at in 0..text.len() {
                let here = text.as_bytes()[at..].get(..word.text.len());
                let is = here.is_some_and(|here| match word.is_exact {
                    true => here == word.text.as_bytes(),
                    false => here.eq_ignore_ascii_case(word.text.as_bytes()),
                });
                if is {
                    sought.insert((at, word.rule));
                }
            }
        }
        sought
    }

    fn found(text: &str) -> BTreeSet<(usize, usize)> {
        let (rules, mut found) = (rules(), BTreeSet::new());
        rules.keywords.each(text, &mut |at, rule| {
            found.insert((at, rule));
        });
        assert_eq!(rules.keywords.any(text), !found.is_empty(), "{text:?}");
        found
    }

    #[test]
    fn keywords_are_found_wherever_they_begin() {
        for keyword in &rules().keywords.words {
            let word = &keyword.text;
            assert!(word.len() >= MIN_KEYWORD_BYTES && word.is_ascii(), "{word}");
            for before in 31..34 {
                let text = [&".".repeat(before), word.as_ref(), "é"].concat();
                assert_eq!(found(&text), sought(&text), "{text}");
            }
            if !keyword.is_exact {
                let upper = word.to_ascii_uppercase();
                assert!(found(&upper).contains(&(0, keyword.rule)), "{upper}");
            }
        }
    }

    proptest! {
        /// The anchor search finds what the naive search finds.
        #[test]
        fn nothing_is_missed(parts in prop::collection::vec((0_usize..800, any::<bool>(), "[a-zA-Z_/:~é -]{0,9}"), 0..12)) {
            let all = rules();
            let text: String = parts
                .iter()
                .map(|(n, upper, other)| {
                    let word = all.keywords.words.get(*n).map_or("", |word| &word.text);
                    let word = if *upper { word.to_ascii_uppercase() } else { word.to_owned() };
                    [word.as_str(), other].concat()
                })
                .collect();
            prop_assert_eq!(found(&text), sought(&text));
        }
    }
}
