//! Texts with something planted in them, and what must be left of each.

use serde_json::Value;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Ordinary texts in many scripts, which stay unchanged.
const SAMPLES: [&str; 14] = [
    "plain ASCII, {}[]<>&'\"\\/",
    "Größe, naïve, e\u{301}tude",
    "Ελληνικά и кириллица",
    "می‌خواهم به خانه بروم",
    "العربية مَرْحَبًا ١٢٣",
    "עִבְרִית שָׁלוֹם",
    "हिन्दी क्‍ष राष्ट्रीय",
    "ශ්‍රී ලංකා മലയാളം",
    "ภาษาไทย\u{200b}ไม่มี\u{200b}ช่องว่าง",
    "中文，日本語、한국어",
    "👩‍💻 👨‍👩‍👧‍👦 🧑🏽‍🚀 ❤\u{fe0f}‍🔥",
    "🇩🇪 1\u{fe0f}\u{20e3} 🏳\u{fe0f}‍🌈 ☺\u{fe0f}",
    "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} ⣿⠿ ┌─┐",
    "x² ≤ ∞, 𝒜𝓁𝓅, NBSP\u{a0}here",
];

/// Invisible and bidirectional control characters, which are removed.
const HIDDEN: [&str; 22] = [
    "\u{0}",
    "\u{7}",
    "\u{8}",
    "\u{1b}[0m",
    "\u{7f}",
    "\u{9b}2J",
    "\u{ad}",
    "\u{200b}",
    "\u{202a}",
    "\u{202e}",
    "\u{2060}",
    "\u{2066}",
    "\u{2069}",
    "\u{3164}",
    "\u{fdd0}",
    "\u{fe01}",
    "\u{feff}",
    "\u{fff9}",
    "\u{100000}",
    "\u{e0041}\u{e0042}",
    "\u{1b}[31;1m",
    "\u{1b}]8;;https://evil.test/\u{7}",
];

/// Makes texts by chance, and keeps what must be left of them.
pub(super) struct Texts {
    state: AtomicU64,
    left: Mutex<HashSet<String>>,
    secrets: Mutex<Vec<String>>,
}

impl Texts {
    pub(super) fn new(seed: u64) -> Texts {
        Texts {
            state: AtomicU64::new(seed),
            left: Mutex::default(),
            secrets: Mutex::default(),
        }
    }

    /// A number below `most`.
    pub(super) fn below(&self, most: usize) -> usize {
        let step = 0x9E37_79B9_7F4A_7C15;
        let mut x = self.state.fetch_add(step, Relaxed).wrapping_add(step);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((x ^ (x >> 31)) % most as u64).unwrap()
    }

