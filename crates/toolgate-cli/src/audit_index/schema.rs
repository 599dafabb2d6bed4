//! The file of the index: its tables, and what replaces a broken file.

use super::signed;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior};
use std::{fs, io, os::unix::fs::OpenOptionsExt, path::Path, time::Duration};
use toolgate_journal::read::SegmentFile;

/// SQLite application id of the index: `TgIx`.
const INDEX_APPLICATION_ID: i64 = 0x5467_4978;

/// Schema version. An index of another version is rebuilt.
const INDEX_SCHEMA_VERSION: i64 = 2;

/// Lock timeout while another process uses the index.
const INDEX_LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// `name` has each name once: of a tool, caller, server, class of calls, or rule. `done` counts the bytes of a segment that
/// were read. `open_call` has the calls that began and did not end yet.
const CREATE_TABLES_SQL: &str = "
    CREATE TABLE segment (id INTEGER PRIMARY KEY, chain TEXT NOT NULL, number INTEGER NOT NULL,
        done INTEGER NOT NULL, UNIQUE (chain, number));
    CREATE TABLE name (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
    CREATE TABLE record (segment INTEGER NOT NULL, at INTEGER NOT NULL, ts INTEGER NOT NULL,
        ev INTEGER, tool INTEGER, name INTEGER, caller INTEGER, srv INTEGER, PRIMARY KEY (segment, at)) WITHOUT ROWID;
    CREATE INDEX by_time ON record (ts);
    CREATE INDEX by_tool ON record (segment, tool);
    CREATE INDEX by_name ON record (segment, name);
    CREATE INDEX by_caller ON record (segment, caller);
    CREATE INDEX by_server ON record (segment, srv);
    CREATE TABLE open_call (call TEXT PRIMARY KEY, segment INTEGER NOT NULL, at INTEGER NOT NULL,
        approved INTEGER NOT NULL, rule INTEGER) WITHOUT ROWID;
    CREATE TABLE call (segment INTEGER NOT NULL, at INTEGER NOT NULL, ts INTEGER NOT NULL, call TEXT NOT NULL,
        begin_segment INTEGER, begin_at INTEGER, caller INTEGER, srv INTEGER, tool INTEGER, class INTEGER NOT NULL,
        outcome INTEGER NOT NULL, rule INTEGER, us INTEGER NOT NULL, PRIMARY KEY (segment, at)) WITHOUT ROWID;
    CREATE INDEX call_by_time ON call (ts);
    CREATE INDEX call_by_id ON call (call);
    CREATE TABLE minute (minute INTEGER NOT NULL, segment INTEGER NOT NULL, caller INTEGER, srv INTEGER, tool INTEGER,
        class INTEGER NOT NULL, rule INTEGER, bucket INTEGER NOT NULL, n INTEGER NOT NULL,
        UNIQUE (minute, segment, caller, srv, tool, class, rule, bucket));
    CREATE TABLE approval (segment INTEGER NOT NULL, at INTEGER NOT NULL, ts INTEGER NOT NULL, id TEXT NOT NULL,
        state TEXT NOT NULL, tool INTEGER, PRIMARY KEY (segment, at)) WITHOUT ROWID;
    CREATE INDEX approval_by_time ON approval (ts);
    CREATE INDEX approval_by_id ON approval (id);";

/// Tables with rows of a segment.
const SEGMENT_TABLES: [&str; 5] = ["record", "open_call", "call", "minute", "approval"];

/// Connects to an index and creates its tables if the file is empty.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    create(path);
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(INDEX_LOCK_TIMEOUT)?;
    // The index is a cache: after a power failure it is rebuilt. Readers do not wait for a writer.
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "off")?;
    let making = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let tables = making.query_row("SELECT count(*) FROM sqlite_schema", [], number)?;
    if tables == 0 {
        making.execute_batch(CREATE_TABLES_SQL)?;
        making.pragma_update(None, "application_id", INDEX_APPLICATION_ID)?;
        making.pragma_update(None, "user_version", INDEX_SCHEMA_VERSION)?;
    }
    let application = making.pragma_query_value(None, "application_id", number)?;
    let version = making.pragma_query_value(None, "user_version", number)?;
    making.commit()?;
    match (application, version) {
        (INDEX_APPLICATION_ID, INDEX_SCHEMA_VERSION) => Ok(connection),
        _ => Err(rusqlite::Error::InvalidQuery),
    }
}

fn number(row: &Row<'_>) -> rusqlite::Result<i64> {
    row.get(0)
}

/// Creates the file, accessible only to its owner, if it does not exist. Errors show when the file is opened.
fn create(path: &Path) {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    drop(options.open(path));
}

/// Returns true if the file is corrupt. A locked file or a full disk does not count.
pub(super) fn is_broken(why: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{
        CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, PermissionDenied, ReadOnly,
        SystemIoFailure,
    };
    !matches!(
        why.sqlite_error_code(),
        Some(
            CannotOpen
                | DatabaseBusy
                | DatabaseLocked
                | DiskFull
                | PermissionDenied
                | ReadOnly
                | SystemIoFailure
        )
    )
}

/// Replaces a corrupt file and prints a note.
pub(super) fn rebuild(path: &Path, why: &rusqlite::Error) -> Option<Connection> {
    let shown = path.display();
    let told = match why {
        rusqlite::Error::InvalidQuery => {
            "it does not match the audit log, or is of another version".to_owned()
        }
        why => why.to_string(),
    };
    let made = match is_broken(why) {
        true => remove(path).ok().and_then(|()| connect(path).ok()),
        false => None,
    };
    let then = match made {
        Some(_) => "it is being rebuilt",
        None => "the search reads the whole audit log instead",
    };
    eprintln!(
        "toolgate: the search index of the audit log, {shown}, cannot be used ({told}); {then}"
    );
    made
}

fn remove(path: &Path) -> io::Result<()> {
    for end in ["", "-journal", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(end);
        match fs::remove_file(&file) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

/// Removes the segments from the index that do not exist any more.
pub(super) fn forget_segments(
    connection: &mut Connection,
    files: &[SegmentFile],
) -> rusqlite::Result<()> {
    let known: Vec<(i64, String, i64)> = {
        let mut all = connection.prepare("SELECT id, chain, number FROM segment")?;
        let rows = all.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let is_there = |chain: &str, number: i64| {
        let mut files = files.iter();
        files.any(|file| file.chain == chain && signed(file.number) == number)
    };
    let gone: Vec<i64> = known
        .iter()
        .filter(|(_, chain, n)| !is_there(chain, *n))
        .map(|(id, ..)| *id)
        .collect();
    if gone.is_empty() {
        return Ok(());
    }
    let making = connection.transaction()?;
    for id in gone {
        drop_segment(&making, id)?;
    }
    making.commit()
}

pub(super) fn drop_segment(making: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
    for table in SEGMENT_TABLES {
        making.execute(&format!("DELETE FROM {table} WHERE segment = ?1"), [id])?;
    }
    making
        .execute("DELETE FROM segment WHERE id = ?1", [id])
        .map(drop)
}
