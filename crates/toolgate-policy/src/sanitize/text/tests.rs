//! Tests that invisible characters are removed and every script stays intact.

use super::{clean::TextKind, sanitize_text};
use proptest::prelude::*;

fn check(dirty: &str, expected: &str) {
    assert_eq!(sanitize_text(dirty), expected, "{dirty:?}");
}

fn kept(text: &str) {
    assert!(
        matches!(sanitize_text(text), std::borrow::Cow::Borrowed(_)),
        "{text:?} became {:?}",
        sanitize_text(text)
    );
}

#[test]
fn control_characters() {
    check("a\u{0}b\u{7}c\u{8}d\u{7f}e", "abcde");
    check("a\r\nb\rc\nd\te", "a\nb\nc\nd\te");
    check("a\u{85}b\u{2028}c\u{2029}d", "a\nb\nc\nd");
    check("a\u{80}b\u{9a}c", "abc");
}

#[test]
fn terminal_sequences() {
    check("\u{1b}[31;1mred\u{1b}[0m", "red");
    check("\u{9b}31mred", "red");
    check(
        "\u{1b}]8;;https://evil.test\u{7}link\u{1b}]8;;\u{1b}\\",
        "link",
    );
    check("\u{1b}]0;title\u{9c}text", "text");
    check("\u{1b}Pq#0;2;0;0;0\u{1b}\\text", "text");
    check("\u{1b}(Btext\u{1b}c", "text");
    check("\u{1b}[2Jtext\u{1b}[1;1H", "text");
    // An incomplete sequence: only the introducer is removed, no text is swallowed.
    check(
        "\u{1b}]0;title and all the rest",
        "0;title and all the rest",
    );
    check("\u{1b}[31", "31");
    check("\u{1b}", "");
    check("\u{1b}[3\u{200b}1m", "31m");
}

#[test]
fn direction() {
    check("a\u{202e}b\u{202c}c\u{2066}d\u{2069}e\u{206a}", "abcde");
    check("a\u{200e}b\u{200f}c\u{61c}", "abc");
    kept("שלום\u{200f}!");
    kept("\u{200f}مرحبا (abc)\u{200e}");
    check("של\u{200f}\u{200e}\u{200f}ום", "של\u{200f}ום");
}

#[test]
fn zero_width() {
    check(
        "pass\u{200b}word\u{200c}\u{200d}\u{2060}\u{feff}\u{ad}x",
        "passwordx",
    );
    check("\u{feff}text", "text");
    check(
        "a\u{34f}b\u{115f}\u{1160}\u{3164}\u{ffa0}\u{180e}\u{17b4}c",
        "abc",
    );
    check(
        "a\u{2061}\u{2062}\u{2063}\u{2064}b\u{fff9}\u{fffa}\u{fffb}c\u{1d173}",
        "abc",
    );
    // One joiner may stand in Persian text, but not a code made of many.
    check("می\u{200c}\u{200d}\u{200c}\u{200c}خواهم", "می\u{200c}خواهم");
}

#[test]
fn tags_and_selectors() {
    let hidden: String = "ignore all"
        .bytes()
        .map(|b| char::from_u32(0xE0000 + u32::from(b)).unwrap())
        .collect();
    check(&format!("hello{hidden}"), "hello");
    check(&format!("🏴{hidden}\u{e007f}"), "🏴");
    check("\u{e0001}a", "a");
    let bytes: String = (0..16)
        .map(|n| char::from_u32(0xE0100 + n).unwrap())
        .collect();
    check(&format!("😀{bytes}"), "😀");
    check("a\u{fe0f}\u{fe00}b\u{fe01}", "ab");
    check("❤\u{fe0f}\u{fe0f}\u{fe0e}", "❤\u{fe0f}");
    check("1\u{fe0f}2\u{fe0f}", "12");
}

#[test]
fn private_use_and_noncharacters() {
    check(
        "a\u{e000}b\u{f8ff}c\u{fdd0}d\u{fffe}e\u{10ffff}f\u{f0000}g",
        "abcdefg",
    );
}

