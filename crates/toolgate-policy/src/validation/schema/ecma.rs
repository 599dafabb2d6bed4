//! Translation of ECMA-262 regular expressions to the syntax of the Rust engines.
//!
//! `\d`, `\w` and `\s` have their ECMA-262 meaning, `\/` is a slash, `[^]` is any character. Escapes of Python and
//! PCRE that ECMA-262 lacks (`\A`, `\Z`, `\z`) keep their meaning, because generated schemas contain them.

use std::{iter::Peekable, str::Chars};

const DIGIT: &str = "0-9";
const WORD: &str = "A-Za-z0-9_";
const SPACE: &str = "\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}";

/// Translates a pattern.
///
/// # Errors
/// Returns the reason if the pattern has no equivalent.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut translation = EcmaTranslator {
        rest: pattern.chars().peekable(),
        out: String::with_capacity(pattern.len() * 2),
    };
    translation.all()?;
    Ok(translation.out)
}

struct EcmaTranslator<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
}

/// The meaning of an escape sequence.
enum EcmaEscape {
    Char(char),
    /// The content of a character class, and whether it is negated.
    Class(&'static str, bool),
    /// Text that both engines read as ECMA-262 does.
    Same(String),
}

impl EcmaTranslator<'_> {
    fn all(&mut self) -> Result<(), String> {
        while let Some(c) = self.rest.next() {
            match c {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '.' => self.out.push_str("[^\\n\\r\\x{2028}\\x{2029}]"),
                '{' => self.brace(),
                '(' => self.group()?,
                '}' | ']' => self.literal(c),
                '#' | '&' | '~' | ' ' => self.literal(c),
                c => self.out.push(c),
            }
        }
        Ok(())
    }

    fn literal(&mut self, c: char) {
        match c.is_ascii_alphanumeric() || !c.is_ascii() || c == '_' {
            true => self.out.push(c),
            false => self.out.push_str(&format!("\\x{{{:x}}}", u32::from(c))),
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        match self.escaped()? {
            EcmaEscape::Char(c) => self.literal(c),
            EcmaEscape::Class(class, negated) => {
                let not = if negated { "^" } else { "" };
                self.out.push_str(&format!("[{not}{class}]"));
            }
            EcmaEscape::Same(text) => self.out.push_str(&text),
        }
        Ok(())
    }

    /// Parses an escape sequence after its backslash.
    fn escaped(&mut self) -> Result<EcmaEscape, String> {
        let c = self.rest.next().ok_or("it ends with a backslash")?;
        Ok(match c {
            'd' | 'D' => EcmaEscape::Class(DIGIT, c == 'D'),
            'w' | 'W' => EcmaEscape::Class(WORD, c == 'W'),
            's' | 'S' => EcmaEscape::Class(SPACE, c == 'S'),
            't' => EcmaEscape::Char('\t'),
            'n' => EcmaEscape::Char('\n'),
            'r' => EcmaEscape::Char('\r'),
            'v' => EcmaEscape::Char('\u{b}'),
            'f' => EcmaEscape::Char('\u{c}'),
            'b' | 'B' => EcmaEscape::Same(format!("\\{c}")),
            'A' => EcmaEscape::Same("\\A".to_owned()),
            'z' | 'Z' => EcmaEscape::Same("\\z".to_owned()),
            'x' => EcmaEscape::Char(self.hex(2).and_then(char::from_u32).ok_or(NO_CHAR)?),
            'u' => EcmaEscape::Char(self.unicode().ok_or(NO_CHAR)?),
            'c' => {
                let letter = self.rest.next().filter(char::is_ascii_alphabetic);
                EcmaEscape::Char(char::from(letter.ok_or(NO_CHAR)? as u8 % 32))
            }
            '0' if !self.rest.peek().is_some_and(char::is_ascii_digit) => EcmaEscape::Char('\0'),
            'p' | 'P' | 'k' => EcmaEscape::Same(self.named(c)?),
            '1'..='9' => {
                let mut text = format!("\\{c}");
                while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
                    text.push(digit);
                }
                EcmaEscape::Same(text)
            }
            c if c.is_ascii_alphanumeric() => {
                return Err(format!("\\{c} is not an escape of ECMA-262"));
            }
            c => EcmaEscape::Char(c),
        })
    }

