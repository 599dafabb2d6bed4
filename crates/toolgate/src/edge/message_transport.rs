//! Server on a transport of the user: a stream and a sink of whole messages.

use super::{
    ProtocolServer,
    connection::{self, MessageInput, ReceivedMessage},
    responder::OutgoingFrames,
    stdio::is_blank,
};
use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use std::{io, sync::Arc};
use toolgate_core::Caller;
use toolgate_protocol::memory_budget::MemoryPermit;

/// Maximum number of messages that are sent before the sink is flushed.
const MAX_UNFLUSHED_MESSAGES: usize = 64;

/// Connection that carries whole JSON-RPC messages: a stream of received messages, and a sink of messages to send. It
/// is implemented for every such stream and sink.
///
/// - An item of the stream is one message, or a batch in revision 2025-03-26, as UTF-8. It may be invalid.
/// - The end of the stream is the end of the connection. So is an error, in either direction.
/// - Closing the sink closes the connection. It is closed when nothing more is sent.
///
/// Specification: [custom transports](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#custom-transports).
pub trait MessageTransport:
    Stream<Item = io::Result<Bytes>> + Sink<String, Error = io::Error> + Send + 'static
{
}

impl<T> MessageTransport for T where
    T: Stream<Item = io::Result<Bytes>> + Sink<String, Error = io::Error> + Send + 'static
{
}

/// Serves one client over a transport until its stream ends; see [`crate::transport::serve`].
pub(crate) async fn serve_transport(
    server: Arc<ProtocolServer>,
    client: (Caller, &'static str),
    transport: impl MessageTransport,
) -> io::Result<()> {
    serve_transport_until(server, client, transport, std::future::pending()).await
}

/// Serves one client over a transport until its stream ends or `stop` completes.
pub(crate) async fn serve_transport_until(
    server: Arc<ProtocolServer>,
    client: (Caller, &'static str),
    transport: impl MessageTransport,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let (sink, stream) = Box::pin(transport).split();
    let write = |frames| write_messages(frames, sink);
    connection::serve(server, client, StreamInput(stream), write, stop).await
}

/// Messages of a stream. Their size is checked here, whatever the transport checked.
struct StreamInput<S>(S);

impl<S: Stream<Item = io::Result<Bytes>> + Send + Unpin> MessageInput for StreamInput<S> {
    async fn next(
        &mut self,
        server: &ProtocolServer,
        mut permit: MemoryPermit,
    ) -> io::Result<ReceivedMessage> {
        let Some(message) = self.0.next().await.transpose()? else {
            return Ok(ReceivedMessage::End);
        };
        let limit = server.limits.json.bytes;
        if message.len() > limit {
            return Ok(ReceivedMessage::too_long(limit));
        }
        if let Err(full) = permit.cover_message(message.len() as u64) {
            return Ok(ReceivedMessage::over_budget(&full));
        }
        Ok(match is_blank(&message) {
            true => ReceivedMessage::Blank,
            false => server.read_message(message.into(), permit).into(),
        })
    }
}

/// Sends all queued messages, and flushes when none is queued. Closes the sink after the last one.
async fn write_messages(
    mut frames: OutgoingFrames,
    mut sink: impl Sink<String, Error = io::Error> + Send + Unpin,
) -> io::Result<()> {
    while let Some(first) = frames.recv().await {
        let mut next = Some(first);
        // Held until the messages left the sink.
        let mut permits = Vec::new();
        while let Some(frame) = next {
            let (text, permit) = frame.into_text().into_parts();
            permits.push(permit);
            sink.feed(text).await?;
            next = (permits.len() < MAX_UNFLUSHED_MESSAGES)
                .then(|| frames.try_recv())
                .flatten();
        }
        sink.flush().await?;
    }
    sink.close().await
}
