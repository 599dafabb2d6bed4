//! Index of the items of the crates: kind, name, file and first doc line.

use crate::run::root;
use crate::words::{identifier, without_visibility};
use std::{fs, path::Path};

/// Keywords that begin an item, and the kinds that they are shown as.
const KINDS: [(&str, &str); 8] = [
    ("struct ", "struct"),
    ("enum ", "enum"),
    ("trait ", "trait"),
    ("type ", "type"),
    ("fn ", "function"),
    ("const ", "constant"),
    ("static ", "static"),
    ("union ", "union"),
];
/// Qualifiers before the keyword `fn`.
const FUNCTION_QUALIFIERS: [&str; 3] = ["const ", "async ", "unsafe "];

/// Item of a source file.
#[derive(Debug)]
pub(super) struct SourceItem {
    pub(super) kind: &'static str,
    pub(super) name: String,
    /// Path from the root of the project.
    pub(super) file: String,
    first_doc_line: String,
}

/// Index of all items outside tests.
#[derive(Default)]
pub(super) struct SourceIndex(Vec<SourceItem>);

impl SourceIndex {
    /// Reads the `src` folders below a folder.
    pub(super) fn read(folder: &Path) -> Result<SourceIndex, String> {
        let mut index = SourceIndex::default();
        index.read_folder(folder, false)?;
        Ok(index)
    }

    fn read_folder(&mut self, folder: &Path, in_src: bool) -> Result<(), String> {
        let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(folder).map_err(wrong)? {
            let path = entry.map_err(wrong)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                if !matches!(&*name, "tests" | "examples" | "benches" | "target") {
                    self.read_folder(&path, in_src || name == "src")?;
                }
            } else if in_src && name.ends_with(".rs") && name != "tests.rs" {
                let text = fs::read_to_string(&path).map_err(wrong)?;
                let file = path.strip_prefix(root()).unwrap_or(&path);
                self.add(&file.to_string_lossy(), &text);
            }
        }
        Ok(())
    }

    /// Adds the module of a file and its items, up to its unit tests.
    pub(super) fn add(&mut self, file: &str, text: &str) {
        let module_doc = text.lines().find_map(|line| line.strip_prefix("//!"));
        self.push(
            "module",
            module_name(file),
            file,
            module_doc.unwrap_or_default(),
        );
        let mut doc = None;
        let mut in_attribute = false;
        for line in text.lines().map(str::trim) {
            if line == "mod tests {" {
                break;
            }
            if let Some(text) = line.strip_prefix("///") {
                doc.get_or_insert(text);
            } else if in_attribute || line.starts_with("#[") {
                in_attribute = !line.ends_with(']');
            } else if !line.starts_with("//") {
                if let Some((kind, name)) = definition(line) {
                    self.push(kind, name, file, doc.unwrap_or_default());
                }
                doc = None;
            }
        }
    }

    fn push(&mut self, kind: &'static str, name: &str, file: &str, doc: &str) {
        self.0.push(SourceItem {
            kind,
            name: name.to_owned(),
            file: file.to_owned(),
            first_doc_line: doc.trim().to_owned(),
        });
    }

    /// Returns the item of a name, or of `NAME@END` the one in the file whose path has that end.
    ///
    /// # Errors
    /// No item or more than one has the name.
    pub(super) fn find(&self, wanted: &str) -> Result<&SourceItem, String> {
        let (name, end) = wanted.split_once('@').unwrap_or((wanted, ""));
        let mut found = self
            .0
            .iter()
            .filter(|item| item.name == name && item.file.ends_with(end));
        let item = found.next().ok_or(format!("{wanted} does not exist"))?;
        match found.next() {
            Some(other) => Err(format!(
                "{wanted} is ambiguous: it is in {} and in {}",
                item.file, other.file
            )),
            None => Ok(item),
        }
    }
}

impl SourceItem {
    /// Returns the part that contains a term: "name" or "first doc line".
    pub(super) fn contains(&self, term: &str) -> Option<&'static str> {
        let term = searchable(term);
        if searchable(&split_at_capitals(&self.name)).contains(&term) {
            Some("name")
        } else {
            let doc = searchable(&self.first_doc_line);
            doc.contains(&term).then_some("first doc line")
        }
    }
}

