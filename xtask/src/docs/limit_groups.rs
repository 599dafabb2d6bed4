//! The page of the limits: it groups every limit of the config reference.

use std::fs;

use super::markdown::{code_spans, prose};
use crate::run::root;

/// The reference, which tests of the program compare with the code.
const REFERENCE: &str = "docs/config.md";
/// Heading of the limits in the reference.
const REFERENCE_HEADING: &str = "## `limits`";
const PAGE: &str = "docs/limits.md";
/// Heading of the groups in the page.
const PAGE_HEADING: &str = "## Which limit do you need?";

/// Checks that the page groups each limit once, and no other.
///
/// # Errors
/// Limits that the page lacks, has twice, or that do not exist.
pub(crate) fn check() -> Result<(), String> {
    let read = |path: &str| {
        fs::read_to_string(root().join(path))
            .map_err(|error| format!("cannot read {path}: {error}"))
    };
    let (reference, page) = (read(REFERENCE)?, read(PAGE)?);
    let wrong = differences(&reference, &page);
    match wrong.as_slice() {
        [] => Ok(()),
        wrong => Err(wrong.join("\n  ")),
    }
}

fn differences(reference: &str, page: &str) -> Vec<String> {
    let rows = table_rows(reference, REFERENCE_HEADING);
    let limits: Vec<&str> = rows
        .iter()
        .filter_map(|row| code_spans(row).next())
        .collect();
    let groups = table_rows(page, PAGE_HEADING);
    let mut grouped: Vec<&str> = groups.iter().flat_map(|row| code_spans(row)).collect();
    let mut wrong = Vec::new();
    for limit in limits {
        match grouped.iter().position(|name| *name == limit) {
            Some(at) => drop(grouped.swap_remove(at)),
            None => wrong.push(format!("{PAGE} groups no `{limit}`")),
        }
    }
    let surplus = grouped.iter();
    wrong.extend(surplus.map(|name| format!("{PAGE} has `{name}` twice, or it is no limit")));
    wrong
}

/// Returns the rows of the first table below a heading, without its head.
fn table_rows<'a>(text: &'a str, heading: &str) -> Vec<&'a str> {
    let lines = prose(text).into_iter().map(|(_, line)| line);
    let below = lines.skip_while(|line| *line != heading);
    let table = below.skip_while(|line| !line.starts_with('|'));
    table
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_limits_that_are_missing_or_surplus() {
        let reference = "## `limits`\n\n| key | of |\n|---|---|\n| `a` | `x` |\n| `b` | |\n| `c` | |\n\n| `d` | |\n";
        let page = "| `b` |\n\n## Which limit do you need?\n\n| you | `[limits]` |\n|---|---|\n| one | `a`, `c` |\n| two | `c`, `x` |\n";
        let expected = [
            "docs/limits.md groups no `b`",
            "docs/limits.md has `x` twice, or it is no limit",
            "docs/limits.md has `c` twice, or it is no limit",
        ];
        let mut found = differences(reference, page);
        found[1..].sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(found, expected);
        assert_eq!(
            differences(reference, &page.replace("`c`, `x`", "`b`")),
            [""; 0]
        );
    }
}
