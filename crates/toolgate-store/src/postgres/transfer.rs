//! Check, export, import and repair of the shared store. Each function blocks.

use super::{
    PostgresAddress,
    session::{self, Session},
};
use crate::{
    StoreError, StoreReport,
    change::StoreChange,
    clock_row,
    queued_change::PlannedChange,
    transfer::{self, read_export, write_export},
};
use std::{
    io::{BufRead, Write},
    path::Path,
    time::Duration,
};
use toolgate_policy::WritePrecondition;

/// Maximum time of one statement. An import takes longer than a change.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(60);

/// Checks the shared store: reads and counts all entries of a space.
///
/// # Errors
/// The database cannot be reached, or an entry is damaged.
pub fn check_shared(
    address: &PostgresAddress,
    space: &'static str,
) -> Result<StoreReport, StoreError> {
    let (entries, version) = read_all(address, space)?;
    Ok(StoreReport::of(entries, version))
}

/// Removes the rows of removed and replaced entries from the table of the shared store (`VACUUM`). The transaction log
/// of PostgreSQL, replicas and backups keep them.
///
/// # Errors
/// The database cannot be reached.
pub fn purge_shared(address: &PostgresAddress) -> Result<(), StoreError> {
    session::block_on(async {
        let connected = session::connect(address, TRANSFER_TIMEOUT, None).await?;
        let done = connected.client.batch_execute("VACUUM toolgate.entries");
        done.await
            .map_err(|error| session::failure("vacuum the entries", &error))
    })
}

/// Returns whether the shared store has entries in a space.
///
/// # Errors
/// The database cannot be reached.
pub fn has_shared_entries(
    address: &PostgresAddress,
    space: &'static str,
) -> Result<bool, StoreError> {
    let (entries, _) = read_all(address, space)?;
    Ok(entries.iter().any(|entry| entry.table != clock_row::TABLE))
}

/// Writes all entries of a space as JSON lines, in the format of [`export`](crate::export). Returns their number.
///
/// # Errors
/// The database cannot be read, or the output cannot be written.
pub fn export_shared(
    address: &PostgresAddress,
    space: &'static str,
    out: &mut dyn Write,
) -> Result<usize, StoreError> {
    let (entries, version) = read_all(address, space)?;
    write_export(&entries, version, out)
}

/// Reads an export into a space without entries, all of it or nothing. Returns the number of entries.
///
/// # Errors
/// The export is cut or changed, the space has entries already, or the database cannot be written.
pub fn import_shared(
    address: &PostgresAddress,
    space: &'static str,
    input: &mut dyn BufRead,
) -> Result<usize, StoreError> {
    let (entries, version) = read_export(input)?;
    restore(address, space, &entries, version)
}

/// Copies the entries of the store of a directory into a space without entries, all of them or none. Returns their
/// number.
///
/// # Errors
/// The directory cannot be read, the space has entries already, or the database cannot be written.
pub fn move_to_shared(
    dir: &Path,
    address: &PostgresAddress,
    space: &'static str,
) -> Result<usize, StoreError> {
    let mut database = transfer::open(dir)?;
    let (entries, version) = transfer::entries(&mut database)?;
    restore(address, space, &entries, version)
}

/// Removes all entries of a table of a space, to repair it. Returns their number.
///
/// # Errors
/// The table has no entries, or the database cannot be written.
pub fn clear_shared(
    address: &PostgresAddress,
    space: &'static str,
    table: &str,
) -> Result<usize, StoreError> {
    session::block_on(async {
        let mut session = Session::open(address, space, TRANSFER_TIMEOUT, None).await?;
        let all = session.all_entries().await?;
        let removals: Vec<PlannedChange> = all
            .changes
            .into_iter()
            .filter(|entry| entry.table == table)
            .map(|entry| PlannedChange {
                table: entry.table,
                key: entry.key,
                value: None,
                expect: WritePrecondition::Any,
            })
            .collect();
        if removals.is_empty() {
            return Err(StoreError::Refused(format!(
                "the store has no table \"{table}\" with entries; `toolgate store check` lists the tables"
            )));
        }
        session.commit(&removals).await?;
        Ok(removals.len())
    })
}

fn read_all(
    address: &PostgresAddress,
    space: &'static str,
) -> Result<(Vec<StoreChange>, u64), StoreError> {
    session::block_on(async {
        let session = Session::open(address, space, TRANSFER_TIMEOUT, None).await?;
        let all = session.all_entries().await?;
        Ok((all.changes, all.version))
    })
}

fn restore(
    address: &PostgresAddress,
    space: &'static str,
    entries: &[StoreChange],
    version: u64,
) -> Result<usize, StoreError> {
    session::block_on(async {
        let mut session = Session::open(address, space, TRANSFER_TIMEOUT, None).await?;
        session.restore(entries, version).await?;
        Ok(entries.len())
    })
}
