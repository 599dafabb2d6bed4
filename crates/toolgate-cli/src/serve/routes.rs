//! HTTP routes. Host, Origin and credentials are checked here, for every route, before anything else.

mod notify;
mod sign_in;

pub(crate) use sign_in::UserSignInRoutes;

use crate::{
    admin::{self, AdminPages},
    authentication::{
        AuthRejection, AuthRejectionClass, AuthenticatedCaller, Authenticator, RejectionEffect,
        RejectionLimiter,
    },
    console::WebConsole,
    fleet::{Forwarded, ForwardedRequestHandler, GatewayFleet},
    mcp_path::{McpPath, McpTransport},
    notify::CALLBACK_PATH,
    oauth::SIGN_IN_PATH,
    proxy::{ClientConnection, TrustedProxies},
    responses::text_response,
    runtime::active::ActiveSnapshot,
    serve::{
        edge_audit::EdgeAudit,
        http_server::{OpenConnection, RequestHandler},
    },
    telemetry::GatewayTelemetry,
};
use futures_util::FutureExt;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use std::{
    pin::pin,
    sync::{Arc, atomic::AtomicUsize},
};
use toolgate::{
    Caller,
    edge::{
        Rejection, RejectionLog,
        http::{Body, ClientAddress, HttpEndpoint, protected},
    },
};
use toolgate_policy::keys::ApiKeys;

/// All HTTP routes. None of them starts a process.
pub(crate) struct HttpRoutes {
    /// Active snapshot, which has the authenticator.
    pub(crate) active: Arc<ActiveSnapshot>,
    pub(crate) endpoint: HttpEndpoint,
    pub(crate) console: WebConsole,
    /// Sign-in pages for the users behind callers.
    pub(crate) user_sign_in: UserSignInRoutes,
    pub(crate) edge_audit: Arc<EdgeAudit>,
    pub(crate) keys: Arc<ApiKeys>,
    pub(crate) rejections: RejectionLimiter,
    /// Health pages and metrics.
    pub(crate) admin: Arc<AdminPages>,
    /// True if the listener is loopback and needs no credentials, so that it serves the metrics without a token.
    pub(crate) open_metrics: bool,
    /// True if the gateway's own listener serves the health pages and the metrics.
    pub(crate) serves_admin: bool,
    /// Number of open connections.
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) telemetry: Arc<GatewayTelemetry>,
    /// Number of running requests that other gateways forwarded.
    pub(crate) forwarded: Arc<AtomicUsize>,
    /// Other gateways, to which requests of their sessions are forwarded.
    pub(crate) fleet: Option<Arc<GatewayFleet>>,
}

/// Message for a caller whose key is revoked during a request.
const KEY_REVOKED_MESSAGE: &str = "this key was revoked; ask the operator for a new one";
/// Audit reason of an address whose further rejections are not audited.
const RATE_LIMITED_REASON: &str = "too many rejected credentials from this address; further rejections in the next minute are not logged";

/// Returns whether a path is that of protected resource metadata.
fn is_metadata_path(authenticator: &Authenticator, path: &str) -> bool {
    let resource = authenticator.resource.as_ref();
    resource.is_some_and(|resource| resource.is_metadata_path(path))
}

/// Isolates this program's pages from windows and scripts of other origins.
fn isolate(response: &mut Response<Body>) {
    let headers = response.headers_mut();
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        headers.insert(
            header::HeaderName::from_static(name),
            HeaderValue::from_static("same-origin"),
        );
    }
}

