//! Schema of the database, and its migrations.

use super::{PostgresAddress, session};
use crate::StoreError;
use std::time::Duration;
use tokio_postgres::Client;

/// Migrations, in order. Each raises the version of the schema by one, in one transaction.
///
/// A migration that older programs cannot work with sets `oldest` to its own version.
const MIGRATIONS: &[&str] = &[
    // 1: entries, their changes and counters. The digest of a key is indexed, since an index entry has a maximum size.
    "CREATE TABLE toolgate.entries (
        space text COLLATE \"C\" NOT NULL,
        tbl text COLLATE \"C\" NOT NULL,
        id bytea NOT NULL,
        key text COLLATE \"C\" NOT NULL,
        value text NOT NULL,
        version bigint NOT NULL,
        PRIMARY KEY (space, tbl, id)
    );
    CREATE TABLE toolgate.changes (
        space text COLLATE \"C\" NOT NULL,
        version bigint NOT NULL,
        tbl text COLLATE \"C\" NOT NULL,
        id bytea NOT NULL,
        key text COLLATE \"C\" NOT NULL,
        PRIMARY KEY (space, version)
    );
    CREATE TABLE toolgate.counters (
        space text COLLATE \"C\" NOT NULL,
        name text COLLATE \"C\" NOT NULL,
        value bigint NOT NULL,
        PRIMARY KEY (space, name)
    ) WITH (fillfactor = 50);",
    // 2: copies of the audit logs. Pieces of segments are only added; `audit_copies` says where the next one begins.
    "CREATE TABLE toolgate.audit_copies (
        chain text COLLATE \"C\" PRIMARY KEY,
        gateway text NOT NULL,
        first_segment bigint NOT NULL,
        segment bigint NOT NULL,
        bytes bigint NOT NULL,
        seq bigint NOT NULL,
        head text NOT NULL,
        line_bytes bigint NOT NULL,
        retired bigint NOT NULL,
        copied_at bigint NOT NULL,
        problem text
    );
    CREATE TABLE toolgate.audit_pieces (
        chain text COLLATE \"C\" NOT NULL,
        segment bigint NOT NULL,
        start bigint NOT NULL,
        copied_at bigint NOT NULL,
        bytes bytea NOT NULL,
        PRIMARY KEY (chain, segment, start)
    );",
];

/// Lock of migrations among all gateways: \"tgst\".
const MIGRATION_LOCK: i64 = 0x7467_7374;

/// Creates the tables of the database, or raises their version. Returns the version of the schema. Blocks.
///
/// # Errors
/// The database cannot be reached, the user may not create tables, or a newer program owns the schema.
pub fn migrate(address: &PostgresAddress) -> Result<i64, StoreError> {
    session::block_on(async {
        let connected = session::connect(address, Duration::from_secs(10), None).await?;
        raise(&connected.client).await
    })
}

/// Raises the schema to the version of this program. Returns the version of the schema, which may be newer.
pub(super) async fn raise(client: &Client) -> Result<i64, StoreError> {
    let wrong = |error| session::failure("prepare the tables", &error);
    let newest = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    // Without the right to create tables, a gateway can use tables that someone else created.
    if let Some(found) = version(client).await.map_err(wrong)?
        && found.version >= newest
    {
        return found.check(newest);
    }
    let raised = raise_locked(client, newest).await;
    if raised.is_err() {
        // The error of the migration is the one to report.
        let _ = client.batch_execute("ROLLBACK").await;
    }
    raised
}

async fn raise_locked(client: &Client, newest: i64) -> Result<i64, StoreError> {
    let wrong = |error| session::failure("create the tables", &error);
    let begin = format!("BEGIN; SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
    client.batch_execute(&begin).await.map_err(wrong)?;
    client
        .batch_execute(
            "CREATE SCHEMA IF NOT EXISTS toolgate;
            CREATE TABLE IF NOT EXISTS toolgate.schema (version bigint NOT NULL, oldest bigint NOT NULL)",
        )
        .await
        .map_err(wrong)?;
    let found = version(client).await.map_err(wrong)?;
    let found = found.unwrap_or(SchemaVersion {
        version: 0,
        oldest: 1,
    });
    found.check(newest)?;
    for (at, sql) in (1..).zip(MIGRATIONS) {
        if at > found.version {
            client.batch_execute(sql).await.map_err(wrong)?;
        }
    }
    let version = found.version.max(newest);
    let oldest = found.oldest;
    let note = format!(
        "DELETE FROM toolgate.schema; INSERT INTO toolgate.schema VALUES ({version}, {oldest}); COMMIT"
    );
    client.batch_execute(&note).await.map_err(wrong)?;
    Ok(version)
}

/// Version of the schema in the database.
struct SchemaVersion {
    version: i64,
    /// Oldest version whose programs may use the schema.
    oldest: i64,
}

impl SchemaVersion {
    /// Returns the version if a program that knows versions up to `known` may use it.
    fn check(&self, known: i64) -> Result<i64, StoreError> {
        match self.oldest <= known {
            true => Ok(self.version),
            false => Err(StoreError::Refused(format!(
                "the schema of the shared store has version {}, and this program knows only {known}; use a newer version of toolgate",
                self.version
            ))),
        }
    }
}

async fn version(client: &Client) -> Result<Option<SchemaVersion>, tokio_postgres::Error> {
    let sql = "SELECT to_regclass('toolgate.schema') IS NOT NULL";
    if !client.query_one(sql, &[]).await?.get::<_, bool>(0) {
        return Ok(None);
    }
    let sql = "SELECT version, oldest FROM toolgate.schema";
    let row = client.query_opt(sql, &[]).await?;
    Ok(row.map(|row| SchemaVersion {
        version: row.get(0),
        oldest: row.get(1),
    }))
}
