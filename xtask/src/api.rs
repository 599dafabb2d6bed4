//! `cargo xtask api`: the public API of the library crates against the snapshots in `api/`.
//!
//! Rustdoc writes its JSON only with unstable options. They work on the stable compiler with `RUSTC_BOOTSTRAP`, in a
//! target directory of their own, because the variable makes build scripts of dependencies run again.

use std::fs;
use std::path::{Path, PathBuf};

use crate::report::Report;
use crate::run::{cargo, must, root, target};

/// Library crates whose public API users depend on.
const CRATES: [&str; 6] = [
    "toolgate",
    "toolgate-auth",
    "toolgate-core",
    "toolgate-journal",
    "toolgate-policy",
    "toolgate-protocol",
];

/// Version of rustdoc's JSON that the `public-api` dependency reads: that of Rust 1.95.
const FORMAT: &str = "\"format_version\":57";

/// Maximum number of lines of a difference that are printed.
const MAX_SHOWN_LINES: usize = 40;

/// Compares each crate with its snapshot, or writes the snapshots. A compiler whose JSON has another version is
/// reported as a skip.
pub(crate) fn check(report: &mut Report, write: bool) {
    let mut skips = Vec::new();
    for name in CRATES {
        report.step(&format!("API of {name}"), || match rustdoc_json(name)? {
            Some(json) => compare(name, &json, write),
            None => {
                skips.push(name);
                Ok(())
            }
        });
    }
    for name in skips {
        report.skip(&format!(
            "API of {name}: this compiler's rustdoc writes another version of JSON than Rust 1.95"
        ));
    }
}

/// Builds the JSON of a crate; `None` if its version is another.
fn rustdoc_json(name: &str) -> Result<Option<PathBuf>, String> {
    let folder = target().join("api");
    let mut doc = cargo();
    doc.args([
        "rustdoc",
        "--quiet",
        "--locked",
        "--lib",
        "-p",
        name,
        "--target-dir",
    ]);
    doc.arg(&folder);
    doc.args([
        "--",
        "-Z",
        "unstable-options",
        "--output-format",
        "json",
        "--cap-lints",
        "allow",
    ]);
    must(doc.env("RUSTC_BOOTSTRAP", "1").env_remove("RUSTDOCFLAGS"))?;
    let json = folder.join("doc").join(name.replace('-', "_") + ".json");
    let text = fs::read_to_string(&json).map_err(|error| format!("{}: {error}", json.display()))?;
    Ok(text.contains(FORMAT).then_some(json))
}

fn compare(name: &str, json: &Path, write: bool) -> Result<(), String> {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .map_err(|error| format!("the JSON of {name} cannot be read: {error}"))?;
    let (text, file) = (
        api.to_string(),
        root().join("api").join(format!("{name}.txt")),
    );
    if write {
        return fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()));
    }
    let snapshot = fs::read_to_string(&file).unwrap_or_default();
    match difference(&snapshot, &text) {
        lines if lines.is_empty() => Ok(()),
        lines => {
            lines
                .iter()
                .take(MAX_SHOWN_LINES)
                .for_each(|line| println!("{line}"));
            Err(format!(
                "{} lines differ from api/{name}.txt; if the change is meant, run `cargo xtask api --write` and add it to CHANGELOG.md",
                lines.len()
            ))
        }
    }
}

/// Returns the removed lines with a minus and the added ones with a plus.
fn difference(before: &str, after: &str) -> Vec<String> {
    let missing = |from: &str, other: &str, sign: char| -> Vec<String> {
        let other: std::collections::HashSet<&str> = other.lines().collect();
        let lost = from.lines().filter(|line| !other.contains(line));
        lost.map(|line| format!("{sign} {line}")).collect()
    };
    let mut lines = missing(before, after, '-');
    lines.extend(missing(after, before, '+'));
    lines
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn a_changed_signature_is_one_line_less_and_one_more() {
        let before = "pub fn a::b()\npub struct a::C\n";
        let after = "pub fn a::b(u8)\npub struct a::C\n";
        assert_eq!(
            difference(before, after),
            ["- pub fn a::b()", "+ pub fn a::b(u8)"]
        );
        assert!(difference(after, after).is_empty());
    }
}