impl RequestHandler for HttpRoutes {
    async fn answer(
        &self,
        peer: ClientConnection,
        request: Box<Request<Incoming>>,
    ) -> Response<Body> {
        // Probes need no credentials, and name the address of the machine as the host.
        if self.serves_admin && admin::is_health_page(request.uri().path()) {
            return self.admin.answer(&request, false);
        }
        // Do not hold the whole snapshot: a request may be a stream that lives for long.
        let authenticator = self.authenticator(request.uri().path());
        let is_forwarded = request.extensions().get::<Forwarded>().is_some();
        let from = match is_forwarded {
            true => peer,
            false => authenticator.proxies.client_of(peer, request.headers()),
        };
        let ours = McpPath::parse(request.uri().path()).is_none()
            && !is_metadata_path(&authenticator, request.uri().path());
        let allowed = match from.is_https && !peer.is_https {
            // The gateway that forwards a request has checked these headers, which name it as the host.
            _ if is_forwarded => Ok(()),
            true => authenticator.guard.check_behind_https_proxy(&request),
            false => authenticator.guard.check(&request),
        };
        let mut response = match allowed {
            Ok(()) => self.answer_with_cors(&authenticator, from, request).await,
            Err(denied) => {
                self.telemetry
                    .http_rejections
                    .increment(&["host_or_origin"]);
                self.audit_rejection(from, &request, denied.reason()).await;
                text_response(StatusCode::FORBIDDEN, denied.reason())
            }
        };
        response.headers_mut().insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        if ours {
            isolate(&mut response);
        }
        response
    }

    fn proxies(&self) -> Arc<TrustedProxies> {
        self.active
            .snapshot()
            .authenticators
            .gateway
            .proxies
            .clone()
    }

    fn connections(&self) -> &Arc<AtomicUsize> {
        &self.connections
    }
}

impl ForwardedRequestHandler for HttpRoutes {
    /// The request has the credentials of its client, which are checked as usual.
    async fn answer_forwarded(
        &self,
        from: ClientConnection,
        mut request: Request<Incoming>,
    ) -> Response<Body> {
        let _running = OpenConnection::count(&self.forwarded);
        request.extensions_mut().insert(Forwarded);
        self.answer(from, Box::new(request)).await
    }
}

impl HttpRoutes {
    /// Shares sessions with other gateways.
    pub(crate) fn join_fleet(&mut self, fleet: Arc<GatewayFleet>) {
        self.endpoint = self
            .endpoint
            .clone()
            .with_id_suffix(fleet.members.tag())
            .with_session_store(fleet.sessions.clone());
        self.fleet = Some(fleet);
    }

    /// Answers a request, with CORS headers for pages of other origins. These may use the endpoint and its metadata,
    /// never the console.
    async fn answer_with_cors(
        &self,
        authenticator: &Authenticator,
        from: ClientConnection,
        request: Box<Request<Incoming>>,
    ) -> Response<Body> {
        let page = authenticator.guard.allowed_origin(&request);
        let path = request.uri().path();
        let is_public = McpPath::parse(path).is_some() || is_metadata_path(authenticator, path);
        let page = page.filter(|_| is_public);
        let preflight = page.as_ref().and_then(|page| page.preflight(&request));
        let mut response = match preflight {
            Some(response) => response,
            None => self.route(authenticator, from, request).await,
        };
        if let Some(page) = page {
            page.add_headers(&mut response);
        }
        response
    }

    async fn route(
        &self,
        authenticator: &Authenticator,
        from: ClientConnection,
        request: Box<Request<Incoming>>,
    ) -> Response<Body> {
        if McpPath::parse(request.uri().path()).is_some() {
            return self.authenticate_mcp(authenticator, from, request).await;
        }
        match (request.method(), request.uri().path()) {
            (method, path) if is_metadata_path(authenticator, path) => {
                match &authenticator.resource {
                    Some(resource) => protected::metadata_response(resource, method),
                    None => text_response(
                        StatusCode::NOT_FOUND,
                        "not found; this gateway accepts no OAuth tokens",
                    ),
                }
            }
            (&Method::GET, "/") => self.console.page("index.html", request.headers()),
            (_, admin::METRICS_PATH) if self.serves_admin => {
                self.admin.answer(&request, self.open_metrics)
            }
            // Boxed, as all rare branches here: the future of a call stays small, and moving it stays cheap.
            (_, path) if path.starts_with(SIGN_IN_PATH) => {
                Box::pin(self.sign_in(authenticator, from, *request)).await
            }
            (_, path) if path.starts_with(CALLBACK_PATH) => {
                Box::pin(self.notification_decision(*request)).await
            }
            (_, path) if path.starts_with("/console/") => {
                Box::pin(self.console.answer(from, *request)).await
            }
            _ => text_response(
                StatusCode::NOT_FOUND,
                "not found; the MCP endpoint is /mcp, or /mcp/NAME for a view, and the console is /",
            ),
        }
    }

