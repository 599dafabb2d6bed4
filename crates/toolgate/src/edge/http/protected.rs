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
    if resource.is_metadata_path(request.uri().path()) {
        return metadata_response(resource, request.method());
    }
    let admitted = match resource
        .authenticate(request.method(), request.headers())
        .await
    {
        Ok(admitted) => admitted,
        Err(refused) => return unauthorized_response(&refused),
    };
    let over = match RequestCredentials::from_headers(request.headers()) {
        RequestCredentials::Token(_, token) => token_end(resource, token, admitted.expires_at),
        _ => None,
    };
    let response = endpoint.handle(admitted.caller, request).await;
    let response = with_metadata_challenge(resource, response);
    match over {
        Some(over) => response.map(|body| body.expire_when(over)),
        None => response,
    }
}

/// Returns a future that completes when an accepted access token expires or its issuer revokes it.
pub fn token_end(
    resource: &Arc<ResourceServer>,
    token: &str,
    until: Option<SystemTime>,
) -> Option<BoxFuture<'static, ()>> {
    match (until.map(sleep_until_time), resource.revoked(token)) {
        (Some(end), Some(withdrawn)) => Some(Box::pin(select(end, withdrawn).map(drop))),
        (end, withdrawn) => end.or(withdrawn),
    }
}

/// Returns the response with the protected resource metadata ([RFC 9728]), which needs no token.
///
/// [RFC 9728]: https://www.rfc-editor.org/rfc/rfc9728
pub fn metadata_response(resource: &ResourceServer, method: &Method) -> Response<Body> {
    if method != Method::GET {
        let mut response = super::empty_response(StatusCode::METHOD_NOT_ALLOWED);
        let allow = HeaderValue::from_static("GET");
        response.headers_mut().insert(header::ALLOW, allow);
        return response;
    }
    super::json_response(StatusCode::OK, resource.metadata())
}

/// Returns the response to a request whose access token is rejected or missing, with its `WWW-Authenticate` challenges.
pub fn unauthorized_response(rejection: &TokenRejection) -> Response<Body> {
    let mut response = super::empty_response(rejection.status());
    *response.body_mut() = Body::full(format!("{}\n", rejection.message()));
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    for challenge in rejection.challenges() {
        if let Ok(value) = HeaderValue::from_str(challenge) {
            headers.append(header::WWW_AUTHENTICATE, value);
        }
    }
    if let Some(nonce) = rejection
        .nonce()
        .and_then(|n| HeaderValue::from_str(n).ok())
    {
        headers.insert("dpop-nonce", nonce);
    }
    let later = match rejection.status() {
        StatusCode::SERVICE_UNAVAILABLE => "30",
        StatusCode::TOO_MANY_REQUESTS => "60",
        _ => return response,
    };
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static(later));
    response
}

/// Adds the URL of the protected resource metadata to the challenge of a response with `insufficient_scope`.
pub fn with_metadata_challenge(
    resource: &ResourceServer,
    mut response: Response<Body>,
) -> Response<Body> {
    let Some(MissingScopes(scopes)) = response.extensions().get() else {
        return response;
    };
    if let Ok(value) = HeaderValue::from_str(&resource.insufficient_scope_challenge(scopes)) {
        let headers = response.headers_mut();
        headers.insert(header::WWW_AUTHENTICATE, value);
    }
    response
}

/// Returns a future that completes at a time of the system clock.
fn sleep_until_time(until: SystemTime) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        // Checked again at least every 60 s: the clock may be set, and the duration of a sleep is limited.
        while let Ok(left) = until.duration_since(SystemTime::now()) {
            tokio::time::sleep(left.min(Duration::from_secs(60))).await;
        }
    })
}
