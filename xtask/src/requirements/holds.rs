//! The tests that say what they hold.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

const MARK: &str = "Holds: ";
/// Where conversations are kept as text, each a test of its own: a comment in them says what they hold.
const TALKS: &str = "transcripts";
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
/// A file cannot be read, or a comment stands above something that is no test.
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
        let name = file.display().to_string();
        match file.extension().is_some_and(|e| e == "rs") {
            true => read(&name, &text, &mut found)?,
            false => talk(&name, &text, &mut found)?,
        }
    }
    Ok(found)
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let list = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in list.flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "rs") || folder.ends_with(TALKS) {
            files.push(path);
        }
    }
    Ok(())
}

fn read(file: &str, text: &str, found: &mut Found) -> Result<(), String> {
    let mut held: Vec<String> = Vec::new();
    let (mut listing, mut tested) = (false, false);
    for (at, line) in text.lines().enumerate() {
        let (place, line) = (format!("{file}:{}", at + 1), line.trim());
        if let Some(comment) = line.strip_prefix("//") {
            let comment = comment.trim_start_matches(['/', '!']).trim();
            let ids = match comment.strip_prefix(MARK) {
                Some(list) => {
                    named(list).ok_or(format!("{place}: what it holds is no list of ids"))?
                }
                // A long list goes on in the next line.
                None if listing => named(comment).unwrap_or_default(),
                None => Vec::new(),
            };
            listing = !ids.is_empty();
            held.extend(ids);
            continue;
        }
        listing = false;
        tested |= is_test(line);
        let Some(name) = function(line) else { continue };
        match (held.first(), tested) {
            (Some(id), false) => return Err(format!("{place}: {name} holds {id} and is no test")),
            _ => found.add(std::mem::take(&mut held), &format!("{file}::{name}")),
        }
        tested = false;
    }
    match held.first() {
        Some(id) => Err(format!("{file}: {id} is held by no function")),
        None => Ok(()),
    }
}

/// A conversation that is played: the whole file is one test.
fn talk(file: &str, text: &str, found: &mut Found) -> Result<(), String> {
    let marks = text
        .lines()
        .filter_map(|line| line.strip_prefix("# ")?.strip_prefix(MARK));
    for list in marks {
        // Words may follow.
        let list = list.split_once(". ").map_or(list, |(ids, _)| ids);
        let ids = named(list).ok_or(format!("{file}: what it holds is no list of ids"))?;
        found.add(ids, file);
    }
    Ok(())
}

/// The ids of a list; nothing where it is none.
fn named(list: &str) -> Option<Vec<String>> {
    let ids = list.split(',').map(|id| id.trim().trim_end_matches('.'));
    let ids: Vec<String> = ids.filter(|id| !id.is_empty()).map(str::to_owned).collect();
    (!ids.is_empty() && ids.iter().all(|id| is_id(id))).then_some(ids)
}

/// An attribute or a macro that makes a test of what follows.
fn is_test(line: &str) -> bool {
    let attribute = line.strip_prefix("#[").unwrap_or_default();
    attribute.starts_with("test]") || attribute.contains("::test") || line == "proptest! {"
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
            "/// Holds: something\n#[test]\nfn a() {}\n",
            "/// Holds: TOOL-01\n",
            "/// Holds: TOOL-1\n#[test]\nfn a() {}\n",
            "/// Holds: TOOL-01\nfn a() {}\n",
            "#[test]\nfn a() {}\n/// Holds: TOOL-01\nfn b() {}\n",
        ] {
            assert!(read("a.rs", bad, &mut Found::default()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_transcript_is_one_test() {
        let mut found = Found::default();
        talk(
            "a.txt",
            "# Holds: BASE-12. It is so.\n> {}\n# Holds: LOG-04, LOG-01\n",
            &mut found,
        )
        .unwrap();
        for id in ["BASE-12", "LOG-01", "LOG-04"] {
            assert_eq!(found.of(id), ["a.txt"]);
        }
        assert!(talk("a.txt", "# Holds: all\n", &mut found).is_err());
    }
}