    async fn authenticate_mcp(
        &self,
        authenticator: &Authenticator,
        from: ClientConnection,
        mut request: Box<Request<Incoming>>,
    ) -> Response<Body> {
        // The address of this machine says nothing.
        if !from.address.to_canonical().is_loopback() {
            let address = ClientAddress(from.address);
            request.extensions_mut().insert(address);
        }
        let over = self
            .rejections
            .is_limited(from.address, authenticator.max_rejections);
        let at = (request.method(), request.uri().path());
        let entered = authenticator.authenticate(at, request.headers(), &self.keys, over);
        let AuthenticatedCaller {
            caller,
            revoked: withdrawn,
            expired: over,
        } = match entered.await {
            Ok(entered) => entered,
            Err(out) => return Box::pin(self.reject(authenticator, from, &request, out)).await,
        };
        let caller = match self.enter_view(caller, &request) {
            Ok(caller) => caller,
            Err(reason) => return Box::pin(self.reject_view(from, &request, &reason)).await,
        };
        let mut served = pin!(self.serve_mcp(authenticator, caller, from, request));
        let response = match withdrawn {
            None => served.await,
            Some(withdrawn) => {
                // Revoking a key ends everything that it began: a stream, and a call that has no stream yet.
                let withdrawn = withdrawn.shared();
                let response = tokio::select! {
                    response = &mut served => response,
                    () = withdrawn.clone() => return rejection_response(&authenticator.invalid_credentials(KEY_REVOKED_MESSAGE.to_owned(), KEY_REVOKED_MESSAGE)),
                };
                response.map(|body| body.end_when(withdrawn.boxed()))
            }
        };
        // Expiry ends notification streams; a call in flight completes.
        match over {
            Some(over) => response.map(|body| body.expire_when(over)),
            None => response,
        }
    }

    /// Returns the authenticator for a path: that of its view, or of the gateway.
    fn authenticator(&self, path: &str) -> Arc<Authenticator> {
        let snapshot = self.active.snapshot();
        let authenticators = &snapshot.authenticators;
        let found = match McpPath::parse(path) {
            Some(path) => authenticators.of_view(path.view),
            None => authenticators
                .of_metadata_path(path)
                .unwrap_or(&authenticators.gateway),
        };
        found.clone()
    }

    /// Returns the caller in the view that the path names.
    ///
    /// # Errors
    /// There is no such view for this caller; the reason is for the audit log.
    fn enter_view(&self, caller: Caller, request: &Request<Incoming>) -> Result<Caller, String> {
        let view = McpPath::parse(request.uri().path()).and_then(|path| path.view);
        let snapshot = self.active.snapshot();
        let caller = snapshot.in_view(caller, view);
        match snapshot.policies.access.view_refusal(&caller) {
            None => Ok(caller),
            Some(reason) => Err(reason),
        }
    }

    /// Answers like a path that does not exist, whether the view is unknown or not for the caller.
    async fn reject_view(
        &self,
        from: ClientConnection,
        request: &Request<Incoming>,
        reason: &str,
    ) -> Response<Body> {
        self.telemetry.http_rejections.increment(&["unknown_view"]);
        self.audit_rejection(from, request, reason).await;
        text_response(
            StatusCode::NOT_FOUND,
            "not found; there is no such view for this caller; ask the operator for the address of its endpoint",
        )
    }

