//! The tables of the config reference: written from the JSON Schema of the config.
//!
//! The page decides where the table of a section is and in which order its rows are; a section may have several tables.
//! The schema decides everything else. A new setting comes last in the last table of its section.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::config_schema::{self, ConfigSections, SettingRow};
use super::markdown::code_spans;
use crate::run::root;

const PAGE: &str = "docs/config.md";
/// The schema, which a test compares with that of the program.
const SCHEMA: &str = "docs/reference/toolgate.schema.json";
/// Line before a table, with the name of the section between the two parts.
const BEGIN: (&str, &str) = ("<!-- generated from the schema: ", " -->");
/// Line after a table.
const END: &str = "<!-- end of the generated table -->";
const HEAD: &str = "| key | value | default | meaning |\n|---|---|---|---|\n";

/// Part of the page: text, or the keys of a generated table.
#[derive(Debug)]
enum PagePart<'p> {
    Text(&'p str),
    Table {
        section: &'p str,
        keys: Vec<&'p str>,
    },
}

/// Compares the tables of the page with the schema, or writes them.
///
/// # Errors
/// The tables differ, a section has none, or a file cannot be read.
pub(crate) fn check(write: bool) -> Result<(), String> {
    let read = |path: &str| {
        fs::read_to_string(root().join(path))
            .map_err(|error| format!("cannot read {path}: {error}"))
    };
    let schema = serde_json::from_str(&read(SCHEMA)?)
        .map_err(|error| format!("{SCHEMA} is not JSON: {error}"))?;
    let page = read(PAGE)?;
    let expected = with_tables(&page, &config_schema::sections(&schema)?)?;
    if expected == page {
        return Ok(());
    }
    if write {
        return fs::write(root().join(PAGE), expected)
            .map_err(|error| format!("cannot write {PAGE}: {error}"));
    }
    Err(format!(
        "{PAGE} differs from {SCHEMA}; write its tables with: cargo xtask docs --write --pages"
    ))
}

/// Returns the page with the tables of these sections.
fn with_tables(page: &str, sections: &ConfigSections) -> Result<String, String> {
    let mut parts = parts(page)?;
    let mut last_tables: BTreeMap<&str, &mut Vec<&str>> = BTreeMap::new();
    let mut listed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for part in &mut parts {
        let PagePart::Table { section, keys } = part else {
            continue;
        };
        let rows = sections
            .get(*section)
            .ok_or(format!("{PAGE}: the schema has no section {section}"))?;
        let listed = listed.entry(section).or_default();
        keys.retain(|key| rows.contains_key(*key) && listed.insert(key));
        last_tables.insert(section, keys);
    }
    for (section, rows) in sections {
        let unlisted = |key: &&str| {
            !listed
                .get(section.as_str())
                .is_some_and(|all| all.contains(key))
        };
        let mut unlisted: Vec<&str> = rows.keys().map(String::as_str).filter(unlisted).collect();
        match last_tables.get_mut(section.as_str()) {
            Some(keys) => keys.append(&mut unlisted),
            None if rows.is_empty() => {}
            None => {
                let (begin, end) = BEGIN;
                return Err(format!(
                    "{PAGE} has no table of {section}; add the lines {begin}{section}{end} and {END}"
                ));
            }
        }
    }
    Ok(parts.iter().map(|part| part.render(sections)).collect())
}

/// Splits the page at its generated tables.
fn parts(page: &str) -> Result<Vec<PagePart<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = page;
    while let Some((text, marked)) = rest.split_once(BEGIN.0) {
        let (section, below) = marked
            .split_once(&format!("{}\n", BEGIN.1))
            .ok_or(format!("{PAGE}: a line {} does not end", BEGIN.0))?;
        let (table, tail) = below
            .split_once(END)
            .ok_or(format!("{PAGE} lacks {END} after the table of {section}"))?;
        let rows = table.lines().skip(HEAD.lines().count());
        let keys = rows.filter_map(|row| code_spans(row).next()).collect();
        parts.extend([PagePart::Text(text), PagePart::Table { section, keys }]);
        rest = tail;
    }
    parts.push(PagePart::Text(rest));
    Ok(parts)
}

impl PagePart<'_> {
    fn render(&self, sections: &ConfigSections) -> String {
        match self {
            PagePart::Text(text) => (*text).to_owned(),
            PagePart::Table { section, keys } => {
                let rows = keys.iter().filter_map(|key| {
                    let row = sections.get(*section)?.get(*key)?;
                    Some(table_row(key, row))
                });
                let (begin, end) = BEGIN;
                let rows: String = rows.collect();
                format!("{begin}{section}{end}\n{HEAD}{rows}{END}")
            }
        }
    }
}

fn table_row(key: &str, row: &SettingRow) -> String {
    let cells = [&row.value, &row.default, &row.meaning].map(|cell| cell.replace('|', "\\|"));
    format!("| `{key}` | {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(section: &str, rows: &str) -> String {
        format!("{}{section}{}\n{HEAD}{rows}{END}", BEGIN.0, BEGIN.1)
    }

    fn sections() -> ConfigSections {
        let row = |meaning: &str| SettingRow {
            value: "1 to 9".to_owned(),
            default: "`2`".to_owned(),
            meaning: meaning.to_owned(),
        };
        let rows = ["a", "b", "c"].map(|key| (key.to_owned(), row(&format!("An {key}|."))));
        ConfigSections::from([("[x]".to_owned(), BTreeMap::from(rows))])
    }

    #[test]
    fn the_page_decides_the_order_and_the_schema_the_rows() {
        let (one, two) = (
            table("[x]", "| `c` | old | old | old |\n| `gone` | | | |\n"),
            table("[x]", "| `b` | | | |\n| `c` | | | |\n"),
        );
        let page = format!("# X\n\n{one}\n\nmore\n\n{two}\n\nend\n");
        let row = |key: &str| format!("| `{key}` | 1 to 9 | `2` | An {key}\\|. |\n");
        let (one, two) = (
            table("[x]", &row("c")),
            table("[x]", &format!("{}{}", row("b"), row("a"))),
        );
        let expected = format!("# X\n\n{one}\n\nmore\n\n{two}\n\nend\n");
        assert_eq!(with_tables(&page, &sections()).unwrap(), expected);
        assert_eq!(with_tables(&expected, &sections()).unwrap(), expected);
    }

    #[test]
    fn every_section_has_a_table_and_every_table_a_section() {
        let without = with_tables("# X\n", &sections()).unwrap_err();
        assert!(without.contains("no table of [x]"), "{without}");
        let unknown = with_tables(&table("[y]", ""), &sections()).unwrap_err();
        assert!(unknown.contains("no section [y]"), "{unknown}");
        let open = with_tables(&table("[x]", "").replace(END, ""), &sections()).unwrap_err();
        assert!(open.contains("lacks"), "{open}");
    }
}
