//! Search index of the audit log: positions of records by tool, caller and server. A cache, which may be deleted.
//!
//! It stores names and positions, no contents. A broken or foreign file is replaced. The search reads each hit from its
//! segment, so the index can hide a record but not invent one; `--no-index` and `verify` do not use it.

use super::search::RecordPosition;
use crate::args::AuditSearchOptions;
use rusqlite::{
    Connection, OptionalExtension, Row, ToSql, Transaction, TransactionBehavior, params,
};
use serde_json::Value;
use std::{
    fs, io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};
use toolgate_journal::read::{SegmentFile, SegmentLine};

/// File name in the data directory.
const INDEX_FILE_NAME: &str = "audit-index.sqlite";

/// SQLite application id of the index: `TgIx`.
const INDEX_APPLICATION_ID: i64 = 0x5467_4978;

/// Schema version. An index of another version is rebuilt.
const INDEX_SCHEMA_VERSION: i64 = 1;

/// Lock timeout while another search uses the index.
const INDEX_LOCK_TIMEOUT: Duration = Duration::from_secs(10);

const CREATE_TABLES_SQL: &str = "
    CREATE TABLE segment (id INTEGER PRIMARY KEY, chain TEXT NOT NULL, number INTEGER NOT NULL,
        bytes INTEGER NOT NULL, UNIQUE (chain, number));
    CREATE TABLE record (segment INTEGER NOT NULL, at INTEGER NOT NULL, ts INTEGER NOT NULL,
        tool TEXT, name TEXT, caller TEXT, srv TEXT, PRIMARY KEY (segment, at)) WITHOUT ROWID;
    CREATE INDEX by_tool ON record (segment, tool);
    CREATE INDEX by_name ON record (segment, name);
    CREATE INDEX by_caller ON record (segment, caller);
    CREATE INDEX by_server ON record (segment, srv);";

/// Search index of a data directory.
pub(super) struct AuditIndex {
    path: PathBuf,
    connection: Connection,
    /// True after one rebuild: the next error disables the index.
    rebuilt: bool,
}

impl AuditIndex {
    /// Opens or creates the index. Returns `None` and prints a note on failure: a search also works without the index.
    pub(super) fn open(data: &Path) -> Option<AuditIndex> {
        let path = data.join(INDEX_FILE_NAME);
        let (connection, tired) = match connect(&path) {
            Ok(connection) => (connection, false),
            Err(why) => (rebuild(&path, &why)?, true),
        };
        Some(AuditIndex {
            path,
            connection,
            rebuilt: tired,
        })
    }

    /// Returns the positions of possible matches in a sealed segment, in order; `None` if the index cannot be used.
    pub(super) fn find(
        &mut self,
        file: usize,
        segment: &SegmentFile,
        wanted: &AuditSearchOptions,
    ) -> Option<Vec<RecordPosition>> {
        loop {
            let found = segment_id(&mut self.connection, segment)
                .and_then(|id| query_positions(&self.connection, id, file, wanted))
                .and_then(|hits| check_positions(hits, segment));
            match found {
                Ok(hits) => return Some(hits),
                // The segment was deleted or is unreadable: a scan reports it.
                Err(rusqlite::Error::ToSqlConversionFailure(_)) => return None,
                Err(_) if self.rebuilt => return None,
                Err(why) => {
                    self.rebuilt = true;
                    self.connection = rebuild(&self.path, &why)?;
                }
            }
        }
    }

    /// Removes deleted segments from the index.
    pub(super) fn retain_segments(mut self, files: &[SegmentFile]) {
        // A failure is harmless: the next search removes them.
        let _ = forget_segments(&mut self.connection, files);
    }
}