    /// Parses `\p{…}` and `\k<…>`.
    fn named(&mut self, c: char) -> Result<String, String> {
        let (open, close) = if c == 'k' { ('<', '>') } else { ('{', '}') };
        let mut text = format!("\\{c}");
        text.push(self.rest.next_if_eq(&open).ok_or(NO_CHAR)?);
        for c in self.rest.by_ref() {
            text.push(c);
            if c == close {
                return Ok(text);
            }
        }
        Err(NO_CHAR.to_owned())
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        (0..digits).try_fold(0, |sum, _| {
            let digit = self.rest.next()?.to_digit(16)?;
            Some(sum * 16 + digit)
        })
    }

    /// Parses `\uXXXX`, `\u{…}`, or a surrogate pair.
    fn unicode(&mut self) -> Option<char> {
        if self.rest.next_if_eq(&'{').is_some() {
            let mut code = 0_u32;
            loop {
                match self.rest.next()? {
                    '}' => return char::from_u32(code),
                    digit => code = code.checked_mul(16)?.checked_add(digit.to_digit(16)?)?,
                }
            }
        }
        let first = self.hex(4)?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        (self.rest.next()? == '\\' && self.rest.next()? == 'u').then_some(())?;
        let second = self
            .hex(4)?
            .checked_sub(0xdc00)
            .filter(|low| *low < 0x400)?;
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + second)
    }

    /// Translates a counted repetition; any other brace is a literal.
    fn brace(&mut self) {
        let inside: String = self.rest.clone().take_while(|c| *c != '}').collect();
        let (least, most) = inside.split_once(',').unwrap_or((&inside, "0"));
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let closed = self.rest.clone().nth(inside.chars().count()) == Some('}');
        if !closed || least.is_empty() || !number(least) || !number(most) {
            self.literal('{');
            return;
        }
        self.out.push('{');
        self.out.push_str(&inside);
        self.out.push('}');
        // Skips the content and the closing brace.
        let _ = self.rest.nth(inside.len());
    }

    /// Translates the start of a group.
    ///
    /// # Errors
    /// The `x` flag and comments have no equivalent.
    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        if self.rest.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        self.out.push('?');
        let flags: String = self
            .rest
            .clone()
            .take_while(|c| c.is_ascii_alphabetic())
            .collect();
        if flags.contains('x') || self.rest.peek() == Some(&'#') {
            return Err("the flag x and comments have no equivalent in ECMA-262".to_owned());
        }
        // A group name may hold characters that mean something elsewhere, but not these.
        while let Some(c) = self
            .rest
            .next_if(|c| c.is_ascii_alphanumeric() || "<>=!:_-".contains(*c))
        {
            self.out.push(c);
            if matches!(c, ':' | '=' | '!' | '>') {
                break;
            }
        }
        Ok(())
    }

    fn class(&mut self) -> Result<(), String> {
        let negated = self.rest.next_if_eq(&'^').is_some();
        if self.rest.next_if_eq(&']').is_some() {
            // `[^]` matches every character, `[]` none.
            let class = if negated {
                "[\\x{0}-\\x{10ffff}]"
            } else {
                "[^\\x{0}-\\x{10ffff}]"
            };
            self.out.push_str(class);
            return Ok(());
        }
        self.out.push_str(if negated { "[^" } else { "[" });
        loop {
            let first = match self.rest.next().ok_or("a character class is not closed")? {
                ']' => break,
                '\\' => self.escaped_in_class()?,
                c => Some(c),
            };
            let Some(first) = first else {
                continue;
            };
            self.literal(first);
            let mut ahead = self.rest.clone();
            if ahead.next() != Some('-') || ahead.next().is_none_or(|c| c == ']') {
                continue;
            }
            self.rest.next();
            let last = match self.rest.next() {
                Some('\\') => {
                    let at = self.out.len();
                    let last = self.escaped_in_class()?;
                    if last.is_none() {
                        // `a-\d`: the hyphen is a literal.
                        self.out.insert_str(at, "\\-");
                    }
                    last
                }
                last => last,
            };
            if let Some(last) = last {
                self.out.push('-');
                self.literal(last);
            }
        }
        self.out.push(']');
        Ok(())
    }

    /// Returns the character of an escape in a class. An escape that is itself a class is written out and returns
    /// `None`.
    fn escaped_in_class(&mut self) -> Result<Option<char>, String> {
        if self.rest.next_if_eq(&'b').is_some() {
            return Ok(Some('\u{8}'));
        }
        match self.escaped()? {
            EcmaEscape::Char(c) => return Ok(Some(c)),
            EcmaEscape::Class(class, false) => self.out.push_str(class),
            EcmaEscape::Class(class, true) => self.out.push_str(&format!("[^{class}]")),
            EcmaEscape::Same(text) if text.starts_with("\\p") || text.starts_with("\\P") => {
                self.out.push_str(&text);
            }
            EcmaEscape::Same(text) => {
                return Err(format!("{text} has no meaning in a character class"));
            }
        }
        // `\d-z`: the hyphen after a class is a literal.
        if self.rest.next_if_eq(&'-').is_some() {
            self.out.push_str("\\-");
        }
        Ok(None)
    }
}

