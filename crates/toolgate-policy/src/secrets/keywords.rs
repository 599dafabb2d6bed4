//! Finds the keywords of all rules, in one pass.
//!
//! Text is looked at two bytes at a time. A keyword of three bytes or more has, wherever it begins, a pair of bytes that
//! stands at an even place: of those that it could be, the two that are rarest in text are marked in a table. Only where a
//! pair is marked the keywords that it is of are compared. A keyword without upper-case letters is found in any case.

/// All keywords, ready to search.
pub(super) struct Keywords {
    words: Vec<Keyword>,
    /// The list of pairs to look into, by pair of bytes; nought where there is nothing to look for.
    marks: Box<[u8]>,
    /// The pairs of each list.
    lists: Vec<Vec<Pair>>,
}

/// A keyword, and the place of its rule.
struct Keyword {
    text: String,
    rule: usize,
    /// Whether its case counts.
    is_exact: bool,
}

/// A pair of bytes of a keyword.
#[derive(Clone, Copy)]
struct Pair {
    word: usize,
    /// How far behind the beginning of the keyword the pair stands.
    offset: usize,
}

/// Bytes that are looked at before it is asked whether a pair of them was marked.
const STRIDE_BYTES: usize = 32;
/// Most lists of pairs: each has a mark of one byte, and nought is no mark.
const MAX_LISTS: usize = 255;

impl Keywords {
    /// Makes the table for the keywords of rules, in the order of the rules. Each keyword has three bytes or more.
    pub(super) fn new<'a>(rules: impl Iterator<Item = &'a [String]>) -> Keywords {
        let words: Vec<Keyword> = rules
            .enumerate()
            .flat_map(|(rule, words)| {
                words.iter().map(move |text| Keyword {
                    text: text.clone(),
                    rule,
                    is_exact: text.bytes().any(|b| b.is_ascii_uppercase()),
                })
            })
            .collect();
        let mut marks = vec![0_u8; 1 << 16].into_boxed_slice();
        let mut lists: Vec<Vec<Pair>> = Vec::new();
        let mut marked = 0;
        for (word, keyword) in words.iter().enumerate() {
            for even in 0..2 {
                let Some(offset) = rarest(keyword.text.as_bytes(), even) else {
                    continue;
                };
                for place in keyword.places(offset) {
                    let mark = &mut marks[place];
                    if *mark == 0 {
                        // Pairs share a list where there are more pairs than lists.
                        *mark = (marked % MAX_LISTS) as u8 + 1;
                        marked += 1;
                        lists.resize_with(lists.len().max(usize::from(*mark)), Vec::new);
                    }
                    lists[usize::from(*mark) - 1].push(Pair { word, offset });
                }
            }
        }
        Keywords {
            words,
            marks,
            lists,
        }
    }

    /// Returns whether the text has a keyword in it.
    pub(super) fn any(&self, text: &str) -> bool {
        self.visit(text.as_bytes(), &mut |_, _| true)
    }

    /// Reports of each keyword where it begins, and the place of its rule. Not in their order.
    pub(super) fn each(&self, text: &str, seen: &mut dyn FnMut(usize, usize)) {
        self.visit(text.as_bytes(), &mut |at, rule| {
            seen(at, rule);
            false
        });
    }

    /// Reports what it finds until that is enough; returns whether it was.
    fn visit(&self, text: &[u8], enough: &mut dyn FnMut(usize, usize) -> bool) -> bool {
        let mut at = 0;
        let (strides, rest) = text.as_chunks::<STRIDE_BYTES>();
        for stride in strides {
            let marks = stride.as_chunks::<2>().0.iter();
            let marks = marks.map(|pair| self.marks[place(*pair)]);
            if marks.fold(0, |all, mark| all | mark) != 0 && self.compare(text, at, stride, enough)
            {
                return true;
            }
            at += STRIDE_BYTES;
        }
        self.compare(text, at, rest, enough)
    }

    /// Compares the keywords of each marked pair of a stride that begins at `from`.
    fn compare(
        &self,
        text: &[u8],
        from: usize,
        stride: &[u8],
        enough: &mut dyn FnMut(usize, usize) -> bool,
    ) -> bool {
        let pairs = stride.as_chunks::<2>().0.iter().enumerate();
        let marked = pairs.map(|(nth, pair)| (from + 2 * nth, self.marks[place(*pair)]));
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

impl Keyword {
    /// The places in the table of the pair that stands there, one for each way to write it.
    fn places(&self, offset: usize) -> Vec<usize> {
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
        let both =
            firsts.flat_map(|first| seconds.iter().map(move |second| place([first, *second])));
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

/// The place of a pair of bytes in the table.
fn place(pair: [u8; 2]) -> usize {
    usize::from(u16::from_le_bytes(pair))
}

/// Where the rarest pair stands among those at an even or odd place in a text.
fn rarest(text: &[u8], even: usize) -> Option<usize> {
    let pairs = (even..text.len().saturating_sub(1)).step_by(2);
    pairs.min_by_key(|at| common(text[*at]) + common(text[at + 1]))
}

/// How common a byte is in text, roughly.
fn common(byte: u8) -> usize {
    const LETTERS: &[u8] = b"zqxjkvbywgpfmucdlhrsnioate ";
    let at = LETTERS.iter().position(|letter| *letter == byte);
    at.map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::super::{rule_file::MIN_KEYWORD_BYTES, rules::rules};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Where each keyword is and of which rule, found one by one.
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
        /// What is found pair by pair is what is found keyword by keyword.
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
