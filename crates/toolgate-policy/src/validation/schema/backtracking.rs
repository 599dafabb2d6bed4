//! Regular expressions with look-around or back-references, matched by backtracking within bounds.
//!
//! In the compiled schema they stand under a custom keyword. If a match reaches its step or time bound, its result is
//! unknown. The whole value is then rejected, even if the pattern is below `not` or `if`.

use super::ecma;
use crate::catch_panic::with_panics_withheld;
use jsonschema::{Keyword, ValidationError};
use serde_json::Value;
use std::{
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::OnceLock,
    time::{Duration, Instant},
};

/// Maximum backtracking steps for one member name, in `patternProperties`.
pub(super) const MAX_NAME_STEPS: usize = 1000;
/// Factor by which the matches of one value may exceed its time limit, in wall-clock time: the thread shares the
/// processor.
pub(super) const MAX_MATCH_TIME_FACTOR: u32 = 10;
/// Maximum backtracking steps by text length: rows of (maximum bytes, steps). One step may scan the whole text.
const MAX_STEPS: [(usize, usize); 3] = [(4 * 1024, 10_000), (64 * 1024, 1000), (usize::MAX, 100)];

/// A compiled pattern, for one of the two engines.
pub(super) enum EcmaPattern {
    /// Matched in linear time by the `regex` crate.
    Linear(regex::Regex),
    Backtracking(Box<BacktrackingPattern>),
}

/// A pattern that needs backtracking, with one compiled form for each row of [`MAX_STEPS`].
pub(super) struct BacktrackingPattern {
    /// The pattern as written in the schema, for messages.
    pattern: String,
    translated: String,
    max_bytes: usize,
    compiled: [OnceLock<Option<fancy_regex::Regex>>; MAX_STEPS.len()],
}

impl EcmaPattern {
    /// Compiles an ECMA-262 pattern into at most `max_bytes`.
    ///
    /// # Errors
    /// Returns the reason if neither engine compiles the pattern.
    pub(super) fn compile(pattern: &str, max_bytes: usize) -> Result<EcmaPattern, String> {
        let translated = ecma::translate(pattern)?;
        if let Ok(regex) = linear(&translated, max_bytes) {
            return Ok(EcmaPattern::Linear(regex));
        }
        let backtracking = BacktrackingPattern {
            pattern: pattern.to_owned(),
            translated,
            max_bytes,
            compiled: Default::default(),
        };
        let first = backtracking.build(MAX_STEPS[0].1)?;
        let _ = backtracking.compiled[0].set(Some(first));
        Ok(EcmaPattern::Backtracking(Box::new(backtracking)))
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            EcmaPattern::Linear(regex) => regex.is_match(text),
            EcmaPattern::Backtracking(pattern) => pattern.matches(text),
        }
    }
}

/// Compiles a translated pattern for the engine with linear time.
pub(super) fn linear(translated: &str, max_bytes: usize) -> Result<regex::Regex, regex::Error> {
    regex::RegexBuilder::new(translated)
        .size_limit(max_bytes)
        .dfa_size_limit(max_bytes)
        .build()
}

impl BacktrackingPattern {
    fn build(&self, steps: usize) -> Result<fancy_regex::Regex, String> {
        let build = || {
            fancy_regex::RegexBuilder::new(&self.translated)
                .backtrack_limit(steps)
                .delegate_size_limit(self.max_bytes)
                .delegate_dfa_size_limit(self.max_bytes)
                .build()
        };
        match catch_unwind(|| with_panics_withheld(build)) {
            Ok(built) => built.map_err(|error| error.to_string()),
            Err(_) => Err("internal error of the regular expression engine; write the pattern in a simpler form"
                .to_owned()),
        }
    }

    fn matches(&self, text: &str) -> bool {
        if is_bound_reached() {
            return false;
        }
        let row = MAX_STEPS.iter().position(|(bytes, _)| text.len() <= *bytes);
        let row = row.unwrap_or(MAX_STEPS.len() - 1);
        let compiled = self.compiled[row].get_or_init(|| self.build(MAX_STEPS[row].1).ok());
        let start = Instant::now();
        let matched = compiled.as_ref().and_then(|regex| {
            let matched = catch_unwind(AssertUnwindSafe(|| {
                with_panics_withheld(|| regex.is_match(text))
            }));
            matched.ok()?.ok()
        });
        spend(start.elapsed(), matched.is_none(), &self.pattern);
        matched.unwrap_or(false)
    }
}

thread_local! {
    /// Time left for the matches of one value.
    static LEFT: Cell<Duration> = const { Cell::new(Duration::MAX) };
    /// The pattern that reached a bound.
    static OVER: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn is_bound_reached() -> bool {
    OVER.with_borrow(Option::is_some)
}

fn spend(time: Duration, failed: bool, pattern: &str) {
    let left = LEFT.get().checked_sub(time);
    LEFT.set(left.unwrap_or_default());
    if failed || left.is_none() {
        OVER.with_borrow_mut(|over| *over = Some(pattern.to_owned()));
    }
}

/// Runs a check with a total time limit for its backtracking matches.
///
/// # Errors
/// Returns the pattern that reached a bound; the outcome of the check is then meaningless.
pub(super) fn bounded<T>(time: Duration, check: impl FnOnce() -> T) -> Result<T, String> {
    LEFT.set(time);
    OVER.set(None);
    let outcome = check();
    LEFT.set(Duration::MAX);
    match OVER.take() {
        Some(pattern) => Err(pattern),
        None => Ok(outcome),
    }
}

/// The keyword [`PATTERN_KEYWORD`](super::PATTERN_KEYWORD).
struct PatternKeyword {
    pattern: EcmaPattern,
    text: String,
}

/// Builds the keyword from its value, a pattern that compiled before.
pub(super) fn keyword<'a>(
    value: &'a Value,
    max_bytes: usize,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    let text = value.as_str().unwrap_or_default();
    let pattern = EcmaPattern::compile(text, max_bytes).map_err(ValidationError::custom)?;
    Ok(Box::new(PatternKeyword {
        pattern,
        text: text.to_owned(),
    }))
}

impl<'i> Keyword<'i> for PatternKeyword {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        match Keyword::is_valid(self, instance) {
            true => Ok(()),
            false => {
                let text = format!("text that fits the pattern {}", self.text);
                Err(ValidationError::custom(text))
            }
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        instance
            .as_str()
            .is_none_or(|text| self.pattern.matches(text))
    }
}
