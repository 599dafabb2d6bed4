//! Config errors: one line with the position.

use std::fmt;

/// Config error, as `file:line:column: problem; fix`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ConfigError(String);

impl ConfigError {
    /// Creates an error without a position, about a file, a variable or a command-line option.
    pub(crate) fn new(about: impl fmt::Display, text: impl fmt::Display) -> ConfigError {
        ConfigError(format!("{about}: {text}"))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// Text of a config and the name that errors use for it.
#[derive(Clone, Copy)]
pub(crate) struct ConfigText<'t> {
    pub(crate) name: &'t str,
    pub(crate) text: &'t str,
}

impl ConfigText<'_> {
    /// Returns line and column of a byte offset, both from 1; columns count characters.
    pub(super) fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let bytes = self.text.as_bytes();
        let before = &bytes[..offset.min(bytes.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n');
        let line = String::from_utf8_lossy(&before[line_start.map_or(0, |at| at + 1)..]);
        // Counting bytes is fast; a file with many rules needs the line of each one.
        (
            before.iter().filter(|byte| **byte == b'\n').count() + 1,
            line.chars().count() + 1,
        )
    }

    /// Returns `file:line:column` of a byte offset.
    pub(crate) fn position(&self, offset: usize) -> String {
        let (line, column) = self.line_and_column(offset);
        format!("{}:{line}:{column}", self.name)
    }

    /// Creates an error at a byte offset.
    pub(super) fn error(&self, offset: usize, text: impl fmt::Display) -> ConfigError {
        ConfigError::new(self.position(offset), text)
    }
}

/// Returns `; did you mean "…"?` for a similar known name, else a list of at most 32 known names.
pub(crate) fn suggestion<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let far = |name: &&str| strsim::damerau_levenshtein(&given.to_lowercase(), name);
    match known.iter().copied().min_by_key(far) {
        Some(name) if far(&name) <= 1 + name.len() / 4 && far(&name) < name.len() => {
            format!("; did you mean {name:?}?")
        }
        _ if known.is_empty() || known.len() > 32 => String::new(),
        _ => format!("; expected one of: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters() {
        let doc = ConfigText {
            name: "f",
            text: "é = 1\nab",
        };
        assert_eq!(doc.line_and_column(0), (1, 1));
        assert_eq!(doc.line_and_column(2), (1, 2));
        assert_eq!(doc.line_and_column(8), (2, 2));
        assert_eq!(doc.line_and_column(99), (2, 3));
    }

    #[test]
    fn hints() {
        assert_eq!(
            suggestion("comand", ["cwd", "command"]),
            "; did you mean \"command\"?"
        );
        assert_eq!(
            suggestion("Listen", ["listen"]),
            "; did you mean \"listen\"?"
        );
        assert_eq!(
            suggestion("x", ["cwd", "url"]),
            "; expected one of: cwd, url"
        );
        assert_eq!(suggestion("x", []), "");
    }
}
