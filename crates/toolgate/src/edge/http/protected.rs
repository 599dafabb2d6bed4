//! Endpoint that is an OAuth protected resource: callers need access tokens of its authorization server.

use super::{Body, HttpEndpoint, MissingScopes};
use futures_util::{FutureExt, future::select};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use toolgate_auth::resource::{RequestCredentials, ResourceServer, TokenRejection};
use toolgate_core::BoxFuture;

/// Handles one request to the endpoint or for its protected resource metadata. Requests without a valid token are
/// rejected.
pub(crate) async fn handle<B>(
    endpoint: &HttpEndpoint,
    resource: &Arc<ResourceServer>,
    request: Request<B>,
) -> Response<Body>
where
    B: http_body::Body<Data = bytes::Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if resource.is_metadata(request.uri().path()) {
        return metadata(resource, request.method());
    }
    let admitted = match resource.admit(request.method(), request.headers()).await {
        Ok(admitted) => admitted,
        Err(refused) => return unauthorized(&refused),
    };
    let over = match RequestCredentials::of(request.headers()) {
        RequestCredentials::Token(_, token) => over(resource, token, admitted.until),
        _ => None,
    };
    let response = endpoint.handle(admitted.caller, request).await;
    let response = told(resource, response);
    match over {
        Some(over) => response.map(|body| body.expiring(over)),
        None => response,
    }
}

/// Returns a future that completes when an accepted token expires or its issuer revokes it.
pub fn over(
    resource: &Arc<ResourceServer>,
    token: &str,
    until: Option<SystemTime>,
) -> Option<BoxFuture<'static, ()>> {
    match (until.map(at), resource.withdrawn(token)) {
        (Some(end), Some(withdrawn)) => Some(Box::pin(select(end, withdrawn).map(drop))),
        (end, withdrawn) => end.or(withdrawn),
    }
}

/// Returns the protected resource metadata (RFC 9728), which needs no token.
pub fn metadata(resource: &ResourceServer, method: &Method) -> Response<Body> {
    if method != Method::GET {
        let mut response = super::plain(StatusCode::METHOD_NOT_ALLOWED);
        let allow = HeaderValue::from_static("GET");
        response.headers_mut().insert(header::ALLOW, allow);
        return response;
    }
    super::json(StatusCode::OK, resource.metadata())
}

/// Returns the response to a rejected request, with its challenges.
pub fn unauthorized(refused: &TokenRejection) -> Response<Body> {
    let mut response = super::plain(refused.status());
    *response.body_mut() = Body::full(format!("{}\n", refused.told()));
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    for challenge in refused.challenges() {
        if let Ok(value) = HeaderValue::from_str(challenge) {
            headers.append(header::WWW_AUTHENTICATE, value);
        }
    }
    if let Some(nonce) = refused.nonce().and_then(|n| HeaderValue::from_str(n).ok()) {
        headers.insert("dpop-nonce", nonce);
    }
    let later = match refused.status() {
        StatusCode::SERVICE_UNAVAILABLE => "30",
        StatusCode::TOO_MANY_REQUESTS => "60",
        _ => return response,
    };
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static(later));
    response
}

/// Adds the metadata URL to the challenge if the response reports insufficient scopes.
pub fn told(resource: &ResourceServer, mut response: Response<Body>) -> Response<Body> {
    let Some(MissingScopes(scopes)) = response.extensions().get() else {
        return response;
    };
    if let Ok(value) = HeaderValue::from_str(&resource.insufficient(scopes)) {
        let headers = response.headers_mut();
        headers.insert(header::WWW_AUTHENTICATE, value);
    }
    response
}

/// Returns a future that completes at a time of the system clock.
fn at(until: SystemTime) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        // Checked again at least every 60 s: the clock may be set, and the duration of a sleep is limited.
        while let Ok(left) = until.duration_since(SystemTime::now()) {
            tokio::time::sleep(left.min(Duration::from_secs(60))).await;
        }
    })
}
