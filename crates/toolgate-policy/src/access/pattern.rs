//! Glob patterns over names: `*` matches any run of characters, `?` one character.

use std::fmt;

/// Case-sensitive glob pattern over full item names (`server.tool`) or caller names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GlobPattern {
    text: String,
    /// Length in bytes of the text before the first wildcard.
    literal: usize,
}

impl GlobPattern {
    /// Creates a glob pattern from its text. Every text is valid.
    pub fn new(text: impl Into<String>) -> GlobPattern {
        let text = text.into();
        let literal = text.find(['*', '?']).unwrap_or(text.len());
        GlobPattern { text, literal }
    }

    /// Returns the text of the glob pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the glob pattern matches the whole of `name`.
    ///
    /// After a mismatch only the last `*` is retried, so the cost is at most pattern length times name length,
    /// without recursion.
    pub fn matches(&self, name: &str) -> bool {
        // Most patterns of a long list of rules differ in this part.
        let (literal, pattern) = self.text.split_at(self.literal);
        let Some(name) = name.strip_prefix(literal) else {
            return false;
        };
        let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
        let (mut p, mut n) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while n < name.len() {
            match pattern.get(p) {
                Some(b'*') => {
                    star = Some((p, n));
                    p += 1;
                }
                Some(b'?') => (p, n) = (p + 1, n + width(name[n])),
                Some(&c) if c == name[n] => (p, n) = (p + 1, n + 1),
                _ => match star {
                    Some((at, from)) => {
                        star = Some((at, from + 1));
                        (p, n) = (at + 1, from + 1);
                    }
                    None => return false,
                },
            }
        }
        pattern[p..].iter().all(|&c| c == b'*')
    }
}

/// Returns the length of the character that begins with this byte; 1 inside of one, where only a retry after `*` can
/// be.
fn width(first: u8) -> usize {
    match first {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xFF => 4,
        _ => 1,
    }
}

impl fmt::Display for GlobPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, name: &str, fits: bool) {
        assert_eq!(
            GlobPattern::new(pattern).matches(name),
            fits,
            "{pattern} on {name}"
        );
    }

    #[test]
    fn globs() {
        check("*", "", true);
        check("", "", true);
        check("", "a", false);
        check("demo.*", "demo.add", true);
        check("demo.*", "demo", false);
        check("demo.*", "demox.add", false);
        check("*.delete_*", "files.delete_all", true);
        check("*.delete_*", "files.undelete", false);
        check("demo.add", "demo.add", true);
        check("demo.add", "demo.added", false);
        check("demo.add", "demo.ad", false);
        check("é*", "éa", true);
        check("é*", "è", false);
        check("demo.?dd", "demo.add", true);
        check("demo.?dd", "demo.dd", false);
        check("a?c", "aéc", true);
        check("a?c", "aéec", false);
        check("*?", "é", true);
        check("a*b*c", "a_b_b_c", true);
        check("a*b*c", "a_b_b_cx", false);
    }

    #[test]
    fn case_counts() {
        check("Demo.*", "demo.add", false);
    }

    #[test]
    fn a_hostile_pattern_stays_cheap() {
        let name = "a".repeat(20_000);
        let start = std::time::Instant::now();
        check(&format!("{}b", "a*".repeat(200)), &name, false);
        assert!(start.elapsed().as_secs() < 5);
    }
}
