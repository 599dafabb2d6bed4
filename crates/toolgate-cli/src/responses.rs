//! HTTP responses that the routes and the console share.

use http::{HeaderValue, Response, StatusCode, header};
use toolgate::edge::http::Body;

/// Builds a response of one line of plain text.
pub(crate) fn text_response(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::full(format!("{text}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}
