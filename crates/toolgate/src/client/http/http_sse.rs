//! HTTP+SSE, the deprecated transport of 2024-11-05: one SSE stream for all messages of the server, and one endpoint
//! for ours.

use super::{
    super::{
        connection::{RequestFailure, ServerConnection},
        incoming::MessageSource,
    },
    HttpTransport,
    connection::OutgoingHttpRequest,
    events::SseEventStream,
    follow::{is_stream, read_events},
    headers,
    jobs::HttpJob,
    server_url,
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
    pub(super) async fn probe_http_sse(&self) -> Result<(), RequestFailure> {
        let found = timeout(ENDPOINT_TIMEOUT, self.open_sse_stream()).await;
        let (endpoint, events) = found.map_err(|_| unsupported_transport())??;
        if self.endpoint.set(endpoint).is_err()
            || self.jobs.try_send(HttpJob::Hear(events)).is_err()
        {
            return Err(unsupported_transport());
        }
        Ok(())
    }

    async fn open_sse_stream(&self) -> Result<(http::Uri, SseEventStream), RequestFailure> {
        let mut headers = self.http.headers().clone();
        headers::add_stream_headers(&mut headers);
        let leaves = OutgoingHttpRequest {
            method: Method::GET,
            uri: &self.uri,
            headers: &headers,
            body: Bytes::new(),
            operation: Some("sse"),
        };
        let response = self.connections.send(&leaves).await?;
        if !is_stream(&response) {
            return Err(unsupported_transport());
        }
        let mut events = SseEventStream::new(
            response.into_body(),
            self.options.max_line_bytes,
            self.options.budget_scope.clone(),
        );
        let (first, _) = events.next().await.map_err(|_| unsupported_transport())?;
        if first.kind != b"endpoint" || first.data.len() > MAX_ENDPOINT_BYTES {
            return Err(unsupported_transport());
        }
        let reference = String::from_utf8(first.data).map_err(|_| unsupported_transport())?;
        let endpoint =
            server_url::resolve(&self.uri, &reference).ok_or_else(unsupported_transport)?;
        Ok((endpoint, events))
    }

    /// Handles all messages of the server. The end of the stream is the end of the connection.
    pub(super) async fn read_sse_stream(
        &self,
        link: &ServerConnection,
        mut events: SseEventStream,
    ) {
        let dialect = link.current_dialect();
        read_events(link, &mut events, MessageSource::Stream, dialect).await;
        link.mark_lost("it closed its event stream");
    }
}

fn unsupported_transport() -> RequestFailure {
    RequestFailure::Malformed("it does not support the HTTP+SSE transport of 2024-11-05")
}
