//! Reading of HTTP responses.

use super::{
    super::{
        connection::{RequestFailure, ServerConnection},
        incoming::MessageSource,
        status::{MAX_MESSAGE_BYTES, ProtocolErrorKind, sanitize_line, truncate},
        transport::OutgoingRequest,
        unusable_answer::UnusableAnswer,
    },
    HttpTransport,
    connection::SentCredentials,
    pool::PooledBody,
};
use http::{HeaderMap, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use toolgate_protocol::{
    dialect::Dialect,
    json::{Json, JsonKind},
    memory_budget::MemoryPermit,
    message::{JsonRpcMessage, code},
};

/// Most bytes that are read of a refusal.
const MAX_ERROR_BODY_BYTES: usize = 256 << 10;
/// Maximum length of quoted server text, in characters.
const MAX_SERVER_TEXT_CHARS: usize = 300;

/// Returns whether a rejected handshake may mean that the server supports only the transport of 2024-11-05.
pub(super) fn may_need_http_sse(status: StatusCode, refused: &RequestFailure) -> bool {
    let modern = matches!(
        refused,
        RequestFailure::Rpc(error) if matches!(
            error.code,
            code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION
        )
    );
    !modern && matches!(status.as_u16(), 400 | 404 | 405)
}

/// State of the session that an error response indicates.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SessionEnd {
    /// No change.
    No,
    /// It may have ended: servers derived from a well-known example answer 400 with a text about the session. The
    /// request may have run.
    Perhaps,
    /// It has ended, as the specification defines, and the request did not run.
    Yes,
}

/// Returns the state of the session that an error response indicates.
pub(super) fn session_end(status: StatusCode, refused: &RequestFailure) -> SessionEnd {
    let words = match refused {
        RequestFailure::Rpc(error) => &error.message,
        RequestFailure::Http { words, .. } => words,
        _ => "",
    };
    let said = || words.to_ascii_lowercase().contains("session");
    match status {
        StatusCode::NOT_FOUND => SessionEnd::Yes,
        StatusCode::BAD_REQUEST if said() => SessionEnd::Perhaps,
        _ => SessionEnd::No,
    }
}

/// Returns whether the server rejects the revision of a request.
pub(super) fn refuses_revision(refused: &RequestFailure) -> bool {
    matches!(refused, RequestFailure::Rpc(error) if error.code == code::UNSUPPORTED_VERSION)
}

/// Returns whether a rejected stateless request may have reached a legacy server: HTTP 400 without an error that
/// 2026-07-28 sends with it. Codes from -32019 to -32000 have no meaning here, so all others are alike.
pub(super) fn may_be_legacy(status: StatusCode, refused: &RequestFailure) -> bool {
    let modern = matches!(
        refused,
        RequestFailure::Rpc(error) if matches!(
            error.code,
            code::HEADER_MISMATCH
                | code::INVALID_PARAMS
                | code::MISSING_CAPABILITY
                | code::UNSUPPORTED_VERSION
        )
    );
    let answered = matches!(
        refused,
        RequestFailure::Rpc(_) | RequestFailure::Http { .. }
    );
    status == StatusCode::BAD_REQUEST && answered && !modern
}

/// Returns whether the headers state that content type.
pub(super) fn has_content_type(headers: &HeaderMap, wanted: &str) -> bool {
    let value = headers.get(header::CONTENT_TYPE);
    if value.is_some_and(|value| value.as_bytes() == wanted.as_bytes()) {
        return true;
    }
    let value = value.and_then(|value| value.to_str().ok());
    let kind = value.and_then(|value| value.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted))
}

impl HttpTransport {
    /// Reads the response to a request of that revision until its reply arrives.
    pub(super) async fn read_response(
        &self,
        link: &ServerConnection,
        request: &OutgoingRequest<'_>,
        response: Response<PooledBody>,
        dialect: &Dialect,
    ) -> Result<(), RequestFailure> {
        let status = response.status();
        // Errors and event streams are boxed, so that the future of a request with a JSON reply is small.
        if !status.is_success() {
            return Err(Box::pin(self.read_error(response)).await);
        }
        if has_content_type(response.headers(), "text/event-stream") {
            return Box::pin(self.follow(link, request.id, response.into_body(), dialect)).await;
        }
        if status == StatusCode::ACCEPTED {
            let reason = "the response has status 202 and no answer";
            return Err(RequestFailure::Malformed(reason));
        }
        if !has_content_type(response.headers(), "application/json") {
            let reason = "it is neither JSON nor an event stream";
            return Err(RequestFailure::Malformed(reason));
        }
        self.read_json_reply(link, request, response.into_body(), dialect)
            .await
    }

