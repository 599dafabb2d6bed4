//! One connection to the database: transactions, and notices of changes.

use super::{
    PostgresAddress,
    messages::MESSAGE_CHANNEL,
    pipeline::{Request, in_order},
    schema,
};
use crate::{StoreError, change::StoreChange, clock_row, queued_change::PlannedChange};
use ring::digest::{SHA256, digest};
use serde_json::Value;
use std::{
    error::Error as _,
    future::poll_fn,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{Notify, broadcast},
    task::JoinHandle,
};
use tokio_postgres::{
    AsyncMessage, Client, Connection, NoTls, Row, Statement, config::SslMode, error::SqlState,
    types::ToSql,
};
use toolgate_policy::{WriteOutcome, WritePrecondition};
use toolgate_protocol::json::Json;

/// Channel of the notices of changes. Their payload is the space, and the version of the last change.
const CHANNEL: &str = "toolgate";
/// Number of changes that the database remembers. A gateway that missed more reads all entries again.
const REMEMBERED_CHANGES: i64 = 4096;

/// Changes of other gateways, or all entries.
pub(super) struct SharedChanges {
    /// True if these are all entries.
    pub(super) are_all: bool,
    pub(super) changes: Vec<StoreChange>,
    /// Version of the last change of any gateway.
    pub(super) version: u64,
}

/// Result of a committed batch of changes.
pub(super) struct CommittedBatch {
    pub(super) outcomes: Vec<WriteOutcome>,
    pub(super) changes: Vec<StoreChange>,
    /// Version before the batch.
    pub(super) before: u64,
}

/// Client, and the task that reads its connection.
pub(super) struct Connected {
    pub(super) client: Client,
    reader: JoinHandle<()>,
    notified: Arc<Notify>,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Runs work on a runtime of its own.
pub(super) fn block_on<T>(
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| StoreError::Away(format!("its thread cannot be started: {e}").into()))?;
    let done = runtime.block_on(work);
    // A name may still be looked up in a thread of the runtime.
    runtime.shutdown_background();
    done
}

/// Connects to the database, with time limits for all that the server does.
pub(super) async fn connect(
    address: &PostgresAddress,
    timeout: Duration,
    incoming: Option<broadcast::Sender<String>>,
) -> Result<Connected, StoreError> {
    let connecting = async {
        match &address.tls {
            Some(tls) if address.config.get_ssl_mode() == SslMode::Require => {
                let connected = address.config.connect(tls.clone()).await;
                let (client, connection) = connected.map_err(|e| connect_failure(address, &e))?;
                Ok(drive(client, connection, incoming))
            }
            _ => {
                let connected = address.config.connect(NoTls).await;
                let (client, connection) = connected.map_err(|e| connect_failure(address, &e))?;
                Ok(drive(client, connection, incoming))
            }
        }
    };
    let prepared = async {
        let connected: Connected = connecting.await?;
        // A transaction of a stopped gateway must not hold the lock of all others.
        let milliseconds = timeout.as_millis();
        let settings = format!(
            "SET statement_timeout = {milliseconds}; SET lock_timeout = {milliseconds};
            SET idle_in_transaction_session_timeout = {milliseconds};
            SELECT set_config('synchronous_commit', 'on', false)
            WHERE current_setting('synchronous_commit') IN ('off', 'local')"
        );
        let client = &connected.client;
        let set = client.batch_execute(&settings).await;
        set.map_err(|e| failure("prepare a connection", &e))?;
        let encoding = client.query_one("SHOW server_encoding", &[]).await;
        let encoding = encoding.map_err(|e| failure("prepare a connection", &e))?;
        match encoding.get(0) {
            "UTF8" => Ok(connected),
            other => Err(StoreError::Refused(format!(
                "the database of the shared store has the encoding {other}; create one with ENCODING 'UTF8'"
            ))),
        }
    };
    match tokio::time::timeout(timeout, prepared).await {
        Ok(done) => done,
        Err(_) => Err(address.away(format!("no answer within {} ms", timeout.as_millis()))),
    }
}

