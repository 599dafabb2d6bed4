//! Conditions of rules and grants: expressions of CEL, the Common Expression Language, over the facts of one call.
//!
//! What a condition may hold is a part of CEL, a little stricter: values of two kinds are never equal, they are an error,
//! and an error never opens anything. Every evaluation ends: it has a budget of steps.

mod calls;
mod eval;
mod facts;
mod lex;
mod parse;
mod reads;
mod tree;
mod value;

#[cfg(test)]
mod tests;

pub use facts::Facts;
pub use reads::ArgumentNames;

use eval::{Evaluator, Stop};
use std::{fmt, sync::Arc};
use tree::{Expr, Fact};
use value::V;

/// How much a condition may be, and how much it may do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WhenLimits {
    /// Its length in bytes.
    pub bytes: usize,
    /// Parts in parts.
    pub depth: usize,
    /// Steps of one evaluation: a part is one, and so are each 32 bytes of text that are read or made.
    pub steps: usize,
}

impl Default for WhenLimits {
    fn default() -> WhenLimits {
        WhenLimits {
            bytes: 4096,
            depth: 64,
            steps: 100_000,
        }
    }
}

/// A condition that was read and found to be in order. Cheap to clone.
#[derive(Clone)]
pub struct When(Arc<Inner>);

struct Inner {
    text: String,
    expr: Expr,
    steps: usize,
    args: bool,
    time: bool,
    pinned: bool,
}

impl When {
    /// Reads a condition, with the limits that hold by default.
    ///
    /// # Errors
    /// What is wrong and where, in one line.
    pub fn compile(text: &str) -> Result<When, String> {
        When::compile_within(text, &WhenLimits::default())
    }

    /// Reads a condition within these limits.
    ///
    /// # Errors
    /// What is wrong and where, in one line.
    pub fn compile_within(text: &str, limits: &WhenLimits) -> Result<When, String> {
        if text.len() > limits.bytes {
            let (is, most) = (text.len(), limits.bytes);
            return Err(format!("the condition has {is} bytes; {most} are allowed"));
        }
        let expr = parse::parse(text, limits.depth)
            .map_err(|(at, wrong)| format!("{}: {wrong}", place(text, at)))?;
        let reads = |such: fn(&Expr) -> bool| expr.any(&such);
        Ok(When(Arc::new(Inner {
            args: reads(|part| matches!(part, Expr::Args)),
            time: reads(|part| matches!(part, Expr::Fact(fact) if fact.is_time())),
            pinned: reads(|part| matches!(part, Expr::Fact(Fact::Pinned))),
            text: text.to_owned(),
            steps: limits.steps,
            expr,
        })))
    }

    /// Whether it holds for this call.
    ///
    /// # Errors
    /// Why it cannot be told: a field is missing, a value is not what it has to be, or the budget is spent. No value of
    /// the call is in it.
    pub fn judge(&self, facts: &Facts<'_>) -> Result<bool, String> {
        let mut evaluator = Evaluator {
            facts,
            left: self.0.steps,
            args: None,
            names: Vec::new(),
        };
        match evaluator.value(&self.0.expr) {
            Ok(V::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("it gives {}, not true or false", other.word())),
            Err(Stop::Wrong(why)) => Err(why),
            Err(Stop::Spent) => Err(format!("it takes more than {} steps", self.0.steps)),
        }
    }

    /// Whether it looks at arguments, so that nothing can be said before there is a call.
    pub fn reads_args(&self) -> bool {
        self.0.args
    }

    /// Whether it looks at the clock, so that its answer changes by itself.
    pub fn reads_time(&self) -> bool {
        self.0.time
    }

    /// Whether it looks at the pinned state of a definition.
    pub fn reads_pinned(&self) -> bool {
        self.0.pinned
    }

    /// The text it was made of.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }
}

impl fmt::Debug for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "When({:?})", self.0.text)
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl PartialEq for When {
    fn eq(&self, other: &When) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for When {}

/// Where a byte stands, counted in characters from 1; the line only where there are several.
fn place(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    match text.trim_end().contains('\n') {
        true => format!("line {}, column {column}", before.matches('\n').count() + 1),
        false => format!("column {column}"),
    }
}
