//! Checking a value costs little, or is done aside with a limit of time, or is not done at all.
//!
//! A schema is foreign, and so are most values. How many steps a check takes at most is known before it begins: the
//! values in the value, times the schemas that look at one place. Patterns take time for every character and
//! every state besides.

use super::{Compiled, Schema, problems};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::Semaphore;
use toolgate_core::{BoxFuture, Problem};

/// Steps that are taken on the spot.
const HERE: u64 = 100_000;
/// Steps that are never taken: some seconds.
const MOST: u64 = 50_000_000;
/// Steps of patterns that are never taken: each is far less than one of the others.
const MOST_MATCHING: u64 = 1_000_000_000;
/// Steps up to which all that is wrong is told. Each place of each alternative may be a problem of some hundred bytes.
pub(super) const TOLD: u64 = 20_000;
/// Checks that take their time at once. One whose time was over holds its place until it ends.
const ASIDE: usize = 2;

static PLACES: Semaphore = Semaphore::const_new(ASIDE);

/// What is wrong with a value: known now, or soon. An error says why nobody knows.
pub(crate) enum Checked {
    /// Known.
    Now(Vec<Problem>),
    /// Soon, or its time is over.
    Soon(BoxFuture<'static, Result<Vec<Problem>, String>>),
}

/// Checks a value against a schema; without problems where there is no schema.
pub(crate) fn check(compiled: &Arc<Compiled>, value: &Value) -> Checked {
    let Ok(schema) = compiled.as_ref() else {
        return Checked::Now(Vec::new());
    };
    let weight = Weight::of(value);
    let steps = weight.values.saturating_mul(schema.looks);
    if steps > MOST {
        return Checked::Now(vec![too_much(weight.values)]);
    }
    let matching = weight
        .text
        .saturating_mul(schema.states)
        .saturating_mul(schema.looks);
    if matching > MOST_MATCHING {
        return Checked::Now(vec![too_much(weight.values)]);
    }
    if steps.saturating_add(matching) <= HERE {
        return Checked::Now(problems(schema, value));
    }
    let (compiled, value, time) = (compiled.clone(), value.clone(), schema.time);
    let work = async move {
        let place = PLACES.acquire().await.map_err(|_| ())?;
        let judge = move || {
            let _place = place;
            compiled.as_ref().as_ref().map(|s| problems(s, &value)).ok()
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

fn too_much(values: u64) -> Problem {
    Problem {
        path: String::new(),
        expected: "less, to be checked against this schema".to_owned(),
        got: format!("{values} values"),
    }
}

/// How much there is to look at.
#[derive(Default)]
pub(super) struct Weight {
    /// Values and names of members.
    pub(super) values: u64,
    /// Bytes of strings and names.
    pub(super) text: u64,
}

impl Weight {
    pub(super) fn of(value: &Value) -> Weight {
        let mut weight = Weight::default();
        weight.add(value);
        weight
    }

    /// The reader bounds the stack.
    fn add(&mut self, value: &Value) {
        self.values += 1;
        match value {
            Value::String(text) => self.text += text.len() as u64,
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(map) => map.iter().for_each(|(name, member)| {
                self.values += 1;
                self.text += name.len() as u64;
                self.add(member);
            }),
            _ => {}
        }
    }

    /// Whether all that is wrong may be told.
    pub(super) fn may_be_told(&self, schema: &Schema) -> bool {
        self.values.saturating_mul(schema.looks) <= TOLD
    }
}
