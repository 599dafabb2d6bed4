//! Copies of the audit logs of all gateways: pieces of segments, and for each chain the place of the next piece.
//!
//! The copies have a connection of their own, so that they neither wait for changes of the state nor delay them.

use super::{
    PostgresAddress, schema,
    session::{self, Connected, failure, signed, unsigned},
};
use crate::StoreError;
use std::time::Duration;
use tokio_postgres::{Row, types::ToSql};

/// Copy of one chain of an audit log: how far it reaches.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CopiedChain {
    /// ID of the chain.
    pub chain: String,
    /// Name of the gateway that copies the chain.
    pub gateway: String,
    /// First segment of the part that reaches to the end without a gap.
    pub first_segment: u64,
    /// Segment of the last copied record.
    pub segment: u64,
    /// Number of copied bytes of that segment.
    pub bytes: u64,
    /// Sequence number of the last copied record.
    pub seq: u64,
    /// Hash of the last copied record.
    pub head: String,
    /// Length of the line of that record, with its newline.
    pub line_bytes: u64,
    /// Last segment that the copied records say is retired; 0 if there is none.
    pub retired: u64,
    /// Time of the last piece in Unix milliseconds.
    pub copied_at: u64,
    /// Reason why the gateway no longer copies the chain.
    pub problem: Option<String>,
}

/// Piece of the copy of a segment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AuditPiece {
    /// Number of the segment.
    pub segment: u64,
    /// Offset of the piece in the segment.
    pub start: u64,
    /// Bytes of the segment from that offset on.
    pub bytes: Vec<u8>,
}

/// Size of the copy of one chain.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CopiedSegments {
    /// ID of the chain.
    pub chain: String,
    /// Number of segments.
    pub segments: u64,
    /// Number of bytes of all segments.
    pub bytes: u64,
}

/// Number and size of removed copies of segments.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RemovedCopies {
    /// Number of segments.
    pub segments: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Connection to the copies of the audit logs. After an error, it must not be used again.
pub struct AuditCopies {
    connected: Connected,
    timeout: Duration,
}

impl AuditCopies {
    /// Connects to the database, and raises its schema if necessary.
    ///
    /// # Errors
    /// The database cannot be reached, or has no tables for copies.
    pub async fn connect(
        address: &PostgresAddress,
        timeout: Duration,
    ) -> Result<AuditCopies, StoreError> {
        let connected = session::connect(address, timeout, None).await?;
        schema::raise(&connected.client).await?;
        Ok(AuditCopies { connected, timeout })
    }

