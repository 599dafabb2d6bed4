//! `docs/requirements.md` against the tests: no row without a test that says it holds it, and no such test without a row.
//!
//! A test says so in the comment above it: `Holds: TOOL-18, TOOL-19`. A scenario of the official suite holds a row as
//! `suite: NAME`. The column of tests is written by `cargo xtask requirements --write`; the states are written by people.

mod holds;
mod table;

use crate::conformance;
use std::{collections::BTreeSet, fs};
use table::{Row, State, Table};

const FILE: &str = "docs/requirements.md";
/// The list of facts that the ids come from. It is no part of the project.
const LIST: &str = "../shared/requirements.md";

/// The groups, and how many rows each has.
const GROUPS: [(&str, usize); 29] = [
    ("TOOL", 50),
    ("BASE", 56),
    ("LIFE", 18),
    ("VER", 15),
    ("STDIO", 19),
    ("HTTPM", 43),
    ("HTTPL", 32),
    ("SSE1", 4),
    ("PAG", 8),
    ("CACHE", 14),
    ("CANC", 14),
    ("PROG", 8),
    ("MRTR", 16),
    ("SUB", 8),
    ("AUTH", 56),
    ("AUTH2", 6),
    ("SEC", 8),
    ("RES", 9),
    ("PROM", 5),
    ("COMP", 5),
    ("LOG", 6),
    ("ELIC", 17),
    ("SAMP", 6),
    ("ROOT", 4),
    ("TASK4", 12),
    ("XTASK", 15),
    ("XAUTH", 5),
    ("XAPPS", 2),
    ("XSKILL", 8),
];

/// Checks the table; `write` first puts what was found into its last column.
///
/// # Errors
/// All that is wrong, a line each.
pub(crate) fn check(write: bool) -> Result<(), String> {
    let text = fs::read_to_string(FILE).map_err(|error| format!("{FILE}: {error}"))?;
    let found = holds::all()?;
    let mut table = Table::read(&text)?;
    if write {
        table.fill(&found);
        fs::write(FILE, table.text()).map_err(|error| format!("{FILE}: {error}"))?;
    }
    let mut wrong = Vec::new();
    let ids: Vec<&str> = table.rows().map(|row| row.id.as_str()).collect();
    wrong.extend(missing(&ids));
    wrong.extend(table.rows().flat_map(|row| judge(row, &found)));
    for id in found.ids().filter(|id| !ids.contains(id)) {
        wrong.push(format!("a test holds {id}, which is no row of {FILE}"));
    }
    wrong.extend(unlisted(&ids));
    match wrong.is_empty() {
        true => {
            println!("requirements: {}", table.count());
            Ok(())
        }
        false => Err(format!(
            "{}\n  (the column of tests is written by: cargo xtask requirements --write)",
            wrong.join("\n  ")
        )),
    }
}

fn judge(row: &Row, found: &holds::Found) -> Vec<String> {
    let mut wrong = Vec::new();
    let holding = found.of(&row.id);
    let suites = row
        .tests
        .iter()
        .filter_map(|test| test.strip_prefix("suite: "));
    let suites: Vec<&str> = suites.collect();
    for suite in &suites {
        if !conformance::is_scenario(suite) {
            wrong.push(format!(
                "{}: {suite} is no scenario that is held to its bar",
                row.id
            ));
        }
    }
    match &row.state {
        State::Done if holding.is_empty() && suites.is_empty() => {
            wrong.push(format!("{}: done, but no test holds it", row.id));
        }
        State::Done => {}
        State::Open(_) | State::NotApplicable(_) if !holding.is_empty() => {
            wrong.push(format!("{}: not done, but {} holds it", row.id, holding[0]));
        }
        State::Open(_) | State::NotApplicable(_) => {}
    }
    let named: BTreeSet<&str> = row.tests.iter().map(String::as_str).collect();
    let named: BTreeSet<&str> = named
        .into_iter()
        .filter(|t| !t.starts_with("suite: "))
        .collect();
    let holding: BTreeSet<&str> = holding.iter().map(String::as_str).collect();
    for test in named.difference(&holding) {
        wrong.push(format!(
            "{}: {test} is no test that says it holds it",
            row.id
        ));
    }
    for test in holding.difference(&named) {
        wrong.push(format!("{}: the row does not name {test}", row.id));
    }
    wrong
}