/// Connects to an index and creates its tables if the file is empty.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    create(path);
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(INDEX_LOCK_TIMEOUT)?;
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
fn is_broken(why: &rusqlite::Error) -> bool {
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
fn rebuild(path: &Path, why: &rusqlite::Error) -> Option<Connection> {
    let shown = path.display();
    let told = match why {
        rusqlite::Error::InvalidQuery => "it does not match the audit log".to_owned(),
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

/// Returns the index id of a sealed segment, and indexes the segment first if needed.
fn segment_id(connection: &mut Connection, segment: &SegmentFile) -> rusqlite::Result<i64> {
    let known = connection
        .query_row(
            "SELECT id, bytes FROM segment WHERE chain = ?1 AND number = ?2",
            params![segment.chain, signed(segment.number)],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
        )
        .optional()?;
    if let Some((id, bytes)) = known
        && bytes == signed(segment.bytes)
    {
        return Ok(id);
    }
    let making = connection.transaction()?;
    if let Some((id, _)) = known {
        drop_segment(&making, id)?;
    }
    making.execute(
        "INSERT INTO segment (chain, number, bytes) VALUES (?1, ?2, ?3)",
        params![segment.chain, signed(segment.number), signed(segment.bytes)],
    )?;
    let id = making.last_insert_rowid();
    fill(&making, id, segment)?;
    making.commit()?;
    Ok(id)
}

fn fill(making: &Transaction<'_>, id: i64, segment: &SegmentFile) -> rusqlite::Result<()> {
    let mut put = making.prepare("INSERT INTO record VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    let text = |line: &SegmentLine, name: &str| {
        let value = line.fields.get(name).and_then(Value::as_str);
        value.map(str::to_owned)
    };
    let mut failed = None;
    let read = segment.lines(|at, line| {
        let row = params![
            id,
            signed(at),
            signed(line.ts),
            text(&line, "tool"),
            text(&line, "name"),
            text(&line, "caller"),
            text(&line, "srv")
        ];
        put.execute(row).map(drop).map_err(|error| {
            failed = Some(error);
            io::ErrorKind::Other.into()
        })
    });
    match (failed, read) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(read_error(error)),
        (None, Ok(())) => Ok(()),
    }
}

/// Returns the positions that match the indexed filters; the search checks the lines themselves.
fn query_positions(
    connection: &Connection,
    id: i64,
    file: usize,
    wanted: &AuditSearchOptions,
) -> rusqlite::Result<Vec<RecordPosition>> {
    let mut sql = "SELECT ts, at FROM record WHERE segment = ?1".to_owned();
    let mut with: Vec<&dyn ToSql> = vec![&id];
    let columns: [(&[&str], &Option<String>); 3] = [
        (&["tool", "name"], &wanted.tool),
        (&["caller"], &wanted.caller),
        (&["srv"], &wanted.server),
    ];
    for (names, value) in columns {
        let Some(value) = value else { continue };
        with.push(value);
        let n = with.len();
        let is: Vec<String> = names.iter().map(|name| format!("{name} = ?{n}")).collect();
        sql.push_str(&format!(" AND ({})", is.join(" OR ")));
    }
    sql.push_str(" ORDER BY at");
    let mut asked = connection.prepare(&sql)?;
    let hit = |row: &Row<'_>| {
        let unsigned = |n: i64| u64::try_from(n).unwrap_or(0);
        Ok(RecordPosition {
            ts: unsigned(row.get(0)?),
            file,
            offset: unsigned(row.get(1)?),
        })
    };
    asked.query_map(with.as_slice(), hit)?.collect()
}

/// Checks that records begin at the first and last position, to detect an index of other files.
fn check_positions(
    hits: Vec<RecordPosition>,
    segment: &SegmentFile,
) -> rusqlite::Result<Vec<RecordPosition>> {
    for hit in hits.first().into_iter().chain(hits.last()) {
        let line = segment.line_at(hit.offset).map_err(read_error)?;
        if line.is_none_or(|line| line.ts != hit.ts) {
            return Err(rusqlite::Error::InvalidQuery);
        }
    }
    Ok(hits)
}

fn read_error(error: io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

fn forget_segments(connection: &mut Connection, files: &[SegmentFile]) -> rusqlite::Result<()> {
    let known: Vec<(i64, String, i64)> = {
        let mut all = connection.prepare("SELECT id, chain, number FROM segment")?;
        let rows = all.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let is_there = |chain: &str, number: i64| {
        let mut files = files.iter();
        files.any(|file| file.chain == chain && signed(file.number) == number)
    };
    let gone = known.iter().filter(|(_, chain, n)| !is_there(chain, *n));
    let making = connection.transaction()?;
    for (id, ..) in gone {
        drop_segment(&making, *id)?;
    }
    making.commit()
}

fn drop_segment(making: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
    making.execute("DELETE FROM record WHERE segment = ?1", [id])?;
    making
        .execute("DELETE FROM segment WHERE id = ?1", [id])
        .map(drop)
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
