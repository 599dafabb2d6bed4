//! `toolgate store`: the stored state of a data directory, as a whole.

use super::{
    CommandError, DataLocation, Result, confirm::confirm, print, uninstall::no_gateway_runs,
};
use crate::{
    args::StoreCommand,
    cli::output::{OutputTable, TableColumn, print_json},
};
use schemars::JsonSchema;
use serde::Serialize;
use std::{
    fs::{self, File, OpenOptions},
    io::{BufReader, BufWriter},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
};
use toolgate_store::{DatabaseStore, StoreError, check, clear, export, import};

/// Stores of a data directory: of the gateway, and of its tasks.
const STORES: [&str; 2] = ["state", "tasks"];

/// Table of the stored state.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct StoreTableOutput {
    /// Database: `state`, or `tasks` for tasks and their results.
    store: String,
    /// Name of the table, such as `grants`.
    table: String,
    /// Number of entries.
    entries: usize,
}

/// Runs a command on the stored state.
pub(super) fn run(place: &DataLocation<'_>, command: &StoreCommand) -> Result<ExitCode> {
    let data = place.data()?;
    let state = data.join("state");
    match command {
        StoreCommand::Migrate => {
            let tables = tables(&data)?;
            let entries = tables.iter().map(|table| table.entries).sum::<usize>();
            let entries = entries_text(entries);
            print(&format!("the state is in the database: {entries}\n"))
        }
        StoreCommand::Check(output) => list(&tables(&data)?, output.json),
        StoreCommand::Export { file } => export_to(&existing(state)?, file),
        StoreCommand::Import { file } => {
            no_gateway_runs(&data)?;
            let from = File::open(file).map_err(|e| cannot("read", file, &e))?;
            let entries = import(&state, &mut BufReader::new(from)).map_err(failure)?;
            print(&format!("imported {}\n", entries_text(entries)))
        }
        StoreCommand::Clear { table, yes } => {
            no_gateway_runs(&data)?;
            clear_table(&existing(state)?, table, *yes)
        }
    }
}

fn failure(error: StoreError) -> CommandError {
    CommandError::Failure(error.detail())
}

fn cannot(doing: &str, file: &Path, cause: &std::io::Error) -> CommandError {
    CommandError::Failure(format!("cannot {doing} {}: {cause}", file.display()))
}

/// Returns the directory of a store, or an error if it has none.
fn existing(state: PathBuf) -> Result<PathBuf> {
    match DatabaseStore::exists(&state) {
        true => Ok(state),
        false => Err(CommandError::Failure(format!(
            "there is no stored state in {}; a gateway writes it when it starts. Use --data DIR or --config FILE for another data directory",
            state.display()
        ))),
    }
}

/// Checks each store of a data directory.
fn tables(data: &Path) -> Result<Vec<StoreTableOutput>> {
    existing(data.join("state"))?;
    let mut tables = Vec::new();
    for store in STORES {
        let dir = data.join(store);
        if !DatabaseStore::exists(&dir) {
            continue;
        }
        let report = check(&dir).map_err(failure)?;
        tables.extend(report.tables.into_iter().map(|table| StoreTableOutput {
            store: store.to_owned(),
            table: table.name,
            entries: table.entries,
        }));
    }
    Ok(tables)
}

fn list(tables: &[StoreTableOutput], json: bool) -> Result<ExitCode> {
    if json {
        return print_json(&tables);
    }
    let mut table = OutputTable::new(&[TableColumn::Whole, TableColumn::Whole, TableColumn::Whole]);
    for StoreTableOutput {
        store,
        table: name,
        entries,
    } in tables
    {
        let entries = entries_text(*entries);
        table.add([store.clone(), name.clone(), entries]);
    }
    print(&format!("{}the database is sound\n", table.text()))
}

/// Exports into a new file, which is complete or does not exist.
fn export_to(state: &Path, file: &Path) -> Result<ExitCode> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let out = options.open(file).map_err(|e| cannot("create", file, &e))?;
    let mut writer = BufWriter::new(&out);
    let exported = export(state, &mut writer);
    drop(writer);
    let done = exported.map_err(failure).and_then(|entries| {
        out.sync_all()
            .map_err(|e| cannot("write", file, &e))
            .map(|()| entries)
    });
    match done {
        Ok(entries) => print(&format!(
            "exported {} to {}; the file has secrets\n",
            entries_text(entries),
            file.display()
        )),
        Err(error) => {
            // The error of the export is the one to report.
            let _ = fs::remove_file(file);
            Err(error)
        }
    }
}

/// Formats a number of entries.
fn entries_text(count: usize) -> String {
    match count {
        1 => "1 entry".to_owned(),
        _ => format!("{count} entries"),
    }
}

fn clear_table(state: &Path, table: &str, yes: bool) -> Result<ExitCode> {
    let refusal = "nothing was removed, because there is no terminal to ask on; pass --yes";
    let question = format!("Remove all entries of the table \"{table}\"?");
    if !yes && !confirm(&question, refusal)? {
        return print("nothing was removed\n");
    }
    let entries = clear(state, table).map_err(failure)?;
    print(&format!("removed {}\n", entries_text(entries)))
}
