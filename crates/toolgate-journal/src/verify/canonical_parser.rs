//! Parser that accepts only canonical JSON, so that one record has one spelling.

use std::ops::Range;

const MAX_INTEGER: u64 = (1 << 53) - 1;
const MAX_NESTING: usize = 64;

/// Reason for which a line is not a canonical record.
pub(crate) type JsonFlaw = &'static str;

/// Member of a record: name, position in the line, and value as written.
#[derive(Debug)]
pub(super) struct RecordMember<'a> {
    pub(super) name: String,
    /// Range from the quote of the name to the end of the value.
    pub(super) range: Range<usize>,
    value: &'a str,
}

/// Members of the object that fills a line.
pub(crate) struct CanonicalLine<'a>(pub(super) Vec<RecordMember<'a>>);

impl<'a> CanonicalLine<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, JsonFlaw> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
        let mut scan = CanonicalParser { text, at: 0 };
        let mut members = Vec::new();
        scan.object(1, |name, place, value| {
            members.push(RecordMember {
                name,
                range: place,
                value,
            })
        })?;
        if scan.at < text.len() {
            Err("something follows the object")
        } else {
            Ok(Self(members))
        }
    }

    pub(super) fn member(&self, name: &str) -> Option<&RecordMember<'a>> {
        self.0.iter().find(|member| member.name == name)
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        CanonicalParser {
            text: self.member(name)?.value,
            at: 0,
        }
        .string()
        .ok()
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.member(name)?.value.parse().ok()
    }
}

struct CanonicalParser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> CanonicalParser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Result<(), JsonFlaw> {
        if self.peek() != Some(byte) {
            return Err("it is not canonical JSON");
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), JsonFlaw> {
        word.bytes().try_for_each(|byte| self.expect(byte))
    }

    fn value(&mut self, depth: usize) -> Result<(), JsonFlaw> {
        if depth > MAX_NESTING {
            return Err("it is nested too deeply");
        }
        match self.peek() {
            Some(b'{') => self.object(depth, |_, _, _| ()),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(drop),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            _ => self.integer(),
        }
    }

    fn object(
        &mut self,
        depth: usize,
        mut each: impl FnMut(String, Range<usize>, &'a str),
    ) -> Result<(), JsonFlaw> {
        self.expect(b'{')?;
        let mut last: Option<Vec<u16>> = None;
        while self.peek() != Some(b'}') {
            if last.is_some() {
                self.expect(b',')?;
            }
            let start = self.at;
            let name = self.string()?;
            let units: Vec<u16> = name.encode_utf16().collect();
            if last.is_some_and(|last| last >= units) {
                return Err("its names are unsorted or duplicate");
            }
            last = Some(units);
            self.expect(b':')?;
            let value = self.at;
            self.value(depth + 1)?;
            each(name, start..self.at, &self.text[value..self.at]);
        }
        self.expect(b'}')
    }

    fn array(&mut self, depth: usize) -> Result<(), JsonFlaw> {
        self.expect(b'[')?;
        let mut first = true;
        while self.peek() != Some(b']') {
            if !first {
                self.expect(b',')?;
            }
            first = false;
            self.value(depth + 1)?;
        }
        self.expect(b']')
    }

    fn integer(&mut self) -> Result<(), JsonFlaw> {
        let rest = &self.text[self.at..];
        let length = rest
            .bytes()
            .enumerate()
            .take_while(|(at, b)| b.is_ascii_digit() || (*at == 0 && *b == b'-'))
            .count();
        let text = &rest[..length];
        let digits = text.strip_prefix('-').unwrap_or(text);
        let small = digits.parse::<u64>().is_ok_and(|size| size <= MAX_INTEGER);
        if !small || (digits.starts_with('0') && text != "0") {
            return Err("a value is not a canonical integer, string, boolean, array or object");
        }
        self.at += length;
        Ok(())
    }

    fn string(&mut self) -> Result<String, JsonFlaw> {
        self.expect(b'"')?;
        let mut out = String::new();
        loop {
            let Some(c) = self.text[self.at..].chars().next() else {
                return Err("a string is not closed");
            };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(out),
                '\\' => out.push(self.escape()?),
                c if c < ' ' => return Err("a string has a raw control character"),
                c => out.push(c),
            }
        }
    }

    /// Parses an escape after its backslash; only the shortest escape of a character is canonical.
    fn escape(&mut self) -> Result<char, JsonFlaw> {
        const FLAW: JsonFlaw = "a string has an escape that is not canonical";
        let letter = self.peek().ok_or(FLAW)?;
        self.at += 1;
        Ok(match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'b' => '\u{8}',
            b't' => '\t',
            b'n' => '\n',
            b'f' => '\u{c}',
            b'r' => '\r',
            b'u' => {
                let digits = self.text.get(self.at..self.at + 4).ok_or(FLAW)?;
                self.at += 4;
                let code = u8::from_str_radix(digits, 16).map_err(|_| FLAW)?;
                let canonical = code < 0x20
                    && !matches!(code, 8 | 9 | 10 | 12 | 13)
                    && digits == format!("{code:04x}");
                if canonical {
                    char::from(code)
                } else {
                    return Err(FLAW);
                }
            }
            _ => return Err(FLAW),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(text: &str) -> bool {
        CanonicalLine::parse(text.as_bytes()).is_ok()
    }

    #[test]
    fn accepts_canonical_lines() {
        for text in [
            "{}",
            r#"{"a":[],"b":{"":-1},"c":"\u001f\n\"é"}"#,
            r#"{"a":0,"b":9007199254740991,"c":[true,false]}"#,
        ] {
            assert!(reads(text), "{text}");
        }
    }

    #[test]
    fn rejects_every_other_spelling() {
        let spellings = [
            "",
            "[]",
            "{",
            "{} ",
            "{ }",
            r#"{"a": 1}"#,
            r#"{"a":1,}"#,
            r#"{,"a":1}"#,
            r#"{"b":1,"a":1}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"a":01}"#,
            r#"{"a":-0}"#,
            r#"{"a":-}"#,
            r#"{"a":+1}"#,
            r#"{"a":1.0}"#,
            r#"{"a":1e3}"#,
            r#"{"a":9007199254740992}"#,
            r#"{"a":null}"#,
            r#"{"a":tru}"#,
            r#"{"a":"\/"}"#,
            r#"{"a":"\u000a"}"#,
            r#"{"a":"\u001F"}"#,
            r#"{"a":"\u0041"}"#,
            r#"{"a":"\u00e9"}"#,
            r#"{"a":"\u+01f"}"#,
            "{\"a\":\"\t\"}",
            r#"{"a":[1,]}"#,
            r#"{"a":[,1]}"#,
            r#"{"a":"x}"#,
            r#"{"a":1}{}"#,
        ];
        for text in spellings {
            assert!(!reads(text), "{text}");
        }
        assert!(CanonicalLine::parse(b"{\"a\":\"\xff\"}").is_err());
        assert!(!reads(&format!(
            "{{\"a\":{}{}}}",
            "[".repeat(10_000),
            "]".repeat(10_000)
        )));
    }
}
