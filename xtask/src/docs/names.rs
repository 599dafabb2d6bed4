//! Names of code in the pages: every path exists, and so does every item that the pages for developers name.

use std::collections::HashSet;
use std::fs;

use super::markdown::{code_spans, prose};
use super::pages;
use crate::run::root;

/// Pages that name items of the code. The others also name items of other projects.
const PAGES_FOR_DEVELOPERS: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];
/// Pages that tell the past, or cite files of tests that `cargo xtask requirements` checks.
const SKIPPED_PAGES: [&str; 2] = ["CHANGELOG.md", "docs/requirements.md"];
/// Beginnings of paths from the root.
const FOLDERS: [&str; 8] = [
    "bench/",
    "conformance/",
    "crates/",
    "docs/",
    "fuzz/",
    "interop/",
    "spec/",
    "xtask/",
];
/// Parts of paths that stand for something else.
const PLACEHOLDERS: [&str; 4] = ["REVISION", "NAME", "*", "DATA/"];

/// The paths and the identifiers of the sources.
struct SourceNames {
    files: Vec<String>,
    identifiers: HashSet<String>,
}

/// Checks the names of code in all pages.
///
/// # Errors
/// Names without a file or an item, one line each.
pub(crate) fn check() -> Result<(), String> {
    let sources = SourceNames::read()?;
    let mut wrong = Vec::new();
    for page in pages::all()? {
        if SKIPPED_PAGES.contains(&page.path.as_str()) {
            continue;
        }
        let items = PAGES_FOR_DEVELOPERS.contains(&page.path.as_str());
        for (number, line) in prose(&page.text) {
            let unknown = code_spans(line).filter(|span| {
                sources.lacks_path(span, |path| root().join(path).exists())
                    || items && sources.lacks_item(span)
            });
            wrong.extend(unknown.map(|span| format!("{}:{number}: no `{span}`", page.path)));
        }
    }
    match wrong.as_slice() {
        [] => Ok(()),
        wrong => Err(wrong.join("\n  ")),
    }
}

impl SourceNames {
    fn read() -> Result<SourceNames, String> {
        let files = pages::files(".rs")?;
        let mut identifiers = HashSet::new();
        for file in &files {
            let text = fs::read_to_string(root().join(file))
                .map_err(|error| format!("cannot read {file}: {error}"))?;
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            identifiers.extend(words.map(str::to_owned));
        }
        Ok(SourceNames { files, identifiers })
    }

    /// True for a path that does not exist. A path to a source file may lack its beginning.
    fn lacks_path(&self, span: &str, exists: impl Fn(&str) -> bool) -> bool {
        let is_path = |c: char| c.is_alphanumeric() || "_-./".contains(c);
        if !span.chars().all(is_path) || PLACEHOLDERS.iter().any(|part| span.contains(part)) {
            return false;
        }
        if FOLDERS.iter().any(|folder| span.starts_with(folder)) {
            return !exists(span);
        }
        let ends_so = |file: &String| {
            let head = file.strip_suffix(span);
            head.is_some_and(|head| head.is_empty() || head.ends_with('/'))
        };
        span.ends_with(".rs") && !self.files.iter().any(ends_so)
    }

    /// True for a type, constant or path of an item of which a part is no identifier of the sources.
    fn lacks_item(&self, span: &str) -> bool {
        let is_item = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let begins_upper = span.starts_with(|c: char| c.is_ascii_uppercase());
        let named = span.contains("::") || begins_upper;
        let is_placeholder = PLACEHOLDERS.contains(&span);
        if !span.chars().all(is_item) || !named || is_placeholder {
            return false;
        }
        span.split("::")
            .any(|part| !self.identifiers.contains(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_names_without_a_file_or_an_item() {
        let names = ["Call", "handle", "MAX_BYTES"].map(str::to_owned);
        let sources = SourceNames {
            files: vec!["crates/a/src/edge/call.rs".to_owned()],
            identifiers: HashSet::from(names),
        };
        let lacks_path = |span| sources.lacks_path(span, |path| path == "crates/a/src");
        for span in [
            "edge/call.rs",
            "call.rs",
            "crates/a/src",
            "some text",
            "spec/REVISION/a.json",
        ] {
            assert!(!lacks_path(span), "{span}");
        }
        for span in ["all.rs", "edge/calls.rs", "crates/b"] {
            assert!(lacks_path(span), "{span}");
        }
        for span in ["Call", "Call::handle", "MAX_BYTES", "handled", "REVISION"] {
            assert!(!sources.lacks_item(span), "{span}");
        }
        for span in ["Cell", "Call::handles", "MAX"] {
            assert!(sources.lacks_item(span), "{span}");
        }
    }
}
