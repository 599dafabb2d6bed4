//! The book: mdBook builds it from `docs`, and its links work.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::markdown::{link_targets, prose};
use super::pages::DocPage;
use crate::run::{cargo, command, must, output, root, target};

/// The version of mdBook, which `cargo xtask docs` installs.
const MDBOOK_VERSION: &str = "0.5.4";
/// The key of `book.toml` with the address under which the files outside of the book are.
const REPOSITORY_KEY: &str = "git-repository-url = ";

/// Builds the book into `target/book` and checks the links of its pages.
///
/// # Errors
/// mdBook cannot be installed, or the book has a broken link.
pub(crate) fn build() -> Result<(), String> {
    let mdbook = install()?;
    let source = target().join("book-source");
    let settings = read(&root().join("book.toml"))?;
    let repository = settings
        .lines()
        .find_map(|line| line.strip_prefix(REPOSITORY_KEY))
        .ok_or("book.toml has no git-repository-url")?;
    clear(&source)?;
    copy(
        &root().join("docs"),
        &source.join("docs"),
        repository.trim_matches('"'),
    )?;
    fs::write(source.join("book.toml"), &settings).map_err(|error| error.to_string())?;
    let book = target().join("book");
    must(
        command(mdbook)
            .arg("build")
            .arg(&source)
            .arg("--dest-dir")
            .arg(&book),
    )?;
    let pages = check_html(&book)?;
    println!("{} pages in {}", pages, book.display());
    Ok(())
}

fn install() -> Result<PathBuf, String> {
    let folder = target().join("tools");
    let mdbook = folder.join("bin/mdbook");
    let expected = format!("mdbook v{MDBOOK_VERSION}");
    let is_current = |found: String| found.trim() == expected;
    if mdbook.is_file() && output(command(&mdbook).arg("--version")).is_ok_and(is_current) {
        return Ok(mdbook);
    }
    let mut install = cargo();
    install.args(["install", "mdbook", "--locked", "--version", MDBOOK_VERSION]);
    // Of its features only the search: the book needs neither a web server nor a file watcher.
    install.args([
        "--no-default-features",
        "--features",
        "search",
        "--force",
        "--root",
    ]);
    must(install.arg(&folder))?;
    Ok(mdbook)
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
}

fn clear(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", folder.display()))
        }
        _ => fs::create_dir_all(folder)
            .map_err(|error| format!("cannot create {}: {error}", folder.display())),
    }
}

/// Copies the pages. The book has no file outside of `docs`, so links to these get the address of the repository.
fn copy(from: &Path, to: &Path, repository: &str) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("cannot copy {}: {error}", from.display());
    fs::create_dir_all(to).map_err(wrong)?;
    for entry in fs::read_dir(from).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let copied = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &copied, repository)?;
        } else if path.extension().is_some_and(|end| end == "md") {
            let relative = path.strip_prefix(root()).unwrap_or(&path);
            let page = DocPage {
                path: relative.to_string_lossy().into_owned(),
                text: read(&path)?,
            };
            fs::write(&copied, with_repository_links(&page, repository)).map_err(wrong)?;
        } else {
            fs::copy(&path, &copied).map_err(wrong)?;
        }
    }
    Ok(())
}

fn with_repository_links(page: &DocPage, repository: &str) -> String {
    let mut text = page.text.clone();
    for (_, line) in prose(&page.text) {
        for link in link_targets(line) {
            let path = page.resolve(link);
            if link.starts_with("../") && !path.starts_with("docs/") {
                let moved = format!("]({repository}/blob/main/{path})");
                text = text.replace(&format!("]({link})"), &moved);
            }
        }
    }
    text
}

/// Checks each link and its anchor in the pages of the book, and returns the number of pages.
fn check_html(book: &Path) -> Result<usize, String> {
    let mut pages = BTreeMap::new();
    read_html(book, &mut pages)?;
    let ids: BTreeMap<&PathBuf, BTreeSet<&str>> = pages
        .iter()
        .map(|(path, text)| (path, attributes(text, " id=\"").collect()))
        .collect();
    let mut broken = Vec::new();
    for (path, text) in &pages {
        let folder = path.parent().unwrap_or(book);
        let links = attributes(text, " href=\"").chain(attributes(text, " src=\""));
        for link in links.filter(|link| !link.contains(':') && !link.is_empty()) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let found = match file {
                "" => path.clone(),
                file => normalized(&folder.join(file)),
            };
            let lacks = |ids: &BTreeSet<&str>| !anchor.is_empty() && !ids.contains(anchor);
            if !found.exists() || ids.get(&found).is_some_and(lacks) {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    broken.sort();
    broken.dedup();
    match broken.as_slice() {
        [] => Ok(pages.len()),
        broken => Err(format!("broken links in the book: {}", broken.join("\n  "))),
    }
}

fn read_html(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            read_html(&path, pages)?;
        } else if name.ends_with(".html") && name != "404.html" {
            let text = read(&path)?;
            pages.insert(path, text);
        }
    }
    Ok(())
}

fn attributes<'a>(text: &'a str, head: &'a str) -> impl Iterator<Item = &'a str> {
    let values = text.split(head).skip(1);
    values.filter_map(|rest| Some(rest.split_once('"')?.0))
}

fn normalized(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_out_of_the_book_get_the_address_of_the_repository() {
        let page = DocPage {
            path: "docs/guides/a.md".to_owned(),
            text: "[b](../b.md) [c](../../README.md#top) [d](d.md)".to_owned(),
        };
        let text = with_repository_links(&page, "https://example.com/r");
        let expected = "[b](../b.md) [c](https://example.com/r/blob/main/README.md#top) [d](d.md)";
        assert_eq!(text, expected);
    }
}
