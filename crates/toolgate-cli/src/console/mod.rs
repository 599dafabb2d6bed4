//! Web console: the page on which a person sees tools and calls, and decides about approvals.

mod body;
mod sign_in;
mod static_files;

use crate::{
    oauth::{BrowserSignIns, CONSOLE_REDIRECT_PATH},
    operator::{ConsoleSession, ConsoleSessions, actions, api::OperatorApi},
    proxy::ClientConnection,
    responses::text_response,
    runtime::call_feed::{CallFollower, ConsoleEvent},
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::sync::{broadcast, mpsc};
use toolgate::edge::http::Body;
use toolgate_policy::Approver;

pub(crate) use body::{MAX_UNAUTHENTICATED_BODY_BYTES, read_body, read_bytes};

/// Handler of the console's routes.
pub(crate) struct WebConsole {
    pub(crate) sessions: Arc<ConsoleSessions>,
    pub(crate) operator: Arc<OperatorApi>,
    pub(crate) sign_ins: BrowserSignIns,
}

/// Header that neither a form nor a page of another origin can send without a CORS preflight. It holds the session's
/// key; the login has no key yet and sends `1`.
const CONSOLE_HEADER: &str = "x-toolgate-console";
/// Maximum body size of an authenticated request, in bytes.
const MAX_CONSOLE_BODY_BYTES: usize = 1 << 20;
const SSE_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

impl WebConsole {
    /// Returns a file of the console.
    pub(crate) fn page(&self, name: &str, request: &HeaderMap) -> Response<Body> {
        static_files::find_file(name, request).unwrap_or_else(|| {
            text_response(StatusCode::NOT_FOUND, "not found; the console is at /")
        })
    }

    /// Answers requests below `/console/`.
    pub(crate) async fn answer(
        &self,
        from: ClientConnection,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let path = request.uri().path().to_owned();
        match (request.method().clone(), path.as_str()) {
            (Method::POST, "/console/login") => self.login(from, request).await,
            (Method::POST, "/console/logout") => self.logout(from, &request).await,
            (Method::GET, "/console/api/state") if self.session_of(&request).is_some() => {
                answer(Ok(self.operator.snapshot().await))
            }
            (Method::GET, "/console/api/events") => match self.session_of(&request) {
                Some(session) => self.events(session),
                None => session_required(),
            },
            (Method::POST, path)
                if path.starts_with("/console/api/") && self.session_of(&request).is_some() =>
            {
                let action = path.trim_start_matches("/console/api/").to_owned();
                self.handle_action(&action, request).await
            }
            (_, path) if path.starts_with("/console/api/") => session_required(),
            (Method::GET, CONSOLE_REDIRECT_PATH) => self.page("signed-in.html", request.headers()),
            (Method::GET, path) => {
                self.page(path.trim_start_matches("/console/"), request.headers())
            }
            _ => text_response(StatusCode::NOT_FOUND, "not found; the console is at /"),
        }
    }

    async fn handle_action(&self, action: &str, request: Request<Incoming>) -> Response<Body> {
        let Some(ConsoleSession { who, .. }) = self.session_of(&request) else {
            return session_required();
        };
        let is_known = actions::required_right(action).is_some();
        if let Some(step) = action.strip_prefix("sign-in/").filter(|_| is_known) {
            return self.sign_in(step, request, &who).await;
        }
        match read_body(request, MAX_CONSOLE_BODY_BYTES).await {
            Ok(body) => answer(self.operator.execute(action, &body, &who).await),
            Err(response) => *response,
        }
    }

    async fn login(&self, from: ClientConnection, request: Request<Incoming>) -> Response<Body> {
        if console_header(&request) != Some("1") {
            return text_response(
                StatusCode::FORBIDDEN,
                "only the console page can begin a console session; open the link that `toolgate console` prints",
            );
        }
        let body = match read_body(request, MAX_UNAUTHENTICATED_BODY_BYTES).await {
            Ok(body) => body,
            Err(response) => return *response,
        };
        let token = body
            .get("token")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let entered = match self.sessions.create_session(token, from.is_https).await {
            Ok(Some(entered)) => entered,
            Ok(None) => {
                return text_response(
                    StatusCode::UNAUTHORIZED,
                    "this link was used already or is too old; `toolgate console` prints a new one",
                );
            }
            Err(why) => return answer(Err(why)),
        };
        let mut response = answer(Ok(json!({"key": entered.key})));
        if let Ok(cookie) = HeaderValue::from_str(&entered.cookie) {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }

    /// Ends the session of the request.
    async fn logout(&self, from: ClientConnection, request: &Request<Incoming>) -> Response<Body> {
        let Some(session) = self.session_of(request) else {
            return session_required();
        };
        let cookie = match self.sessions.end_session(&session, from.is_https).await {
            Ok(cookie) => cookie,
            Err(why) => return answer(Err(why)),
        };
        let mut response = answer(Ok(json!({"ok": true})));
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }

    /// Returns the session of the request, if it is valid.
    fn session_of(&self, request: &Request<Incoming>) -> Option<ConsoleSession> {
        let key = console_header(request)?;
        request
            .headers()
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|c| c.to_str().ok())
            .find_map(|c| self.sessions.find_session(c, key))
    }

    /// Streams the full state, then each change, until the session ends.
    fn events(&self, session: ConsoleSession) -> Response<Body> {
        let (tx, rx) = mpsc::channel(64);
        let (operator, logins) = (self.operator.clone(), self.sessions.clone());
        let work = Box::pin(async move {
            tokio::select! {
                () = follow(&operator, &session.who, tx) => {}
                () = operator.server.closed() => {}
                () = logins.wait_until_ended(&session) => {}
            }
        });
        Body::named(rx, work, SSE_KEEPALIVE_INTERVAL).response()
    }
}

/// Sends the full state, then each change. A subscriber that lags behind gets the full state again.
async fn follow(operator: &OperatorApi, who: &Approver, tx: mpsc::Sender<ConsoleEvent>) {
    let page = OpenPage::enter(operator, who);
    loop {
        let mut changes = operator.subscribe();
        let mut calls = CallFollower::new(&operator.feed);
        let mut event = ("state", operator.page_state(page.id).await.to_string());
        loop {
            if tx.send(event).await.is_err() {
                return;
            }
            event = tokio::select! {
                changed = changes.recv() => match changed {
                    Ok(event) => event,
                    Err(broadcast::error::RecvError::Lagged(_)) => break,
                    Err(broadcast::error::RecvError::Closed) => return,
                },
                batch = calls.next(&operator.feed) => ("calls", batch.to_string()),
            };
        }
    }
}

/// Page of the console with an open event stream.
struct OpenPage<'a> {
    operator: &'a OperatorApi,
    id: u64,
}

impl<'a> OpenPage<'a> {
    fn enter(operator: &'a OperatorApi, who: &Approver) -> OpenPage<'a> {
        let id = operator.presence.enter(who);
        OpenPage { operator, id }
    }
}

impl Drop for OpenPage<'_> {
    fn drop(&mut self) {
        self.operator.presence.leave(self.id);
        self.operator.send_presence();
    }
}

/// Returns the value of the header, unless it is absent or repeated.
fn console_header(request: &Request<Incoming>) -> Option<&str> {
    let mut values = request.headers().get_all(CONSOLE_HEADER).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

fn session_required() -> Response<Body> {
    text_response(
        StatusCode::UNAUTHORIZED,
        "this browser has no valid console session; open the link that `toolgate console` prints",
    )
}

/// Builds a JSON response: the result, or the error with status 409.
pub(crate) fn answer(result: Result<Value, String>) -> Response<Body> {
    let (status, value) = match result {
        Ok(value) => (StatusCode::OK, value),
        Err(error) => (StatusCode::CONFLICT, json!({"error": error})),
    };
    let mut response = Response::new(Body::full(value.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