#[test]
fn every_script_stays() {
    for text in [
        "Plain ASCII, with tabs\tand\nlines. {}[]<>&'\"\\",
        "Größe, naïve, Ærøskøbing, ﬁne, e\u{301}tude, zalgo\u{336}",
        "Ελληνικά, Кириллица, Հայերեն, ქართული",
        "می‌خواهم به خانه بروم؛ PDF‌ها و نامه‌ای",
        "العربية مع تشكيل: مَرْحَبًا، هـ\u{200d} ١٢٣",
        "עִבְרִית: שָׁלוֹם\u{200f} (abc)",
        "हिन्दी: क्‍ष, क्‌ष, ड्‌ड, राष्ट्रीय",
        "ശ്രീ, ന്‍, മലയാളം; தமிழ்; తెలుగు క్‌; ಕನ್ನಡ; ગુજરાતી",
        "ශ්‍රී ලංකා, ක්‍ය; বাংলা র‍্যাব; ਪੰਜਾਬੀ; ଓଡ଼ିଆ",
        "ภาษาไทย\u{200b}ไม่มี\u{200b}ช่องว่าง; ខ្មែរ\u{200b}ភាសា; မြန်မာ\u{200b}စာ; ລາວ",
        "中文，日本語、ひらがな・カタカナ、한국어 조선말 ᄒᆞᆫ글",
        "葛\u{e0100}城市と辻\u{e0101}さん、〇\u{fe00}",
        "ᠮᠣᠩᠭᠣᠯ ᠪᠢᠴᠢᠭ᠌ ᠠ\u{180b}",
        "አማርኛ, ᏣᎳᎩ, ᐃᓄᒃᑎᑐᑦ, ⵜⴰⵎⴰⵣⵉⵖⵜ, བོད་སྐད",
        "𐍈𐌰𐌹𐌻, 𝒜𝓁𝓅𝒽𝒶, ∩\u{fe00}, x² ≤ ∞",
        "smileys 😀😃🤣, ☺\u{fe0f} ☹\u{fe0e}, ©\u{fe0f} ™\u{fe0f} ℹ\u{fe0f}",
        "👩‍💻 👨‍👩‍👧‍👦 🧑🏽‍🚀 ❤\u{fe0f}‍🔥 👁\u{fe0f}‍🗨\u{fe0f} 🏳\u{fe0f}‍🌈 🏴‍☠\u{fe0f} 🐻‍❄\u{fe0f} 🧎‍♀\u{fe0f}‍➡\u{fe0f}",
        "🇩🇪 🇺🇳 1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3} 〰\u{fe0f} ㊗\u{fe0f}",
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} 🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} 🏴\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
        "box ┌─┐ │ └─┘ ⣿⠿ ▓▒░, NBSP\u{a0}here, thin\u{2009}space, \u{fffc} \u{fffd}",
    ] {
        kept(text);
    }
}

/// The text after sanitizing as result content.
fn content(text: &str) -> (String, u64) {
    let mut removed = 0;
    let text = super::clean::sanitized(text, TextKind::Content, &mut removed).into_owned();
    (text, removed)
}

#[test]
fn content_of_files_comes_back_byte_for_byte() {
    for text in [
        "a\r\nb\r\n",
        "\r\n\r\n",
        "page one\u{c}page two\n",
        "\u{feff}a,b\r\n1,2\r\n",
        "\u{feff}",
        "icon: \u{e0b0} \u{f8ff} \u{f0001}",
        "می\u{200c}خواهم\r\n",
    ] {
        assert_eq!(content(text), (text.to_owned(), 0), "{text:?}");
    }
}

#[test]
fn content_loses_what_hides_or_steers_and_it_is_counted() {
    for (dirty, clean, removed) in [
        ("a\rb", "a\nb", 1),
        ("a\r\r\nb", "a\n\r\nb", 1),
        ("a\u{feff}b", "ab", 1),
        ("\u{feff}\u{feff}b", "\u{feff}b", 1),
        ("pass\u{ad}word", "password", 1),
        ("pass\u{2060}word", "password", 1),
        ("a\u{2066}b\u{2069}", "ab", 2),
        ("a\u{202e}b", "ab", 1),
        ("\u{1b}[31mred\u{1b}[0m\r\n", "red\r\n", 9),
        ("a\u{100000}b\u{e0041}", "ab", 2),
        ("a\u{200b}b\u{0}", "ab", 2),
        ("a\u{2028}b", "a\nb", 1),
    ] {
        assert_eq!(content(dirty), (clean.to_owned(), removed), "{dirty:?}");
    }
}

/// A second, hand-written list of the classes, to reveal mistakes in them.
fn forbidden(c: char) -> bool {
    let c = c as u32;
    (c < 0x20 && c != 9 && c != 10)
        || (0x7F..=0x9F).contains(&c)
        || [0xAD, 0x2028, 0x2029, 0x3164, 0xFEFF, 0xFFA0].contains(&c)
        || (0x202A..=0x202E).contains(&c)
        || (0x2060..=0x206F).contains(&c)
        || (0xE000..=0xF8FF).contains(&c)
        || (0xFDD0..=0xFDEF).contains(&c)
        || (c & 0xFFFF) >= 0xFFFE
        || (0xE0000..=0xE001F).contains(&c)
        || c >= 0xF0000
}