/// Returns a text in lower case, with one space before each word and no other separators. A term in this form is found
/// only at the beginning of a word.
fn searchable(text: &str) -> String {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words
        .flat_map(|word| [" ".to_owned(), word.to_lowercase()])
        .collect()
}

/// Inserts a space before each capital that follows a lower-case letter or a digit.
fn split_at_capitals(name: &str) -> String {
    let mut split = String::new();
    for c in name.chars() {
        let after_small = split.ends_with(|last: char| last.is_lowercase() || last.is_numeric());
        if after_small && c.is_uppercase() {
            split.push(' ');
        }
        split.push(c);
    }
    split
}

/// Returns the name of the module of a file.
fn module_name(file: &str) -> &str {
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    stem.rsplit('/').next().unwrap_or(stem)
}

/// Returns the kind and name of the item that a trimmed line begins.
fn definition(line: &str) -> Option<(&'static str, &str)> {
    let item = without_visibility(line);
    let mut unqualified = item;
    while let Some(rest) = FUNCTION_QUALIFIERS
        .iter()
        .find_map(|qualifier| unqualified.strip_prefix(qualifier))
    {
        unqualified = rest;
    }
    // The keyword of a constant is also a qualifier of functions.
    let item = if unqualified.starts_with("fn ") {
        unqualified
    } else {
        item
    };
    KINDS.iter().find_map(|(keyword, kind)| {
        let name = identifier(item.strip_prefix(keyword)?);
        (!name.is_empty() && name != "_").then_some((*kind, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str) -> Vec<(&'static str, String)> {
        let mut index = SourceIndex::default();
        index.add("crates/a/src/limits/mod.rs", text);
        index.0.into_iter().map(|i| (i.kind, i.name)).collect()
    }

    fn item(line: &str) -> SourceItem {
        let mut index = SourceIndex::default();
        index.add("crates/a/src/b.rs", line);
        index.0.pop().unwrap()
    }

    #[test]
    fn finds_items_of_every_kind_up_to_the_unit_tests() {
        let found = items(
            "pub(crate) async fn a() {}\npub const fn b() {}\nconst C: u8 = 1;\n  pub enum D {}\nmod tests {\nfn e() {}\n",
        );
        let names: Vec<&str> = found.iter().map(|(_, name)| &**name).collect();
        assert_eq!(names, ["limits", "a", "b", "C", "D"]);
        assert_eq!(found[2].0, "function");
    }

    #[test]
    fn keeps_the_first_doc_line_over_attributes() {
        let item = item("/// Rate limiter.\n/// More.\n#[allow(\n    dead_code,\n)]\nstruct A;\n");
        assert_eq!(item.first_doc_line, "Rate limiter.");
    }

    #[test]
    fn ignores_the_doc_of_the_item_before() {
        let found = item("/// Rate limiter.\nstruct A;\nstruct B;\n");
        assert_eq!(found.first_doc_line, "");
    }

    #[test]
    fn finds_a_term_in_any_spelling_of_a_name() {
        assert_eq!(
            item("struct SingleFlightCache;").contains("single-flight"),
            Some("name")
        );
        assert_eq!(
            item("const MAX_STEP_UPS: u8 = 1;").contains("step-up"),
            Some("name")
        );
        assert_eq!(item("struct Bm25Index;").contains("BM25"), Some("name"));
    }

    #[test]
    fn finds_a_term_only_at_the_beginning_of_a_word() {
        assert_eq!(
            item("/// Sends a telescope.\nfn a() {}").contains("scope"),
            None
        );
        assert_eq!(
            item("/// Required scopes.\nfn a() {}").contains("scope"),
            Some("first doc line")
        );
    }

    #[test]
    fn an_ambiguous_name_needs_the_end_of_its_path() {
        let mut index = SourceIndex::default();
        index.add("crates/a/src/one.rs", "fn evict() {}");
        index.add("crates/a/src/two.rs", "fn evict() {}");
        assert!(index.find("evict").unwrap_err().contains("ambiguous"));
        assert_eq!(
            index.find("evict@two.rs").unwrap().file,
            "crates/a/src/two.rs"
        );
        assert!(index.find("evict@three.rs").is_err());
    }
}
