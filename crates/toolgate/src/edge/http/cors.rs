//! Pages of other origins that the operator named: what their scripts may send and read.
//!
//! Never any origin, never cookies. Pages that are not named get no such header, so browsers keep the answer from them.

use super::{Body, HostGuard, headers, plain};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};

/// What a request of the protocol carries, apart from `Mcp-Param-*`.
const SENT: [&str; 9] = [
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
const METHODS: HeaderValue = HeaderValue::from_static("POST, GET, DELETE");
/// What a script has to read: its session, and how to get a token.
const READ: HeaderValue = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce");
/// How long a browser may remember the answer, in seconds.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

/// A page of another origin that a [`HostGuard`] lists.
#[derive(Clone, Debug)]
pub struct Page(HeaderValue);

impl HostGuard {
    /// The page that a request comes from, where it is of another origin and listed. The request must have passed
    /// [`HostGuard::check`].
    pub fn page<B>(&self, request: &Request<B>) -> Option<Page> {
        let origin = request.headers().get(header::ORIGIN)?;
        let listed = self.lists_origin(origin.to_str().ok()?);
        listed.then(|| Page(origin.clone()))
    }
}

impl Page {
    /// The answer to a preflight; `None` where the request is none.
    pub fn preflight<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let asked = request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if request.method() != Method::OPTIONS || !asked {
            return None;
        }
        let mut response = plain(StatusCode::NO_CONTENT);
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, REMEMBERED);
        if let Ok(allowed) = HeaderValue::from_str(&allowed(request.headers()).join(", ")) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        }
        Some(response)
    }

    /// Lets the scripts of the page read an answer.
    pub fn share(&self, response: &mut Response<Body>) {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.0.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, READ);
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
}

/// The headers of the protocol. Those that repeat an argument have names of the tool's choice, so they are taken from
/// the question.
fn allowed(asked: &HeaderMap) -> Vec<String> {
    let asked = asked
        .get_all(header::ACCESS_CONTROL_REQUEST_HEADERS)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let params = asked
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .filter(|name| name.as_str().starts_with(headers::PARAM))
        .map(|name| name.as_str().to_owned());
    SENT.into_iter().map(str::to_owned).chain(params).collect()
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
        let page = guard.page(&request)?;
        let mut response = page.preflight(&request)?;
        page.share(&mut response);
        Some(response)
    }

    #[test]
    fn a_listed_page_may_send_what_the_protocol_needs_and_no_more() {
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
    fn other_pages_get_nothing() {
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
