//! Conditions of rules and grants: expressions in CEL, the Common Expression Language, over the facts of one call.
//!
//! The language is a subset of CEL and stricter: comparing values of different types is an error, and an error never
//! grants anything. Every evaluation terminates: it has a step budget.

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

pub use facts::ConditionFacts;
pub use reads::ArgumentNames;

use eval::{CelEvaluator, EvalError};
use serde_json::Value;
use std::{fmt, sync::Arc};
use tree::{CallFact, CelExpr};
use value::CelValue;

/// Limits on the size of a CEL condition and on its evaluation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CelLimits {
    /// Maximum length of the condition's source text, in bytes. Default: 4096.
    pub bytes: usize,
    /// Maximum nesting of expressions in the condition. Default: 64.
    pub depth: usize,
    /// Maximum steps of one evaluation of the condition. Default: 100 000. Each node costs a step, as do each 32 bytes
    /// of text read or built.
    pub steps: usize,
}

impl Default for CelLimits {
    fn default() -> CelLimits {
        CelLimits {
            bytes: 4096,
            depth: 64,
            steps: 100_000,
        }
    }
}

/// Compiled CEL condition (Common Expression Language) of an access rule or grant. Cheap to clone.
///
/// Standard: [Common Expression Language](https://github.com/google/cel-spec/blob/master/doc/langdef.md).
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{CallArguments, Caller, Item, Json};
/// use toolgate_policy::{CelCondition, CelLimits, ConditionFacts};
///
/// /// Evaluates a condition for a payment.
/// fn is_small_payment(caller: &Caller, item: &Item, amount: u32) -> Result<bool, String> {
///     let mut limits = CelLimits::default();
///     limits.steps = 1000;
///     let condition = CelCondition::compile_within("args.amount <= 10", &limits)?;
///     let arguments = CallArguments::new(Json::from_value(&json!({"amount": amount})));
///     condition.evaluate(&ConditionFacts::new(caller, item).with(&arguments))
/// }
/// # use toolgate_core::{Definition, Origin};
/// # let definition = Json::from_value(&json!({"name": "pay", "inputSchema": {"type": "object"}}));
/// # let origin = Origin { server: "bank".into(), trusted: false };
/// # let item = Item::new(origin, Definition::tool(definition)?);
/// # assert_eq!(is_small_payment(&Caller::new("ann"), &item, 7), Ok(true));
/// # assert_eq!(is_small_payment(&Caller::new("ann"), &item, 70), Ok(false));
///
/// // Errors name the position.
/// assert!(CelCondition::compile("args.amount <").is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone)]
pub struct CelCondition(Arc<CompiledCondition>);

struct CompiledCondition {
    text: String,
    /// The text in one line, for the decision log.
    line: Box<str>,
    /// A trait object, so that a program without conditions does not link the evaluator.
    program: Box<dyn CelProgram>,
    steps: usize,
    args: bool,
    time: bool,
    pinned: bool,
}

/// Compiled form of a condition.
trait CelProgram: Send + Sync {
    /// Evaluates the condition within this number of steps.
    fn evaluate(&self, facts: &ConditionFacts<'_>, steps: usize) -> Result<bool, String>;

    /// Returns the names of the top-level arguments that the condition reads.
    fn argument_names(&self) -> ArgumentNames;

    /// Returns whether the condition may read a text with this mark.
    fn may_read_mark(&self, args: &Value, mark: &str) -> bool;
}

impl CelProgram for CelExpr {
    fn evaluate(&self, facts: &ConditionFacts<'_>, steps: usize) -> Result<bool, String> {
        let mut evaluator = CelEvaluator {
            facts,
            left: steps,
            args: None,
            names: Vec::new(),
        };
        match evaluator.value(self) {
            Ok(CelValue::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!(
                "the result is {}, not a boolean",
                other.type_name()
            )),
            Err(EvalError::Invalid(why)) => Err(why),
            Err(EvalError::BudgetSpent) => Err(format!(
                "the evaluation needs more than {steps} steps; simplify the condition"
            )),
        }
    }

