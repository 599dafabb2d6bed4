//! Bodies of requests from the console's and the sign-in pages.

use crate::responses::text_response;
use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;
use toolgate::edge::http::Body;
use toolgate_protocol::memory_budget::MAX_UNCOUNTED_BYTES;

/// Maximum body size of an unauthenticated request, in bytes: the memory that the bound has for each connection.
pub(crate) const MAX_UNAUTHENTICATED_BODY_BYTES: usize = MAX_UNCOUNTED_BYTES as usize;
/// Timeout for receiving a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads the JSON body of a request from one of our pages, with a maximum size in bytes.
pub(crate) async fn read_body(
    request: Request<Incoming>,
    most: usize,
) -> Result<Value, Box<Response<Body>>> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("application/json") {
        return Err(Box::new(text_response(
            StatusCode::FORBIDDEN,
            "the Content-Type of this request is not application/json; send it from a page of this gateway",
        )));
    }
    let no = |words| Box::new(text_response(StatusCode::BAD_REQUEST, words));
    let bytes = timeout(BODY_TIMEOUT, collect_body(request.into_body(), most)).await;
    let bytes = bytes.ok().flatten();
    let bytes = bytes.ok_or_else(|| no("the request body is too long, or did not arrive completely within 30 seconds; try again"))?;
    serde_json::from_slice(&bytes).map_err(|_| no("the request body is not valid JSON"))
}

/// Reads the body into one buffer. Storing its frames would take many times its length if it arrives byte by byte.
async fn collect_body(mut body: Incoming, most: usize) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame.ok()?.data_ref() {
            if whole.len() + data.len() > most {
                return None;
            }
            whole.extend_from_slice(data);
        }
    }
    Some(whole)
}