/// Starts to read a connection.
#[allow(
    clippy::disallowed_methods,
    reason = "the task belongs to the runtime of this thread alone, and ends with its client"
)]
fn drive<S, T>(
    client: Client,
    mut connection: Connection<S, T>,
    incoming: Option<broadcast::Sender<String>>,
) -> Connected
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let notified = Arc::new(Notify::new());
    let notify = notified.clone();
    let reader = tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            let AsyncMessage::Notification(notice) = message else {
                continue;
            };
            match &incoming {
                Some(incoming) if notice.channel() == MESSAGE_CHANNEL => {
                    // Without a reader, the message is lost.
                    let _ = incoming.send(notice.payload().to_owned());
                }
                _ => notify.notify_one(),
            }
        }
    });
    Connected {
        client,
        reader,
        notified,
    }
}

/// Connection that follows one space.
pub(super) struct Session {
    connected: Connected,
    space: &'static str,
    statements: Statements,
    /// Version below which this gateway has removed remembered changes.
    trimmed: i64,
}

struct Statements {
    lock: Statement,
    put: Statement,
    insert: Statement,
    replace: Statement,
    remove: Statement,
    remove_version: Statement,
    notify: Statement,
    counters: Statement,
    changes: Statement,
    entries: Statement,
}

/// Parameters `$1` to `$4` of all changes: space, table, digest of the key, and key. A change takes the next version,
/// raises the counter, and remembers itself, or does nothing of these.
const NEXT: &str =
    "(SELECT value + 1 FROM toolgate.counters WHERE space = $1 AND name = 'version')";
const REMEMBER: &str = "n AS (UPDATE toolgate.counters SET value = d.version FROM d WHERE space = $1 AND name = 'version')
    INSERT INTO toolgate.changes (space, version, tbl, id, key) SELECT $1, version, $2, $3, $4 FROM d RETURNING version";

impl Session {
    /// Connects, raises the schema if necessary, and listens for changes.
    pub(super) async fn open(
        address: &PostgresAddress,
        space: &'static str,
        timeout: Duration,
        incoming: Option<broadcast::Sender<String>>,
    ) -> Result<Session, StoreError> {
        let connected = connect(address, timeout, incoming).await?;
        schema::raise(&connected.client).await?;
        let wrong = |error| failure("read the tables", &error);
        let client = &connected.client;
        // The counters of a space exist before anything locks them.
        let counters = "INSERT INTO toolgate.counters (space, name, value) VALUES ($1, 'version', 0), ($1, 'forgotten', 0)
            ON CONFLICT DO NOTHING";
        client.execute(counters, &[&space]).await.map_err(wrong)?;
        let listen = format!("LISTEN {CHANNEL}; LISTEN {MESSAGE_CHANNEL}");
        client.batch_execute(&listen).await.map_err(wrong)?;
        let statements = Statements::prepare(client).await.map_err(wrong)?;
        Ok(Session {
            connected,
            space,
            statements,
            trimmed: 0,
        })
    }

    /// Completes when a notice of a change comes.
    pub(super) async fn notified(&self) {
        self.connected.notified.notified().await;
    }

    /// Returns true if the connection ended.
    pub(super) fn is_closed(&self) -> bool {
        self.connected.client.is_closed()
    }

    /// Sends messages to all gateways.
    pub(super) async fn send_messages(&self, messages: &[String]) -> Result<(), StoreError> {
        let sql = "SELECT pg_notify($1, message) FROM unnest($2::text[]) AS message";
        let client = &self.connected.client;
        let parameters: [&(dyn ToSql + Sync); 2] = [&MESSAGE_CHANNEL, &messages];
        let sent = client.execute(sql, &parameters).await;
        sent.map(drop)
            .map_err(|error| failure("send a message", &error))
    }

