//! Multi-pattern search for the keywords of all rules, in one pass.
//!
//! Each keyword has an anchor: those three bytes in a row of it that are rarest in text. A bitmap holds the anchors of
//! all keywords, by a hash that ignores case. The search computes the hash at each position of the text, and compares
//! keywords only where the bitmap has it. A keyword without upper-case letters matches in any case.

use std::collections::HashMap;

/// A search table for all keywords.
pub(super) struct KeywordSearch {
    words: Vec<RuleKeyword>,
    /// One bit for each hash of an anchor.
    bitmap: Box<[u64; BITMAP_BLOCKS]>,
    /// The keywords of each anchor.
    anchors: HashMap<u32, Vec<AnchoredKeyword>>,
}

/// A keyword, and the index of its rule.
struct RuleKeyword {
    text: String,
    rule: usize,
    /// True if the comparison is case-sensitive.
    is_exact: bool,
}

/// A keyword at its anchor.
#[derive(Clone, Copy)]
struct AnchoredKeyword {
    /// Index of the keyword.
    word: usize,
    /// Offset of the anchor in the keyword.
    offset: usize,
}

/// Length of an anchor in bytes, which is the minimum length of a keyword.
const ANCHOR_BYTES: usize = 3;

/// Bits of a hash.
const HASH_BITS: u32 = 16;

/// Number of blocks of the bitmap, which has one bit for each hash.
const BITMAP_BLOCKS: usize = (1 << HASH_BITS) / 64;

impl KeywordSearch {
    /// Builds the table for the keywords of rules, in rule order. Each keyword must have three bytes or more.
    pub(super) fn new<'a>(rules: impl Iterator<Item = &'a [String]>) -> KeywordSearch {
        let words: Vec<RuleKeyword> = rules
            .enumerate()
            .flat_map(|(rule, words)| {
                words.iter().map(move |text| RuleKeyword {
                    text: text.clone(),
                    rule,
                    is_exact: text.bytes().any(|b| b.is_ascii_uppercase()),
                })
            })
            .collect();
        let mut bitmap = Box::new([0; BITMAP_BLOCKS]);
        let mut anchors: HashMap<u32, Vec<AnchoredKeyword>> = HashMap::new();
        for (word, keyword) in words.iter().enumerate() {
            let Some((offset, anchor)) = rarest(keyword.text.as_bytes()) else {
                continue;
            };
            let (block, bit) = bitmap_place(anchor);
            bitmap[block] |= bit;
            let at_anchor = anchors.entry(anchor).or_default();
            at_anchor.push(AnchoredKeyword { word, offset });
        }
        KeywordSearch {
            words,
            bitmap,
            anchors,
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
        let (mut anchor, mut next) = (0, 0);
        for byte in text {
            anchor = with_byte(anchor, *byte);
            next += 1;
            let (block, bit) = bitmap_place(anchor);
            if self.bitmap[block] & bit != 0
                && next >= ANCHOR_BYTES
                && self.compare(text, next - ANCHOR_BYTES, anchor, &mut enough)
            {
                return true;
            }
        }
        false
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
        let keywords = self.anchors.get(&anchor).into_iter().flatten();
        let mut found = keywords.filter_map(|anchored| {
            let keyword = &self.words[anchored.word];
            let begin = at.checked_sub(anchored.offset)?;
            keyword
                .begins_at(text, begin)
                .then_some((begin, keyword.rule))
        });
        found.any(|(begin, rule)| enough(begin, rule))
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

/// Returns the anchor of the last three bytes: those of `anchor` and one more. Both cases of a letter give the same one.
fn with_byte(anchor: u32, byte: u8) -> u32 {
    const CASE: u8 = b'a' ^ b'A';
    (anchor << 8 | u32::from(byte | CASE)) & 0x00ff_ffff
}

/// Returns the block of the bitmap, and the bit in it, for an anchor.
fn bitmap_place(anchor: u32) -> (usize, u64) {
    // A prime spreads similar anchors.
    let hash = anchor.wrapping_mul(0x9e37_79b1) >> (u32::BITS - HASH_BITS);
    (hash as usize / 64, 1 << (hash % 64))
}

/// Returns the anchor of a keyword, and its offset: the rarest three bytes.
fn rarest(word: &[u8]) -> Option<(usize, u32)> {
    let windows = word.windows(ANCHOR_BYTES).enumerate();
    let rarity = |bytes: &[u8]| -> usize { bytes.iter().map(|byte| common(*byte)).sum() };
    let (offset, bytes) = windows.min_by_key(|(_, bytes)| rarity(bytes))?;
    Some((
        offset,
        bytes
            .iter()
            .fold(0, |anchor, byte| with_byte(anchor, *byte)),
    ))
}

/// Returns the approximate frequency rank of a byte in text; 0 is rare.
fn common(byte: u8) -> usize {
    const LETTERS: &[u8] = b"zqxjkvbywgpfmucdlhrsnioate ";
    let lower = byte.to_ascii_lowercase();
    let at = LETTERS.iter().position(|letter| *letter == lower);
    at.map_or(0, |at| at + 1)
}

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
                let text = [&".".repeat(before), word.as_str(), "é"].concat();
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
                    let word = all.keywords.words.get(*n).map_or("", |word| word.text.as_str());
                    let word = if *upper { word.to_ascii_uppercase() } else { word.to_owned() };
                    [word.as_str(), other].concat()
                })
                .collect();
            prop_assert_eq!(found(&text), sought(&text));
        }
    }
}
