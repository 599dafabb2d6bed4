//! Skeletons of confusable characters, see <https://www.unicode.org/reports/tr39/#Confusable_Detection>.

use unicode_normalization::UnicodeNormalization;

// Includes SIGNS, ENDS, TEXT and UNSEEN, as `build.rs` writes them.
include!(concat!(env!("OUT_DIR"), "/alike.rs"));

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
    UNSEEN
        .iter()
        .any(|(from, to)| (*from..=*to).contains(&sign))
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

    proptest! {
        #[test]
        fn texts_look_like_what_the_library_says(
            text in "[a-zA-Z0-9\u{0}-\u{5ff}\u{1d00}-\u{206f}\u{fb00}-\u{ffff}\u{1d400}-\u{1d7ff}\u{e0000}-\u{e0fff}]{0,24}",
        ) {
            prop_assert!(same(&text), "{text:?}");
        }
    }
}