    /// Returns the version of the last change, and the difference between the clock of the database and ours.
    pub(super) async fn poll(&self) -> Result<(u64, SystemTime), StoreError> {
        let wrong = |error| failure("read the tables", &error);
        let (client, statement) = (&self.connected.client, &self.statements.counters);
        let rows = client.query(statement, &[&self.space]).await;
        let (version, _, time) = read_counters(&rows.map_err(wrong)?)?;
        Ok((unsigned(version), time))
    }

    /// Reads the changes since a version, or all entries.
    pub(super) async fn changes_since(
        &self,
        known: Option<u64>,
    ) -> Result<SharedChanges, StoreError> {
        let since = known.map_or(i64::MAX, signed);
        let parameters: [&(dyn ToSql + Sync); 2] = [&self.space, &since];
        let statement = &self.statements.changes;
        let (version, forgotten, changes) = self.read_at_once(statement, &parameters).await?;
        // A database that was set back to an earlier state is read as a whole.
        let remembered = (forgotten..=version).contains(&since);
        match remembered {
            true => Ok(SharedChanges {
                are_all: false,
                changes: read_changes(&changes)?,
                version: unsigned(version),
            }),
            false => self.all_entries().await,
        }
    }

    /// Reads all entries.
    pub(super) async fn all_entries(&self) -> Result<SharedChanges, StoreError> {
        let statement = &self.statements.entries;
        let (version, _, entries) = self.read_at_once(statement, &[&self.space]).await?;
        Ok(SharedChanges {
            are_all: true,
            changes: read_changes(&entries)?,
            version: unsigned(version),
        })
    }

    /// Reads the versions of the last change and of the newest forgotten one, and the rows of a statement, all of the
    /// same moment and in one round trip.
    async fn read_at_once(
        &self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<(i64, i64, Vec<Row>), StoreError> {
        let wrong = |error| failure("read the tables", &error);
        let client = &self.connected.client;
        let requests: Vec<Request<'_, Result<Vec<Row>, tokio_postgres::Error>>> = vec![
            begin(client, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
            Box::pin(client.query(&self.statements.counters, &parameters[..1])),
            Box::pin(client.query(statement, parameters)),
            begin(client, "COMMIT"),
        ];
        let mut answers = in_order(requests).await.into_iter();
        let mut next = || answers.next().unwrap_or_else(|| Ok(Vec::new()));
        next().map_err(wrong)?;
        let (version, forgotten, _) = read_counters(&next().map_err(wrong)?)?;
        let rows = next().map_err(wrong)?;
        next().map_err(wrong)?;
        Ok((version, forgotten, rows))
    }

    /// Decides changes and stores them, in one transaction and one round trip.
    ///
    /// The lock of the counter gives transactions an order, so each statement sees what those before it committed.
    pub(super) async fn commit(
        &mut self,
        wanted: &[PlannedChange],
    ) -> Result<CommittedBatch, StoreError> {
        let bound: Vec<BoundChange> = wanted.iter().map(BoundChange::of).collect();
        let (client, space) = (&self.connected.client, &self.space);
        let only_space: [&(dyn ToSql + Sync); 1] = [space];
        let parameters: Vec<Vec<&(dyn ToSql + Sync)>> = bound
            .iter()
            .map(|change| change.parameters(space))
            .collect();
        let mut requests: Vec<Request<'_, Result<Vec<Row>, tokio_postgres::Error>>> = vec![
            begin(client, "BEGIN"),
            Box::pin(client.query(&self.statements.lock, &only_space)),
        ];
        for (change, parameters) in bound.iter().zip(&parameters) {
            let statement = change.statement(&self.statements);
            requests.push(Box::pin(client.query(statement, parameters)));
        }
        requests.push(Box::pin(client.query(&self.statements.notify, &only_space)));
        requests.push(begin(client, "COMMIT"));
        let answers = in_order(requests).await;
        let answers: Result<Vec<Vec<Row>>, _> = answers.into_iter().collect();
        let answers = answers.map_err(|error| failure("store a change", &error))?;
        let before = match answers.get(1).and_then(|rows| rows.first()) {
            Some(row) => row.get::<_, i64>(0),
            None => return Err(missing_counters()),
        };
        let mut batch = CommittedBatch {
            outcomes: Vec::with_capacity(wanted.len()),
            changes: Vec::with_capacity(wanted.len()),
            before: unsigned(before),
        };
        for (change, rows) in wanted.iter().zip(answers.iter().skip(2)) {
            let version = rows.first().map(|row| unsigned(row.get::<_, i64>(0)));
            let Some(version) = version else {
                batch.outcomes.push(WriteOutcome::Conflict);
                continue;
            };
            batch.outcomes.push(WriteOutcome::Done(version));
            batch.changes.push(StoreChange {
                version,
                table: change.table.clone(),
                key: change.key.clone(),
                value: change.value.clone(),
            });
        }
        Ok(batch)
    }

