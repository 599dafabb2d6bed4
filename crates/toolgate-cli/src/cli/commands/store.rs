//! `toolgate store`: the stored state of a data directory, as a whole.

use super::{
    CommandError, DataLocation, Result, confirm::confirm, offline, print,
    uninstall::no_gateway_runs,
};
use crate::{
    args::StoreCommand,
    cli::output::{OutputTable, TableColumn, print_json},
    fleet::pki,
    runtime::store_location::StoreLocation,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
    time::SystemTime,
};
use toolgate_store::{
    DatabaseStore, StoreError, StoreReport, check, clear, export, import,
    postgres::{
        PostgresAddress, STATE_SPACE, TASK_SPACE, check_shared, clear_shared, export_shared,
        import_shared, migrate, move_to_shared,
    },
};

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
    if let StoreCommand::Pki { dir, hosts } = command {
        return create_certificates(dir, hosts);
    }
    let data = place.data()?;
    let location = offline::location(place, &data)?;
    match location.shared() {
        Some(address) => run_shared(&location, address, &data, command),
        None => run_local(&data, command),
    }
}

/// Runs a command on the state in a data directory.
fn run_local(data: &Path, command: &StoreCommand) -> Result<ExitCode> {
    let state = data.join("state");
    match command {
        StoreCommand::Migrate => {
            let tables = tables(data)?;
            let entries = tables.iter().map(|table| table.entries).sum::<usize>();
            let entries = entries_text(entries);
            print(&format!("the state is in the database: {entries}\n"))
        }
        StoreCommand::Check(output) => list(&tables(data)?, output.json),
        StoreCommand::Export { file } => {
            let state = existing(state)?;
            export_to(file, |out| export(&state, out))
        }
        StoreCommand::Import { file } => {
            no_gateway_runs(data)?;
            import_from(file, |input| import(&state, input))
        }
        StoreCommand::Clear { table, yes } => {
            no_gateway_runs(data)?;
            let state = existing(state)?;
            clear_table(table, *yes, || clear(&state, table))
        }
        StoreCommand::Pki { dir, hosts } => create_certificates(dir, hosts),
    }
}

/// Runs a command on the state in a shared database.
fn run_shared(
    location: &StoreLocation,
    address: &PostgresAddress,
    data: &Path,
    command: &StoreCommand,
) -> Result<ExitCode> {
    match command {
        StoreCommand::Migrate => migrate_shared(location, address, data),
        StoreCommand::Check(output) => {
            let mut tables = Vec::new();
            for space in [STATE_SPACE, TASK_SPACE] {
                let report = check_shared(address, space).map_err(failure)?;
                tables.extend(table_outputs(space, report));
            }
            list(&tables, output.json)
        }
        StoreCommand::Export { file } => {
            export_to(file, |out| export_shared(address, STATE_SPACE, out))
        }
        StoreCommand::Import { file } => {
            import_from(file, |input| import_shared(address, STATE_SPACE, input))
        }
        StoreCommand::Clear { table, yes } => {
            clear_table(table, *yes, || clear_shared(address, STATE_SPACE, table))
        }
        StoreCommand::Pki { dir, hosts } => create_certificates(dir, hosts),
    }
}

/// Creates certificates for gateways.
fn create_certificates(dir: &Path, hosts: &[String]) -> Result<ExitCode> {
    let files = pki::create(dir, hosts, SystemTime::now()).map_err(CommandError::Failure)?;
    let mut text = format!(
        "{}: certificate of the authority, for all gateways\n",
        files.ca.display()
    );
    for (cert, key) in files.gateways {
        text.push_str(&format!(
            "{}, {}: certificate and key of one gateway\n",
            cert.display(),
            key.display()
        ));
    }
    print(&text)
}

/// Creates the tables of a shared database, and copies the state of the data directory into them.
fn migrate_shared(
    location: &StoreLocation,
    address: &PostgresAddress,
    data: &Path,
) -> Result<ExitCode> {
    let version = migrate(address).map_err(failure)?;
    let mut text = format!("the tables in {address} have version {version}\n");
    let local = location.local();
    if DatabaseStore::exists(&local) {
        no_gateway_runs(data)?;
        let entries = move_to_shared(&local, address, STATE_SPACE).map_err(failure)?;
        let kept = data.join("state.migrated");
        fs::rename(&local, &kept).map_err(|e| cannot("rename", &local, &e))?;
        text.push_str(&format!(
            "copied {} from the data directory; they stay in {}\n",
            entries_text(entries),
            kept.display()
        ));
    }
    print(&text)
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
        tables.extend(table_outputs(store, check(&dir).map_err(failure)?));
    }
    Ok(tables)
}

fn table_outputs(store: &str, report: StoreReport) -> impl Iterator<Item = StoreTableOutput> {
    report
        .tables
        .into_iter()
        .map(move |table| StoreTableOutput {
            store: store.to_owned(),
            table: table.name,
            entries: table.entries,
        })
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

fn import_from(
    file: &Path,
    import: impl FnOnce(&mut dyn BufRead) -> std::result::Result<usize, StoreError>,
) -> Result<ExitCode> {
    let from = File::open(file).map_err(|e| cannot("read", file, &e))?;
    let entries = import(&mut BufReader::new(from)).map_err(failure)?;
    print(&format!("imported {}\n", entries_text(entries)))
}

/// Exports into a new file, which is complete or does not exist.
fn export_to(
    file: &Path,
    export: impl FnOnce(&mut dyn Write) -> std::result::Result<usize, StoreError>,
) -> Result<ExitCode> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let out = options.open(file).map_err(|e| cannot("create", file, &e))?;
    let mut writer = BufWriter::new(&out);
    let exported = export(&mut writer);
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

fn clear_table(
    table: &str,
    yes: bool,
    clear: impl FnOnce() -> std::result::Result<usize, StoreError>,
) -> Result<ExitCode> {
    let refusal = "nothing was removed, because there is no terminal to ask on; pass --yes";
    let question = format!("Remove all entries of the table \"{table}\"?");
    if !yes && !confirm(&question, refusal)? {
        return print("nothing was removed\n");
    }
    let entries = clear().map_err(failure)?;
    print(&format!("removed {}\n", entries_text(entries)))
}
