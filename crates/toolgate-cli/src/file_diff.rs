//! Unified diff of a file before and after an edit, for the operator's terminal.

use diffy::DiffOptions;
use toolgate_core::visible;
use toolgate_policy::SecretRedactor;

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// Returns the unified diff of a file; empty if the texts are equal. Without a text before, the file is new. Secrets in
/// the lines are redacted, and characters that a terminal would interpret are escaped.
pub(crate) fn unified_diff(name: &str, before: Option<&str>, after: &str) -> String {
    let hunks = diff_hunks(before.unwrap_or_default(), after);
    if hunks.is_empty() {
        return hunks;
    }
    let from = before.map_or("/dev/null", |_| name);
    let text = format!("--- {from}\n+++ {name}\n{hunks}");
    visible(&SecretRedactor::redact_text(&text)).replace("\\t", "\t")
}

/// Returns the hunks of the unified diff of two texts; empty if they are equal.
pub(crate) fn diff_hunks(before: &str, after: &str) -> String {
    let mut options = DiffOptions::new();
    options.set_context_len(CONTEXT_LINES);
    let text = options.create_patch(before, after).to_string();
    // The lines before the first hunk name the files.
    text.find("\n@@ ")
        .map_or_else(String::new, |at| text[at + 1..].to_owned())
}

/// Number of lines that differ between two texts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LineChanges {
    pub(crate) added: usize,
    pub(crate) removed: usize,
    /// The first line that was added; without one, the first that was removed.
    pub(crate) first: String,
}

impl LineChanges {
    /// Counts the lines that differ, without blank ones and comments; `None` if there is none.
    pub(crate) fn between(before: &str, after: &str) -> Option<LineChanges> {
        let hunks = diff_hunks(before, after);
        let lines = |sign: char| {
            let changed = hunks
                .lines()
                .filter_map(move |line| line.strip_prefix(sign));
            changed
                .map(str::trim)
                .filter(|line| !line.is_empty() && !line.starts_with('#'))
        };
        let first = lines('+').next().or_else(|| lines('-').next())?;
        Some(LineChanges {
            added: lines('+').count(),
            removed: lines('-').count(),
            first: visible(&SecretRedactor::redact_text(first)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_has_context_and_no_secrets() {
        let before = "a\nb\nc\nd\n";
        assert_eq!(
            unified_diff("f", Some(before), "a\nb\nc\nd\ne\n"),
            "--- f\n+++ f\n@@ -2,3 +2,4 @@\n b\n c\n d\n+e\n"
        );
        let counted = LineChanges::between(before, "a\nb\nnew\n# note\nd\n");
        let first = "new".to_owned();
        assert_eq!(
            counted,
            Some(LineChanges {
                added: 1,
                removed: 1,
                first
            })
        );
        assert_eq!(LineChanges::between(before, before), None);
        assert_eq!(unified_diff("f", Some(before), before), "");
        assert!(unified_diff("f", None, "a\n").starts_with("--- /dev/null\n+++ f\n"));
        let token = format!("ghp_{}", "a1B2c3".repeat(6));
        let text = unified_diff(
            "f",
            None,
            &format!("\"GITHUB_TOKEN\": \"{token}\"\u{1b}[2J\n"),
        );
        assert!(!text.contains(&token) && !text.contains('\u{1b}'), "{text}");
    }
}
