//! Which address leads where. Host, Origin and credentials are checked here, for every route, before anything else.

use crate::{console::Console, live::Live, plan::Door, witness::EdgeWitness};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use ring::digest;
use std::sync::Arc;
use toolgate::{
    Caller,
    edge::{
        Refused, Witness,
        http::{Body, Endpoint},
    },
};

/// Everything that can be reached over HTTP. None of it starts a process.
pub(crate) struct Routes {
    /// Who may come in stands in the plan in force.
    pub(crate) live: Arc<Live>,
    pub(crate) endpoint: Endpoint,
    pub(crate) console: Console,
    pub(crate) witness: Arc<EdgeWitness>,
}

/// Streamable HTTP.
const MCP: &str = "/mcp";
/// The stream of the transport of 2024-11-05.
const SSE: &str = "/sse";
/// Where the clients of such a stream post.
const MESSAGES: &str = "/messages";
/// The longest console request, in bytes.
pub(crate) const CONSOLE_BODY: usize = 1024 * 1024;

impl Routes {
    /// Answers one request.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        // Not the whole plan: a request may be a stream that lives for long.
        let door = self.live.plan().door.clone();
        let mut response = match door.guard.check(&request) {
            Ok(()) => self.shared(&door, request).await,
            Err(denied) => {
                self.refused(&request, denied.reason()).await;
                text(StatusCode::FORBIDDEN, denied.reason())
            }
        };
        response.headers_mut().insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        response
    }

    /// Pages of other origins have to do with the endpoint alone, never with the console.
    async fn shared(&self, door: &Door, request: Request<Incoming>) -> Response<Body> {
        let page = door.guard.page(&request);
        let page = page.filter(|_| matches!(request.uri().path(), MCP | SSE | MESSAGES));
        let Some(page) = page else {
            return self.route(door, request).await;
        };
        let mut response = match page.preflight(&request) {
            Some(response) => response,
            None => self.route(door, request).await,
        };
        page.share(&mut response);
        response
    }

    async fn route(&self, door: &Door, request: Request<Incoming>) -> Response<Body> {
        match (request.method(), request.uri().path()) {
            (_, MCP | SSE | MESSAGES) => self.mcp(door, request).await,
            (&Method::GET, "/") => self.console.page("index.html"),
            (_, path) if path.starts_with("/console/") => self.console.answer(request).await,
            _ => text(
                StatusCode::NOT_FOUND,
                "there is nothing here; the MCP endpoint is /mcp, the console is /",
            ),
        }
    }

    async fn mcp(&self, door: &Door, request: Request<Incoming>) -> Response<Body> {
        let caller = match &door.token {
            None => Caller::new("anonymous@http"),
            Some(token) if bearer(&request).is_some_and(|given| same(given, token.reveal())) => {
                Caller::new("token@http")
            }
            Some(_) => {
                self.refused(&request, "the bearer token is missing or wrong")
                    .await;
                let mut response = text(
                    StatusCode::UNAUTHORIZED,
                    "a bearer token is needed here: send Authorization: Bearer TOKEN",
                );
                response
                    .headers_mut()
                    .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                return response;
            }
        };
        match request.uri().path() {
            SSE => self.endpoint.sse(&caller, &request, MESSAGES),
            MESSAGES => self.endpoint.messages(&caller, request).await,
            _ => self.endpoint.handle(caller, request).await,
        }
    }

    async fn refused(&self, request: &Request<Incoming>, reason: &str) {
        // A page that loads, a probe: only what aims at the endpoint may have meant a call.
        if matches!(request.uri().path(), MCP | MESSAGES) && request.method() == Method::POST {
            let (caller, reason) = (Caller::new("unknown@http"), reason.to_owned());
            self.witness
                .refused(Refused {
                    caller,
                    transport: "http",
                    method: None,
                    tool: None,
                    reason,
                })
                .await;
        }
    }
}

fn bearer(request: &Request<Incoming>) -> Option<&str> {
    let mut values = request.headers().get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// Compares secrets by their digests, so that the time it takes says nothing about where they differ.
pub(crate) fn same(given: &str, wanted: &str) -> bool {
    let digest = |text: &str| digest::digest(&digest::SHA256, text.as_bytes());
    digest(given).as_ref() == digest(wanted).as_ref()
}

/// A response of one line of plain text.
pub(crate) fn text(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::full(format!("{text}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}
