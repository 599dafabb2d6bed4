//! Web console: the page on which a person sees tools and calls, and decides about approvals.

mod body;
mod identity;
mod sign_in;
mod static_files;
mod visible_state;

use crate::{
    console_roles::ConsoleRights,
    oauth::{BrowserSignIns, CONSOLE_REDIRECT_PATH, IDENTITY_PATH, PendingIdentifications},
    operator::{
        ConsoleSession, ConsoleSessions,
        actions::{self, ActionRight},
        api::OperatorApi,
    },
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
use toolgate_core::visible_line;
use toolgate_policy::Approver;

pub(crate) use body::{MAX_UNAUTHENTICATED_BODY_BYTES, read_body, read_bytes};

/// Handler of the console's routes.
pub(crate) struct WebConsole {
    pub(crate) sessions: Arc<ConsoleSessions>,
    pub(crate) operator: Arc<OperatorApi>,
    pub(crate) sign_ins: BrowserSignIns,
    /// Pending sign-ins of people at their issuers.
    pub(crate) identifications: PendingIdentifications,
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
            (Method::GET, "/console/login/options") => answer(Ok(self.sign_in_options())),
            (Method::POST, "/console/login/begin") => self.identify("begin", from, request).await,
            (Method::POST, "/console/login/end") => self.identify("end", from, request).await,
            (Method::GET, IDENTITY_PATH) => self.page("index.html", request.headers()),
            (Method::POST, "/console/logout") => self.logout(from, &request).await,
            (_, path) if path.starts_with("/console/api/") => match self.session_of(&request) {
                Some(session) => self.answer_session(session, request).await,
                None => session_required(),
            },
            (Method::GET, CONSOLE_REDIRECT_PATH) => self.page("signed-in.html", request.headers()),
            (Method::GET, path) => {
                self.page(path.trim_start_matches("/console/"), request.headers())
            }
            _ => text_response(StatusCode::NOT_FOUND, "not found; the console is at /"),
        }
    }

    /// Answers a request of a session, as far as its person has the right to it.
    async fn answer_session(
        &self,
        session: ConsoleSession,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let rights = self.rights_of(&session);
        let path = request.uri().path();
        let action = path.trim_start_matches("/console/api/").to_owned();
        let required = match (request.method(), action.as_str()) {
            (&Method::GET, "state" | "events") => Some(ActionRight::View),
            (&Method::POST, action) => actions::required_right(action),
            _ => None,
        };
        // An unknown action is for the operator's API to reject, to a person who has any right.
        let required = required.unwrap_or(ActionRight::View);
        if !rights.allows(required) {
            return missing_right(&session, required);
        }
        match (request.method(), action.as_str()) {
            (&Method::GET, "state") => {
                let mut state = self.operator.snapshot().await;
                visible_state::hide_state(&mut state, rights);
                answer(Ok(state))
            }
            (&Method::GET, "events") => self.events(session, rights),
            (&Method::POST, _) => self.handle_action(&action, request, &session.who).await,
            _ => text_response(
                StatusCode::METHOD_NOT_ALLOWED,
                "actions of the console are sent with POST",
            ),
        }
    }

    /// Returns the rights of a session by the current config. A session of a link has all of them.
    fn rights_of(&self, session: &ConsoleSession) -> ConsoleRights {
        let Some(person) = &session.person else {
            return ConsoleRights::all();
        };
        self.operator
            .active
            .snapshot()
            .console_roles
            .rights_of(person)
    }

    async fn handle_action(
        &self,
        action: &str,
        request: Request<Incoming>,
        who: &Approver,
    ) -> Response<Body> {
        let is_known = actions::required_right(action).is_some();
        if let Some(step) = action.strip_prefix("sign-in/").filter(|_| is_known) {
            return self.sign_in(step, request, who).await;
        }
        match read_body(request, MAX_CONSOLE_BODY_BYTES).await {
            Ok(body) => answer(self.operator.execute(action, &body, who).await),
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
        with_cookie(json!({"key": entered.key}), &entered.cookie)
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
        with_cookie(json!({"ok": true}), &cookie)
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

    /// Streams the full state, then each change, until the session ends. A changed config may change the rights of a
    /// person, so it ends the stream of theirs; the page connects again.
    fn events(&self, session: ConsoleSession, rights: ConsoleRights) -> Response<Body> {
        let (tx, rx) = mpsc::channel(64);
        let (operator, logins) = (self.operator.clone(), self.sessions.clone());
        let mut configs = operator.active.watch();
        let work = Box::pin(async move {
            tokio::select! {
                () = follow(&operator, (&session, rights), tx) => {}
                () = operator.server.closed() => {}
                () = logins.wait_until_ended(&session) => {}
                _ = configs.changed(), if session.person.is_some() => {}
            }
        });
        Body::named(rx, work, SSE_KEEPALIVE_INTERVAL).response()
    }
}

/// Sends the full state, then each change. A subscriber that lags behind gets the full state again.
async fn follow(
    operator: &OperatorApi,
    (session, rights): (&ConsoleSession, ConsoleRights),
    tx: mpsc::Sender<ConsoleEvent>,
) {
    let page = OpenPage::enter(operator, &session.who);
    loop {
        let mut changes = operator.subscribe();
        let mut calls = CallFollower::new(&operator.feed);
        let mut state = operator.page_state(page.id).await;
        state["me"] = json!({
            "name": session.who.name.as_deref(), "rights": rights.names(),
            "issuer": session.who.identity.as_ref().map(|identity| &*identity.issuer),
        });
        let mut event = ("state", state.to_string());
        loop {
            let (name, text) = event;
            let event_text = visible_state::visible_event(name, text, rights);
            event = (name, event_text);
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

fn missing_right(session: &ConsoleSession, right: ActionRight) -> Response<Body> {
    let who = session.who.name.as_deref().unwrap_or("this person");
    let mut response = answer(Err(format!(
        "{} has no role with the right {:?}; ask an owner of the gateway, who assigns roles in [console.role]",
        visible_line(who),
        right.as_str()
    )));
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}

/// Builds a JSON response that sets or removes the cookie of a session.
fn with_cookie(value: Value, cookie: &str) -> Response<Body> {
    let mut response = answer(Ok(value));
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
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
