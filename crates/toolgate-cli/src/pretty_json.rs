//! Pretty-printer for JSON: indented, with exact numbers, and with secrets masked where asked.

use toolgate::Json;
use toolgate_protocol::json::{JsonKind, write_string};

/// Replacement of a masked value.
const MASKED_VALUE: &str = "•••";
/// Parts of member names whose values are masked.
const SECRET_NAME_PARTS: [&str; 9] = [
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "authorization",
    "credential",
    "private_key",
];

/// Pretty-prints JSON without masking.
pub(crate) fn pretty(json: &Json) -> String {
    let mut show = PrettyPrinter {
        out: String::new(),
        mask: false,
        masked: 0,
        max_bytes: usize::MAX,
    };
    show.value(json, 0);
    show.out
}

/// Pretty-prints JSON with the values of secret-looking members masked, and returns their number. Text over `max_bytes`
/// bytes is cut, with a note.
pub(crate) fn pretty_masked(json: &Json, most: usize) -> (String, usize) {
    let mut show = PrettyPrinter {
        out: String::new(),
        mask: true,
        masked: 0,
        max_bytes: most,
    };
    show.value(json, 0);
    if show.is_full() {
        let end = (0..=most).rev().find(|at| show.out.is_char_boundary(*at));
        show.out.truncate(end.unwrap_or(0));
        let whole = json.as_str().len();
        show.out.push_str(&format!(
            "\n… truncated; in compact form, the arguments are {whole} bytes long"
        ));
    }
    (show.out, show.masked)
}

struct PrettyPrinter {
    out: String,
    mask: bool,
    masked: usize,
    max_bytes: usize,
}

impl PrettyPrinter {
    fn is_full(&self) -> bool {
        self.out.len() > self.max_bytes
    }

    /// Writes a value. The depth limit of the parser bounds the recursion.
    fn value(&mut self, json: &Json, depth: usize) {
        match json.kind() {
            _ if self.is_full() => {}
            JsonKind::Object => self.nested(
                '{',
                '}',
                depth,
                json.members().map(|(k, v)| (Some(k.into_owned()), v)),
            ),
            JsonKind::Array => self.nested('[', ']', depth, json.items().map(|v| (None, v))),
            _ => self.out.push_str(json.as_str()),
        }
    }

    fn nested(
        &mut self,
        open: char,
        close: char,
        depth: usize,
        parts: impl Iterator<Item = (Option<String>, Json)>,
    ) {
        self.out.push(open);
        let mut any = false;
        for (key, value) in parts {
            if self.is_full() {
                return;
            }
            self.out.push_str(if any { ",\n" } else { "\n" });
            any = true;
            self.out.push_str(&"  ".repeat(depth + 1));
            if let Some(key) = &key {
                write_string(&mut self.out, key);
                self.out.push_str(": ");
            }
            if self.mask && key.as_deref().is_some_and(is_secret) {
                self.masked += 1;
                write_string(&mut self.out, MASKED_VALUE);
            } else {
                self.value(&value, depth + 1);
            }
        }
        if any {
            self.out.push('\n');
            self.out.push_str(&"  ".repeat(depth));
        }
        self.out.push(close);
    }
}

fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase().replace('-', "_");
    SECRET_NAME_PARTS.iter().any(|part| key.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_numbers_exact_and_masks_secrets() {
        let text = r#"{"n":9007199254740993,"deep":[{"API-Key":"x","path":"p"}],"e":{}}"#;
        let json = Json::read(text.as_bytes().to_vec(), &Default::default()).unwrap();
        let (shown, count) = pretty_masked(&json, 1000);
        assert_eq!(count, 1);
        assert_eq!(
            shown,
            "{\n  \"n\": 9007199254740993,\n  \"deep\": [\n    {\n      \"API-Key\": \"•••\",\n      \"path\": \"p\"\n    }\n  ],\n  \"e\": {}\n}"
        );
        assert!(pretty(&json).contains("\"x\""));
        let (cut, _) = pretty_masked(&json, 10);
        assert!(
            cut.starts_with("{\n  \"n\": ") && cut.contains("truncated"),
            "{cut}"
        );
    }
}
