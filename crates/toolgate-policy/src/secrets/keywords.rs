//! Finds the keywords of all rules, in one pass.
//!
//! Text is looked at two bytes at a time. A keyword of three bytes or more has, wherever it begins, a pair of bytes that
//! stands at an even place: of those that it could be, the two that are rarest in text are marked in a table. Only where a pair
//! is marked the keywords that it is of are compared.

/// A keyword, and the rules that it is of.
struct Keyword {
    text: &'static [u8],
    rules: Vec<usize>,
}

/// A pair of bytes of a keyword.
struct Pair {
    keyword: usize,
    /// How far behind the beginning of the keyword the pair stands.
    offset: usize,
}

/// Shortest keyword, in bytes: it has a pair at an even place wherever it begins.
const SHORTEST: usize = 3;

/// Bytes that are looked at before it is asked whether a pair of them was marked.
const STRIDE: usize = 32;

/// All keywords, ready to search.
pub(super) struct Keywords {
    list: Vec<Keyword>,
    /// The list of pairs to look into, by pair of bytes; nought where there is nothing to look for.
    marks: Box<[u8; 1 << 16]>,
    pairs: Vec<Vec<Pair>>,
}

impl Keywords {
    /// Of these keywords, each with the rules that it is of. One that is shorter than [`SHORTEST`] would not be found.
    pub(super) fn new(of: impl Iterator<Item = (&'static str, Vec<usize>)>) -> Keywords {
        let list = of.map(|(text, rules)| Keyword {
            text: text.as_bytes(),
            rules,
        });
        let list: Vec<Keyword> = list.collect();
        debug_assert!(list.iter().all(|keyword| keyword.text.len() >= SHORTEST));
        let mut keywords = Keywords {
            list,
            marks: Box::new([0; 1 << 16]),
            pairs: vec![Vec::new()],
        };
        for nth in 0..keywords.list.len() {
            for even in [0, 1] {
                keywords.mark(nth, even);
            }
        }
        keywords
    }

    /// Marks the rarest pair of a keyword among those that stand at an even or odd place in it.
    fn mark(&mut self, keyword: usize, even: usize) {
        let text = self.list.get(keyword).map_or(&[][..], |k| k.text);
        let pairs = text
            .windows(2)
            .filter_map(<[u8]>::first_chunk)
            .enumerate()
            .skip(even)
            .step_by(2);
        let Some((offset, pair)) = pairs.min_by_key(|(_, pair)| common(pair)) else {
            return;
        };
        let mark = &mut self.marks[place(pair)];
        if *mark == 0 {
            // More pairs than there are marks share the last one.
            *mark = u8::try_from(self.pairs.len()).unwrap_or(u8::MAX);
            if self.pairs.len() <= usize::from(u8::MAX) {
                self.pairs.push(Vec::new());
            }
        }
        if let Some(list) = self.pairs.get_mut(usize::from(*mark)) {
            list.push(Pair { keyword, offset });
        }
    }

    /// Whether the text has a keyword in it.
    pub(super) fn any(&self, text: &str) -> bool {
        self.visit(text.as_bytes(), &mut |_, _| true)
    }

    /// Says of each keyword where it begins, and the rules that it is of. Not in their order.
    pub(super) fn each(&self, text: &str, seen: &mut dyn FnMut(usize, &[usize])) {
        self.visit(text.as_bytes(), &mut |at, rules| {
            seen(at, rules);
            false
        });
    }

    /// Says what it finds until it is told that it is enough; whether it was told.
    fn visit(&self, text: &[u8], enough: &mut dyn FnMut(usize, &[usize]) -> bool) -> bool {
        let mut at = 0;
        let (strides, rest) = text.as_chunks::<STRIDE>();
        for stride in strides {
            let marks = stride.as_chunks::<2>().0.iter();
            let marks = marks.map(|pair| self.marks[place(pair)]);
            if marks.fold(0, |all, mark| all | mark) != 0 && self.look(text, at, stride, enough) {
                return true;
            }
            at += STRIDE;
        }
        self.look(text, at, rest, enough)
    }

    /// Compares the keywords of each marked pair of a stride that begins at `from`.
    fn look(
        &self,
        text: &[u8],
        from: usize,
        stride: &[u8],
        enough: &mut dyn FnMut(usize, &[usize]) -> bool,
    ) -> bool {
        let pairs = stride.as_chunks::<2>().0.iter().enumerate();
        let marked = pairs.map(|(nth, pair)| (from + 2 * nth, self.marks[place(pair)]));
        for (at, mark) in marked.filter(|(_, mark)| *mark != 0) {
            for pair in self.pairs.get(usize::from(mark)).into_iter().flatten() {
                let Some(keyword) = self.list.get(pair.keyword) else {
                    continue;
                };
                let begin = at.checked_sub(pair.offset);
                let here = begin.filter(|begin| {
                    let rest = text.get(*begin..);
                    rest.is_some_and(|rest| rest.starts_with(keyword.text))
                });
                if here.is_some_and(|begin| enough(begin, &keyword.rules)) {
                    return true;
                }
            }
        }
        false
    }
}

/// The place of a pair of bytes in the table.
fn place(pair: &[u8; 2]) -> usize {
    usize::from(u16::from_le_bytes(*pair))
}

/// How common a pair of bytes is in text, roughly: by its letters.
fn common(pair: &[u8; 2]) -> usize {
    const LETTERS: &[u8] = b"zqxjkvbywgpfmucdlhrsnioate ";
    let place = |byte: &u8| LETTERS.iter().position(|letter| letter == byte);
    pair.iter()
        .map(|byte| place(byte).map_or(0, |n| n + 1))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::{super::table, *};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The keywords of the table.
    fn words() -> BTreeSet<&'static str> {
        let rules = table::RULES.iter().flat_map(|rule| rule.keywords);
        rules.chain(table::FIELD.keywords).copied().collect()
    }

