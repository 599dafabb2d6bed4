//! The console: a page where a person sees the tools and the calls, and decides.

mod body;
mod login;
mod pages;
mod sign_in;

use crate::{
    board::Told,
    operator::Operator,
    routes::text,
    signing_in::{PATH, SignIns},
};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::sync::{broadcast, mpsc};
use toolgate::edge::http::Body;

pub(crate) use body::{SHORT, body};
use login::Session;
pub(crate) use login::{Logins, revoke_all};

/// The console's part of the routes.
pub(crate) struct Console {
    pub(crate) logins: Arc<Logins>,
    pub(crate) operator: Arc<Operator>,
    pub(crate) sign_ins: SignIns,
}

/// A header that no form and no foreign page can send without being asked for first. It holds the key of the login; the
/// login itself has none yet and sends `1`.
const MARK: &str = "x-toolgate-console";
/// The longest request of somebody who is logged in, in bytes.
const LONGEST: usize = 1 << 20;
const KEEP_ALIVE: Duration = Duration::from_secs(15);

impl Console {
    /// A file of the page.
    pub(crate) fn page(&self, name: &str) -> Response<Body> {
        pages::find(name).unwrap_or_else(|| text(StatusCode::NOT_FOUND, "there is no such page"))
    }

    /// Answers what is below `/console/`.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        match (request.method().clone(), path.as_str()) {
            (Method::POST, "/console/login") => self.login(request).await,
            (Method::POST, "/console/logout") => self.logout(&request).await,
            (Method::GET, "/console/api/state") if self.is_in(&request).is_some() => {
                answer(Ok(self.operator.snapshot().await))
            }
            (Method::GET, "/console/api/events") => match self.is_in(&request) {
                Some(session) => self.events(session),
                None => logged_out(),
            },
            (Method::POST, path)
                if path.starts_with("/console/api/") && self.is_in(&request).is_some() =>
            {
                let action = path.trim_start_matches("/console/api/").to_owned();
                self.act(&action, request).await
            }
            (_, path) if path.starts_with("/console/api/") => logged_out(),
            (Method::GET, PATH) => self.page("signed-in.html"),
            (Method::GET, path) => self.page(path.trim_start_matches("/console/")),
            _ => text(StatusCode::NOT_FOUND, "there is nothing here"),
        }
    }

    async fn act(&self, action: &str, request: Request<Incoming>) -> Response<Body> {
        let Some(Session { who, .. }) = self.is_in(&request) else {
            return foreign();
        };
        if let Some(step) = action.strip_prefix("sign-in/") {
            return self.sign_in(step, request, &who).await;
        }
        match body(request, LONGEST).await {
            Ok(body) => answer(self.operator.act(action, &body, &who).await),
            Err(response) => *response,
        }
    }

    async fn login(&self, request: Request<Incoming>) -> Response<Body> {
        if mark(&request) != Some("1") {
            return foreign();
        }
        let body = match body(request, SHORT).await {
            Ok(body) => body,
            Err(response) => return *response,
        };
        let token = body
            .get("token")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let entered = match self.logins.enter(token).await {
            Ok(Some(entered)) => entered,
            Ok(None) => {
                return text(
                    StatusCode::UNAUTHORIZED,
                    "this link was used already or is too old; `toolgate console` prints a fresh one",
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
    async fn logout(&self, request: &Request<Incoming>) -> Response<Body> {
        let Some(session) = self.is_in(request) else {
            return logged_out();
        };
        let cookie = match self.logins.leave(&session).await {
            Ok(cookie) => cookie,
            Err(why) => return answer(Err(why)),
        };
        let mut response = answer(Ok(json!({"ok": true})));
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }

    /// Who is logged in.
    fn is_in(&self, request: &Request<Incoming>) -> Option<Session> {
        let key = mark(request)?;
        request
            .headers()
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|c| c.to_str().ok())
            .find_map(|c| self.logins.knows(c, key))
    }

    /// A snapshot first, then each change as it happens, until the session ends.
    fn events(&self, session: Session) -> Response<Body> {
        let (tx, rx) = mpsc::channel(64);
        let (operator, logins) = (self.operator.clone(), self.logins.clone());
        let work = Box::pin(async move {
            tokio::select! {
                () = follow(&operator, tx) => {}
                () = operator.server.closed() => {}
                () = logins.ended(&session) => {}
            }
        });
        Body::named(rx, work, KEEP_ALIVE).response()
    }
}

/// Everything as it is, then each change; everything anew for a reader that fell behind.
async fn follow(operator: &Operator, tx: mpsc::Sender<Told>) {
    let mut changes = operator.changes();
    let mut event = ("state", operator.snapshot().await.to_string());
    while tx.send(event).await.is_ok() {
        event = match changes.recv().await {
            Ok(event) => event,
            Err(broadcast::error::RecvError::Lagged(_)) => {
                ("state", operator.snapshot().await.to_string())
            }
            Err(broadcast::error::RecvError::Closed) => return,
        };
    }
}

/// The value of the header, where it stands once.
fn mark(request: &Request<Incoming>) -> Option<&str> {
    let mut values = request.headers().get_all(MARK).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

fn logged_out() -> Response<Body> {
    text(
        StatusCode::UNAUTHORIZED,
        "open the link that `toolgate console` prints",
    )
}

fn foreign() -> Response<Body> {
    text(
        StatusCode::FORBIDDEN,
        "this is no request of the console page",
    )
}

/// A JSON answer: what was done, or why it was not.
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
