//! HTTP+SSE, the deprecated transport of 2024-11-05: one SSE stream for all messages of the server, and one endpoint
//! for ours.

use super::{
    super::{
        incoming::MessageSource,
        link::{RequestFailure, ServerConnection},
    },
    HttpTransport, address,
    answer::RequestEra,
    connection::OutgoingHttpRequest,
    events::SseEventStream,
    follow::{hear, is_stream},
    headers,
    work::HttpJob,
};
use bytes::Bytes;
use http::Method;
use std::time::Duration;
use tokio::time::timeout;

/// Time-out of the `endpoint` event.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of the endpoint URL, in bytes.
const MAX_ENDPOINT_BYTES: usize = 8 << 10;

impl HttpTransport {
    /// Probes for this transport and opens its stream.
    ///
    /// # Errors
    /// The server does not support it. The error is only a marker.
    pub(super) async fn find_old(&self) -> Result<(), RequestFailure> {
        let found = timeout(ENDPOINT_TIMEOUT, self.old_stream()).await;
        let (endpoint, events) = found.map_err(|_| no())??;
        if self.endpoint.set(endpoint).is_err()
            || self.jobs.try_send(HttpJob::Hear(events)).is_err()
        {
            return Err(no());
        }
        Ok(())
    }

    async fn old_stream(&self) -> Result<(http::Uri, SseEventStream), RequestFailure> {
        let mut headers = self.http.headers().clone();
        headers::of_stream(&mut headers);
        let leaves = OutgoingHttpRequest {
            method: Method::GET,
            uri: &self.uri,
            headers: &headers,
            body: Bytes::new(),
            operation: Some("sse"),
        };
        let response = self.connections.send(leaves).await?;
        if !is_stream(&response) {
            return Err(no());
        }
        let mut events = SseEventStream::new(
            response.into_body(),
            self.options.line,
            self.options.account.clone(),
        );
        let (first, _) = events.next().await.map_err(|_| no())?;
        if first.kind != b"endpoint" || first.data.len() > MAX_ENDPOINT_BYTES {
            return Err(no());
        }
        let reference = String::from_utf8(first.data).map_err(|_| no())?;
        let endpoint = address::follow(&self.uri, &reference).ok_or_else(no)?;
        Ok((endpoint, events))
    }

    /// Handles all messages of the server. The end of the stream is the end of the connection.
    pub(super) async fn hear_old(&self, link: &ServerConnection, mut events: SseEventStream) {
        hear(link, &mut events, MessageSource::Stream, RequestEra::Legacy).await;
        link.lose("it closed its event stream");
    }
}

fn no() -> RequestFailure {
    RequestFailure::Malformed("it does not support the HTTP+SSE transport of 2024-11-05")
}
