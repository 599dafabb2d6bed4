//! Sending of messages: one POST per message.

use super::{
    super::{
        connection::{RequestFailure, ServerConnection},
        negotiate,
        status::{ProtocolErrorKind, sanitize_line},
        transport::OutgoingRequest,
    },
    HttpTransport,
    connection::OutgoingHttpRequest,
    headers::{self, SESSION, VERSION},
    pool::PooledBody,
    response::{self, SessionEnd},
    session::ClientHttpSession,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use std::time::Duration;
use tokio::time::timeout;
use toolgate_protocol::{
    dialect::Dialect,
    method::{discover, initialize, operation},
};

/// Time-out of a notification.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of quoted server text, in characters.
const MAX_SERVER_TEXT_CHARS: usize = 300;
/// Time-out of the DELETE that ends a session.
const END_SESSION_TIMEOUT: Duration = Duration::from_secs(3);

impl HttpTransport {
    /// Sends a request and reads its response until the reply arrives.
    pub(super) async fn exchange(
        &self,
        link: &ServerConnection,
        request: &OutgoingRequest<'_>,
    ) -> Result<(), RequestFailure> {
        if !link.mark_sent(request.id) {
            return Err(RequestFailure::ConnectionLost { sent: false });
        }
        if let Some(dialect) = headers::stateless_revision(request) {
            return self.send_stateless(link, request, dialect).await;
        }
        if request.method == initialize::NAME {
            // Boxed, as all rare branches here: the future of a call stays small.
            return Box::pin(self.handshake(link, request)).await;
        }
        self.send_in_session(link, request).await
    }

    /// Sends a request outside of sessions.
    async fn send_stateless(
        &self,
        link: &ServerConnection,
        request: &OutgoingRequest<'_>,
        dialect: &Dialect,
    ) -> Result<(), RequestFailure> {
        let response = {
            let mut headers = headers::of_post(self.http.headers());
            headers::add_mirrored_headers(&mut headers, request, dialect);
            self.post(request, &headers).await?
        };
        let status = response.status();
        let answered = self.read_response(link, request, response, dialect).await;
        if let Err(refused) = &answered
            && self.left_era(link, request, (status, refused)).await
        {
            link.mark_lost("it no longer supports the negotiated revision");
        }
        answered
    }

    /// Returns whether a refusal shows that the server no longer supports the revision in which it was opened. If the
    /// refusal does not tell, the server is probed again.
    async fn left_era(
        &self,
        link: &ServerConnection,
        request: &OutgoingRequest<'_>,
        (status, refused): (StatusCode, &RequestFailure),
    ) -> bool {
        let Some(dialect) = link.dialect.get() else {
            return false;
        };
        if response::refuses_revision(refused) {
            return true;
        }
        // The probe is no reason for another probe.
        let unclear = request.method != discover::NAME && response::may_be_legacy(status, refused);
        unclear && Box::pin(negotiate::wants_handshake(link, dialect, &self.options)).await
    }

    /// A handshake: without a session, and with the transport of 2024-11-05 where the server knows no other.
    async fn handshake(
        &self,
        link: &ServerConnection,
        request: &OutgoingRequest<'_>,
    ) -> Result<(), RequestFailure> {
        let headers = headers::of_post(self.http.headers());
        if self.endpoint.get().is_some() {
            return self.post_to_endpoint(request, &headers).await;
        }
        let response = self.post(request, &headers).await?;
        let status = response.status();
        if status.is_success() {
            self.sessions.begin(response.headers().get(SESSION))?;
            return self
                .read_response(link, request, response, link.current_dialect())
                .await;
        }
        let refused = self.read_error(response).await;
        let first = link.dialect.get().is_none();
        if first
            && response::may_need_http_sse(status, &refused)
            && self.probe_http_sse().await.is_ok()
        {
            return self.post_to_endpoint(request, &headers).await;
        }
        Err(refused)
    }

    /// Sends a request within a session. If the server no longer knows the session, opens a new one, once. Resends the
    /// request only where it cannot have run: a call only after the status that the specification defines for this.
    async fn send_in_session(
        &self,
        link: &ServerConnection,
        request: &OutgoingRequest<'_>,
    ) -> Result<(), RequestFailure> {
        let mut again = false;
        loop {
            let session = self.sessions.usable(link, &self.options).await?;
            let response = {
                let mut headers = headers::of_post(self.http.headers());
                self.add_session_headers(link, &mut headers, &session);
                if self.endpoint.get().is_some() {
                    return Box::pin(self.post_to_endpoint(request, &headers)).await;
                }
                self.post(request, &headers).await?
            };
            if response.status().is_success() {
                return self
                    .read_response(link, request, response, link.current_dialect())
                    .await;
            }
            let status = response.status();
            let refused = Box::pin(self.read_error(response)).await;
            let ended = response::session_end(status, &refused);
            if again || session.id.is_none() || ended == SessionEnd::No {
                return Err(refused);
            }
            self.sessions.mark_ended(session.number);
            if ended == SessionEnd::Perhaps && operation::is_operation(request.method) {
                return Err(session_failure(status, refused));
            }
            again = true;
        }
    }

    /// Sends a notification or an answer.
    pub(super) async fn send_message(&self, link: &ServerConnection, line: String) {
        let session = self.sessions.current();
        let mut headers = headers::of_post(self.http.headers());
        self.add_session_headers(link, &mut headers, &session);
        let dialect = link.current_dialect();
        if dialect.mirrored_headers {
            headers::add_headers_of_line(&mut headers, &line, dialect);
        }
        let sent = async {
            let leaves = self.outgoing(line, &headers, None);
            if self.endpoint.get().is_some() {
                return self.send_to_endpoint(leaves).await;
            }
            let response = self.connections.send(&leaves).await?;
            if response.status().is_success() {
                return Ok(());
            }
            Err(self.read_error(response).await)
        };
        if !matches!(timeout(NOTIFICATION_TIMEOUT, sent).await, Ok(Ok(()))) {
            link.notes.count(
                ProtocolErrorKind::Unsent,
                "it did not accept a notification or an answer",
            );
        }
    }

    /// Ends the session at the server.
    pub(super) async fn end_session(&self, link: &ServerConnection) {
        let session = self.sessions.current();
        if session.id.is_none() || !session.ready {
            return;
        }
        let mut headers = self.http.headers().clone();
        self.add_session_headers(link, &mut headers, &session);
        let leaves = OutgoingHttpRequest {
            method: Method::DELETE,
            uri: &self.uri,
            headers: &headers,
            body: Bytes::new(),
            operation: None,
        };
        // A server may refuse to let a client end the session.
        drop(timeout(END_SESSION_TIMEOUT, self.connections.send(&leaves)).await);
    }

    /// Adds the headers of every request after a handshake.
    pub(super) fn add_session_headers(
        &self,
        link: &ServerConnection,
        headers: &mut HeaderMap,
        session: &ClientHttpSession,
    ) {
        if let Some(dialect) = link.dialect.get() {
            headers.insert(VERSION, HeaderValue::from_static(dialect.revision));
        }
        if let Some(id) = &session.id {
            headers.insert(SESSION, id.clone());
        }
    }

    /// Returns the purpose of a request for authorization: its method and item name; `None` without credentials.
    fn purpose(&self, request: &OutgoingRequest<'_>) -> Option<String> {
        self.http.credential_source()?;
        Some(headers::request_purpose(request))
    }

    /// Posts a request to the endpoint of the server.
    async fn post(
        &self,
        request: &OutgoingRequest<'_>,
        headers: &HeaderMap,
    ) -> Result<Response<PooledBody>, RequestFailure> {
        let purpose = self.purpose(request);
        let leaves = self.outgoing(request.message(), headers, purpose.as_deref());
        self.connections.send(&leaves).await
    }

    /// Posts a request by the HTTP+SSE transport of 2024-11-05: the reply arrives on the SSE stream.
    async fn post_to_endpoint(
        &self,
        request: &OutgoingRequest<'_>,
        headers: &HeaderMap,
    ) -> Result<(), RequestFailure> {
        let purpose = self.purpose(request);
        let leaves = self.outgoing(request.message(), headers, purpose.as_deref());
        self.send_to_endpoint(leaves).await
    }

    /// Posts a message by the HTTP+SSE transport of 2024-11-05.
    async fn send_to_endpoint(
        &self,
        mut leaves: OutgoingHttpRequest<'_>,
    ) -> Result<(), RequestFailure> {
        leaves.uri = self.endpoint.get().unwrap_or(&self.uri);
        let response = self.connections.send(&leaves).await?;
        if response.status().is_success() {
            return Ok(());
        }
        Err(self.read_error(response).await)
    }

    fn outgoing<'a>(
        &'a self,
        line: String,
        headers: &'a HeaderMap,
        operation: Option<&'a str>,
    ) -> OutgoingHttpRequest<'a> {
        OutgoingHttpRequest {
            method: Method::POST,
            uri: &self.uri,
            headers,
            body: Bytes::from(line),
            operation,
        }
    }
}

/// Returns the failure of a call that the server rejected because of its session: the next call opens a new session,
/// and this one is not resent.
fn session_failure(status: StatusCode, refused: RequestFailure) -> RequestFailure {
    let said = match refused {
        RequestFailure::Rpc(error) => sanitize_line(&error.message, MAX_SERVER_TEXT_CHARS),
        RequestFailure::Http { words, .. } => words,
        _ => String::new(),
    };
    let said = match said.is_empty() {
        true => said,
        false => format!(": {said}"),
    };
    RequestFailure::Http {
        words: format!(
            "rejected the call because of its session (HTTP {status}{said}); the call was not resent, and the next call opens a new session"
        ),
        status: Some(status.as_u16()),
        sent: false,
        no_token: None,
    }
}