    /// Reads a JSON reply.
    async fn read_json_reply(
        &self,
        link: &ServerConnection,
        request: &OutgoingRequest<'_>,
        body: PooledBody,
        dialect: &Dialect,
    ) -> Result<(), RequestFailure> {
        // Even an unusable body is the answer to this request.
        let unusable = |why: UnusableAnswer, trouble| {
            let words = format!("its answer to {} {why}", request.method);
            link.notes.count(trouble, words.clone());
            link.notes.alert(words);
            why.failure()
        };
        let mut claim = self.options.budget_scope.permit();
        let body = read_body(Limited::new(body, self.options.max_line_bytes), &mut claim).await;
        let body = body.map_err(|broken| {
            let BodyError::Interrupted(error) = broken else {
                return RequestFailure::BudgetExceeded;
            };
            if error.is::<http_body_util::LengthLimitError>() {
                let why = UnusableAnswer::limit_exceeded("line_bytes", self.options.max_line_bytes);
                return unusable(why, ProtocolErrorKind::LongLine);
            }
            RequestFailure::ConnectionLost { sent: true }
        })?;
        let body = without_byte_order_mark(body);
        if link.completes_repeated_list(&body) {
            return Ok(());
        }
        let read = link.read(body, claim);
        let json = read.map_err(|(bad, _)| {
            unusable(
                UnusableAnswer::read(bad, &link.limits),
                ProtocolErrorKind::BadLine,
            )
        })?;
        let carrier = MessageSource::Response(request.id);
        link.handle_message(&json, JsonRpcMessage::read(&json), dialect, carrier);
        // If it was the reply, the caller has it by now, and this error is ignored.
        Err(RequestFailure::Malformed(
            "it is not a reply to this request",
        ))
    }

    /// Returns the failure that an error response means.
    pub(super) async fn read_error(&self, response: Response<PooledBody>) -> RequestFailure {
        let status = response.status();
        let sent = response.extensions().get::<SentCredentials>().cloned();
        let sent = sent.as_ref().map(|SentCredentials(headers)| headers);
        let is_text = has_content_type(response.headers(), "text/plain");
        let limit = MAX_ERROR_BODY_BYTES.min(self.options.max_line_bytes);
        let mut claim = self.options.budget_scope.permit();
        let body = read_body(Limited::new(response.into_body(), limit), &mut claim).await;
        let body = body.unwrap_or_default();
        let text = is_text.then(|| String::from_utf8_lossy(&body).into_owned());
        let json = Json::read_with_permit(body, &self.options.json_limits, claim).ok();
        let message = json.as_ref().map(JsonRpcMessage::read);
        let denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        match message {
            Some(Ok(JsonRpcMessage::Reply {
                answer: Err(mut error),
                ..
            })) if !denied => {
                truncate(&mut error.message, MAX_MESSAGE_BYTES);
                error.message = self.http.without_secrets(&error.message, sent);
                RequestFailure::Rpc(error)
            }
            _ => {
                let words = json.as_ref().and_then(error_message).or(text);
                status_failure(
                    status,
                    words.map(|words| self.http.without_secrets(&words, sent)),
                )
            }
        }
    }
}

/// Removes the byte order mark that some servers write, as browsers do.
fn without_byte_order_mark(mut body: Vec<u8>) -> Vec<u8> {
    if body.starts_with(b"\xef\xbb\xbf") {
        body.drain(..3);
    }
    body
}

/// Reason why a body is incomplete.
enum BodyError {
    BudgetExceeded,
    Interrupted(Box<dyn std::error::Error + Send + Sync>),
}

/// Reads a complete body, charged to the permit.
async fn read_body(
    body: Limited<PooledBody>,
    claim: &mut MemoryPermit,
) -> Result<Vec<u8>, BodyError> {
    let mut body = std::pin::pin!(body);
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(BodyError::Interrupted)?.into_data() else {
            continue;
        };
        let all = bytes.len() + data.len();
        claim
            .cover_message(all as u64)
            .map_err(|_| BodyError::BudgetExceeded)?;
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// Returns the message of an error body: of JSON-RPC, of OAuth, or of another format.
fn error_message(json: &Json) -> Option<String> {
    let inner = json
        .get("error")
        .filter(|error| error.kind() == JsonKind::Object);
    let inner = inner.as_ref().unwrap_or(json);
    ["message", "error_description", "error"]
        .iter()
        .find_map(|key| inner.get(key)?.string())
}

fn status_failure(status: StatusCode, words: Option<String>) -> RequestFailure {
    let words = words.map(|words| sanitize_line(words.trim(), MAX_SERVER_TEXT_CHARS));
    let words = words.filter(|words| !words.is_empty());
    let after = words.map_or_else(String::new, |words| format!(": {words}"));
    let name = match status.as_u16() {
        401 => "requires credentials, or rejects those that were sent: HTTP 401".to_owned(),
        403 => "denies access: HTTP 403".to_owned(),
        _ => format!("answered HTTP {status}"),
    };
    RequestFailure::Http {
        words: format!("{name}{after}"),
        status: Some(status.as_u16()),
        sent: status.is_server_error(),
        no_token: None,
    }
}
