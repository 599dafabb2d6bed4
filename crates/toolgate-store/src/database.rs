//! The SQLite database of the store: schema, reading of changes, and transactions.

use crate::{
    StoreError,
    change::{StoreChange, entry_digest},
    directory::{FileIdentity, open_private},
};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, params};
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use toolgate_protocol::json::Json;

/// Name of the database file in the directory of the store.
pub(crate) const DATABASE: &str = "state.sqlite";
/// Version of the schema (`user_version`). A migration raises it.
const SCHEMA_VERSION: i64 = 1;
/// Mark of our databases in the header of the file (`application_id`): "TGst".
const APPLICATION_ID: i64 = 0x5447_7374;
/// Time for which a write waits for the writes of other processes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of changes that the database remembers. A process that missed more reads all entries again.
const REMEMBERED_CHANGES: u64 = 4096;

const SCHEMA: &str = "
    CREATE TABLE entries (
        tbl TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        version INTEGER NOT NULL,
        digest BLOB NOT NULL,
        PRIMARY KEY (tbl, key)
    );
    CREATE TABLE changes (version INTEGER PRIMARY KEY, tbl TEXT NOT NULL, key TEXT NOT NULL);
    CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO counters VALUES ('version', 0), ('forgotten', 0);
";

/// Changes of the database since the last read.
pub(crate) struct ForeignChanges {
    /// True if the changes are no longer remembered, so that these are all entries.
    pub(crate) are_all: bool,
    pub(crate) changes: Vec<StoreChange>,
    /// Version of the last change of any process.
    pub(crate) version: u64,
}

/// Open database of a directory.
#[derive(Debug)]
pub(crate) struct Database {
    connection: Connection,
    path: PathBuf,
    identity: FileIdentity,
    /// `PRAGMA data_version` after the last read. It changes when another connection commits.
    data_version: i64,
}