    /// Raises the version of the last change.
    pub(super) async fn raise_version(&self, version: u64) -> Result<(), StoreError> {
        let sql = "UPDATE toolgate.counters SET value = greatest(value, $2) WHERE space = $1 AND name = ANY ('{version,forgotten}')";
        let client = &self.connected.client;
        let done = client.execute(sql, &[&self.space, &signed(version)]).await;
        done.map(drop)
            .map_err(|error| failure("raise the version", &error))
    }

    /// Stores entries with the versions that they had, all of them or none. The space must have no entries.
    pub(super) async fn restore(
        &mut self,
        entries: &[StoreChange],
        version: u64,
    ) -> Result<(), StoreError> {
        let wrong = |error| failure("import the entries", &error);
        let space = self.space;
        let transaction = self.connected.client.transaction().await.map_err(wrong)?;
        transaction
            .query_one(&self.statements.lock, &[&space])
            .await
            .map_err(wrong)?;
        // The clock is written by the first change of any gateway.
        let sql = "SELECT EXISTS (SELECT 1 FROM toolgate.entries WHERE space = $1 AND tbl <> $2)";
        let there = transaction
            .query_one(sql, &[&space, &clock_row::TABLE])
            .await;
        if there.map_err(wrong)?.get(0) {
            return Err(StoreError::Refused(format!(
                "the shared store already has entries of the space {space}; import into an empty database"
            )));
        }
        let insert = transaction
            .prepare(
                "INSERT INTO toolgate.entries (space, tbl, id, key, value, version) VALUES ($1, $2, $3, $4, $5, $6)
                ON CONFLICT (space, tbl, id) DO UPDATE SET value = excluded.value, version = excluded.version",
            )
            .await
            .map_err(wrong)?;
        for entry in entries {
            let Some(value) = entry.value.as_ref().map(Value::to_string) else {
                continue;
            };
            let parameters: [&(dyn ToSql + Sync); 6] = [
                &space,
                &entry.table,
                &key_id(&entry.key),
                &entry.key,
                &value,
                &signed(entry.version),
            ];
            transaction
                .execute(&insert, &parameters)
                .await
                .map_err(wrong)?;
        }
        // Every gateway reads all entries again.
        let sql = "UPDATE toolgate.counters SET value = greatest(value, $2) + 1 WHERE space = $1";
        transaction
            .execute(sql, &[&space, &signed(version)])
            .await
            .map_err(wrong)?;
        transaction
            .query(&self.statements.notify, &[&space])
            .await
            .map_err(wrong)?;
        transaction.commit().await.map_err(wrong)
    }

    /// Removes remembered changes that no gateway needs any more, from time to time.
    pub(super) async fn trim(&mut self, version: u64) -> Result<(), StoreError> {
        let forgotten = signed(version) - REMEMBERED_CHANGES;
        if forgotten < self.trimmed + REMEMBERED_CHANGES / 8 {
            return Ok(());
        }
        self.trimmed = forgotten;
        let client = &self.connected.client;
        let sql = "WITH f AS (UPDATE toolgate.counters SET value = greatest(value, $2)
                WHERE space = $1 AND name = 'forgotten')
            DELETE FROM toolgate.changes WHERE space = $1 AND version <= $2";
        let done = client.execute(sql, &[&self.space, &forgotten]).await;
        done.map(drop)
            .map_err(|error| failure("remove old changes", &error))
    }
}