    /// Returns how far the copy of each chain reaches, sorted by chain.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn chains(&self) -> Result<Vec<CopiedChain>, StoreError> {
        let sql = "SELECT chain, gateway, first_segment, segment, bytes, seq, head, line_bytes, retired, copied_at, problem
            FROM toolgate.audit_copies ORDER BY chain";
        let rows = self.query(sql, &[]).await?;
        Ok(rows.iter().map(read_chain).collect())
    }

    /// Returns the size of the copy of each chain, sorted by chain.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn sizes(&self) -> Result<Vec<CopiedSegments>, StoreError> {
        let sql = "SELECT chain, count(DISTINCT segment), sum(length(bytes))::bigint
            FROM toolgate.audit_pieces GROUP BY chain ORDER BY chain";
        let rows = self.query(sql, &[]).await?;
        let read = |row: &Row| CopiedSegments {
            chain: row.get(0),
            segments: unsigned(row.get(1)),
            bytes: unsigned(row.get(2)),
        };
        Ok(rows.iter().map(read).collect())
    }

    /// Adds a piece, if the copy of the chain still ends as `before` says. Returns false if it does not.
    ///
    /// # Errors
    /// The database cannot be written. The piece may have been added nevertheless, so read the chains again.
    pub async fn append(
        &mut self,
        before: Option<&CopiedChain>,
        after: &CopiedChain,
        piece: &AuditPiece,
    ) -> Result<bool, StoreError> {
        let timeout = self.timeout;
        within(timeout, self.append_piece(before, after, piece)).await
    }

    async fn append_piece(
        &mut self,
        before: Option<&CopiedChain>,
        after: &CopiedChain,
        piece: &AuditPiece,
    ) -> Result<bool, StoreError> {
        let wrong = |error| failure("copy the audit log", &error);
        let transaction = self.connected.client.transaction().await.map_err(wrong)?;
        let [first, segment, bytes, seq, line, retired, at] = [
            after.first_segment,
            after.segment,
            after.bytes,
            after.seq,
            after.line_bytes,
            after.retired,
            after.copied_at,
        ]
        .map(signed);
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![
            &after.chain,
            &after.gateway,
            &first,
            &segment,
            &bytes,
            &seq,
            &after.head,
            &line,
            &retired,
            &at,
        ];
        let (before_segment, before_bytes) = before.map_or((0, 0), |before| {
            (signed(before.segment), signed(before.bytes))
        });
        let sql = match before {
            None => {
                "INSERT INTO toolgate.audit_copies
                    (chain, gateway, first_segment, segment, bytes, seq, head, line_bytes, retired, copied_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING"
            }
            Some(before) => {
                parameters.extend([
                    &before_segment as &(dyn ToSql + Sync),
                    &before_bytes,
                    &before.head,
                ]);
                "UPDATE toolgate.audit_copies SET gateway = $2, first_segment = $3, segment = $4, bytes = $5, seq = $6,
                    head = $7, line_bytes = $8, retired = $9, copied_at = $10, problem = NULL
                WHERE chain = $1 AND segment = $11 AND bytes = $12 AND head = $13"
            }
        };
        if transaction.execute(sql, &parameters).await.map_err(wrong)? == 0 {
            transaction.rollback().await.map_err(wrong)?;
            return Ok(false);
        }
        let [segment, start] = [piece.segment, piece.start].map(signed);
        let parameters: [&(dyn ToSql + Sync); 5] =
            [&after.chain, &segment, &start, &at, &piece.bytes];
        // An existing piece is never replaced: it is an error.
        let sql = "INSERT INTO toolgate.audit_pieces (chain, segment, start, copied_at, bytes) VALUES ($1, $2, $3, $4, $5)";
        transaction.execute(sql, &parameters).await.map_err(wrong)?;
        transaction.commit().await.map_err(wrong)?;
        Ok(true)
    }

    /// Notes why a gateway no longer copies a chain, or `None` if it does.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn set_problem(
        &self,
        chain: &str,
        gateway: &str,
        problem: Option<&str>,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE toolgate.audit_copies SET gateway = $2, problem = $3 WHERE chain = $1";
        let parameters: [&(dyn ToSql + Sync); 3] = [&chain, &gateway, &problem];
        let done = async {
            let done = self.connected.client.execute(sql, &parameters).await;
            done.map_err(|error| failure("write the copies of the audit logs", &error))
        };
        within(self.timeout, done).await.map(drop)
    }

    /// Returns the piece of a chain that follows a place (segment and offset), or begins at it.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn piece_from(
        &self,
        chain: &str,
        (segment, start): (u64, u64),
    ) -> Result<Option<AuditPiece>, StoreError> {
        let sql = "SELECT segment, start, bytes FROM toolgate.audit_pieces
            WHERE chain = $1 AND (segment, start) >= ($2, $3) ORDER BY segment, start LIMIT 1";
        let place = [segment, start].map(signed);
        let rows = self.query(sql, &[&chain, &place[0], &place[1]]).await?;
        Ok(rows.first().map(|row| AuditPiece {
            segment: unsigned(row.get(0)),
            start: unsigned(row.get(1)),
            bytes: row.get(2),
        }))
    }

    /// Removes the copies of retired segments whose last piece was copied before a UTC day, such as `2026-11-30`.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn remove_retired(&self, before: &str) -> Result<RemovedCopies, StoreError> {
        let sql = "WITH old AS (
                SELECT p.chain, p.segment FROM toolgate.audit_pieces p
                JOIN toolgate.audit_copies c ON c.chain = p.chain AND p.segment <= c.retired AND p.segment < c.segment
                GROUP BY p.chain, p.segment HAVING max(p.copied_at) < extract(epoch FROM $1::text::timestamp) * 1000
            ), gone AS (
                DELETE FROM toolgate.audit_pieces p USING old
                WHERE p.chain = old.chain AND p.segment = old.segment
                RETURNING p.chain, p.segment, length(p.bytes) AS size
            )
            SELECT count(DISTINCT (chain, segment)), coalesce(sum(size), 0)::bigint FROM gone";
        let rows = self.query(sql, &[&before]).await?;
        let removed = rows.first().map(|row| RemovedCopies {
            segments: unsigned(row.get(0)),
            bytes: unsigned(row.get(1)),
        });
        Ok(removed.unwrap_or_default())
    }

    async fn query(
        &self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        let rows = async {
            let rows = self.connected.client.query(sql, parameters).await;
            rows.map_err(|error| failure("read the copies of the audit logs", &error))
        };
        within(self.timeout, rows).await
    }
}

/// Bounds the time of a request, since a server that hangs does not answer.
async fn within<T>(
    timeout: Duration,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(timeout, work).await {
        Ok(done) => done,
        Err(_) => Err(StoreError::Away(
            format!("PostgreSQL: no answer within {} ms", timeout.as_millis()).into(),
        )),
    }
}

fn read_chain(row: &Row) -> CopiedChain {
    let number = |at: usize| unsigned(row.get(at));
    CopiedChain {
        chain: row.get(0),
        gateway: row.get(1),
        first_segment: number(2),
        segment: number(3),
        bytes: number(4),
        seq: number(5),
        head: row.get(6),
        line_bytes: number(7),
        retired: number(8),
        copied_at: number(9),
        problem: row.get(10),
    }
}