/// Characters that are judged by their neighbors, and characters that they are judged by.
fn mixed() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec![
        '\u{1b}',
        '[',
        ']',
        'P',
        'm',
        '\u{7}',
        '\\',
        '\u{9b}',
        '\u{9c}',
        '\u{9d}',
        '3',
        '1',
        ';',
        '\r',
        '\n',
        '\u{200b}',
        '\u{200c}',
        '\u{200d}',
        '\u{200e}',
        '\u{200f}',
        '\u{61c}',
        '\u{fe0f}',
        '\u{fe0e}',
        '\u{fe00}',
        '\u{20e3}',
        '\u{e0100}',
        '\u{e0067}',
        '\u{e0062}',
        '\u{e007f}',
        '🏴',
        '😀',
        '❤',
        '💻',
        'a',
        'م',
        'ی',
        'ש',
        'क',
        '\u{94d}',
        'ไ',
        '葛',
        '\u{180e}',
        'ᠠ',
        '\u{115f}',
        '\u{1160}',
        'ᄒ',
        '\u{34f}',
        '\u{202e}',
        '\u{feff}',
        '\u{e000}',
        '\u{c}',
        ' ',
    ]);
    let any = prop_oneof![9 => special, 1 => any::<char>()];
    prop::collection::vec(any, 0..24).prop_map(|chars| chars.into_iter().collect())
}

/// Pieces of JSON strings, some with hidden characters.
const PIECES: [&str; 25] = [
    r"\n",
    r"\r\n",
    r"\t",
    r#"\""#,
    r"\\",
    r"\/",
    r"\r",
    r"\b",
    r"\f",
    r"\u0041",
    r"\u200b",
    r"\u001b",
    r"\ud83d\ude00",
    "é",
    "ß",
    "€",
    "𐍈",
    "한",
    "\u{ad}",
    "\u{34f}",
    "\u{200d}",
    "\u{7f}",
    "\u{85}",
    "\u{feff}",
    "a word ",
];

proptest! {
    /// The fast scan agrees with a check of each string.
    #[test]
    fn json_that_is_left_has_nothing_to_take_out(
        parts in prop::collection::vec((0_usize..25, "[a-z é]{0,9}"), 0..12),
        space in "[ \t\n\r]{0,2}",
    ) {
        let text: String = parts.iter().flat_map(|(n, plain)| [PIECES[*n], plain]).collect();
        let json = format!("{{{space}\"a\":\"{text}\",\"{text}\":[1]}}");
        let limits = toolgate_protocol::json::JsonLimits::default();
        if let Ok(json) = toolgate_core::Json::read(json.into_bytes(), &limits) {
            let cleaned = json.map_strings(&mut |at| match sanitize_text(at.text) {
                std::borrow::Cow::Borrowed(_) => None,
                std::borrow::Cow::Owned(clean) => Some(clean),
            });
            if super::clean::is_clean(json.as_str(), TextKind::Message) {
                prop_assert_eq!(cleaned, None);
            }
            let cleaned = json.map_strings(&mut |at| {
                let (clean, removed) = content(at.text);
                (removed > 0).then_some(clean)
            });
            if super::clean::is_clean(json.as_str(), TextKind::Content) {
                prop_assert_eq!(cleaned, None);
            }
        }
        let glance = super::clean::is_clean_text(&text, TextKind::Message);
        let slowly = text.chars().all(|c| super::classes::of(c) == super::classes::CharClass::Keep);
        prop_assert_eq!(glance, slowly);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cleaning_twice_changes_nothing_more(text in mixed()) {
        let once = sanitize_text(&text).into_owned();
        prop_assert_eq!(&*sanitize_text(&once), &*once);
        prop_assert!(matches!(sanitize_text(&once), std::borrow::Cow::Borrowed(_)) || sanitize_text(&once) == once);
    }

    #[test]
    fn content_is_cleaned_at_once_and_counted(text in mixed()) {
        let (once, removed) = content(&text);
        prop_assert_eq!(content(&once), (once.clone(), 0));
        prop_assert_eq!(removed > 0, once != text);
        let hidden = |c: char| forbidden(c) && !matches!(c, '\r' | '\u{c}' | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}');
        let after_mark = once.strip_prefix('\u{feff}').unwrap_or(&once);
        prop_assert!(!after_mark.chars().any(hidden), "{:?}", once);
        prop_assert!(!once.replace("\r\n", "").contains('\r'), "{:?}", once);
    }

    #[test]
    fn the_forbidden_never_survives(text in mixed()) {
        prop_assert!(!sanitize_text(&text).chars().any(forbidden), "{:?}", sanitize_text(&text));
    }

    #[test]
    fn what_is_visible_survives(text in "[ -~äß中文한ก\n\t]{0,40}") {
        prop_assert_eq!(&*sanitize_text(&text), &*text);
    }
}

#[test]
fn every_character_alone() {
    for c in (0..=0x10FFFF).filter_map(char::from_u32) {
        let cleaned = sanitize_text(c.encode_utf8(&mut [0; 4])).into_owned();
        assert!(!cleaned.chars().any(forbidden), "{c:?}");
        assert_eq!(*sanitize_text(&cleaned), *cleaned);
    }
}

#[test]
fn a_text_full_of_openings_is_read_once() {
    let start = std::time::Instant::now();
    check(&"\u{1b}]".repeat(500_000), "");
    check(&"\u{1b}[".repeat(500_000), "");
    assert!(start.elapsed().as_secs() < 10);
}
