//! `cargo xtask words`: measures whether the names and doc comments of the crates can be searched for and read.
//!
//! Four figures, each with a limit: types that share their name, type names of a single word, numeric constants of a
//! single word, and doc comments that open with a question word. Only the `src` folders of `crates` count.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::run::root;

/// Folders that do not count.
const SKIPPED_FOLDERS: [&str; 4] = ["tests", "examples", "benches", "target"];
/// Names that nearly every crate has more than once, by convention.
const CONVENTIONAL_NAMES: [&str; 14] = [
    "Error",
    "Output",
    "Item",
    "Future",
    "Target",
    "Err",
    "Service",
    "Response",
    "Result",
    "Rejection",
    "Value",
    "Layer",
    "Body",
    "Data",
];
/// Types of the constants that count as numeric.
const NUMERIC_TYPES: [&str; 9] = [
    "Duration", "usize", "u16", "u32", "u64", "u128", "i64", "f32", "f64",
];
/// Words with which no doc comment should open.
const QUESTION_WORDS: [&str; 10] = [
    "What", "Who", "Whose", "Whom", "How", "Where", "Which", "Whether", "When", "Why",
];
/// Offenders that are named for each figure.
const MAX_NAMED_OFFENDERS: usize = 8;

/// The names and doc comments of a source tree.
#[derive(Default)]
struct Vocabulary {
    types: BTreeMap<String, usize>,
    constants: BTreeMap<String, usize>,
    doc_comments: usize,
    /// Doc comments that open with a question word, counted by folder.
    questions: BTreeMap<String, usize>,
}

/// One measured share, with the offenders that weigh most.
struct WordFigure {
    name: &'static str,
    limit_percent: f64,
    part: usize,
    whole: usize,
    offenders: BTreeMap<String, usize>,
}

/// Prints the four figures.
///
/// # Errors
/// A figure is above its limit, or a source file cannot be read.
pub(crate) fn check() -> Result<(), String> {
    let mut vocabulary = Vocabulary::default();
    read_folder(&root().join("crates"), false, &mut vocabulary)?;
    let figures = vocabulary.figures();
    for figure in &figures {
        println!("{}", figure.line());
    }
    let above: Vec<&str> = figures
        .iter()
        .filter(|figure| figure.percent() > figure.limit_percent)
        .map(|figure| figure.name)
        .collect();
    match above.as_slice() {
        [] => Ok(()),
        above => Err(format!(
            "above the limit: {}; see the style guide in CONTRIBUTING.md",
            above.join("; ")
        )),
    }
}

fn read_folder(folder: &Path, in_src: bool, into: &mut Vocabulary) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !SKIPPED_FOLDERS.contains(&name.as_ref()) {
                read_folder(&path, in_src || name == "src", into)?;
            }
        } else if in_src && name.ends_with(".rs") && name != "tests.rs" {
            let text = fs::read_to_string(&path).map_err(wrong)?;
            let place = folder.strip_prefix(root()).unwrap_or(folder);
            into.add(&text, &place.to_string_lossy());
        }
    }
    Ok(())
}

impl Vocabulary {
    fn add(&mut self, text: &str, folder: &str) {
        let mut in_doc_comment = false;
        for line in text.lines().map(str::trim) {
            let doc = line
                .strip_prefix("///")
                .or_else(|| line.strip_prefix("//!"));
            if let Some(words) = doc.map(str::trim)
                && !in_doc_comment
                && !words.is_empty()
                && !words.starts_with("```")
            {
                self.doc_comments += 1;
                if opens_with_question(words) {
                    *self.questions.entry(folder.to_owned()).or_default() += 1;
                }
            }
            in_doc_comment = doc.is_some();
            if let Some(name) = type_name(line)
                && !CONVENTIONAL_NAMES.contains(&name)
            {
                *self.types.entry(name.to_owned()).or_default() += 1;
            }
            if let Some(name) = numeric_constant(line) {
                *self.constants.entry(name.to_owned()).or_default() += 1;
            }
        }
    }

    fn figures(&self) -> [WordFigure; 4] {
        let (types, constants) = (total(&self.types), total(&self.constants));
        let capitals = |name: &str| name.chars().filter(char::is_ascii_uppercase).count();
        [
            WordFigure::of(
                "types that share their name with another type",
                20.0,
                types,
                filtered(&self.types, |_, count| count > 1),
            ),
            WordFigure::of(
                "type names of a single word",
                35.0,
                types,
                filtered(&self.types, |name, _| capitals(name) == 1),
            ),
            WordFigure::of(
                "numeric constants of a single word",
                20.0,
                constants,
                filtered(&self.constants, |name, _| !name.contains('_')),
            ),
            WordFigure::of(
                "doc comments that open with a question word",
                4.0,
                self.doc_comments,
                self.questions.clone(),
            ),
        ]
    }
}

