//! Finds the keywords of all rules, in one pass.
//!
//! Text is looked at two bytes at a time. A keyword of three bytes or more has, wherever it begins, a pair of bytes that
//! stands at an even place: of those that it could be, the two that are rarest in text are marked in a table. Only where a pair
//! is marked the keywords that it is of are compared.
//!
//! The table is made by the compiler: a start does not pay for it, and it has no addresses that the loader would have to fill
//! in.

use super::table::{FIELD, RULES};

/// A pair of bytes of a keyword.
#[derive(Clone, Copy)]
struct Pair {
    /// The rule that the keyword is of, and which of its keywords it is.
    rule: u8,
    nth: u8,
    /// How far behind the beginning of the keyword the pair stands.
    offset: u8,
    /// The next one that has the same mark, counted from one; nought where there is none.
    next: u16,
}

/// Shortest keyword, in bytes: it has a pair at an even place wherever it begins.
const SHORTEST: usize = 3;

/// Bytes that are looked at before it is asked whether a pair of them was marked.
const STRIDE: usize = 32;

/// Two pairs for each keyword of each rule.
const PAIRS: usize = {
    let (mut all, mut rule) = (0, 0);
    while rule <= RULES.len() {
        all += 2 * words(rule).len();
        rule += 1;
    }
    all
};

/// All keywords, ready to search.
pub(super) struct Keywords {
    /// The list of pairs to look into, by pair of bytes; nought where there is nothing to look for.
    marks: [u8; 1 << 16],
    /// The first pair of each list, counted from one.
    first: [u16; 1 << 8],
    pairs: [Pair; PAIRS],
}

/// The keywords of the table.
pub(super) static KEYWORDS: Keywords = Keywords::new();

impl Keywords {
    const fn new() -> Keywords {
        const NONE: Pair = Pair {
            rule: 0,
            nth: 0,
            offset: 0,
            next: 0,
        };
        let mut keywords = Keywords {
            marks: [0; 1 << 16],
            first: [0; 1 << 8],
            pairs: [NONE; PAIRS],
        };
        let (mut pairs, mut marks, mut rule) = (0, 0, 0);
        while rule <= RULES.len() {
            let words = words(rule);
            let mut nth = 0;
            while nth < words.len() {
                let text = words[nth].as_bytes();
                assert!(text.len() >= SHORTEST);
                let mut even = 0;
                while even < 2 {
                    let offset = rarest(text, even);
                    let mark = &mut keywords.marks[place(&[text[offset], text[offset + 1]])];
                    if *mark == 0 {
                        // More pairs than there are marks share the last one.
                        marks += (marks < u8::MAX) as u8;
                        *mark = marks;
                    }
                    let first = &mut keywords.first[*mark as usize];
                    keywords.pairs[pairs] = Pair {
                        rule: rule as u8,
                        nth: nth as u8,
                        offset: offset as u8,
                        next: *first,
                    };
                    pairs += 1;
                    *first = pairs as u16;
                    even += 1;
                }
                nth += 1;
            }
            rule += 1;
        }
        keywords
    }

    /// Whether the text has a keyword in it.
    pub(super) fn any(&self, text: &str) -> bool {
        self.visit(text.as_bytes(), &mut |_, _| true)
    }

    /// Says of each keyword where it begins, and the place of the rule that it is of; the one about members stands behind all
    /// others. Not in their order.
    pub(super) fn each(&self, text: &str, seen: &mut dyn FnMut(usize, usize)) {
        self.visit(text.as_bytes(), &mut |at, rule| {
            seen(at, rule);
            false
        });
    }

