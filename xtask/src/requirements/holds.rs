//! The tests that say what they hold.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

const MARK: &str = "Holds: ";
/// Where tests are.
const ROOTS: [&str; 3] = ["crates", "conformance", "xtask"];

/// The tests by the ids that they hold.
#[derive(Default)]
pub(crate) struct Found(BTreeMap<String, Vec<String>>);

impl Found {
    /// The tests of an id.
    pub(crate) fn of(&self, id: &str) -> &[String] {
        self.0.get(id).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    #[cfg(test)]
    pub(crate) fn of_pairs(pairs: &[(&str, &str)]) -> Found {
        let mut found = Found::default();
        for (id, test) in pairs {
            found
                .0
                .entry((*id).to_owned())
                .or_default()
                .push((*test).to_owned());
        }
        found
    }

    fn add(&mut self, ids: Vec<String>, test: &str) {
        for id in ids {
            self.0.entry(id).or_default().push(test.to_owned());
        }
    }
}

/// All tests of the project.
///
/// # Errors
/// A file cannot be read, or a comment stands above no test.
pub(crate) fn all() -> Result<Found, String> {
    let (mut found, mut files) = (Found::default(), Vec::new());
    for root in ROOTS {
        sources(Path::new(root), &mut files)?;
    }
    files.sort();
    // This file and its neighbours speak of the mark and hold nothing.
    files.retain(|file| !file.starts_with("xtask/src/requirements"));
    for file in files {
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        read(&file.display().to_string(), &text, &mut found)?;
    }
    Ok(found)
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let list = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in list.flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn read(file: &str, text: &str, found: &mut Found) -> Result<(), String> {
    let mut held: Vec<String> = Vec::new();
    let mut listing = false;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix("//") {
            let comment = comment.trim_start_matches(['/', '!']).trim();
            let list = match comment.strip_prefix(MARK) {
                Some(list) => Some(list),
                None => listing.then_some(comment),
            };
            let ids: Vec<String> = list
                .iter()
                .flat_map(|list| list.split(','))
                .map(|id| id.trim().trim_end_matches('.').to_owned())
                .filter(|id| !id.is_empty())
                .collect();
            // A long list goes on in the next line.
            listing = !ids.is_empty() && ids.iter().all(|id| is_id(id));
            if listing {
                held.extend(ids);
            } else if comment.starts_with(MARK) {
                return Err(format!(
                    "{file}:{}: what it holds is no list of ids",
                    at + 1
                ));
            }
            continue;
        }
        listing = false;
        if let Some(name) = function(line).filter(|_| !held.is_empty()) {
            found.add(std::mem::take(&mut held), &format!("{file}::{name}"));
        }
    }
    match held.first() {
        Some(id) => Err(format!("{file}: {id} is held by no function")),
        None => Ok(()),
    }
}

/// The name of the function that begins on this line.
fn function(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let plain = before
        .split_whitespace()
        .all(|word| matches!(word, "async" | "pub" | "pub(crate)" | "const"));
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    plain.then(|| &rest[..end])
}

/// `GROUP-NN`.
pub(crate) fn is_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(group, number)| {
        !group.is_empty()
            && group
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
            && number.len() == 2
            && number.bytes().all(|b| b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_belongs_to_the_test_below_it() {
        let text = "/// Words.\n///\n/// Holds: TOOL-01, TOOL-02,\n/// BASE-03\n#[tokio::test]\nasync fn it_is_so() {}\n// Holds: SSE1-01\n#[test]\nfn other() {}\nfn third() {}\n";
        let mut found = Found::default();
        read("a.rs", text, &mut found).unwrap();
        for (id, test) in [
            ("TOOL-02", "a.rs::it_is_so"),
            ("BASE-03", "a.rs::it_is_so"),
            ("SSE1-01", "a.rs::other"),
        ] {
            assert_eq!(found.of(id), [test]);
        }
    }

    #[test]
    fn a_comment_that_holds_nothing_is_an_error() {
        for bad in [
            "/// Holds: something\nfn a() {}\n",
            "/// Holds: TOOL-01\n",
            "/// Holds: TOOL-1\nfn a() {}\n",
        ] {
            assert!(read("a.rs", bad, &mut Found::default()).is_err(), "{bad}");
        }
    }
}
