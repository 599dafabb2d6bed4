//! Check, export, import and repair of a store, without a running gateway or beside one.
//!
//! An export is JSON lines: a header, one line for each entry, and an end line with the number of entries and the
//! SHA-256 of all lines before it. So a cut or changed file is never imported in part.

use crate::{
    StoreError, StoreLimits, change::StoreChange, clock_row, database::Database, directory, legacy,
};
use ring::digest::{Context, SHA256};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{self, BufRead, Write},
    path::Path,
};
use toolgate_protocol::{hex, json::Json};

/// Version of the export format, in its header.
const EXPORT_VERSION: u64 = 1;

/// Table of a state store, as [`check`] found it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct StoreTable {
    /// Name of the table.
    pub name: String,
    /// Number of its entries.
    pub entries: usize,
}

/// Result of [`check`]: the tables of a sound state store.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct StoreReport {
    /// Tables, sorted by name.
    pub tables: Vec<StoreTable>,
    /// Number of changes since the store was created.
    pub version: u64,
}

/// Checks the state store of a directory: the pages and indexes of its database, and the digest of each entry. A state
/// file of an earlier version is migrated first.
///
/// # Errors
/// The database cannot be opened, or it is damaged.
pub fn check(dir: &Path) -> Result<StoreReport, StoreError> {
    let mut database = open(dir)?;
    database.check_whole()?;
    let (entries, version) = entries(&mut database)?;
    Ok(StoreReport::of(entries, version))
}

/// Removes the bytes that removed entries left in the files of a state store, also beside running processes. Deleted
/// data may still be on the medium, and in copies of the files.
///
/// # Errors
/// The database cannot be written, or other processes read it all the time.
pub fn purge(dir: &Path) -> Result<(), StoreError> {
    open(dir)?.purge()
}

impl StoreReport {
    pub(crate) fn of(entries: Vec<StoreChange>, version: u64) -> StoreReport {
        let mut tables = BTreeMap::<String, usize>::new();
        for entry in entries {
            *tables.entry(entry.table).or_default() += 1;
        }
        let tables = tables.into_iter();
        let tables = tables.map(|(name, entries)| StoreTable { name, entries });
        StoreReport {
            tables: tables.collect(),
            version,
        }
    }
}

/// Writes all entries of a state store as JSON lines, for a backup. They contain secrets, such as seal keys. Returns the
/// number of entries.
///
/// # Errors
/// The database cannot be read, or the output cannot be written.
pub fn export(dir: &Path, out: &mut dyn Write) -> Result<usize, StoreError> {
    let (entries, version) = entries(&mut open(dir)?)?;
    write_export(&entries, version, out)
}

/// Writes entries as JSON lines.
pub(crate) fn write_export(
    entries: &[StoreChange],
    version: u64,
    out: &mut dyn Write,
) -> Result<usize, StoreError> {
    let mut digest = Context::new(&SHA256);
    let mut write = |line: &Value| {
        let text = format!("{line}\n");
        digest.update(text.as_bytes());
        out.write_all(text.as_bytes())
    };
    let header = json!({"toolgate_store": EXPORT_VERSION, "version": version});
    let written = write(&header).and_then(|()| {
        entries.iter().try_for_each(|entry| {
            write(&json!({"t": entry.table, "k": entry.key, "n": entry.version, "v": entry.value}))
        })
    });
    let end = json!({"end": entries.len(), "sha256": hex::encode(digest.finish().as_ref())});
    written
        .and_then(|()| writeln!(out, "{end}"))
        .and_then(|()| out.flush())
        .map_err(|e| StoreError::file("write", Path::new("the export"), e))?;
    Ok(entries.len())
}

/// Reads an export into the state store of a directory, all of it or nothing. The store must have no entries. Returns
/// the number of entries.
///
/// # Errors
/// The export is cut or changed, the store has entries already, or the database cannot be written.
pub fn import(dir: &Path, input: &mut dyn BufRead) -> Result<usize, StoreError> {
    let (changes, version) = read_export(input)?;
    let mut database = open(dir)?;
    database.begin()?;
    let stored = database.entries().and_then(|there| {
        // The clock is written by the first change of any process.
        if there.iter().any(|entry| entry.table != clock_row::TABLE) {
            return Err(StoreError::Refused(
                "the store already has entries; import into an empty data directory".to_owned(),
            ));
        }
        database.restore(&changes, version)
    });
    database.end(stored)?;
    Ok(changes.len())
}

