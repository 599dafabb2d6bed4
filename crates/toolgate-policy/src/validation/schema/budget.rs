//! Time budget of a check: cheap checks run inline, slow ones on a blocking thread, too expensive ones not at all.
//!
//! Schemas and most values are untrusted. The maximum time is estimated before the check starts, in nanoseconds of
//! processor time of a release build, because a running check cannot be stopped.

use super::{CompiledSchema, SchemaValidator, cost::MAX_VALUE_DEPTH, problems};
use crate::catch_panic::with_panics_withheld;
use serde_json::Value;
use std::{fmt, sync::Arc, time::Duration};
use tokio::sync::Semaphore;
use toolgate_core::{BoxFuture, JsonView, SchemaViolation};

/// Maximum estimated time of an inline check, in nanoseconds.
const MAX_INLINE_NANOS: u64 = 1_000_000;
/// Maximum number of slow checks that run at once.
const MAX_SLOW_CHECKS: usize = 2;
/// Factor by which the wait for a slow check may exceed its time limit: the processors are shared.
const MAX_WAIT_FACTOR: u32 = 40;

static SLOW_CHECK_PERMITS: Semaphore = Semaphore::const_new(MAX_SLOW_CHECKS);

/// The result of a check, immediate or pending. An error says why there is no result.
pub(crate) enum CheckResult {
    /// The check ran inline.
    Ready(Vec<SchemaViolation>),
    /// The check runs on a blocking thread, or times out.
    Pending(BoxFuture<'static, Result<Vec<SchemaViolation>, CheckFailure>>),
}

/// Reason why a check has no outcome.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CheckFailure {
    /// The check ran longer than this time.
    TimedOut(Duration),
    /// The check stopped, for example because of a panic.
    Stopped,
}

impl fmt::Display for CheckFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckFailure::TimedOut(time) => write!(
                f,
                "validation against the schema took longer than {} ms",
                time.as_millis()
            ),
            CheckFailure::Stopped => {
                f.write_str("validation against the schema stopped because of an internal error")
            }
        }
    }
}

/// Returns whether a short unparsed value fits a plain schema, as nearly all do; `false` if that needs a parsed
/// value.
pub(crate) fn fits(compiled: &CompiledSchema, value: &JsonView<'_>) -> bool {
    let Ok(schema) = compiled else {
        return false;
    };
    let most = MAX_INLINE_NANOS.min(nanos(schema.time));
    let plain = schema.plain.as_ref();
    let text = value.as_str().as_bytes();
    // Every level of nesting has an opening bracket, so their number bounds the depth.
    let levels = || memchr::memchr2_iter(b'{', b'[', text).count();
    schema.depth >= MAX_VALUE_DEPTH
        && (text.len() <= MAX_VALUE_DEPTH || levels() <= MAX_VALUE_DEPTH)
        && schema.cost.of_short(text.len()) <= most
        && plain.is_some_and(|plain| plain.accepts_text(value))
}

/// Policy for required tool arguments that have a `default` in the schema.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum RequiredDefaults {
    /// Required arguments with a default may be omitted: the server fills them in.
    #[default]
    Optional,
    /// Required arguments with a default may not be omitted, as the schema says.
    Required,
}

/// Checks a value against a schema. A schema that did not compile finds no problems.
pub(crate) fn check(
    compiled: &Arc<CompiledSchema>,
    value: &Value,
    defaults: RequiredDefaults,
) -> CheckResult {
    let Ok(schema) = compiled.as_ref() else {
        return CheckResult::Ready(Vec::new());
    };
    let (cost, most) = (schema.cost.of(value), nanos(schema.time));
    if cost > most {
        return CheckResult::Ready(vec![too_much(schema.time)]);
    }
    // The time of backtracking cannot be estimated.
    if cost <= MAX_INLINE_NANOS && !schema.backtracks {
        return CheckResult::Ready(find_problems(schema, value, defaults));
    }
    let (compiled, value, time) = (
        compiled.clone(),
        value.clone(),
        schema.time * MAX_WAIT_FACTOR,
    );
    let work = async move {
        let place = SLOW_CHECK_PERMITS.acquire().await.map_err(|_| ())?;
        let judge = move || {
            let _place = place;
            let schema = compiled.as_ref().as_ref().ok()?;
            Some(with_panics_withheld(|| {
                find_problems(schema, &value, defaults)
            }))
        };
        let found = tokio::task::spawn_blocking(judge).await;
        found.ok().flatten().ok_or(())
    };
    CheckResult::Pending(Box::pin(async move {
        match tokio::time::timeout(time, work).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(())) => Err(CheckFailure::Stopped),
            Err(_) => Err(CheckFailure::TimedOut(time)),
        }
    }))
}

fn find_problems(
    schema: &SchemaValidator,
    value: &Value,
    defaults: RequiredDefaults,
) -> Vec<SchemaViolation> {
    let found = problems(schema, value);
    match schema.relaxed() {
        Some(relaxed) if !found.is_empty() && defaults == RequiredDefaults::Optional => {
            problems(relaxed, value)
        }
        _ => found,
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn too_much(time: Duration) -> SchemaViolation {
    SchemaViolation::new(
        "",
        "a value that can be validated against this schema in time",
        format!(
            "a value whose validation could take longer than {} ms (`schema_milliseconds`)",
            time.as_millis()
        ),
    )
}
