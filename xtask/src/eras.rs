//! `cargo xtask eras`: code outside `toolgate-protocol` that depends on the era of a revision: stateless, or with a
//! handshake. Test code does not count.
//!
//! A difference between revisions is a field of the dialect table, named after the fact, for example
//! `dialect.cache_hints`. Only code that selects one of the two protocols for a connection or a message asks for the
//! era itself.

use std::fs;
use std::path::Path;

use crate::cycles::without_tests;
use crate::run::root;

/// Maximum number of questions for the era.
const MAX_QUESTIONS: usize = 10;

/// Crate that has the dialect tables.
const PROTOCOL_CRATE: &str = "toolgate-protocol";

/// Forms of the question: reads of an era, comparisons with one, and conditions on a variable that holds one.
const QUESTIONS: [&str; 16] = [
    ".stateless",
    ".is_stateless(",
    ".is_legacy(",
    ".is_modern(",
    "::stateless_revision(",
    "== EraPreference::",
    "!= EraPreference::",
    "== RequestEra::",
    "!= RequestEra::",
    "== dialect::MODERN",
    "== dialect::LEGACY",
    "if stateless",
    "match stateless",
    "!stateless",
    "if modern",
    "match modern",
];

/// Counts the questions in all crates.
///
/// # Errors
/// There are more than [`MAX_QUESTIONS`]. The text lists them.
pub(crate) fn check() -> Result<(), String> {
    let mut found = Vec::new();
    let folder = root().join("crates");
    for entry in fs::read_dir(&folder).map_err(|error| error.to_string())? {
        let entry = entry.map_err(|error| error.to_string())?;
        if entry.file_name() != PROTOCOL_CRATE {
            read_folder(&entry.path().join("src"), &mut found)?;
        }
    }
    found.sort();
    println!("{} questions, {MAX_QUESTIONS} allowed", found.len());
    match found.len() > MAX_QUESTIONS {
        true => Err(format!(
            "{} places ask for the era of a revision; name the fact in the dialect table instead:\n{}",
            found.len(),
            found.join("\n")
        )),
        false => Ok(()),
    }
}

fn read_folder(folder: &Path, found: &mut Vec<String>) -> Result<(), String> {
    if !folder.is_dir() {
        return Ok(());
    }
    let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if path.is_dir() {
            read_folder(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = without_tests(&fs::read_to_string(&path).map_err(wrong)?);
            let file = path.strip_prefix(root()).unwrap_or(&path);
            found.extend(questions(&text).map(|line| format!("{}: {line}", file.display())));
        }
    }
    Ok(())
}

/// Returns the lines with a question, once for each question in it.
fn questions(code: &str) -> impl Iterator<Item = &str> {
    code.lines().flat_map(|line| {
        let times = QUESTIONS.iter().map(|form| occurrences(line, form)).sum();
        std::iter::repeat_n(line.trim(), times)
    })
}

/// Returns how often a line has the form. A longer identifier that begins with it does not count.
fn occurrences(line: &str, form: &str) -> usize {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    let open = !form.ends_with(in_word);
    let ends = |rest: &str| open || !rest.starts_with(|c| in_word(c) || c == ':');
    line.match_indices(form)
        .filter(|(at, _)| ends(&line[at + form.len()..]))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_reads_comparisons_and_conditions() {
        let code = "if dialect.stateless && !other.stateless {}\nif peer.is_modern() {}\n\
                    let first = options.era == EraPreference::Session;\nif stateless {}\n";
        assert_eq!(questions(code).count(), 5);
    }

    #[test]
    fn leaves_out_facts_modules_and_longer_names() {
        let code = "if dialect.cache_hints {}\nstateless::listen(server);\nif stateless::is_method(m) {}\n\
                    self.stateless_requests.cancel();\nfn is_stateless(&self) -> bool {\n";
        assert_eq!(questions(code).count(), 0);
    }
}
