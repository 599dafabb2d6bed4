//! Links between the pages: files and anchors exist, and the book has every page that its pages link to.

use std::collections::{BTreeMap, BTreeSet};

use super::markdown::{heading_anchors, link_targets, prose};
use super::pages::{self, DocPage};
use crate::run::root;

/// The table of contents of the book.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Checks the links of all pages, and the table of contents.
///
/// # Errors
/// Broken links, and pages that the table of contents lacks, one line each.
pub(crate) fn check() -> Result<(), String> {
    let pages = pages::all()?;
    let mut wrong = broken_links(&pages, |path| root().join(path).exists());
    wrong.extend(missing_chapters(&pages));
    match wrong.as_slice() {
        [] => Ok(()),
        wrong => Err(wrong.join("\n  ")),
    }
}

fn broken_links(pages: &[DocPage], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let anchors: BTreeMap<&str, BTreeSet<String>> = pages
        .iter()
        .map(|page| (page.path.as_str(), heading_anchors(&page.text)))
        .collect();
    let judge = |page: &DocPage, target: &str| {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = match file {
            "" => page.path.clone(),
            file => page.resolve(file),
        };
        if !exists(&path) {
            return Some(format!("{path} does not exist"));
        }
        let lacks = |known: &BTreeSet<String>| !anchor.is_empty() && !known.contains(anchor);
        let lacks = anchors.get(path.as_str()).is_some_and(lacks);
        lacks.then(|| format!("{path} has no heading #{anchor}"))
    };
    let mut broken = Vec::new();
    for page in pages {
        for (number, line) in prose(&page.text) {
            let own = link_targets(line).into_iter().filter(|t| is_own(t));
            let wrong = own.filter_map(|target| judge(page, target));
            broken.extend(wrong.map(|why| format!("{}:{number}: {why}", page.path)));
        }
    }
    broken
}

/// True for a link into the project. Links of API documentation name items, not files.
fn is_own(target: &str) -> bool {
    !target.is_empty()
        && !target.contains("://")
        && !target.contains("::")
        && !target.starts_with("mailto:")
}

fn missing_chapters(pages: &[DocPage]) -> Vec<String> {
    let Some(summary) = pages.iter().find(|page| page.path == SUMMARY) else {
        return vec![format!("{SUMMARY} does not exist")];
    };
    let lines = prose(&summary.text).into_iter();
    let chapters: BTreeSet<String> = lines
        .flat_map(|(_, line)| link_targets(line))
        .map(|target| summary.resolve(target))
        .collect();
    let own = pages.iter().map(|page| page.path.as_str());
    let own = own.filter(|path| path.starts_with("docs/") && *path != SUMMARY);
    own.filter(|path| !chapters.contains(*path))
        .map(|path| format!("{SUMMARY} lacks {path}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> DocPage {
        DocPage {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_link_needs_its_file_and_its_heading() {
        let pages = [
            page("docs/SUMMARY.md", "[A](a.md)\n"),
            page(
                "docs/a.md",
                "# Top\n[b](sub/b.md#two) [x](sub/c.md) [y](#top) [z](#none) [w](https://example.com/d)\n",
            ),
            page(
                "docs/sub/b.md",
                "# One\n[a](../a.md#top) [r](../../README.md)\n",
            ),
        ];
        let paths = ["docs/a.md", "docs/sub/b.md", "README.md"];
        let broken = broken_links(&pages, |path| paths.contains(&path));
        let expected = [
            "docs/a.md:2: docs/sub/b.md has no heading #two",
            "docs/a.md:2: docs/sub/c.md does not exist",
            "docs/a.md:2: docs/a.md has no heading #none",
        ];
        // The table of contents links to a page that exists.
        assert_eq!(broken, expected);
        assert_eq!(
            missing_chapters(&pages),
            ["docs/SUMMARY.md lacks docs/sub/b.md"]
        );
    }
}
