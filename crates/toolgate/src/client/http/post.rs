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
        let headers = headers::with_room(self.http.headers());
        if let Some(dialect) = headers::stateless_revision(request) {
            return self.send_stateless(link, request, dialect, headers).await;
        }
        if request.method == initialize::NAME {
            return self.handshake(link, request, headers).await;
        }
        self.send_in_session(link, request, headers).await
    }

    /// Sends a request outside of sessions.
    async fn send_stateless(
        &self,
        link: &ServerConnection,
        request: &OutgoingRequest<'_>,
        dialect: &Dialect,
        mut headers: HeaderMap,
    ) -> Result<(), RequestFailure> {
        headers::add_mirrored_headers(&mut headers, request, dialect);
        let response = self
            .post(request.message(), headers, self.purpose(request).as_deref())
            .await?;
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
        headers: HeaderMap,
    ) -> Result<(), RequestFailure> {
        if self.endpoint.get().is_some() {
            return self
                .post_to_endpoint(request.message(), headers, self.purpose(request).as_deref())
                .await;
        }
        let response = self
            .post(
                request.message(),
                headers.clone(),
                self.purpose(request).as_deref(),
            )
            .await?;
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
            return self
                .post_to_endpoint(request.message(), headers, self.purpose(request).as_deref())
                .await;
        }
        Err(refused)
    }

    /// Sends a request within a session. If the server no longer knows the session, opens a new one, once. Resends the
    /// request only where it cannot have run: a call only after the status that the specification defines for this.
    async fn send_in_session(
        &self,
        link: &ServerConnection,
        request: &OutgoingRequest<'_>,
        headers: HeaderMap,
    ) -> Result<(), RequestFailure> {
        let mut again = false;
        loop {
            let session = self.sessions.usable(link, &self.options).await?;
            let headers = self.add_session_headers(link, headers.clone(), &session);
            if self.endpoint.get().is_some() {
                return self
                    .post_to_endpoint(request.message(), headers, self.purpose(request).as_deref())
                    .await;
            }
            let response = self
                .post(request.message(), headers, self.purpose(request).as_deref())
                .await?;
            if response.status().is_success() {
                return self
                    .read_response(link, request, response, link.current_dialect())
                    .await;
            }
            let status = response.status();
            let refused = self.read_error(response).await;
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
        let mut headers = self.add_session_headers(link, self.http.headers().clone(), &session);
        let dialect = link.current_dialect();
        if dialect.mirrored_headers {
            headers::add_headers_of_line(&mut headers, &line, dialect);
        }
        let sent = async {
            if self.endpoint.get().is_some() {
                return self.post_to_endpoint(line, headers, None).await;
            }
            let response = self.post(line, headers, None).await?;
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
        let headers = self.add_session_headers(link, self.http.headers().clone(), &session);
        let sent = self.connections.send(OutgoingHttpRequest {
            method: Method::DELETE,
            uri: &self.uri,
            headers: &headers,
            body: Bytes::new(),
            operation: None,
        });
        // A server may refuse to let a client end the session.
        drop(timeout(END_SESSION_TIMEOUT, sent).await);
    }

    /// Adds the headers of every request after a handshake.
    pub(super) fn add_session_headers(
        &self,
        link: &ServerConnection,
        mut headers: HeaderMap,
        session: &ClientHttpSession,
    ) -> HeaderMap {
        if let Some(dialect) = link.dialect.get() {
            headers.insert(VERSION, HeaderValue::from_static(dialect.revision));
        }
        if let Some(id) = &session.id {
            headers.insert(SESSION, id.clone());
        }
        headers
    }

    /// Returns the purpose of a request for authorization: its method and item name; `None` without credentials.
    fn purpose(&self, request: &OutgoingRequest<'_>) -> Option<String> {
        self.http.credential_source()?;
        Some(headers::request_purpose(request))
    }

    async fn post(
        &self,
        line: String,
        mut headers: HeaderMap,
        operation: Option<&str>,
    ) -> Result<Response<PooledBody>, RequestFailure> {
        headers::add_post_headers(&mut headers);
        let leaves = OutgoingHttpRequest {
            method: Method::POST,
            uri: &self.uri,
            headers: &headers,
            body: Bytes::from(line),
            operation,
        };
        self.connections.send(leaves).await
    }

    /// Sends a message by the HTTP+SSE transport of 2024-11-05: the reply arrives on the SSE stream.
    async fn post_to_endpoint(
        &self,
        line: String,
        mut headers: HeaderMap,
        operation: Option<&str>,
    ) -> Result<(), RequestFailure> {
        headers::add_post_headers(&mut headers);
        let leaves = OutgoingHttpRequest {
            method: Method::POST,
            uri: self.endpoint.get().unwrap_or(&self.uri),
            headers: &headers,
            body: Bytes::from(line),
            operation,
        };
        let response = self.connections.send(leaves).await?;
        if response.status().is_success() {
            return Ok(());
        }
        Err(self.read_error(response).await)
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
