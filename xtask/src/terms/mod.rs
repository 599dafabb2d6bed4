//! `cargo xtask terms`: the terms by which the code must be found, and the items that implement them.
//!
//! A term leads to an item if the item's name or the first line of its doc comment contains it. The table of terms,
//! items and files is a page of the book.

mod index;
mod list;

use crate::run::root;
use index::{SourceIndex, SourceItem};
use list::TERMS;
use std::{fmt::Write as _, fs};

/// Page with the table.
const PAGE: &str = "docs/developers/search-terms.md";

/// Text of the page above the table.
const HEADING: &str = "# Search terms

Terms of the field, and the items of the code that implement them. A case-insensitive search for a term in the names and
the first doc lines under `crates/*/src` leads to each of its items; spaces, `-` and `_` count as equal. The column
\"found in\" tells whether the name or the first doc line contains the term.

`cargo xtask terms --write` generates this page, and `cargo xtask check` fails if a term no longer leads to its items.

| term | item | file | found in |
| --- | --- | --- | --- |
";

/// Compares the page with the sources; `write` writes it instead.
///
/// # Errors
/// A term leads to no item, or the page differs from the generated one.
pub(crate) fn check(write: bool) -> Result<(), String> {
    let index = SourceIndex::read(&root().join("crates"))?;
    let page = page(&index, TERMS)?;
    let path = root().join(PAGE);
    let wrong = |error: std::io::Error| format!("{PAGE}: {error}");
    if write {
        fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(wrong)?;
        return fs::write(&path, page).map_err(wrong);
    }
    let stored = fs::read_to_string(&path).map_err(wrong)?;
    if stored != page {
        return Err(format!(
            "{PAGE} differs from the sources; run `cargo xtask terms --write`"
        ));
    }
    println!("{} terms lead to their items", TERMS.len());
    Ok(())
}

/// Generates the page for the terms, each with the items that implement it.
fn page(index: &SourceIndex, terms: &[(&str, &[&str])]) -> Result<String, String> {
    let mut page = HEADING.to_owned();
    let mut faults = Vec::new();
    for (term, items) in terms {
        if items.is_empty() {
            faults.push(format!("{term}: no item is named"));
        }
        for item in *items {
            match index.find(item).and_then(|item| row(term, item)) {
                Ok(row) => page.push_str(&row),
                Err(fault) => faults.push(format!("{term}: {fault}")),
            }
        }
    }
    if faults.is_empty() {
        Ok(page)
    } else {
        Err(faults.join("\n"))
    }
}

/// Returns the table row of an item.
///
/// # Errors
/// Neither its name nor its first doc line contains the term.
fn row(term: &str, item: &SourceItem) -> Result<String, String> {
    let found_in = match item.contains(term) {
        Some(part) => part,
        None => {
            return Err(format!(
                "neither the name nor the first doc line of {} in {} contains it",
                item.name, item.file
            ));
        }
    };
    let mut row = String::new();
    let (kind, name, file) = (item.kind, &item.name, &item.file);
    writeln!(row, "| {term} | {kind} `{name}` | `{file}` | {found_in} |")
        .map_err(|error| error.to_string())?;
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(text: &str) -> SourceIndex {
        let mut index = SourceIndex::default();
        index.add("crates/a/src/limits.rs", text);
        index
    }

    #[test]
    fn writes_a_row_for_each_item_of_a_term() {
        let index =
            index("struct TokenBucket;\n/// Counts the tokens of a token bucket.\nfn take() {}\n");
        let page = page(&index, &[("token bucket", &["TokenBucket", "take"])]).unwrap();
        let rows: Vec<&str> = page
            .lines()
            .skip_while(|line| !line.contains("---"))
            .collect();
        assert_eq!(
            rows[1..],
            [
                "| token bucket | struct `TokenBucket` | `crates/a/src/limits.rs` | name |",
                "| token bucket | function `take` | `crates/a/src/limits.rs` | first doc line |",
            ]
        );
    }

    #[test]
    fn rejects_an_item_that_does_not_contain_its_term() {
        let index = index("/// Counter of calls.\n///\n/// A token bucket.\nstruct Counter;\n");
        let error = page(&index, &[("token bucket", &["Counter"])]).unwrap_err();
        assert!(error.contains("neither the name nor the first doc line of Counter"));
    }

    #[test]
    fn rejects_a_term_without_an_existing_item() {
        let index = index("struct Counter;\n");
        let error = page(&index, &[("backoff", &["Backoff"]), ("batch", &[])]).unwrap_err();
        assert_eq!(error.lines().count(), 2);
    }
}