    async fn serve_mcp(
        &self,
        authenticator: &Authenticator,
        caller: Caller,
        from: ClientConnection,
        mut request: Box<Request<Incoming>>,
    ) -> Response<Body> {
        if let Some(fleet) = &self.fleet {
            match Box::pin(fleet.route(from, request)).await {
                Ok(response) => return response,
                Err(own) => request = own,
            }
        }
        let path = McpPath::parse(request.uri().path());
        let response = match path.map(|path| path.transport) {
            Some(McpTransport::Sse) => {
                let messages = path.map(|path| path.messages_path()).unwrap_or_default();
                self.endpoint.sse(&caller, &request, &messages)
            }
            Some(McpTransport::Messages) => {
                Box::pin(self.endpoint.messages(&caller, *request)).await
            }
            _ => self.endpoint.handle(caller, *request).await,
        };
        match &authenticator.resource {
            Some(resource) => protected::with_metadata_challenge(resource, response),
            None => response,
        }
    }

    async fn reject(
        &self,
        authenticator: &Authenticator,
        from: ClientConnection,
        request: &Request<Incoming>,
        out: AuthRejection,
    ) -> Response<Body> {
        let reason = match out.class {
            AuthRejectionClass::Missing => "missing_credentials",
            AuthRejectionClass::Invalid => "invalid_credentials",
            AuthRejectionClass::Malformed => "malformed_credentials",
            AuthRejectionClass::RateLimited => "too_many_rejections",
            AuthRejectionClass::Unavailable => "store_away",
        };
        self.telemetry.http_rejections.increment(&[reason]);
        match out.class {
            AuthRejectionClass::Missing => {
                self.audit_rejection(from, request, &out.reason).await;
                return rejection_response(&out);
            }
            // An outage is reported once, not for each request.
            AuthRejectionClass::Unavailable => {
                let mut response = text_response(StatusCode::SERVICE_UNAVAILABLE, out.message);
                let headers = response.headers_mut();
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
                return response;
            }
            // The address has too many rejections already, and that was audited.
            AuthRejectionClass::RateLimited => return rejection_response(&out),
            AuthRejectionClass::Invalid | AuthRejectionClass::Malformed => {}
        }
        let attempt = self
            .rejections
            .count_rejection(from.address, authenticator.max_rejections);
        match attempt {
            RejectionEffect::WithinLimit => self.audit_rejection(from, request, &out.reason).await,
            RejectionEffect::FirstAbove => {
                self.audit_rejection(from, request, RATE_LIMITED_REASON)
                    .await
            }
            RejectionEffect::Above => {}
        }
        if attempt == RejectionEffect::WithinLimit {
            return rejection_response(&out);
        }
        let mut response = text_response(
            StatusCode::TOO_MANY_REQUESTS,
            "too many invalid credentials from this address; correct them, and try again in a minute",
        );
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
        response
    }

    async fn audit_rejection(
        &self,
        from: ClientConnection,
        request: &Request<Incoming>,
        reason: &str,
    ) {
        // Page loads and probes are not audited. Only a POST to the endpoint may have been a call, and a POST that
        // begins a sign-in carries credentials as well.
        let path = request.uri().path();
        let calls = McpPath::parse(path).is_some_and(|path| path.has_calls());
        let aims = calls || path.starts_with(SIGN_IN_PATH);
        if aims && request.method() == Method::POST {
            let mut rejection = Rejection::new(Caller::new("unknown@http"), "http", reason);
            rejection.address =
                Some(from.address).filter(|from| !from.to_canonical().is_loopback());
            self.edge_audit.rejected(rejection).await;
        }
    }
}

/// Builds the response to rejected credentials, with a challenge that names the expected ones.
fn rejection_response(out: &AuthRejection) -> Response<Body> {
    if let Some(refused) = &out.oauth_rejection {
        return protected::unauthorized_response(refused);
    }
    let (status, challenge) = out.challenge();
    let mut response = text_response(status, out.message);
    let headers = response.headers_mut();
    headers.insert(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static(challenge),
    );
    response
}