    fn keywords() -> Keywords {
        Keywords::new(words().into_iter().enumerate().map(|(n, k)| (k, vec![n])))
    }

    /// Where each keyword is, found one by one.
    fn sought(text: &str) -> BTreeSet<(usize, usize)> {
        let words = words().into_iter().enumerate();
        words
            .flat_map(|(n, word)| {
                let places = (0..text.len())
                    .filter(move |at| text.as_bytes()[*at..].starts_with(word.as_bytes()));
                places.map(move |at| (at, n))
            })
            .collect()
    }

    fn found(keywords: &Keywords, text: &str) -> BTreeSet<(usize, usize)> {
        let mut found = BTreeSet::new();
        keywords.each(text, &mut |at, rules| {
            found.extend(rules.iter().map(|rule| (at, *rule)));
        });
        assert_eq!(keywords.any(text), !found.is_empty(), "{text:?}");
        found
    }

    #[test]
    fn keywords_are_found_wherever_they_begin() {
        let keywords = keywords();
        for word in words() {
            assert!(word.len() >= SHORTEST && word.is_ascii(), "{word}");
            for before in 0..34 {
                for behind in [0, 7] {
                    let text = [&".".repeat(before), word, &"é".repeat(behind)].concat();
                    assert_eq!(found(&keywords, &text), sought(&text), "{text}");
                }
            }
        }
    }

    proptest! {
        /// What is found pair by pair is what is found keyword by keyword.
        #[test]
        fn nothing_is_missed(parts in prop::collection::vec((0_usize..300, "[a-zA-Z_/:~é -]{0,9}"), 0..12)) {
            let words: Vec<&str> = words().into_iter().collect();
            let text: String = parts
                .iter()
                .map(|(n, other)| [words.get(*n).copied().unwrap_or_default(), other].concat())
                .collect();
            prop_assert_eq!(found(&keywords(), &text), sought(&text));
        }
    }
}
