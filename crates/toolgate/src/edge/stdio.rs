//! The stdio transport: a server on a pair of byte streams, one message a line, for all revisions.

use super::{
    ProtocolServer,
    connection::{self, MessageInput, ReceivedMessage},
    responder::OutgoingFrames,
};
use std::{io, sync::Arc};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use toolgate_core::Caller;
use toolgate_protocol::{
    json::{Json, JsonLimits},
    memory_budget::{BudgetExceeded, MemoryPermit},
};

/// Name of this transport in the audit log.
const TRANSPORT_NAME: &str = "stdio";
/// Size of the read buffer, in bytes.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// Serves one MCP client over a pair of byte streams until its input ends, which cancels its requests in flight. After
/// [`ProtocolServer::close`] new requests are rejected, and serving ends when the requests in flight have ended.
///
/// Specification: [stdio](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio).
///
/// # Errors
/// An I/O error of either stream. End of file is not an error.
pub async fn serve(
    server: Arc<ProtocolServer>,
    caller: Caller,
    reader: impl AsyncRead + Send + Unpin,
    writer: impl AsyncWrite + Send + Unpin,
) -> io::Result<()> {
    serve_until(server, caller, reader, writer, std::future::pending()).await
}

/// Serves one MCP client like [`serve`], and ends when `stop` completes: requests still in flight are cancelled, and
/// the responses that were already made are written. For a graceful shutdown, `stop` calls [`ProtocolServer::close`]
/// and then waits for as long as running calls may take.
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use toolgate::{core::Caller, edge::{self, ProtocolServer}};
/// # async fn f(server: Arc<ProtocolServer>) -> std::io::Result<()> {
/// let closing = server.clone();
/// let stop = async move {
///     let _ = tokio::signal::ctrl_c().await;
///     closing.close(); // rejects new requests; serving ends as soon as no call is running
///     tokio::time::sleep(Duration::from_secs(5)).await;
/// };
/// let (input, output) = edge::standard::streams();
/// edge::stdio::serve_until(server, Caller::new("stdio"), input, output, stop).await
/// # }
/// ```
///
/// # Errors
/// An I/O error of either stream. End of file is not an error.
pub async fn serve_until(
    server: Arc<ProtocolServer>,
    caller: Caller,
    reader: impl AsyncRead + Send + Unpin,
    writer: impl AsyncWrite + Send + Unpin,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let input = LineInput {
        reader: BufReader::with_capacity(READ_BUFFER_BYTES, reader),
        limits: server.limits.line_json(),
    };
    let client = (caller, TRANSPORT_NAME);
    let write = |frames| write_frames(frames, writer);
    connection::serve(server, client, input, write, stop).await
}

/// Size of one write, in bytes, if several messages are queued.
const WRITE_CHUNK_BYTES: usize = 64 * 1024;

/// Writes all queued messages at once, then flushes.
async fn write_frames(
    mut frames: OutgoingFrames,
    mut writer: impl AsyncWrite + Send + Unpin,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(first) = frames.recv().await {
        let mut next = Some(first);
        while let Some(frame) = next {
            let text = frame.text().as_bytes();
            if text.len() < WRITE_CHUNK_BYTES {
                buffer.extend_from_slice(text);
            } else {
                // Too long to copy into the buffer.
                writer.write_all(&buffer).await?;
                buffer.clear();
                writer.write_all(text).await?;
            }
            buffer.push(b'\n');
            next = (buffer.len() < WRITE_CHUNK_BYTES)
                .then(|| frames.try_recv())
                .flatten();
        }
        writer.write_all(&buffer).await?;
        writer.flush().await?;
        buffer.clear();
        buffer.shrink_to(WRITE_CHUNK_BYTES);
    }
    Ok(())
}

/// Lines of a byte stream.
struct LineInput<R> {
    reader: BufReader<R>,
    limits: JsonLimits,
}

impl<R: AsyncRead + Send + Unpin> MessageInput for LineInput<R> {
    async fn next(
        &mut self,
        _server: &ProtocolServer,
        mut permit: MemoryPermit,
    ) -> io::Result<ReceivedMessage> {
        let LineInput { reader, limits } = self;
        let limit = limits.bytes;
        Ok(match read_line(reader, limit, &mut permit).await? {
            StdioLine::End => ReceivedMessage::End,
            StdioLine::TooLong => ReceivedMessage::too_long(limit),
            StdioLine::OverBudget(full) => ReceivedMessage::over_budget(&full),
            StdioLine::Buffered(end) => {
                let bytes = reader.buffer().get(..end).unwrap_or_default();
                let received = match is_blank(bytes) {
                    true => ReceivedMessage::Blank,
                    false => Json::read_slice_with_permit(bytes, limits, permit).into(),
                };
                reader.consume(end + 1);
                received
            }
            StdioLine::Owned(bytes) if is_blank(&bytes) => ReceivedMessage::Blank,
            StdioLine::Owned(bytes) => Json::read_with_permit(bytes, limits, permit).into(),
        })
    }
}

enum StdioLine {
    /// A line in the buffer of the reader, up to this position.
    Buffered(usize),
    Owned(Vec<u8>),
    TooLong,
    OverBudget(BudgetExceeded),
    End,
}

pub(super) fn is_blank(message: &[u8]) -> bool {
    message.iter().all(u8::is_ascii_whitespace)
}

/// Reads one line without its line feed. A line that is too long, or beyond the memory budget, is skipped and never
/// buffered.
async fn read_line(
    reader: &mut (impl AsyncBufReadExt + Unpin),
    limit: usize,
    claim: &mut MemoryPermit,
) -> io::Result<StdioLine> {
    let mut bytes = Vec::new();
    let (mut over, mut full) = (false, None);
    loop {
        let part = reader.fill_buf().await?;
        if part.is_empty() {
            // A last line without a line feed is not a message.
            return Ok(StdioLine::End);
        }
        let end = memchr::memchr(b'\n', part);
        // Most lines are completely in the buffer.
        if let Some(end) = end
            && bytes.is_empty()
            && !over
            && full.is_none()
            && end <= limit
            && claim.cover_message(end as u64).is_ok()
        {
            return Ok(StdioLine::Buffered(end));
        }
        let taken = end.unwrap_or(part.len());
        over |= bytes.len() + taken > limit;
        let room = claim.cover_message((bytes.len() + taken) as u64);
        full = full.or(room.err().filter(|_| !over));
        if over || full.is_some() {
            bytes = Vec::new();
        } else {
            bytes.extend_from_slice(part.get(..taken).unwrap_or_default());
        }
        let used = taken + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Ok(match full {
                _ if over => StdioLine::TooLong,
                Some(full) => StdioLine::OverBudget(full),
                None => StdioLine::Owned(bytes),
            });
        }
    }
}