impl Statements {
    async fn prepare(client: &Client) -> Result<Statements, tokio_postgres::Error> {
        let put = |conflict: &str| {
            format!(
                "WITH d AS (INSERT INTO toolgate.entries AS e (space, tbl, id, key, value, version)
                    VALUES ($1, $2, $3, $4, $5, {NEXT})
                    ON CONFLICT (space, tbl, id) {conflict} RETURNING version), {REMEMBER}"
            )
        };
        let replace = format!(
            "WITH d AS (UPDATE toolgate.entries SET value = $5, version = {NEXT}
                WHERE space = $1 AND tbl = $2 AND id = $3 AND key = $4 AND version = $6 RETURNING version), {REMEMBER}"
        );
        let remove = format!(
            "WITH r AS (DELETE FROM toolgate.entries WHERE space = $1 AND tbl = $2 AND id = $3 AND key = $4),
                d AS (SELECT {NEXT} AS version), {REMEMBER}"
        );
        let remove_version = format!(
            "WITH r AS (DELETE FROM toolgate.entries
                WHERE space = $1 AND tbl = $2 AND id = $3 AND key = $4 AND version = $5 RETURNING key),
                d AS (SELECT {NEXT} AS version FROM r), {REMEMBER}"
        );
        Ok(Statements {
            lock: client
                .prepare("SELECT value FROM toolgate.counters WHERE space = $1 AND name = 'version' FOR UPDATE")
                .await?,
            put: client
                .prepare(&put("DO UPDATE SET value = excluded.value, version = excluded.version"))
                .await?,
            insert: client.prepare(&put("DO NOTHING")).await?,
            replace: client.prepare(&replace).await?,
            remove: client.prepare(&remove).await?,
            remove_version: client.prepare(&remove_version).await?,
            notify: client
                .prepare(&format!(
                    "SELECT pg_notify('{CHANNEL}', space || ':' || value) FROM toolgate.counters WHERE space = $1 AND name = 'version'"
                ))
                .await?,
            counters: client
                .prepare("SELECT name, value, extract(epoch FROM clock_timestamp())::float8 FROM toolgate.counters WHERE space = $1")
                .await?,
            changes: client
                .prepare(
                    "SELECT c.tbl, c.key, coalesce(e.version, c.version), e.value
                    FROM toolgate.changes c LEFT JOIN toolgate.entries e USING (space, tbl, id)
                    WHERE space = $1 AND c.version > $2 ORDER BY c.version",
                )
                .await?,
            entries: client
                .prepare("SELECT tbl, key, version, value FROM toolgate.entries WHERE space = $1 ORDER BY version")
                .await?,
        })
    }
}

/// Change with the values that the database gets.
struct BoundChange<'a> {
    change: &'a PlannedChange,
    id: Vec<u8>,
    value: Option<String>,
    version: i64,
}

impl<'a> BoundChange<'a> {
    fn of(change: &'a PlannedChange) -> BoundChange<'a> {
        BoundChange {
            id: key_id(&change.key),
            value: change.value.as_ref().map(Value::to_string),
            version: match change.expect {
                WritePrecondition::Version(version) => signed(version),
                _ => 0,
            },
            change,
        }
    }

    fn statement<'s>(&self, statements: &'s Statements) -> &'s Statement {
        match (&self.value, self.change.expect) {
            (Some(_), WritePrecondition::Any) => &statements.put,
            (Some(_), WritePrecondition::Absent) => &statements.insert,
            (Some(_), WritePrecondition::Version(_)) => &statements.replace,
            // No precondition of ours removes what is absent.
            (None, WritePrecondition::Any | WritePrecondition::Absent) => &statements.remove,
            (None, WritePrecondition::Version(_)) => &statements.remove_version,
        }
    }

    fn parameters<'p>(&'p self, space: &'p &'static str) -> Vec<&'p (dyn ToSql + Sync)> {
        let mut parameters: Vec<&(dyn ToSql + Sync)> =
            vec![space, &self.change.table, &self.id, &self.change.key];
        if let Some(value) = &self.value {
            parameters.push(value);
        }
        if let WritePrecondition::Version(_) = self.change.expect {
            parameters.push(&self.version);
        }
        parameters
    }
}

