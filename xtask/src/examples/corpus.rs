//! Code of all examples: doc comments, example programs and pages of the book.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::items::{ItemShape, PublicItem};

/// Words of a code fence that leave it an example in Rust.
const RUST_FENCE: [&str; 4] = ["", "no_run", "rust", "should_panic"];

/// Names in the code of all examples, and of the items whose documentation has an example.
#[derive(Default)]
pub(super) struct Corpus {
    words: BTreeSet<String>,
    calls: BTreeSet<String>,
    documented: BTreeSet<String>,
}

impl Corpus {
    /// Reads the examples of the project in a folder.
    pub(super) fn read(project: &Path) -> Result<Corpus, String> {
        let mut corpus = Corpus::default();
        for folder in ["crates", "docs"] {
            corpus.read_folder(&project.join(folder))?;
        }
        Ok(corpus)
    }

    fn read_folder(&mut self, folder: &Path) -> Result<(), String> {
        let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(folder).map_err(wrong)? {
            let path = entry.map_err(wrong)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                if !matches!(&*name, "tests" | "target" | "node_modules") {
                    self.read_folder(&path)?;
                }
                continue;
            }
            let Some(extension) = path.extension().and_then(|extension| extension.to_str()) else {
                continue;
            };
            let is_program = folder.ends_with("examples");
            if matches!(extension, "rs" | "md") {
                let text = fs::read_to_string(&path).map_err(wrong)?;
                match (extension, is_program) {
                    ("rs", true) => self.add_code(&text),
                    ("rs", false) => self.add_source(&text),
                    _ => {
                        self.add_page(&text);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the examples in the doc comments of a source file.
    fn add_source(&mut self, source: &str) {
        let mut comment = String::new();
        for line in source.lines().map(str::trim_start) {
            if let Some(text) = doc_text(line) {
                comment.push_str(text);
                comment.push('\n');
            } else if ends_comment(line) && !comment.is_empty() {
                if self.add_page(&comment) {
                    self.documented.extend(item_name(line).map(str::to_owned));
                }
                comment.clear();
            }
        }
    }

    /// Adds the blocks of Rust code of a Markdown page, and reports whether there are any.
    fn add_page(&mut self, page: &str) -> bool {
        let (mut taken, mut has_code) = (None, false);
        for line in page.lines() {
            match (line.trim_start().strip_prefix("```"), taken) {
                (Some(fence), None) => {
                    let mut words = fence.split(',').map(str::trim);
                    taken = Some(words.all(|word| RUST_FENCE.contains(&word)));
                }
                (Some(_), Some(_)) => taken = None,
                (None, Some(true)) => {
                    self.add_code(line);
                    has_code = true;
                }
                (None, _) => {}
            }
        }
        has_code
    }

    /// Adds the names in code, and those that are called: with arguments, or as an attribute or macro.
    fn add_code(&mut self, code: &str) {
        let in_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut rest = code;
        while let Some(start) = rest.find(in_word) {
            let (before, word) = rest.split_at(start);
            let end = word.find(|c| !in_word(c)).unwrap_or(word.len());
            let (word, after) = word.split_at(end);
            let called = ["(", "::<", "!"].iter().any(|next| after.starts_with(next));
            if called || before.ends_with("#[") {
                self.calls.insert(word.to_owned());
            }
            self.words.insert(word.to_owned());
            rest = after;
        }
    }

    /// Adds the types that the used functions return.
    pub(super) fn add_returned_types(&mut self, items: &[PublicItem]) {
        for item in items {
            if !item.returns.is_empty() && self.uses(item) {
                self.words.extend(item.returns.iter().cloned());
            }
        }
    }

    /// Reports whether an item has an example or an example uses it.
    pub(super) fn uses(&self, item: &PublicItem) -> bool {
        let used = match item.shape {
            ItemShape::Name => &self.words,
            ItemShape::Function | ItemShape::Method => &self.calls,
        };
        used.contains(item.name()) || self.documented.contains(item.name())
    }
}

/// Returns the text of a line of a doc comment.
fn doc_text(line: &str) -> Option<&str> {
    line.strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"))
}

/// Reports whether a line is the item that a doc comment describes, or ends the comment of a module. Attributes, also
/// those of several lines, stand between.
fn ends_comment(line: &str) -> bool {
    line.is_empty()
        || line.ends_with(['{', '}', ';', '(']) && !line.starts_with("#[")
        || item_name(line).is_some()
}

/// Returns the name of the public item that begins on a line.
fn item_name(line: &str) -> Option<&str> {
    let mut words = line.strip_prefix("pub ")?.split_whitespace();
    words.find(|word| ["struct", "enum", "trait", "fn", "macro"].contains(word))?;
    words
        .next()?
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(path: &str, shape: ItemShape) -> PublicItem {
        PublicItem {
            path: path.to_owned(),
            shape,
            returns: Vec::new(),
        }
    }

    #[test]
    fn a_type_is_used_where_a_called_function_returns_it() {
        let mut corpus = Corpus::default();
        corpus.add_page("```\nlet rule = from_fn(1);\n```\n");
        let returning = |path, name: &str| PublicItem {
            returns: vec![name.to_owned()],
            ..item(path, ItemShape::Function)
        };
        corpus.add_returned_types(&[
            returning("a::from_fn", "FnRule"),
            returning("a::open", "Door"),
        ]);
        for (name, used) in [("a::FnRule", true), ("a::Door", false)] {
            assert_eq!(corpus.uses(&item(name, ItemShape::Name)), used, "{name}");
        }
    }

    fn uses(page: &str, path: &str, shape: ItemShape) -> bool {
        let mut corpus = Corpus::default();
        corpus.add_page(page);
        corpus.uses(&item(path, shape))
    }

    #[test]
    fn a_type_is_used_where_code_names_it() {
        let page = "The `Gauge`:\n```no_run\nlet gauge = Meter::new();\n```\n```toml\nlevel = Level\n```\n";
        for (name, used) in [("a::Meter", true), ("a::Gauge", false), ("a::Level", false)] {
            assert_eq!(uses(page, name, ItemShape::Name), used, "{name}");
        }
    }

    #[test]
    fn a_function_is_used_where_code_calls_it() {
        let page = "```\nuse a::read;\nwrite(1);\nnew_tool!();\nsum::<u8>();\n```\n";
        for (name, used) in [
            ("a::read", false),
            ("a::write", true),
            ("a::new_tool", true),
            ("a::sum", true),
        ] {
            assert_eq!(uses(page, name, ItemShape::Function), used, "{name}");
        }
    }

    #[test]
    fn an_item_is_used_where_its_own_comment_has_an_example() {
        let mut corpus = Corpus::default();
        corpus.add_source(
            "//! ```\n//! module();\n//! ```\n\n/// A gauge.\n///\n/// ```\n/// read();\n/// ```\n#[derive(\n    Clone,\n)]\n\
             pub struct Gauge {\n    /// Its level.\n    pub level: u8,\n}\n\n/// Words.\npub trait Level {}\n",
        );
        for (path, used) in [("a::Gauge", true), ("a::Level", false), ("a::Clone", false)] {
            let shape = ItemShape::Name;
            assert_eq!(corpus.uses(&item(path, shape)), used, "{path}");
        }
        assert!(corpus.calls.contains("module") && corpus.calls.contains("read"));
    }
}
