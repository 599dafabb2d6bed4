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
    let no = |words: &str| Box::new(text_response(StatusCode::BAD_REQUEST, words));
    let body = collect_body(request.into_body(), most);
    let bytes = match timeout(BODY_TIMEOUT, body).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(BodyError::TooLong)) => {
            return Err(no(&format!(
                "the request body is longer than {most} bytes; send a shorter one"
            )));
        }
        Ok(Err(BodyError::Broken)) => {
            return Err(no("the request body ended early; send the request again"));
        }
        Err(_) => {
            return Err(no(
                "the request body did not arrive completely within 30 seconds; try again",
            ));
        }
    };
    serde_json::from_slice(&bytes)
        .map_err(|_| no("the request body is not valid JSON; send it from a page of this gateway"))
}

/// Reads the bytes of a request from another program, with a maximum size.
///
/// # Errors
/// The body is too long, or does not arrive completely in time.
pub(crate) async fn read_bytes(body: Incoming, most: usize) -> Result<Vec<u8>, &'static str> {
    match timeout(BODY_TIMEOUT, collect_body(body, most)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(BodyError::TooLong)) => Err("the request body is too long"),
        Ok(Err(BodyError::Broken)) | Err(_) => Err("the request body did not arrive completely"),
    }
}

/// Reason for which a body cannot be used.
enum BodyError {
    /// The body exceeds the maximum size.
    TooLong,
    /// The connection ended before the body did.
    Broken,
}

/// Reads the body into one buffer. Storing its frames would take many times its length if it arrives byte by byte.
async fn collect_body(mut body: Incoming, most: usize) -> Result<Vec<u8>, BodyError> {
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame.map_err(|_| BodyError::Broken)?.data_ref() {
            if whole.len() + data.len() > most {
                return Err(BodyError::TooLong);
            }
            whole.extend_from_slice(data);
        }
    }
    Ok(whole)
}