impl Database {
    /// Opens the database of a locked directory, and creates it or raises its schema if necessary.
    pub(crate) fn open(dir: &Path) -> Result<Database, StoreError> {
        let path = dir.join(DATABASE);
        // SQLite gives its other files the mode of this one.
        open_private(&path).map_err(|e| StoreError::file("open", &path, e))?;
        let identity =
            FileIdentity::of(&path).map_err(|e| StoreError::file("examine", &path, e))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let wrong = |cause| failure(&path, cause);
        let connection = Connection::open_with_flags(&path, flags).map_err(wrong)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(wrong)?;
        let mode: String = connection
            .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
            .map_err(wrong)?;
        if mode != "wal" {
            let reason = "its file system has no shared memory, which SQLite needs; put the data directory on a local disk";
            return Err(StoreError::file(
                "use",
                &path,
                std::io::Error::other(reason),
            ));
        }
        connection
            .execute_batch(
                "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA secure_delete = ON;",
            )
            .map_err(wrong)?;
        let mut database = Database {
            connection,
            path,
            identity,
            data_version: 0,
        };
        database.raise_schema()?;
        database.check_pages()?;
        Ok(database)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn raise_schema(&mut self) -> Result<(), StoreError> {
        let known = self.pragma("user_version")?;
        match known {
            SCHEMA_VERSION => {
                let reason = "it is a database of another program";
                let ours = self.pragma("application_id")? == APPLICATION_ID;
                ours.then_some(())
                    .ok_or_else(|| StoreError::damaged(&self.path, reason))
            }
            0 if self.is_empty()? => {
                self.begin()?;
                let made = self.batch(&format!(
                    "{SCHEMA} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};"
                ));
                self.end(made)
            }
            newer => Err(StoreError::damaged(
                &self.path,
                format!(
                    "its schema has version {newer}, and this program knows only {SCHEMA_VERSION}; use the version of toolgate that wrote it"
                ),
            )),
        }
    }

    fn is_empty(&self) -> Result<bool, StoreError> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)";
        let found = self.connection.query_row(sql, [], |row| row.get(0));
        found.map_err(|cause| self.failure(cause))
    }

    /// Checks the pages of the file.
    fn check_pages(&self) -> Result<(), StoreError> {
        self.check_with("PRAGMA quick_check(1)")
    }

    /// Checks the pages of the file, and its indexes against its tables.
    pub(crate) fn check_whole(&self) -> Result<(), StoreError> {
        self.check_with("PRAGMA integrity_check(1)")
    }

    fn check_with(&self, sql: &str) -> Result<(), StoreError> {
        let found: String = self
            .connection
            .query_row(sql, [], |row| row.get(0))
            .map_err(|cause| self.failure(cause))?;
        match found.as_str() {
            "ok" => Ok(()),
            reason => Err(StoreError::damaged(&self.path, reason)),
        }
    }

    /// Rewrites the file and empties its log, so that neither has bytes of removed entries.
    pub(crate) fn purge(&self) -> Result<(), StoreError> {
        self.batch("PRAGMA temp_store = MEMORY; VACUUM")?;
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: bool = self
            .connection
            .query_row(sql, [], |row| row.get(0))
            .map_err(|cause| self.failure(cause))?;
        match busy {
            false => Ok(()),
            true => {
                let reason = "other processes read it all the time; try again";
                let cause = std::io::Error::other(reason);
                Err(StoreError::file("empty the log of", &self.path, cause))
            }
        }
    }

    fn pragma(&self, name: &str) -> Result<i64, StoreError> {
        let found = self
            .connection
            .query_row(&format!("PRAGMA {name}"), [], |row| row.get(0));
        found.map_err(|cause| self.failure(cause))
    }

    fn batch(&self, sql: &str) -> Result<(), StoreError> {
        let done = self.connection.execute_batch(sql);
        done.map_err(|cause| self.failure(cause))
    }

    fn failure(&self, cause: rusqlite::Error) -> StoreError {
        failure(&self.path, cause)
    }

    /// Returns whether another process committed since the last read.
    pub(crate) fn is_stale(&self) -> bool {
        self.pragma("data_version")
            .map_or(true, |version| version != self.data_version)
    }

    /// Begins a transaction, once no other process writes.
    pub(crate) fn begin(&mut self) -> Result<(), StoreError> {
        // SQLite would go on with the removed file, or mix the log of one file with the pages of another.
        match FileIdentity::of(&self.path) {
            Ok(identity) if identity == self.identity => self.batch("BEGIN IMMEDIATE"),
            Ok(_) => Err(StoreError::Failed(
                "the database file was replaced while the program ran".into(),
            )),
            Err(cause) => Err(StoreError::file("examine", &self.path, cause)),
        }
    }

    /// Commits the transaction if all went well, and rolls it back otherwise. The commit is on disk afterward.
    pub(crate) fn end<T>(&mut self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        let committed = done.and_then(|done| self.batch("COMMIT").map(|()| done));
        if committed.is_err() && !self.connection.is_autocommit() {
            // The error of the transaction is the one to report. The next one begins with an error if this fails.
            let _ = self.batch("ROLLBACK");
        }
        committed
    }

    /// Reads the changes since a version, or all entries, within a transaction.
    pub(crate) fn changes_since(
        &mut self,
        version: Option<u64>,
    ) -> Result<ForeignChanges, StoreError> {
        self.data_version = self.pragma("data_version")?;
        let newest = self.counter("version")?;
        let forgotten = self.counter("forgotten")?;
        let remembered = version.filter(|version| *version >= forgotten);
        let are_all = remembered.is_none();
        let changes = match remembered {
            None => self.entries()?,
            Some(version) if version == newest => Vec::new(),
            Some(version) => self.remembered(version)?,
        };
        Ok(ForeignChanges {
            are_all,
            changes,
            version: newest,
        })
    }

    pub(crate) fn counter(&self, name: &str) -> Result<u64, StoreError> {
        let sql = "SELECT value FROM counters WHERE name = ?1";
        let mut statement = self
            .connection
            .prepare(sql)
            .map_err(|cause| self.failure(cause))?;
        let found: Option<i64> = statement
            .query_row([name], |row| row.get(0))
            .optional()
            .map_err(|cause| self.failure(cause))?;
        let found = found.and_then(|value| u64::try_from(value).ok());
        found.ok_or_else(|| {
            StoreError::damaged(&self.path, format!("the counter \"{name}\" is missing"))
        })
    }

    pub(crate) fn entries(&self) -> Result<Vec<StoreChange>, StoreError> {
        let sql = "SELECT tbl, key, version, value, digest FROM entries ORDER BY version";
        self.read(sql, 0)
    }

    /// Reads the entries of the changes after a version; an entry that changed twice occurs twice, as it is now.
    fn remembered(&self, version: u64) -> Result<Vec<StoreChange>, StoreError> {
        let sql = "SELECT c.tbl, c.key, coalesce(e.version, c.version), e.value, e.digest
            FROM changes c LEFT JOIN entries e ON e.tbl = c.tbl AND e.key = c.key
            WHERE c.version > ?1 ORDER BY c.version";
        self.read(sql, version)
    }

    fn read(&self, sql: &str, version: u64) -> Result<Vec<StoreChange>, StoreError> {
        let mut statement = self
            .connection
            .prepare(sql)
            .map_err(|cause| self.failure(cause))?;
        let known = [signed(version)];
        let known = match statement.parameter_count() {
            0 => &known[..0],
            _ => &known[..],
        };
        let rows = statement.query_map(rusqlite::params_from_iter(known), stored_entry);
        let rows = rows.map_err(|cause| self.failure(cause))?;
        rows.map(|row| {
            let entry = row.map_err(|cause| self.failure(cause))?;
            let name = format!("{}/{}", entry.table, entry.key);
            entry.check().ok_or_else(|| {
                StoreError::damaged(
                    &self.path,
                    format!("the entry {name} does not match its digest"),
                )
            })
        })
        .collect()
    }

    /// Writes changes and raises the version, within a transaction.
    pub(crate) fn write(&self, changes: &[StoreChange]) -> Result<(), StoreError> {
        let wrong = |cause| self.failure(cause);
        let mut put = self
            .connection
            .prepare_cached(
                "INSERT INTO entries (tbl, key, value, version, digest) VALUES (?1, ?2, ?3, ?4, ?5)
                ON CONFLICT (tbl, key) DO UPDATE SET value = ?3, version = ?4, digest = ?5",
            )
            .map_err(wrong)?;
        let mut remove = self
            .connection
            .prepare_cached("DELETE FROM entries WHERE tbl = ?1 AND key = ?2")
            .map_err(wrong)?;
        let mut remember = self
            .connection
            .prepare_cached(
                "INSERT OR REPLACE INTO changes (version, tbl, key) VALUES (?1, ?2, ?3)",
            )
            .map_err(wrong)?;
        for StoreChange {
            version,
            table,
            key,
            value,
        } in changes
        {
            match value {
                Some(value) => {
                    let text = value.to_string();
                    let digest = entry_digest(*version, table, key, &text);
                    put.execute(params![table, key, text, signed(*version), digest])
                }
                None => remove.execute(params![table, key]),
            }
            .map_err(wrong)?;
            remember
                .execute(params![signed(*version), table, key])
                .map_err(wrong)?;
        }
        let newest = changes.iter().map(|change| change.version).max();
        newest.map_or(Ok(()), |newest| self.set_version(newest))
    }

    /// Sets the version of the last change, and forgets old changes.
    fn set_version(&self, newest: u64) -> Result<(), StoreError> {
        let forgotten = newest.saturating_sub(REMEMBERED_CHANGES);
        let done = (|| {
            let sql = "UPDATE counters SET value = max(value, ?2) WHERE name = ?1";
            let mut set = self.connection.prepare_cached(sql)?;
            set.execute(params!["version", signed(newest)])?;
            set.execute(params!["forgotten", signed(forgotten)])?;
            let sql = "DELETE FROM changes WHERE version <= ?1";
            self.connection
                .prepare_cached(sql)?
                .execute([signed(forgotten)])
        })();
        done.map(drop).map_err(|cause| self.failure(cause))
    }

    /// Returns whether the file of an earlier version was read into this database.
    pub(crate) fn is_migrated(&self) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM counters WHERE name = 'migrated')";
        let found = self.connection.query_row(sql, [], |row| row.get(0));
        found.map_err(|cause| self.failure(cause))
    }

    /// Stores the entries of a state file of an earlier version, whose last change had a version, within a transaction.
    pub(crate) fn migrate(&self, entries: &[StoreChange], version: u64) -> Result<(), StoreError> {
        self.restore(entries, version)?;
        self.batch("INSERT INTO counters VALUES ('migrated', 1)")
    }

    /// Stores entries with the versions that they had, within a transaction. Versions never restart; otherwise a used
    /// version could match again.
    pub(crate) fn restore(&self, entries: &[StoreChange], version: u64) -> Result<(), StoreError> {
        self.write(entries)?;
        self.set_version(version)
    }
}

