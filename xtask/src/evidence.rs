//! docs/security.md against the sources: every test that it names exists, where its command looks for it.

use std::{
    fs,
    path::{Path, PathBuf},
};

const FILE: &str = "docs/security.md";
/// The rows that have to be there, with a test or said to be open.
const ROWS: &str = "T05 T06 T07 T08 T09 T10 T11 T12 T13 T22 T23 T24 T25 T26 T27 T29 T30 T31 T32 T33 T34 T35 T36 T37 T38 T39 T40 T41 T43 \
                    T44 T45 T46 T47 T48 T50 T51 T52 T53 T54 T58 T60 T61 T62 T63 T66 T67 T70 T76 T78 T79";

/// One row of the table.
struct Row {
    id: String,
    /// Names of test functions.
    tests: Vec<String>,
    command: String,
    open: bool,
}

/// Every row is there, and what it names as well.
///
/// # Errors
/// What is missing, one line each.
pub(crate) fn check() -> Result<(), String> {
    let text = fs::read_to_string(FILE).map_err(|error| format!("{FILE}: {error}"))?;
    let rows: Vec<Row> = text.lines().filter_map(row).collect();
    let mut files = Vec::new();
    sources(Path::new("crates"), &mut files)?;
    let mut wrong: Vec<String> = ROWS
        .split_whitespace()
        .filter(|id| !rows.iter().any(|row| row.id == **id))
        .map(|id| format!("{FILE} has no row {id}"))
        .collect();
    wrong.extend(rows.iter().flat_map(|row| judge(row, &files)));
    if !wrong.is_empty() {
        return Err(wrong.join("\n  "));
    }
    let open: Vec<&str> = rows
        .iter()
        .filter(|row| row.open)
        .map(|row| row.id.as_str())
        .collect();
    println!("security: {} rows, open: {}", rows.len(), open.join(" "));
    Ok(())
}

fn row(line: &str) -> Option<Row> {
    let cells = line.strip_prefix("| T")?.split('|').map(str::trim);
    let cells: Vec<&str> = cells.collect();
    let [id, _, tests, command, _, ""] = cells.as_slice() else {
        return None;
    };
    let ticked = tests.split('`').skip(1).step_by(2);
    Some(Row {
        id: format!("T{id}"),
        tests: ticked.map(str::to_owned).collect(),
        command: command.trim_matches('`').to_owned(),
        open: *tests == "open",
    })
}

fn judge(row: &Row, files: &[(PathBuf, String)]) -> Vec<String> {
    let id = &row.id;
    if row.open {
        return Vec::new();
    }
    if row.tests.is_empty() {
        return vec![format!("{id} names no test and is not open")];
    }
    let words: Vec<&str> = row.command.split_whitespace().collect();
    let after = words.windows(2).filter(|pair| pair[0] == "-p");
    let packages: Vec<&str> = after.map(|pair| pair[1]).collect();
    if packages.is_empty() {
        return vec![format!("{id}: its command has no -p")];
    }
    let homes: Vec<PathBuf> = packages
        .iter()
        .map(|package| Path::new("crates").join(package))
        .collect();
    let missing = row.tests.iter().filter(|test| {
        let head = format!("fn {test}(");
        !files.iter().any(|(file, text)| {
            homes.iter().any(|home| file.starts_with(home)) && text.contains(&head)
        })
    });
    missing
        .map(|test| format!("{id}: {} has no test {test}", packages.join(", ")))
        .collect()
}

fn sources(folder: &Path, files: &mut Vec<(PathBuf, String)>) -> Result<(), String> {
    let wrong = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(wrong)?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).map_err(wrong)?;
            files.push((path, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_held_to_what_it_names() {
        let files = [(
            PathBuf::from("crates/a/src/lib.rs"),
            "fn t1() {}".to_owned(),
        )];
        let said = |line: &str| judge(&row(line).unwrap(), &files);
        assert!(said("| T1 | x | `t1` | `cargo test -p a t1` | 7 |").is_empty());
        assert!(said("| T1 | x | `t1` | `cargo test -p b -p a t1` | 7 |").is_empty());
        assert!(said("| T1 | x | open | | |").is_empty());
        assert_eq!(
            said("| T1 | x | `t2` | `cargo test -p a t2` | 7 |").len(),
            1
        );
        assert_eq!(
            said("| T1 | x | `t1` | `cargo test -p b t1` | 7 |").len(),
            1
        );
        assert_eq!(
            said("| T1 | x | none | `cargo test -p a t1` | 7 |").len(),
            1
        );
        assert!(row("| id | proves | test | command | figure |").is_none());
    }
}
