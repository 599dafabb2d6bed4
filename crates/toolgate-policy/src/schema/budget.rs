//! Checking a value costs little, or is done aside, or is not done at all.
//!
//! A schema is foreign, and so are most values. How long a check takes at most is known before it begins, in nanoseconds of
//! a processor for a release build: nobody can stop it once it runs.

use super::{Compiled, Schema, problems, work::DEEPEST};
use crate::contain::withheld;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::sync::Semaphore;
use toolgate_core::{BoxFuture, Problem, View};

/// What is done on the spot, in nanoseconds.
const HERE: u64 = 1_000_000;
/// Checks that take their time at once.
const ASIDE: usize = 2;
/// How many times its own time a check is waited for: others have the processors, too.
const PATIENCE: u32 = 40;

static PLACES: Semaphore = Semaphore::const_new(ASIDE);

/// What is wrong with a value: known now, or soon. An error says why nobody knows.
pub(crate) enum Checked {
    /// Known.
    Now(Vec<Problem>),
    /// Soon, or its time is over.
    Soon(BoxFuture<'static, Result<Vec<Problem>, String>>),
}

/// Whether a short value as it stands fits a plain schema: nearly all do. `false` where that is not known without a tree.
pub(crate) fn fits(compiled: &Compiled, value: &View<'_>) -> bool {
    let Ok(schema) = compiled else {
        return false;
    };
    let most = HERE.min(nanos(schema.time));
    let plain = schema.plain.as_ref();
    let text = value.as_str().as_bytes();
    // No level is without its sign.
    let levels = || memchr::memchr2_iter(b'{', b'[', text).count();
    schema.depth >= DEEPEST
        && (text.len() <= DEEPEST || levels() <= DEEPEST)
        && schema.cost.of_short(text.len()) <= most
        && plain.is_some_and(|plain| plain.takes_text(value))
}

/// Whether members that have a default may be left out although the schema requires them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RequiredDefaults {
    /// They may be left out: the server fills them in.
    #[default]
    Optional,
    /// They may not, as the schema says.
    Required,
}

/// Checks a value against a schema; without problems where there is no schema.
pub(crate) fn check(
    compiled: &Arc<Compiled>,
    value: &Value,
    defaults: RequiredDefaults,
) -> Checked {
    let Ok(schema) = compiled.as_ref() else {
        return Checked::Now(Vec::new());
    };
    let (cost, most) = (schema.cost.of(value), nanos(schema.time));
    if cost > most {
        return Checked::Now(vec![too_much(schema.time)]);
    }
    // How long backtracking takes is not known before.
    if cost <= HERE && !schema.backtracks {
        return Checked::Now(judged(schema, value, defaults));
    }
    let (compiled, value, time) = (compiled.clone(), value.clone(), schema.time * PATIENCE);
    let work = async move {
        let place = PLACES.acquire().await.map_err(|_| ())?;
        let judge = move || {
            let _place = place;
            let schema = compiled.as_ref().as_ref().ok()?;
            Some(withheld(|| judged(schema, &value, defaults)))
        };
        let found = tokio::task::spawn_blocking(judge).await;
        found.ok().flatten().ok_or(())
    };
    Checked::Soon(Box::pin(async move {
        match tokio::time::timeout(time, work).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(())) => Err("checking it against its schema failed".to_owned()),
            Err(_) => Err(format!(
                "checking it against its schema took longer than {} ms",
                time.as_millis()
            )),
        }
    }))
}

fn judged(schema: &Schema, value: &Value, defaults: RequiredDefaults) -> Vec<Problem> {
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

fn too_much(time: Duration) -> Problem {
    Problem {
        path: String::new(),
        expected: "less, to be checked against this schema".to_owned(),
        got: format!(
            "what could take longer than {} ms (`schema_milliseconds`)",
            time.as_millis()
        ),
    }
}