impl WordFigure {
    fn of(
        name: &'static str,
        limit_percent: f64,
        whole: usize,
        offenders: BTreeMap<String, usize>,
    ) -> WordFigure {
        WordFigure {
            name,
            limit_percent,
            part: total(&offenders),
            whole,
            offenders,
        }
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "counts of names are far below 2^52"
    )]
    fn percent(&self) -> f64 {
        100.0 * self.part as f64 / self.whole.max(1) as f64
    }

    fn line(&self) -> String {
        let mut most: Vec<(&String, &usize)> = self.offenders.iter().collect();
        most.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let most = most.iter().take(MAX_NAMED_OFFENDERS);
        let most: Vec<String> = most.map(|(name, n)| format!("{name} x{n}")).collect();
        format!(
            "{:5.1} % (limit {})  {}: {} of {}\n        most: {}",
            self.percent(),
            self.limit_percent,
            self.name,
            self.part,
            self.whole,
            most.join(", ")
        )
    }
}

fn total(counts: &BTreeMap<String, usize>) -> usize {
    counts.values().sum()
}

fn filtered(
    counts: &BTreeMap<String, usize>,
    keep: impl Fn(&str, usize) -> bool,
) -> BTreeMap<String, usize> {
    let kept = counts.iter().filter(|(name, count)| keep(name, **count));
    kept.map(|(name, count)| (name.clone(), *count)).collect()
}

fn opens_with_question(words: &str) -> bool {
    let end = words.find(|c: char| !c.is_alphanumeric() && c != '_');
    QUESTION_WORDS.contains(&&words[..end.unwrap_or(words.len())])
}

/// Returns the name of the type that a trimmed line defines.
fn type_name(line: &str) -> Option<&str> {
    let line = without_visibility(line);
    let kinds = ["struct ", "enum ", "trait ", "type "];
    let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    let name = identifier(rest.trim_start());
    name.starts_with(|c: char| c.is_ascii_uppercase())
        .then_some(name)
}

/// Returns the name of the numeric constant that a line defines.
fn numeric_constant(line: &str) -> Option<&str> {
    let rest = &line[line.find("const ")? + "const ".len()..];
    let name = identifier(rest);
    let value = rest[name.len()..].strip_prefix(": ")?;
    let upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let is_constant = name.starts_with(|c: char| c.is_ascii_uppercase()) && name.chars().all(upper);
    let is_numeric = NUMERIC_TYPES.iter().any(|kind| value.starts_with(kind));
    (is_constant && is_numeric).then_some(name)
}

pub(crate) fn without_visibility(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("pub") else {
        return line;
    };
    let rest = match rest.strip_prefix('(') {
        Some(inner) => inner.split_once(')').map_or(rest, |(_, rest)| rest),
        None => rest,
    };
    rest.trim_start()
}

pub(crate) fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(text: &str) -> Vocabulary {
        let mut vocabulary = Vocabulary::default();
        vocabulary.add(text, "src");
        vocabulary
    }

    #[test]
    fn counts_types_with_any_visibility() {
        let found = vocabulary(
            "struct A;\npub(crate) enum Bc {}\n  pub trait De {}\ntype Fg = u8;\nfn type_of() {}\n",
        );
        let names: Vec<&String> = found.types.keys().collect();
        assert_eq!(names, ["A", "Bc", "De", "Fg"]);
    }

    #[test]
    fn counts_only_numeric_constants() {
        let found = vocabulary(
            "const MOST: usize = 1;\npub const MAX_BYTES: u64 = 2;\nconst NAME: &str = \"\";\n",
        );
        let names: Vec<&String> = found.constants.keys().collect();
        assert_eq!(names, ["MAX_BYTES", "MOST"]);
        assert_eq!(found.figures()[2].part, 1);
    }

    #[test]
    fn counts_the_first_line_of_each_doc_comment() {
        let found = vocabulary(
            "/// What it is.\n/// How it is.\nstruct A;\n/// A thing.\n/// Why.\nstruct B;\n/// Whatever.\n",
        );
        assert_eq!(found.doc_comments, 3);
        assert_eq!(total(&found.questions), 1);
    }

    #[test]
    fn a_figure_above_its_limit_is_found() {
        let found = vocabulary("struct One;\nstruct One;\nstruct TwoWords;\n");
        let [shared, single, ..] = found.figures();
        assert_eq!((shared.part, shared.whole), (2, 3));
        assert!(shared.percent() > shared.limit_percent);
        assert_eq!(single.part, 2);
    }
}
