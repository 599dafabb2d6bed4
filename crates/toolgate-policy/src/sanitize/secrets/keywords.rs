//! Multi-pattern search for the keywords of all rules, in one pass.
//!
//! The search reads the text as aligned pairs of bytes. A keyword of three bytes or more contains an aligned pair,
//! whether it begins at an even or an odd offset. For each of the two cases, the pair that is rarest in text is
//! marked in a table. Keywords are compared only where one of their pairs is marked. A keyword without upper-case
//! letters matches in any case.

/// A search table for all keywords.
pub(super) struct KeywordSearch {
    words: Vec<RuleKeyword>,
    /// Number of a pair list, by pair of bytes; 0 for pairs that are not marked.
    marks: Box<[u8]>,
    /// The pair lists; list `n` has the number `n + 1`.
    lists: Vec<Vec<KeywordPair>>,
}

/// A keyword, and the index of its rule.
struct RuleKeyword {
    text: String,
    rule: usize,
    /// True if the comparison is case-sensitive.
    is_exact: bool,
}

/// A marked pair of bytes of a keyword.
#[derive(Clone, Copy)]
struct KeywordPair {
    word: usize,
    /// Offset of the pair in the keyword.
    offset: usize,
}

/// Bytes that are read before the search checks whether one of their pairs is marked.
const STRIDE_BYTES: usize = 32;
/// Maximum number of pair lists: each has a mark of one byte, and 0 means no mark.
const MAX_LISTS: usize = 255;

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
        let mut marks = vec![0_u8; 1 << 16].into_boxed_slice();
        let mut lists: Vec<Vec<KeywordPair>> = Vec::new();
        let mut marked = 0;
        for (word, keyword) in words.iter().enumerate() {
            for even in 0..2 {
                let Some(offset) = rarest(keyword.text.as_bytes(), even) else {
                    continue;
                };
                for place in keyword.table_indexes(offset) {
                    let mark = &mut marks[place];
                    if *mark == 0 {
                        // If there are more pairs than lists, pairs share a list.
                        *mark = (marked % MAX_LISTS) as u8 + 1;
                        marked += 1;
                        lists.resize_with(lists.len().max(usize::from(*mark)), Vec::new);
                    }
                    lists[usize::from(*mark) - 1].push(KeywordPair { word, offset });
                }
            }
        }
        KeywordSearch {
            words,
            marks,
            lists,
        }
    }

    /// Returns whether the text contains a keyword.
    pub(super) fn any(&self, text: &str) -> bool {
        self.visit(text.as_bytes(), &mut |_, _| true)
    }

    /// Calls `seen` with the position of each keyword and the index of its rule, in no particular order.
    pub(super) fn each(&self, text: &str, seen: &mut dyn FnMut(usize, usize)) {
        self.visit(text.as_bytes(), &mut |at, rule| {
            seen(at, rule);
            false
        });
    }

    /// Calls `enough` for each match until it returns true. Returns whether it did.
    fn visit(&self, text: &[u8], enough: &mut dyn FnMut(usize, usize) -> bool) -> bool {
        let mut at = 0;
        let (strides, rest) = text.as_chunks::<STRIDE_BYTES>();
        for stride in strides {
            let marks = stride.as_chunks::<2>().0.iter();
            let marks = marks.map(|pair| self.marks[table_index(*pair)]);
            if marks.fold(0, |all, mark| all | mark) != 0 && self.compare(text, at, stride, enough)
            {
                return true;
            }
            at += STRIDE_BYTES;
        }
        self.compare(text, at, rest, enough)
    }

    /// Compares the keywords of each marked pair in a stride that begins at `from`.
    fn compare(
        &self,
        text: &[u8],
        from: usize,
        stride: &[u8],
        enough: &mut dyn FnMut(usize, usize) -> bool,
    ) -> bool {
        let pairs = stride.as_chunks::<2>().0.iter().enumerate();
        let marked = pairs.map(|(nth, pair)| (from + 2 * nth, self.marks[table_index(*pair)]));
        for (at, mark) in marked.filter(|(_, mark)| *mark != 0) {
            for pair in &self.lists[usize::from(mark) - 1] {
                let keyword = &self.words[pair.word];
                let begin = at.checked_sub(pair.offset);
                let here = begin.filter(|begin| keyword.begins_at(text, *begin));
                if here.is_some_and(|begin| enough(begin, keyword.rule)) {
                    return true;
                }
            }
        }
        false
    }
}

impl RuleKeyword {
    /// Returns the table indexes of the pair at an offset, one for each combination of cases.
    fn table_indexes(&self, offset: usize) -> Vec<usize> {
        let bytes = self.text.as_bytes();
        let ways = |at: usize| match self.is_exact {
            true => vec![bytes[at]],
            false => {
                let mut ways = vec![bytes[at], bytes[at].to_ascii_uppercase()];
                ways.dedup();
                ways
            }
        };
        let seconds = ways(offset + 1);
        let firsts = ways(offset).into_iter();
        let both = firsts.flat_map(|first| {
            seconds
                .iter()
                .map(move |second| table_index([first, *second]))
        });
        both.collect()
    }

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

/// Returns the table index of a pair of bytes.
fn table_index(pair: [u8; 2]) -> usize {
    usize::from(u16::from_le_bytes(pair))
}

/// Returns the offset of the rarest pair among those at even or odd offsets of a text.
fn rarest(text: &[u8], even: usize) -> Option<usize> {
    let pairs = (even..text.len().saturating_sub(1)).step_by(2);
    pairs.min_by_key(|at| common(text[*at]) + common(text[at + 1]))
}

/// Returns the approximate frequency rank of a byte in text; 0 is rare.
fn common(byte: u8) -> usize {
    const LETTERS: &[u8] = b"zqxjkvbywgpfmucdlhrsnioate ";
    let at = LETTERS.iter().position(|letter| *letter == byte);
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
        /// The pair search finds what the naive search finds.
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
