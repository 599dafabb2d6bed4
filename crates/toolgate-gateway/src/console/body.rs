//! What a request of our own pages brings.

use super::foreign;
use crate::routes::text;
use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;
use toolgate::edge::http::Body;
use toolgate_wire::room::FREE;

/// The longest request of somebody who has not shown who he is, in bytes: as long as what the sum of memory has for each
/// connection.
pub(crate) const SHORT: usize = FREE as usize;
/// How long it may take to come.
const TIME: Duration = Duration::from_secs(30);

/// The JSON body of a request of our own page, of at most so many bytes.
pub(crate) async fn body(
    request: Request<Incoming>,
    most: usize,
) -> Result<Value, Box<Response<Body>>> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("application/json") {
        return Err(Box::new(foreign()));
    }
    let no = |words| Box::new(text(StatusCode::BAD_REQUEST, words));
    let bytes = timeout(TIME, whole(request.into_body(), most)).await;
    let bytes = bytes.ok().flatten();
    let bytes = bytes.ok_or_else(|| no("the body is too long or broke off"))?;
    serde_json::from_slice(&bytes).map_err(|_| no("the body is no JSON"))
}

/// In one piece: what is kept as it comes takes many times its length, where it comes byte by byte.
async fn whole(mut body: Incoming, most: usize) -> Option<Vec<u8>> {
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
