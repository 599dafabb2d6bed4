//! Sending of messages: one POST per message.

use super::{
    super::{
        link::{RequestFailure, ServerConnection},
        open,
        status::{ProtocolErrorKind, harmless},
        transport::OutgoingRequest,
    },
    HttpTransport,
    answer::{self, RequestEra, SessionEnd},
    connection::OutgoingHttpRequest,
    headers::{self, SESSION, VERSION},
    session::ClientHttpSession,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming;
use std::time::Duration;
use tokio::time::timeout;
use toolgate_wire::method::{discover, initialize, usage};

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
        let mut headers = self.http.headers().clone();
        let modern = headers::of_modern(&mut headers, request);
        if !link.leaves(request.id) {
            return Err(RequestFailure::Lost { sent: false });
        }
        if modern {
            let response = self
                .post(request.line(), headers, self.purpose(request).as_deref())
                .await?;
            let status = response.status();
            let answered = self
                .answered(link, request, response, RequestEra::Modern)
                .await;
            if let Err(refused) = &answered
                && self.left_era(link, request, (status, refused)).await
            {
                link.lose("it no longer supports the negotiated revision");
            }
            return answered;
        }
        if request.method == initialize::NAME {
            return self.shake(link, request, headers).await;
        }
        self.within(link, request, headers).await
    }

    /// Whether a refusal shows that the server no longer speaks the revision in which it was opened. Where the refusal
    /// leaves that open, the server is probed again.
    async fn left_era(
        &self,
        link: &ServerConnection,
        request: &OutgoingRequest<'_>,
        (status, refused): (StatusCode, &RequestFailure),
    ) -> bool {
        let Some(dialect) = link.dialect.get() else {
            return false;
        };
        if answer::refuses_revision(refused) {
            return true;
        }
        // The probe is no reason for another probe.
        let unclear = request.method != discover::NAME && answer::may_be_legacy(status, refused);
        unclear && Box::pin(open::wants_handshake(link, dialect, &self.options)).await
    }

    /// A handshake: without a session, and with the transport of 2024-11-05 where the server knows no other.
    async fn shake(
        &self,
        link: &ServerConnection,
        request: &OutgoingRequest<'_>,
        headers: HeaderMap,
    ) -> Result<(), RequestFailure> {
        if self.endpoint.get().is_some() {
            return self
                .post_old(request.line(), headers, self.purpose(request).as_deref())
                .await;
        }
        let response = self
            .post(
                request.line(),
                headers.clone(),
                self.purpose(request).as_deref(),
            )
            .await?;
        let status = response.status();
        if status.is_success() {
            self.sessions.begin(response.headers().get(SESSION))?;
            return self
                .answered(link, request, response, RequestEra::Legacy)
                .await;
        }
        let refused = self.refused(response).await;
        let first = link.dialect.get().is_none();
        if first && answer::may_be_old(status, &refused) && self.find_old().await.is_ok() {
            return self
                .post_old(request.line(), headers, self.purpose(request).as_deref())
                .await;
        }
        Err(refused)
    }

    /// Sends a request within a session. If the server no longer knows the session, opens a new one, once. Resends the
    /// request only where it cannot have run: a call only after the status that the specification defines for this.
    async fn within(
        &self,
        link: &ServerConnection,
        request: &OutgoingRequest<'_>,
        headers: HeaderMap,
    ) -> Result<(), RequestFailure> {
        let mut again = false;
        loop {
            let session = self.sessions.usable(link, &self.options).await?;
            let headers = self.in_session(link, headers.clone(), &session);
            if self.endpoint.get().is_some() {
                return self
                    .post_old(request.line(), headers, self.purpose(request).as_deref())
                    .await;
            }
            let response = self
                .post(request.line(), headers, self.purpose(request).as_deref())
                .await?;
            if response.status().is_success() {
                return self
                    .answered(link, request, response, RequestEra::Legacy)
                    .await;
            }
            let status = response.status();
            let refused = self.refused(response).await;
            let ended = answer::ended(status, &refused);
            if again || session.id.is_none() || ended == SessionEnd::No {
                return Err(refused);
            }
            self.sessions.ended(session.number);
            if ended == SessionEnd::Perhaps && usage::is_usage(request.method) {
                return Err(perhaps_ended(status, refused));
            }
            again = true;
        }
    }

    /// Sends a notification or an answer.
    pub(super) async fn tell(&self, link: &ServerConnection, line: String) {
        let session = self.sessions.now();
        let mut headers = self.in_session(link, self.http.headers().clone(), &session);
        if link.is_stateless() {
            headers::of_line(&mut headers, &line);
        }
        let sent = async {
            if self.endpoint.get().is_some() {
                return self.post_old(line, headers, None).await;
            }
            let response = self.post(line, headers, None).await?;
            if response.status().is_success() {
                return Ok(());
            }
            Err(self.refused(response).await)
        };
        if !matches!(timeout(NOTIFICATION_TIMEOUT, sent).await, Ok(Ok(()))) {
            link.notes.count(
                ProtocolErrorKind::Unsent,
                "the server did not accept a notification or an answer",
            );
        }
    }

    /// Ends the session at the server.
    pub(super) async fn end_session(&self, link: &ServerConnection) {
        let session = self.sessions.now();
        if session.id.is_none() || !session.ready {
            return;
        }
        let headers = self.in_session(link, self.http.headers().clone(), &session);
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
    pub(super) fn in_session(
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
        self.http.who()?;
        Some(headers::purpose(request))
    }

    async fn post(
        &self,
        line: String,
        mut headers: HeaderMap,
        operation: Option<&str>,
    ) -> Result<Response<Incoming>, RequestFailure> {
        headers::of_post(&mut headers);
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
    async fn post_old(
        &self,
        line: String,
        mut headers: HeaderMap,
        operation: Option<&str>,
    ) -> Result<(), RequestFailure> {
        headers::of_post(&mut headers);
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
        Err(self.refused(response).await)
    }
}

/// Returns the failure of a call that the server rejected because of its session: the next call opens a new session,
/// and this one is not resent.
fn perhaps_ended(status: StatusCode, refused: RequestFailure) -> RequestFailure {
    let said = match refused {
        RequestFailure::Rpc(error) => harmless(&error.message, MAX_SERVER_TEXT_CHARS),
        RequestFailure::Http { words, .. } => words,
        _ => String::new(),
    };
    RequestFailure::Http {
        words: format!(
            "rejected the call because of its session (HTTP {status}: {said}); the call was not resent, and the next call opens a new session"
        ),
        status: Some(status.as_u16()),
        sent: false,
        no_token: None,
    }
}