/// Every id of every group has its row, once.
fn missing(ids: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (group, count) in GROUPS.into_iter().filter(|(group, _)| !group.is_empty()) {
        for number in 1..=count {
            let id = format!("{group}-{number:02}");
            match ids.iter().filter(|i| **i == id).count() {
                1 => {}
                0 => wrong.push(format!("{id} has no row")),
                n => wrong.push(format!("{id} has {n} rows")),
            }
        }
    }
    let known = |id: &&&str| {
        let Some((group, number)) = id.split_once('-') else {
            return false;
        };
        let count = GROUPS
            .iter()
            .find(|(g, _)| *g == group)
            .map(|(_, count)| *count);
        number
            .parse::<usize>()
            .is_ok_and(|n| count.is_some_and(|count| (1..=count).contains(&n)))
    };
    for id in ids.iter().filter(|id| !known(id)) {
        wrong.push(format!("{id} is in no group"));
    }
    wrong
}

/// The ids of the list that has no row, where the list is at hand.
fn unlisted(ids: &[&str]) -> Vec<String> {
    let Ok(list) = fs::read_to_string(LIST) else {
        println!("requirements: not compared with the list of facts, which is not here");
        return Vec::new();
    };
    let listed = list.lines().filter_map(|line| {
        let id = line.strip_prefix("| ")?.split(' ').next()?;
        holds::is_id(id).then(|| id.to_owned())
    });
    listed
        .filter(|id| !ids.contains(&id.as_str()))
        .map(|id| format!("{id} is in the list of facts and has no row"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# T\n\n| ID | Who | Rev | Fact | State | Held by |\n| --- | --- | --- | --- | --- | --- |\n| TOOL-01 | S | 1-5 | One. | done | a.rs::t |\n| TOOL-02 | S | 5 | Two. | open: tasks |  |\n| TOOL-03 | S | 5 | Three. | done | suite: ping |\n";

    fn found(pairs: &[(&str, &str)]) -> holds::Found {
        holds::Found::of_pairs(pairs)
    }

    fn judged(found: &holds::Found) -> Vec<String> {
        let table = Table::read(TEXT).unwrap();
        table.rows().flat_map(|row| judge(row, found)).collect()
    }

    #[test]
    fn a_table_that_says_what_the_tests_say_is_good() {
        assert_eq!(
            judged(&found(&[("TOOL-01", "a.rs::t")])),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_row_without_its_test_is_named() {
        let wrong = judged(&found(&[]));
        assert!(
            wrong
                .iter()
                .any(|w| w == "TOOL-01: done, but no test holds it"),
            "{wrong:?}"
        );
        let wrong = judged(&found(&[("TOOL-01", "b.rs::t")]));
        assert!(
            wrong.iter().any(|w| w.contains("a.rs::t is no test")),
            "{wrong:?}"
        );
        assert!(
            wrong.iter().any(|w| w.contains("does not name b.rs::t")),
            "{wrong:?}"
        );
    }

    #[test]
    fn an_open_row_that_a_test_holds_is_named() {
        let wrong = judged(&found(&[("TOOL-01", "a.rs::t"), ("TOOL-02", "a.rs::u")]));
        assert!(
            wrong[0].starts_with("TOOL-02: not done, but a.rs::u"),
            "{wrong:?}"
        );
    }

    #[test]
    fn ids_are_counted() {
        let wrong = missing(&["TOOL-01", "TOOL-01", "TOOL-51", "NO-01"]);
        for expected in [
            "TOOL-01 has 2 rows",
            "TOOL-02 has no row",
            "TOOL-51 is in no group",
            "NO-01 is in no group",
        ] {
            assert!(wrong.iter().any(|w| w == expected), "{expected}");
        }
    }

    #[test]
    fn the_column_is_filled_and_nothing_else_changes() {
        let mut table = Table::read(TEXT).unwrap();
        table.fill(&found(&[("TOOL-01", "x.rs::y"), ("TOOL-03", "x.rs::z")]));
        let expected = TEXT
            .replace("a.rs::t", "x.rs::y")
            .replace("suite: ping", "suite: ping, x.rs::z");
        assert_eq!(table.text(), expected);
    }
}