/// Row of the database, not checked yet.
struct StoredEntry {
    table: String,
    key: String,
    version: i64,
    text: Option<String>,
    digest: Option<Vec<u8>>,
}

fn stored_entry(row: &Row<'_>) -> rusqlite::Result<StoredEntry> {
    Ok(StoredEntry {
        table: row.get(0)?,
        key: row.get(1)?,
        version: row.get(2)?,
        text: row.get(3)?,
        digest: row.get(4)?,
    })
}

impl StoredEntry {
    /// Returns the entry, or `None` if it does not match its digest.
    fn check(self) -> Option<StoreChange> {
        let version = u64::try_from(self.version).ok()?;
        let value = match self.text {
            Some(text) => {
                let digest = entry_digest(version, &self.table, &self.key, &text);
                if self.digest.as_deref() != Some(&digest) {
                    return None;
                }
                Some(parse(&text)?)
            }
            None => None,
        };
        Some(StoreChange {
            version,
            table: self.table,
            key: self.key,
            value,
        })
    }
}

fn parse(text: &str) -> Option<Value> {
    Some(Json::read_stored(text.as_bytes()).ok()?.to_value())
}

/// Returns a version as SQLite stores it. No database reaches 2^63 changes.
fn signed(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

/// Classifies an error of SQLite: corrupt file, refusal for now, or a disk that is not to be trusted any more.
fn failure(path: &Path, cause: rusqlite::Error) -> StoreError {
    match cause.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::damaged(path, cause.to_string())
        }
        // After a failed sync, the system may have dropped data that looks written.
        Some(ErrorCode::SystemIoFailure) => StoreError::Failed(cause.to_string().into()),
        _ if matches!(cause, rusqlite::Error::InvalidColumnType(..)) => {
            StoreError::damaged(path, cause.to_string())
        }
        _ => StoreError::Database {
            path: path.to_owned(),
            cause: Arc::new(cause),
        },
    }
}