/// Returns the digest by which a key is indexed. An index entry of PostgreSQL has at most 2,704 bytes.
pub(super) fn key_id(key: &str) -> Vec<u8> {
    digest(&SHA256, key.as_bytes()).as_ref().to_vec()
}

/// Returns a request of a statement without answer.
fn begin<'a>(
    client: &'a Client,
    sql: &'a str,
) -> Request<'a, Result<Vec<Row>, tokio_postgres::Error>> {
    Box::pin(async move { client.batch_execute(sql).await.map(|()| Vec::new()) })
}

/// Reads the versions of the last change and of the newest forgotten one, and the time of the database.
fn read_counters(rows: &[Row]) -> Result<(i64, i64, SystemTime), StoreError> {
    let find = |name: &str| {
        let mut rows = rows.iter();
        let row = rows.find(|row| row.get::<_, &str>(0) == name);
        row.map(|row| row.get::<_, i64>(1))
            .ok_or_else(missing_counters)
    };
    let time = rows.first().map_or(0.0, |row| row.get::<_, f64>(2));
    let time = Duration::try_from_secs_f64(time).unwrap_or_default();
    Ok((find("version")?, find("forgotten")?, UNIX_EPOCH + time))
}

fn missing_counters() -> StoreError {
    StoreError::Refused(
        "the shared store has lost its counters; restore a backup of the database".to_owned(),
    )
}

fn read_changes(rows: &[Row]) -> Result<Vec<StoreChange>, StoreError> {
    let read = |row: &Row| {
        let (table, key): (String, String) = (row.get(0), row.get(1));
        let text: Option<&str> = row.get(3);
        let value = match text {
            None => None,
            Some(text) => {
                let json = Json::read_stored(text.as_bytes()).map_err(|_| {
                    StoreError::Refused(format!(
                        "the entry {table}/{key} of the shared store is not valid JSON; restore it from a backup"
                    ))
                })?;
                Some(json.to_value())
            }
        };
        Ok(StoreChange {
            version: unsigned(row.get(2)),
            table,
            key,
            value,
        })
    };
    rows.iter().map(read).collect()
}

pub(super) fn signed(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(version: i64) -> u64 {
    u64::try_from(version).unwrap_or_default()
}

fn connect_failure(address: &PostgresAddress, error: &tokio_postgres::Error) -> StoreError {
    let away = address.away(describe(error));
    match error.code() {
        // What an operator has to correct: the password, the role or the name of the database.
        Some(code)
            if [
                SqlState::INVALID_PASSWORD,
                SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
                SqlState::INVALID_CATALOG_NAME,
            ]
            .contains(code) =>
        {
            StoreError::Refused(away.detail())
        }
        _ => away,
    }
}

/// Classifies an error of a statement. The connection is closed after each of them.
pub(super) fn failure(doing: &str, error: &tokio_postgres::Error) -> StoreError {
    let text = format!("PostgreSQL cannot {doing}: {}", describe(error));
    match error.code() {
        Some(code)
            if [
                SqlState::INSUFFICIENT_PRIVILEGE,
                SqlState::UNDEFINED_TABLE,
                SqlState::UNDEFINED_COLUMN,
                SqlState::SYNTAX_ERROR,
            ]
            .contains(code) =>
        {
            StoreError::Refused(format!(
                "{text}; let the owner of the database run `toolgate store migrate`, and grant its rights to this user"
            ))
        }
        _ => StoreError::Away(text.into()),
    }
}

/// Returns the message of the database or of the connection, without the parameters of the statement.
fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(database) => format!("{} ({})", database.message(), database.code().code()),
        None => error
            .source()
            .map_or_else(|| error.to_string(), ToString::to_string),
    }
}