    pub(super) fn hidden(&self) -> &'static str {
        HIDDEN[self.below(HIDDEN.len())]
    }

    /// A text, and what must be left of it: the word, samples, something hidden and a secret, in any order.
    fn made(&self, word: &str) -> (String, String) {
        let mut parts = vec![(word.to_owned(), word.to_owned())];
        for _ in 0..=self.below(2) {
            let sample = SAMPLES[self.below(SAMPLES.len())];
            parts.push((sample.to_owned(), sample.to_owned()));
        }
        for _ in 0..=self.below(3) {
            parts.push((format!("a{}b", self.hidden()), "ab".to_owned()));
        }
        parts.push((self.secret(), "[redacted:github-token]".to_owned()));
        let (mut dirty, mut clean) = (String::new(), String::new());
        while !parts.is_empty() {
            let (planted, left) = parts.swap_remove(self.below(parts.len()));
            dirty = format!("{dirty} {planted}");
            clean = format!("{clean} {left}");
        }
        (dirty, clean)
    }

    /// A text of which nobody should hear but what is left.
    pub(super) fn say(&self, word: &str) -> String {
        let (dirty, clean) = self.made(word);
        self.left.lock().unwrap().insert(clean);
        dirty
    }

    /// A text of which nobody need hear anything.
    pub(super) fn mute(&self, word: &str) -> String {
        self.made(word).0
    }

    /// The same as the name of a member. With U+0000 in one, the reader refuses the whole message.
    pub(super) fn mute_key(&self, word: &str) -> String {
        self.mute(word).replace('\0', "\u{7}")
    }

    /// A secret, half of the time with something hidden between its letters.
    fn secret(&self) -> String {
        let letters = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789";
        let random = (0..36).map(|_| char::from(letters[self.below(letters.len())]));
        let random: String = random.collect();
        self.secrets.lock().unwrap().push(random.clone());
        let (start, end) = random.split_at(1 + self.below(34));
        match self.below(2) {
            0 => format!("ghp_{random}"),
            _ => format!("ghp_{start}{}{end}", self.hidden()),
        }
    }

    /// Returns the first planted text that a text contains, with its context.
    fn flaw(&self, text: &str) -> Option<String> {
        let before = |at: usize| text[..at].chars().rev().take(80).collect::<Vec<_>>();
        let bad = text.char_indices().find(|(_, c)| forbidden(*c));
        let bad = bad.map(|(at, c)| {
            format!(
                "{c:?} after {:?}",
                before(at).iter().rev().collect::<String>()
            )
        });
        bad.or_else(|| self.secret_in(text))
    }

    /// A good part of a secret, whatever stands between its letters.
    fn secret_in(&self, text: &str) -> Option<String> {
        let letters: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
        let secrets = self.secrets.lock().unwrap();
        let mut parts = secrets
            .iter()
            .flat_map(|s| [&s[..12], &s[12..24], &s[24..]]);
        let part = parts.find(|part| letters.contains(*part))?;
        let at = letters.find(part)?;
        Some(format!(
            "{part:?} of a secret after {:?}",
            &letters[at.saturating_sub(80)..at]
        ))
    }

    /// Returns the planted texts that a shown text contains, also inside its JSON, whole or line by line.
    pub(super) fn shown(&self, place: &str, text: &str) -> Vec<String> {
        let mut flaws: Vec<String> = self.flaw(text).into_iter().collect();
        let mut heard = HashSet::new();
        for part in text.lines().chain([text]) {
            if let Ok(value) = serde_json::from_str(part) {
                self.judge(place, &value, &mut heard, &mut flaws);
            }
        }
        flaws
            .iter()
            .map(|flaw| format!("{place}: {flaw}"))
            .collect()
    }

    /// The same for all texts of a value; takes down those that are what must be left of something planted.
    pub(super) fn judge(
        &self,
        place: &str,
        value: &Value,
        heard: &mut HashSet<String>,
        flaws: &mut Vec<String>,
    ) {
        match value {
            Value::String(text) => {
                flaws.extend(self.flaw(text).map(|flaw| format!("{place}: {flaw}")));
                // A question begins with who asks.
                let said = text.strip_prefix("[p] ").unwrap_or(text);
                if self.left.lock().unwrap().contains(said) {
                    heard.insert(said.to_owned());
                }
            }
            Value::Array(items) => items
                .iter()
                .for_each(|v| self.judge(place, v, heard, flaws)),
            Value::Object(members) => members.iter().for_each(|(key, value)| {
                flaws.extend(self.flaw(key).map(|flaw| format!("{place}: {flaw}")));
                self.judge(&format!("{place}/{key}"), value, heard, flaws);
            }),
            _ => {}
        }
    }

    /// Returns the texts that must remain.
    pub(super) fn left(&self) -> HashSet<String> {
        self.left.lock().unwrap().clone()
    }

    pub(super) fn count(&self) -> usize {
        self.secrets.lock().unwrap().len()
    }
}

/// Written down by hand, so that a slip in what cleans shows. Joiners and selectors stand in the samples too; of them
/// what must be left tells.
fn forbidden(c: char) -> bool {
    let c = c as u32;
    (c < 0x20 && c != 9 && c != 10)
        || (0x7F..=0x9F).contains(&c)
        || [0xAD, 0x2028, 0x2029, 0x3164, 0xFEFF, 0xFFA0, 0xFE01].contains(&c)
        || (0x202A..=0x202E).contains(&c)
        || (0x2060..=0x206F).contains(&c)
        || (0xE000..=0xF8FF).contains(&c)
        || (0xFDD0..=0xFDEF).contains(&c)
        || (0xFFF9..=0xFFFB).contains(&c)
        || (c & 0xFFFF) >= 0xFFFE
        || (0xE0000..=0xE001F).contains(&c)
        || [0xE0041, 0xE0042].contains(&c)
        || c >= 0xF0000
}