    /// Says what it finds until it is told that it is enough; whether it was told.
    fn visit(&self, text: &[u8], enough: &mut dyn FnMut(usize, usize) -> bool) -> bool {
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
        enough: &mut dyn FnMut(usize, usize) -> bool,
    ) -> bool {
        let pairs = stride.as_chunks::<2>().0.iter().enumerate();
        let marked = pairs.map(|(nth, pair)| (from + 2 * nth, self.marks[place(pair)]));
        for (at, mark) in marked.filter(|(_, mark)| *mark != 0) {
            let mut next = self.first[usize::from(mark)];
            while let Some(pair) = nth(&self.pairs, next) {
                next = pair.next;
                let rule = usize::from(pair.rule);
                let keyword = words(rule).get(usize::from(pair.nth)).unwrap_or(&"");
                let begin = at.checked_sub(usize::from(pair.offset));
                let here = begin.filter(|begin| {
                    let rest = text.get(*begin..);
                    rest.is_some_and(|rest| rest.starts_with(keyword.as_bytes()))
                });
                if here.is_some_and(|begin| enough(begin, rule)) {
                    return true;
                }
            }
        }
        false
    }
}

/// The keywords of a rule; those of the rule about members stand behind all others.
const fn words(rule: usize) -> &'static [&'static str] {
    if rule < RULES.len() {
        RULES[rule].keywords
    } else {
        FIELD.keywords
    }
}

/// The pair of that number, counted from one.
fn nth(pairs: &[Pair], number: u16) -> Option<&Pair> {
    pairs.get(usize::from(number).checked_sub(1)?)
}

/// The place of a pair of bytes in the table.
const fn place(pair: &[u8; 2]) -> usize {
    u16::from_le_bytes(*pair) as usize
}

/// Where the rarest pair stands among those at an even or odd place in a text.
const fn rarest(text: &[u8], even: usize) -> usize {
    let (mut rarest, mut at) = (even, even);
    while at + 1 < text.len() {
        if common(text, at) < common(text, rarest) {
            rarest = at;
        }
        at += 2;
    }
    rarest
}

/// How common a pair of bytes is in text, roughly: by its letters.
const fn common(text: &[u8], at: usize) -> usize {
    COMMON[text[at] as usize] as usize + COMMON[text[at + 1] as usize] as usize
}

/// How common a byte is.
const COMMON: [u8; 256] = {
    const LETTERS: &[u8] = b"zqxjkvbywgpfmucdlhrsnioate ";
    let (mut common, mut at) = ([0; 256], 0);
    while at < LETTERS.len() {
        common[LETTERS[at] as usize] = at as u8 + 1;
        at += 1;
    }
    common
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The keywords of the table, each with its rule.
    fn all() -> Vec<(usize, &'static str)> {
        let rules = 0..=RULES.len();
        let each = |rule: usize| words(rule).iter().map(move |word| (rule, *word));
        rules.flat_map(each).collect()
    }

    /// Where each keyword is and of which rule, found one by one.
    fn sought(text: &str) -> BTreeSet<(usize, usize)> {
        all()
            .into_iter()
            .flat_map(|(rule, word)| {
                let places = (0..text.len())
                    .filter(move |at| text.as_bytes()[*at..].starts_with(word.as_bytes()));
                places.map(move |at| (at, rule))
            })
            .collect()
    }

    fn found(text: &str) -> BTreeSet<(usize, usize)> {
        let mut found = BTreeSet::new();
        KEYWORDS.each(text, &mut |at, rule| {
            found.insert((at, rule));
        });
        assert_eq!(KEYWORDS.any(text), !found.is_empty(), "{text:?}");
        found
    }

    #[test]
    fn keywords_are_found_wherever_they_begin() {
        for (_, word) in all() {
            assert!(word.len() >= SHORTEST && word.is_ascii(), "{word}");
            for before in 0..34 {
                for behind in [0, 7] {
                    let text = [&".".repeat(before), word, &"é".repeat(behind)].concat();
                    assert_eq!(found(&text), sought(&text), "{text}");
                }
            }
        }
    }

    proptest! {
        /// What is found pair by pair is what is found keyword by keyword.
        #[test]
        fn nothing_is_missed(parts in prop::collection::vec((0_usize..300, "[a-zA-Z_/:~é -]{0,9}"), 0..12)) {
            let words = all();
            let text: String = parts
                .iter()
                .map(|(n, other)| [words.get(*n).map_or("", |(_, word)| word), other].concat())
                .collect();
            prop_assert_eq!(found(&text), sought(&text));
        }
    }
}