/// Removes all entries of a table of the state store, to repair it. No gateway may run. Returns the number of entries.
///
/// # Errors
/// The table has no entries, or the database cannot be written.
pub fn clear(dir: &Path, table: &str) -> Result<usize, StoreError> {
    let mut database = open(dir)?;
    database.begin()?;
    let removed = database.changes_since(None).and_then(|all| {
        let of_table = all.changes.iter().filter(|entry| entry.table == table);
        let removals: Vec<StoreChange> = of_table
            .zip(all.version + 1..)
            .map(|(entry, version)| StoreChange {
                version,
                value: None,
                ..entry.clone()
            })
            .collect();
        if removals.is_empty() {
            return Err(StoreError::Refused(format!(
                "the store has no table \"{table}\" with entries; `toolgate store check` lists the tables"
            )));
        }
        database.write(&removals)?;
        Ok(removals.len())
    });
    database.end(removed)
}

pub(crate) fn open(dir: &Path) -> Result<Database, StoreError> {
    let held = directory::lock(dir)?;
    let mut database = Database::open(dir)?;
    legacy::migrate(dir, &mut database, &held)?;
    Ok(database)
}

/// Reads all entries, and the version of the last change.
pub(crate) fn entries(database: &mut Database) -> Result<(Vec<StoreChange>, u64), StoreError> {
    database.begin()?;
    let read = database.changes_since(None);
    let all = database.end(read)?;
    Ok((all.changes, all.version))
}

/// Reads the entries of an export, and the version of the last change.
pub(crate) fn read_export(input: &mut dyn BufRead) -> Result<(Vec<StoreChange>, u64), StoreError> {
    let wrong = |line: usize, reason: &str| {
        let reason = format!("line {line}: {reason}");
        StoreError::file(
            "read",
            Path::new("the export"),
            io::Error::new(io::ErrorKind::InvalidData, reason),
        )
    };
    let mut digest = Context::new(&SHA256);
    let mut changes = Vec::new();
    let mut version = None;
    let mut number = 0;
    loop {
        let line = read_line(input)?;
        number += 1;
        if line.is_empty() {
            return Err(wrong(number, "the file has no end line, so it was cut off"));
        }
        let json = Json::read_stored(line.strip_suffix(b"\n").unwrap_or(&line));
        let json = json.map_err(|_| wrong(number, "this is not a line of an export"))?;
        let text = |name| json.get(name).and_then(|value| value.string());
        let count = |name| json.get(name).and_then(|value| value.u64());
        match version {
            None if count("toolgate_store") == Some(EXPORT_VERSION) => version = count("version"),
            None => {
                return Err(wrong(
                    number,
                    "this is not an export that this version can read",
                ));
            }
            Some(version) => {
                if let Some(end) = count("end") {
                    let sum = hex::encode(digest.finish().as_ref());
                    if end != changes.len() as u64 || text("sha256") != Some(sum) {
                        return Err(wrong(number, "the lines before do not match the checksum"));
                    }
                    return Ok((changes, version));
                }
                let entry = text("t").zip(text("k")).zip(count("n")).zip(json.get("v"));
                let Some((((table, key), version), value)) = entry else {
                    return Err(wrong(number, "this is not an entry"));
                };
                changes.push(StoreChange {
                    version,
                    table,
                    key,
                    value: Some(value.to_value()),
                });
            }
        }
        digest.update(&line);
    }
}

/// Reads a line with its newline, up to twice the usual limit of an entry.
fn read_line(input: &mut dyn BufRead) -> Result<Vec<u8>, StoreError> {
    let most = StoreLimits::default().max_row_bytes as u64 * 4;
    let mut line = Vec::new();
    let read = io::Read::take(input, most).read_until(b'\n', &mut line);
    read.map_err(|e| StoreError::file("read", Path::new("the export"), e))?;
    Ok(line)
}