    fn argument_names(&self) -> ArgumentNames {
        reads::argument_names(self)
    }

    fn may_read_mark(&self, args: &Value, mark: &str) -> bool {
        reads::may_read_mark(self, args, mark)
    }
}

impl CelCondition {
    /// Compiles the source text of a CEL condition with the default limits.
    ///
    /// # Errors
    /// Returns the error and its position, in one line.
    pub fn compile(text: &str) -> Result<CelCondition, String> {
        CelCondition::compile_within(text, &CelLimits::default())
    }

    /// Compiles the source text of a CEL condition within the given limits.
    ///
    /// # Errors
    /// Returns the error and its position, in one line.
    pub fn compile_within(text: &str, limits: &CelLimits) -> Result<CelCondition, String> {
        if text.len() > limits.bytes {
            let (is, most) = (text.len(), limits.bytes);
            return Err(format!(
                "the condition is {is} bytes long, and the limit is {most}; shorten it"
            ));
        }
        let expr = parse::parse(text, limits.depth)
            .map_err(|(at, wrong)| format!("{}: {wrong}", position(text, at)))?;
        let reads = |such: fn(&CelExpr) -> bool| expr.any(&such);
        Ok(CelCondition(Arc::new(CompiledCondition {
            args: reads(|part| matches!(part, CelExpr::Args)),
            time: reads(|part| matches!(part, CelExpr::Fact(fact) if fact.is_time())),
            pinned: reads(|part| matches!(part, CelExpr::Fact(CallFact::Pinned))),
            text: text.to_owned(),
            line: one_line(text).into(),
            steps: limits.steps,
            program: Box::new(expr),
        })))
    }

    /// Evaluates the CEL condition for a call.
    ///
    /// # Errors
    /// Returns the reason if there is no result: a field is missing, a value has the wrong type, or the step budget
    /// is spent. The reason contains no value of the call.
    pub fn evaluate(&self, facts: &ConditionFacts<'_>) -> Result<bool, String> {
        self.0.program.evaluate(facts, self.0.steps)
    }

    /// Returns the names of the top-level call arguments whose values the CEL condition may read.
    pub(crate) fn argument_names(&self) -> ArgumentNames {
        self.0.program.argument_names()
    }

    /// Returns whether the CEL condition may read a text in `args` that contains `mark`. If it computes a path,
    /// everything below the fixed part of the path counts.
    #[doc(hidden)]
    pub fn may_read_mark(&self, args: &Value, mark: &str) -> bool {
        self.0.program.may_read_mark(args, mark)
    }

    /// Returns whether the CEL condition reads arguments, so that it has no result before a call.
    #[doc(hidden)]
    pub fn reads_args(&self) -> bool {
        self.0.args
    }

    /// Returns whether the CEL condition reads the clock, so that its result changes over time.
    pub(crate) fn reads_time(&self) -> bool {
        self.0.time
    }

    /// Returns whether the CEL condition reads the pin state: whether the item's definition is new, accepted or
    /// changed.
    pub(crate) fn reads_pinned(&self) -> bool {
        self.0.pinned
    }

    /// Returns the source text of the CEL condition.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns the source text of the CEL condition in one line of at most 200 characters.
    pub(crate) fn line(&self) -> &str {
        &self.0.line
    }
}

impl fmt::Debug for CelCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CelCondition({:?})", self.0.text)
    }
}

impl fmt::Display for CelCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl PartialEq for CelCondition {
    fn eq(&self, other: &CelCondition) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for CelCondition {}

/// Returns a text in one line of at most 200 characters.
fn one_line(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Formats a byte offset as a position in characters, from 1; with the line only if the text has several.
fn position(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    match text.trim_end().contains('\n') {
        true => format!("line {}, column {column}", before.matches('\n').count() + 1),
        false => format!("column {column}"),
    }
}
