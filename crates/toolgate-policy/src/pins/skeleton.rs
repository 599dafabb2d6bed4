//! Skeletons of confusable characters, see <https://www.unicode.org/reports/tr39/#Confusable_Detection>.

use unicode_normalization::UnicodeNormalization;

// Includes SIGNS, ENDS, TEXT and UNSEEN, as the test below writes them: numbers and one text. The table of the library
// consists of addresses, 160 KB that the loader would fill in at each start, also of programs that never compare names.
include!("skeleton.table");

/// Returns the skeleton of a text, which merges homoglyphs: confusable texts have the same one.
pub(super) fn skeleton(text: &str) -> impl Iterator<Item = char> {
    let seen = text.nfd().filter(|sign| !is_ignorable(*sign));
    seen.flat_map(|sign| {
        let like = prototype_of(sign);
        let itself = like.is_none().then_some(sign);
        like.unwrap_or_default().chars().chain(itself)
    })
    .nfd()
}

/// Returns the prototype of a character, if it differs from the character.
fn prototype_of(sign: char) -> Option<&'static str> {
    let nth = SIGNS.binary_search(&u32::from(sign)).ok()?;
    let end = |nth: usize| ENDS.get(nth).map(|end| usize::from(*end));
    let start = nth.checked_sub(1).map_or(Some(0), end)?;
    TEXT.get(start..end(nth)?)
}

fn is_ignorable(sign: char) -> bool {
    let number = u32::from(sign);
    UNSEEN
        .iter()
        .any(|(from, to)| (*from..=*to).contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn same(text: &str) -> bool {
        skeleton(text).eq(unicode_security::skeleton(text))
    }

    #[test]
    fn each_character_looks_like_what_the_library_says() {
        for sign in '\0'..=char::MAX {
            assert!(same(&sign.to_string()), "{sign:?}");
        }
    }

    /// Writes the table of the library as numbers and one text.
    fn table() -> String {
        // Confusable characters, the ends of their prototypes in the text, the text; and ranges of ignorable ones.
        let (mut signs, mut ends, mut like) = (Vec::new(), Vec::new(), String::new());
        let mut unseen: Vec<(u32, u32)> = Vec::new();
        for sign in '\0'..=char::MAX {
            let alone = sign.to_string();
            let prototype: String = unicode_security::skeleton(&alone).collect();
            // Only characters without a decomposition are looked up.
            if !alone.nfd().eq([sign]) || prototype == alone {
                continue;
            }
            let number = u32::from(sign);
            match unseen.last_mut() {
                _ if !prototype.is_empty() => {
                    like += &prototype;
                    signs.push(number.to_string());
                    ends.push(like.len().to_string());
                }
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => unseen.push((number, number)),
            }
        }
        let unseen: Vec<String> = unseen
            .iter()
            .map(|(from, to)| format!("({from}, {to})"))
            .collect();
        let text = like.chars().map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            ' '..='~' => c.to_string(),
            _ => format!("\\u{{{:x}}}", u32::from(c)),
        });
        let count = signs.len();
        [
            format!("static SIGNS: [u32; {count}] = [\n{}];\n", lines(&signs)),
            format!("static ENDS: [u16; {count}] = [\n{}];\n", lines(&ends)),
            format!(
                "static UNSEEN: [(u32, u32); {}] = [\n{}];\n",
                unseen.len(),
                lines(&unseen)
            ),
            format!("static TEXT: &str = \"\\\n{}\";\n", wrapped(text, "\\\n")),
        ]
        .concat()
    }

    /// Joins numbers to lines.
    fn lines(numbers: &[String]) -> String {
        wrapped(numbers.iter().map(|number| format!("{number}, ")), "\n") + "\n"
    }

    /// Joins parts, with a separator after each 100 bytes.
    fn wrapped(parts: impl Iterator<Item = String>, separator: &str) -> String {
        let (mut out, mut begin) = (String::new(), 0);
        for part in parts {
            // A space at the start of a line would be lost after an escaped line break.
            if out.len() - begin >= 100 && part != " " {
                out.truncate(
                    out.trim_end_matches(if separator == "\n" { " " } else { "" })
                        .len(),
                );
                out += separator;
                begin = out.len();
            }
            out += &part;
        }
        out
    }

    #[test]
    fn the_table_is_that_of_the_library() {
        let (path, new) = ("src/pins/skeleton.table", table());
        if std::env::var_os("TOOLGATE_WRITE_SNAPSHOTS").is_some() {
            std::fs::write(path, &new).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap() == new,
            "{path} is old; run the test with TOOLGATE_WRITE_SNAPSHOTS=1"
        );
    }

    proptest! {
        #[test]
        fn texts_look_like_what_the_library_says(
            text in "[a-zA-Z0-9\u{0}-\u{5ff}\u{1d00}-\u{206f}\u{fb00}-\u{ffff}\u{1d400}-\u{1d7ff}\u{e0000}-\u{e0fff}]{0,24}",
        ) {
            prop_assert!(same(&text), "{text:?}");
        }
    }
}
