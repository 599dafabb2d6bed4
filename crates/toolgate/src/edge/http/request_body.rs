//! Request bodies: read within the time and size limits and the memory budget.

use super::{Body, HttpEndpointState, accept, error_response, rejected_response};
use crate::edge::connection::unreadable_error;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Limited};
use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep_until};
use toolgate_core::Caller;
use toolgate_protocol::{
    json::{Json, ReadError, ReadErrorKind},
    memory_budget::{BudgetExceeded, MemoryPermit},
    message::code,
};

type BodyReadResponse = Response<Body>;

/// Reads a request body as strict JSON, within its limits.
pub(crate) async fn read_json<B>(
    endpoint: &HttpEndpointState,
    caller: &Caller,
    parts: &Parts,
    body: B,
) -> Result<Json, Box<BodyReadResponse>>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let no = |status, text: &str| {
        Err(Box::new(rejected_response(
            status,
            code::INVALID_REQUEST,
            text,
        )))
    };
    if !accept::is_json(&parts.headers) {
        return no(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Content-Type must be application/json, without an encoding",
        );
    }
    let limit = endpoint.server.limits.json.bytes;
    // A body that is declared too long is not read at all.
    if body.size_hint().lower() > limit as u64 {
        return Err(Box::new(too_large_response(limit)));
    }
    // The declared size is reserved at once: of many bodies that do not fit together, some complete.
    let mut claim = endpoint.server.budget_scope(caller).permit();
    if let Err(full) = claim.cover_message(body.size_hint().lower()) {
        return Err(Box::new(over_budget_response(&full)));
    }
    let limits = &endpoint.limits;
    let times = (limits.body_timeout, limits.body_idle_timeout);
    let bytes = match collect(Limited::new(body, limit), times, &mut claim).await {
        Err(BodyReadError::Timeout) => {
            let mut answer = rejected_response(
                StatusCode::REQUEST_TIMEOUT,
                code::INVALID_REQUEST,
                "the request body took too long, or paused for too long; send the request again",
            );
            answer
                .headers_mut()
                .insert(header::CONNECTION, HeaderValue::from_static("close"));
            return Err(Box::new(answer));
        }
        Err(BodyReadError::Failed(failed)) if failed.is::<http_body_util::LengthLimitError>() => {
            return Err(Box::new(too_large_response(limit)));
        }
        Err(BodyReadError::OverBudget(full)) => return Err(Box::new(over_budget_response(&full))),
        Err(BodyReadError::Failed(_)) => {
            return no(
                StatusCode::BAD_REQUEST,
                "the request body ended early; send the request again",
            );
        }
        Ok(bytes) => bytes,
    };
    endpoint
        .server
        .read_message(bytes, claim)
        .map_err(|bad| Box::new(unreadable_response(&bad)))
}

fn unreadable_response(bad: &ReadError) -> BodyReadResponse {
    match bad.kind() {
        ReadErrorKind::BudgetExceeded => over_budget_response(bad),
        _ => error_response(StatusCode::BAD_REQUEST, None, unreadable_error(bad)),
    }
}

/// Returns 503 with a retry time: memory is usually free again as soon as another message is sent.
fn over_budget_response(full: &dyn std::fmt::Display) -> BodyReadResponse {
    let mut answer = rejected_response(
        StatusCode::SERVICE_UNAVAILABLE,
        code::INTERNAL_ERROR,
        &full.to_string(),
    );
    let headers = answer.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

fn too_large_response(limit: usize) -> BodyReadResponse {
    let mut answer = rejected_response(
        StatusCode::PAYLOAD_TOO_LARGE,
        code::INVALID_REQUEST,
        &format!("the message is longer than {limit} bytes, which is the limit"),
    );
    answer
        .headers_mut()
        .insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Largest buffer that is allocated before any data arrives, in bytes.
const INITIAL_BUFFER_BYTES: usize = 16 << 10;

/// Reason why a body is incomplete.
enum BodyReadError {
    Timeout,
    OverBudget(BudgetExceeded),
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// Adds a duration to an instant; an overflow becomes one year.
fn saturating_after(at: Instant, time: Duration) -> Instant {
    let far = Duration::from_secs(365 * 24 * 3600);
    at.checked_add(time).unwrap_or(at + far)
}

/// Reads a whole body: all of it within the first time limit, and each piece within the second.
async fn collect<B>(
    body: B,
    (all, idle): (Duration, Duration),
    claim: &mut MemoryPermit,
) -> Result<Vec<u8>, BodyReadError>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = std::pin::pin!(body);
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(0);
    let mut bytes = Vec::with_capacity(announced.min(INITIAL_BUFFER_BYTES));
    let begun = Instant::now();
    // One timer for both limits, reset for each piece; created only if a piece is not ready at once.
    let mut late = pin!(None::<Sleep>);
    loop {
        let mut next = body.frame();
        let mut set = false;
        let piece = poll_fn(|cx| {
            if let Poll::Ready(piece) = Pin::new(&mut next).poll(cx) {
                return Poll::Ready(Ok(piece));
            }
            if !set {
                set = true;
                let due = saturating_after(Instant::now(), idle).min(saturating_after(begun, all));
                match late.as_mut().as_pin_mut() {
                    Some(late) => late.reset(due),
                    None => late.set(Some(sleep_until(due))),
                }
            }
            match late.as_mut().as_pin_mut() {
                Some(late) => late.poll(cx).map(|()| Err(BodyReadError::Timeout)),
                None => Poll::Pending,
            }
        });
        let piece = piece.await?;
        match piece {
            None => return Ok(bytes),
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    let all = bytes.len() + data.len();
                    claim
                        .cover_message(all as u64)
                        .map_err(BodyReadError::OverBudget)?;
                    // Grows by a quarter instead of doubling, since spare capacity is not counted.
                    if all > bytes.capacity() {
                        bytes.reserve_exact(announced.max(all + all / 4) - bytes.len());
                    }
                    bytes.extend_from_slice(data);
                }
            }
            Some(Err(error)) => return Err(BodyReadError::Failed(error.into())),
        }
    }
}
