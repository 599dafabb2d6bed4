//! CORS: requests from web pages of other origins that the operator allows.
//!
//! There is no wildcard origin, and cookies are never allowed. Other pages get no CORS headers, so browsers withhold
//! the response from them.

use super::{Body, HostGuard, empty_response, headers};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};

/// Request headers of the protocol, except `Mcp-Param-*`.
const ALLOWED_HEADERS: [&str; 9] = [
    "accept",
    "authorization",
    "content-type",
    "dpop",
    "last-event-id",
    headers::VERSION,
    headers::SESSION,
    headers::METHOD,
    headers::NAME,
];
const ALLOWED_METHODS: HeaderValue = HeaderValue::from_static("POST, GET, DELETE");
/// Response headers that a script needs: its session, and how to get a token.
const EXPOSED_HEADERS: HeaderValue =
    HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce");
/// Time for which a browser may cache a preflight response, in seconds.
const PREFLIGHT_MAX_AGE_SECONDS: HeaderValue = HeaderValue::from_static("600");

/// Allowed `Origin` of a cross-site request to the MCP endpoint. It writes the CORS headers of the response.
///
/// Standard: [CORS protocol](https://fetch.spec.whatwg.org/#http-cors-protocol).
#[derive(Clone, Debug)]
pub struct AllowedOrigin(HeaderValue);

impl HostGuard {
    /// Returns the `Origin` of a cross-site request if the guard allows it. The request must have passed
    /// [`HostGuard::check`].
    pub fn allowed_origin<B>(&self, request: &Request<B>) -> Option<AllowedOrigin> {
        let origin = request.headers().get(header::ORIGIN)?;
        let listed = self.has_origin(origin.to_str().ok()?);
        listed.then(|| AllowedOrigin(origin.clone()))
    }
}

impl AllowedOrigin {
    /// Returns the response to a CORS preflight request (`OPTIONS`), or `None` if the request is not one.
    pub fn preflight<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let asked = request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if request.method() != Method::OPTIONS || !asked {
            return None;
        }
        let mut response = empty_response(StatusCode::NO_CONTENT);
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_MAX_AGE_SECONDS);
        if let Ok(allowed) = HeaderValue::from_str(&allowed_headers(request.headers()).join(", ")) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        }
        Some(response)
    }

    /// Adds the CORS headers that let scripts of the allowed origin read the response.
    pub fn add_headers(&self, response: &mut Response<Body>) {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.0.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
}

/// Returns the allowed request headers. Names of `Mcp-Param-*` headers are the tool's choice, so they are copied from
/// the preflight.
fn allowed_headers(asked: &HeaderMap) -> Vec<String> {
    let asked = asked
        .get_all(header::ACCESS_CONTROL_REQUEST_HEADERS)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let params = asked
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .filter(|name| name.as_str().starts_with(headers::PARAM_PREFIX))
        .map(|name| name.as_str().to_owned());
    ALLOWED_HEADERS
        .into_iter()
        .map(str::to_owned)
        .chain(params)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preflight(origin: &str, asked: &str) -> Option<Response<Body>> {
        let guard = HostGuard::loopback(8665).allow_origins(["https://app.example"]);
        let request = Request::builder()
            .method("OPTIONS")
            .uri("/mcp")
            .header("host", "localhost:8665")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", asked)
            .body(())
            .unwrap();
        let page = guard.allowed_origin(&request)?;
        let mut response = page.preflight(&request)?;
        page.add_headers(&mut response);
        Some(response)
    }

    #[test]
    fn allows_only_protocol_headers_to_an_allowed_origin() {
        let response = preflight(
            "https://app.example",
            "content-type,Mcp-Param-Region, x-other",
        )
        .unwrap();
        assert_eq!(response.status(), 204);
        let value = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(value("access-control-allow-origin"), "https://app.example");
        assert_eq!(value("access-control-allow-methods"), "POST, GET, DELETE");
        assert_eq!(
            value("access-control-allow-headers"),
            "accept, authorization, content-type, dpop, last-event-id, mcp-protocol-version, mcp-session-id, mcp-method, \
             mcp-name, mcp-param-region"
        );
        assert_eq!(
            value("access-control-expose-headers"),
            "Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce"
        );
        assert_eq!(value("vary"), "Origin");
        let credentials = "access-control-allow-credentials";
        assert!(!response.headers().contains_key(credentials));
    }

    #[test]
    fn gives_other_origins_no_headers() {
        for origin in [
            "https://evil.test",
            "null",
            "http://app.example",
            "http://localhost:8665",
        ] {
            assert!(preflight(origin, "content-type").is_none(), "{origin}");
        }
    }
}