const NO_CHAR: &str = "an escape is incomplete or does not denote a character";

#[cfg(test)]
mod tests {
    use super::translate;
    use regex::Regex;

    #[test]
    fn ecma_patterns_keep_their_meaning() {
        for (pattern, good, bad) in [
            (r"^\d+$", &["12"][..], &["١٢"][..]),
            (r"^\w$", &["a", "_"], &["é"]),
            (r"^[\w.-]+$", &["a.b-c"], &["a b"]),
            (r"^[\w-.]+$", &["a.b-c"], &["a b"]),
            (r"^[a-\d]+$", &["a-1"], &["b"]),
            (r"^[+-]?\d$", &["+1", "-1", "1"], &["*1"]),
            (r"^https?:\/\/", &["http://x"], &["ftp://x"]),
            (r"^[^]$", &["a", "\n"], &["", "ab"]),
            (r"^a[]$", &[], &["a"]),
            (r"^\u{1F44D}$", &["👍"], &["u"]),
            (r"^\uD83D\uDC4D$", &["👍"], &["u"]),
            (r"^\u00e9\x41$", &["éA"], &["e"]),
            (r"^\cJ$", &["\n"], &["J"]),
            (r"^(?<year>\d{4})$", &["2026"], &["26"]),
            (r"^(?:a|b){2,}$", &["ab"], &["a"]),
            (r"^{a}$", &["{a}"], &["a"]),
            (r"^a{,2}$", &["a{,2}"], &["aa"]),
            (r"^\_\@\-\ \%$", &["_@- %"], &["@"]),
            (r"^[[&&~~]$", &["[", "&", "~"], &["a"]),
            (r"^.$", &["a"], &["\n", "\r", "\u{2028}"]),
            (r"^\s$", &["\u{feff}", "\u{a0}"], &["\u{85}"]),
            (r"^[\s\S]$", &["\n", "a"], &[""]),
            (r"^[\b]$", &["\u{8}"], &["b"]),
            (r"^\p{Lu}$", &["É"], &["é"]),
            (r"\Aa\Z", &["a"], &["ba"]),
            (r"^\0$", &["\0"], &["0"]),
            (r"^a]}$", &["a]}"], &["a"]),
            (r"^[\]\\]$", &["]", "\\"], &["a"]),
            (r"^(?i:ab)c$", &["ABc"], &["ABC"]),
        ] {
            let text = translate(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}"));
            let regex = Regex::new(&text).unwrap_or_else(|why| panic!("{pattern}: {text}: {why}"));
            good.iter()
                .for_each(|good| assert!(regex.is_match(good), "{pattern} {text}: {good:?}"));
            bad.iter()
                .for_each(|bad| assert!(!regex.is_match(bad), "{pattern} {text}: {bad:?}"));
        }
    }

    #[test]
    fn a_pattern_without_an_equivalent_is_refused() {
        for pattern in [
            r"\",
            r"[a",
            r"\uD83D",
            r"\u{110000}",
            r"\q",
            r"(?x)a b",
            r"\c1",
            r"[\1]",
        ] {
            assert!(translate(pattern).is_err(), "{pattern}");
        }
    }
}
