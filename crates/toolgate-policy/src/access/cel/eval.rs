//! Evaluator of CEL expressions, with a step budget: each node costs a step, and texts cost by their length.

use super::{
    facts::ConditionFacts,
    tree::{BinaryOperator, CelExpr, CelFunction, CelMacro},
    value::CelValue,
};
use serde_json::{Map, Value};
use std::{cmp::Ordering, rc::Rc};

/// Reason why an evaluation has no value.
pub(super) enum EvalError {
    /// A value is missing or has the wrong type. Another operand may still decide the result.
    Invalid(String),
    /// The step budget is spent. The evaluation stops.
    BudgetSpent,
}

type EvalResult<'a> = Result<CelValue<'a>, EvalError>;

/// Bytes of text that cost one step.
const BYTES_PER_STEP: usize = 32;

pub(super) struct CelEvaluator<'a> {
    pub(super) facts: &'a ConditionFacts<'a>,
    pub(super) left: usize,
    /// Cached arguments: the check that all numbers are exact reads the whole text.
    pub(super) args: Option<&'a Map<String, Value>>,
    /// Variables in scope, innermost last.
    pub(super) names: Vec<(&'a str, CelValue<'a>)>,
}

fn wrong<T>(why: impl Into<String>) -> Result<T, EvalError> {
    Err(EvalError::Invalid(why.into()))
}

impl<'a> CelEvaluator<'a> {
    fn spend(&mut self, steps: usize) -> Result<(), EvalError> {
        self.left = self.left.checked_sub(steps).ok_or(EvalError::BudgetSpent)?;
        Ok(())
    }

    pub(super) fn value(&mut self, expr: &'a CelExpr) -> EvalResult<'a> {
        self.spend(1)?;
        match expr {
            CelExpr::Null => Ok(CelValue::Null),
            CelExpr::Bool(is) => Ok(CelValue::Bool(*is)),
            CelExpr::Int(int) => Ok(CelValue::Int(*int)),
            CelExpr::Float(float) => Ok(CelValue::Float(*float)),
            CelExpr::Text(text) => Ok(CelValue::Text(text)),
            CelExpr::Args => self.args(),
            CelExpr::Fact(fact) => self.facts.value(*fact).map_err(EvalError::Invalid),
            CelExpr::Var(name) => {
                let found = self.names.iter().rev().find(|(known, _)| known == name);
                found.map_or_else(
                    || wrong("internal error: an unknown name"),
                    |(_, value)| Ok(value.clone()),
                )
            }
            CelExpr::List(parts) => {
                let items: Result<Vec<_>, _> = parts.iter().map(|part| self.value(part)).collect();
                Ok(CelValue::List(Rc::new(items?)))
            }
            CelExpr::Select(of, key) => self.select(expr, of, key),
            CelExpr::Has(of, key) => match self.value(of)? {
                CelValue::Object(members) => Ok(CelValue::Bool(members.contains_key(key))),
                other => wrong(format!(
                    "{} is {}, not an object",
                    of.name(),
                    other.type_name()
                )),
            },
            CelExpr::Index(of, at) => self.index(of, at),
            CelExpr::Not(of) => Ok(CelValue::Bool(!self.truth(of)?)),
            CelExpr::Neg(of) => match self.value(of)? {
                CelValue::Int(int) => checked_int(-int),
                CelValue::Float(float) => Ok(CelValue::Float(-float)),
                other => wrong(format!(
                    "{} is {}, not a number",
                    of.name(),
                    other.type_name()
                )),
            },
            CelExpr::All(parts) => self.joined(parts.iter().map(|part| (part, None)), false),
            CelExpr::Any(parts) => self.joined(parts.iter().map(|part| (part, None)), true),
            CelExpr::Cond(parts) => {
                let [test, yes, no] = parts.as_ref();
                let test = self.truth(test)?;
                self.value(if test { yes } else { no })
            }
            CelExpr::Binary(binary, parts) => {
                let [left, right] = parts.as_ref();
                let values = (self.value(left)?, self.value(right)?);
                self.binary(*binary, (left, right), values)
            }
            CelExpr::Call(function, parts) => self.call(*function, parts),
            CelExpr::Matches(of, pattern) => {
                let text = self.value(of)?;
                let text = a_text(of, &text)?;
                let words = 1 + pattern.as_str().len() / BYTES_PER_STEP;
                self.spend(1 + text.len().saturating_mul(words) / BYTES_PER_STEP)?;
                Ok(CelValue::Bool(pattern.is_match(text)))
            }
            CelExpr::Each(each, of, name, body) => self.each(*each, of, name, body),
        }
    }

    fn args(&mut self) -> EvalResult<'a> {
        let args = match self.args {
            Some(args) => args,
            None => self.facts.args().map_err(EvalError::Invalid)?,
        };
        self.args = Some(args);
        Ok(CelValue::Object(args))
    }

    fn truth(&mut self, expr: &'a CelExpr) -> Result<bool, EvalError> {
        match self.value(expr)? {
            CelValue::Bool(is) => Ok(is),
            other => wrong(format!(
                "{} is {}, not a boolean",
                expr.name(),
                other.type_name()
            )),
        }
    }

    /// Evaluates `||` and `exists` (`sought` is true), or `&&` and `all` (`sought` is false). One operand that equals
    /// `sought` decides, even if another fails: the order of the operands does not matter, as in CEL.
    fn joined(
        &mut self,
        parts: impl Iterator<Item = (&'a CelExpr, Option<(&'a str, CelValue<'a>)>)>,
        sought: bool,
    ) -> EvalResult<'a> {
        let mut trouble = None;
        for (part, name) in parts {
            match self.under(name, |me| me.truth(part)) {
                Ok(is) if is == sought => return Ok(CelValue::Bool(sought)),
                Ok(_) => {}
                Err(EvalError::BudgetSpent) => return Err(EvalError::BudgetSpent),
                Err(wrong) => trouble = trouble.or(Some(wrong)),
            }
        }
        trouble.map_or(Ok(CelValue::Bool(!sought)), Err)
    }

    fn under<T>(
        &mut self,
        name: Option<(&'a str, CelValue<'a>)>,
        then: impl FnOnce(&mut Self) -> Result<T, EvalError>,
    ) -> Result<T, EvalError> {
        let before = self.names.len();
        self.names.extend(name);
        let then = then(self);
        self.names.truncate(before);
        then
    }

    fn each(
        &mut self,
        each: CelMacro,
        of: &'a CelExpr,
        name: &'a str,
        body: &'a CelExpr,
    ) -> EvalResult<'a> {
        let over = self.value(of)?;
        let Some(items) = over.each() else {
            return wrong(format!("{} is {}, not a list", of.name(), over.type_name()));
        };
        if matches!(each, CelMacro::All | CelMacro::Exists) {
            let parts = items.map(|item| (body, Some((name, item))));
            return self.joined(parts, each == CelMacro::Exists);
        }
        let mut kept = Vec::new();
        for item in items {
            let named = Some((name, item.clone()));
            if each == CelMacro::Map {
                kept.push(self.under(named, |me| me.value(body))?);
            } else if self.under(named, |me| me.truth(body))? {
                kept.push(item);
            }
        }
        Ok(match each {
            CelMacro::ExistsOne => CelValue::Bool(kept.len() == 1),
            _ => CelValue::List(Rc::new(kept)),
        })
    }

    fn select(&mut self, whole: &'a CelExpr, of: &'a CelExpr, key: &str) -> EvalResult<'a> {
        match self.value(of)? {
            CelValue::Object(members) => match members.get(key) {
                Some(value) => Ok(CelValue::of(value)),
                None => wrong(format!("{} is missing", whole.name())),
            },
            other => wrong(format!(
                "{} is {}, not an object",
                of.name(),
                other.type_name()
            )),
        }
    }

    fn index(&mut self, of: &'a CelExpr, at: &'a CelExpr) -> EvalResult<'a> {
        let (over, index) = (self.value(of)?, self.value(at)?);
        let found = match (&over, &index) {
            (CelValue::Object(members), CelValue::Text(_) | CelValue::Made(_)) => members
                .get(index.text().unwrap_or_default())
                .map(CelValue::of),
            (CelValue::Array(_) | CelValue::List(_), CelValue::Int(at)) => {
                usize::try_from(*at).ok().and_then(|at| over.item(at))
            }
            _ => {
                let (of, is, by) = (of.name(), over.type_name(), index.type_name());
                return wrong(format!("{of} is {is} and cannot be indexed by {by}"));
            }
        };
        let what = match over {
            CelValue::Object(_) => "key",
            _ => "index",
        };
        found.map_or_else(
            || wrong(format!("{} does not have the requested {what}", of.name())),
            Ok,
        )
    }

    fn binary(
        &mut self,
        binary: BinaryOperator,
        sides: (&CelExpr, &CelExpr),
        (left, right): (CelValue<'a>, CelValue<'a>),
    ) -> EvalResult<'a> {
        match binary {
            BinaryOperator::Equal => Ok(CelValue::Bool(self.equal(&left, &right, sides)?)),
            BinaryOperator::Unequal => Ok(CelValue::Bool(!self.equal(&left, &right, sides)?)),
            BinaryOperator::In => self.within(&left, &right, sides),
            BinaryOperator::Less
            | BinaryOperator::AtMost
            | BinaryOperator::More
            | BinaryOperator::AtLeast => {
                self.read(&left)?;
                let Some(order) = left.order(&right) else {
                    return wrong(type_mismatch(sides, &left, &right));
                };
                Ok(CelValue::Bool(match binary {
                    BinaryOperator::Less => order == Ordering::Less,
                    BinaryOperator::AtMost => order != Ordering::Greater,
                    BinaryOperator::More => order == Ordering::Greater,
                    _ => order != Ordering::Less,
                }))
            }
            BinaryOperator::Add if left.text().is_some() && right.text().is_some() => {
                self.read(&left)?;
                self.read(&right)?;
                let made = [left.text(), right.text()].map(Option::unwrap_or_default);
                Ok(CelValue::Made(made.concat().into()))
            }
            _ => arithmetic(binary, &left, &right)
                .unwrap_or_else(|| wrong(type_mismatch(sides, &left, &right))),
        }
    }

    fn read(&mut self, value: &CelValue<'_>) -> Result<(), EvalError> {
        self.spend(value.text().map_or(0, str::len) / BYTES_PER_STEP)
    }

    /// Returns whether two values are equal. Different types are an error, except for null, so that a list cannot
    /// bypass a rule that expects a text.
    fn equal(
        &mut self,
        left: &CelValue<'_>,
        right: &CelValue<'_>,
        sides: (&CelExpr, &CelExpr),
    ) -> Result<bool, EvalError> {
        self.spend(1)?;
        self.read(left)?;
        match (left, right) {
            (CelValue::Null, CelValue::Null) => Ok(true),
            (CelValue::Null, _) | (_, CelValue::Null) => Ok(false),
            (CelValue::Bool(a), CelValue::Bool(b)) => Ok(a == b),
            (CelValue::Object(a), CelValue::Object(b)) if a.len() != b.len() => Ok(false),
            (CelValue::Object(a), CelValue::Object(b)) => {
                for (key, value) in *a {
                    let Some(other) = b.get(key) else {
                        return Ok(false);
                    };
                    if !self.equal(&CelValue::of(value), &CelValue::of(other), sides)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (a, b) if a.type_name() == "a list" && b.type_name() == "a list" => {
                let length = a.len().unwrap_or_default();
                if b.len() != Some(length) {
                    return Ok(false);
                }
                for at in 0..length {
                    let items = a.item(at).zip(b.item(at));
                    let Some((a, b)) = items else {
                        return Ok(false);
                    };
                    if !self.equal(&a, &b, sides)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (a, b) => match a.order(b) {
                Some(order) => Ok(order == Ordering::Equal),
                None => wrong(type_mismatch(sides, left, right)),
            },
        }
    }

    fn within(
        &mut self,
        sought: &CelValue<'a>,
        of: &CelValue<'a>,
        sides: (&CelExpr, &CelExpr),
    ) -> EvalResult<'a> {
        if let (CelValue::Object(members), Some(key)) = (of, sought.text()) {
            return Ok(CelValue::Bool(members.contains_key(key)));
        }
        let Some(items) = of.each().filter(|_| !matches!(of, CelValue::Object(_))) else {
            return wrong(type_mismatch(sides, sought, of));
        };
        let mut trouble = None;
        for item in items {
            match self.equal(sought, &item, sides) {
                Ok(true) => return Ok(CelValue::Bool(true)),
                Ok(false) => {}
                Err(EvalError::BudgetSpent) => return Err(EvalError::BudgetSpent),
                Err(wrong) => trouble = Some(wrong),
            }
        }
        trouble.map_or(Ok(CelValue::Bool(false)), Err)
    }

    fn call(&mut self, function: CelFunction, parts: &'a [CelExpr]) -> EvalResult<'a> {
        let Some(of) = parts.first() else {
            return wrong("internal error: a function without arguments");
        };
        let value = self.value(of)?;
        self.read(&value)?;
        match function {
            CelFunction::Size => match (value.len(), value.text()) {
                (Some(length), _) => Ok(CelValue::Int(length as i128)),
                (None, Some(text)) => Ok(CelValue::Int(text.chars().count() as i128)),
                (None, None) => wrong(format!(
                    "{} is {} and has no size",
                    of.name(),
                    value.type_name()
                )),
            },
            CelFunction::Int => to_int(of, &value),
            CelFunction::Text => to_text(of, value),
            CelFunction::LowerAscii => Ok(CelValue::Made(
                a_text(of, &value)?.to_ascii_lowercase().into(),
            )),
            CelFunction::StartsWith | CelFunction::EndsWith | CelFunction::Contains => {
                let Some(with) = parts.get(1) else {
                    return wrong("internal error: a function without arguments");
                };
                let sought = self.value(with)?;
                self.read(&sought)?;
                let (text, sought) = (a_text(of, &value)?, a_text(with, &sought)?);
                Ok(CelValue::Bool(match function {
                    CelFunction::StartsWith => text.starts_with(sought),
                    CelFunction::EndsWith => text.ends_with(sought),
                    _ => text.contains(sought),
                }))
            }
        }
    }
}

fn a_text<'v>(of: &CelExpr, value: &'v CelValue<'_>) -> Result<&'v str, EvalError> {
    value.text().map_or_else(
        || {
            wrong(format!(
                "{} is {}, not a string",
                of.name(),
                value.type_name()
            ))
        },
        Ok,
    )
}

fn type_mismatch(sides: (&CelExpr, &CelExpr), left: &CelValue<'_>, right: &CelValue<'_>) -> String {
    let (a, b) = (sides.0.name(), sides.1.name());
    let (left, right) = (left.type_name(), right.type_name());
    // Name the argument, not the literal that it is compared with.
    let (name, is, other) = if a == CelExpr::UNNAMED {
        (b, right, left)
    } else {
        (a, left, right)
    };
    format!("{name} is {is}, which cannot be compared or combined with {other}")
}

/// Returns an integer if it is in the range of JSON integers: `i64::MIN` to `u64::MAX`.
fn checked_int<'a>(int: i128) -> EvalResult<'a> {
    if (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&int) {
        Ok(CelValue::Int(int))
    } else {
        wrong("an integer result does not fit in 64 bits")
    }
}

/// Computes an arithmetic operation; `None` if an operand is not a number or their types differ: nothing is rounded
/// implicitly.
fn arithmetic<'a>(
    binary: BinaryOperator,
    left: &CelValue<'_>,
    right: &CelValue<'_>,
) -> Option<EvalResult<'a>> {
    match (left, right) {
        (CelValue::Int(a), CelValue::Int(b)) => Some(match binary {
            BinaryOperator::Add => checked_int(a + b),
            BinaryOperator::Subtract => checked_int(a - b),
            BinaryOperator::Multiply => a
                .checked_mul(*b)
                .map_or(checked_int(i128::MAX), checked_int),
            BinaryOperator::Divide | BinaryOperator::Remainder if *b == 0 => {
                wrong("division by zero")
            }
            BinaryOperator::Divide => checked_int(a / b),
            _ => checked_int(a % b),
        }),
        (CelValue::Float(a), CelValue::Float(b)) => {
            let float = match binary {
                BinaryOperator::Add => a + b,
                BinaryOperator::Subtract => a - b,
                BinaryOperator::Multiply => a * b,
                BinaryOperator::Divide => a / b,
                _ => return None,
            };
            let finite = float.is_finite();
            Some(if finite {
                Ok(CelValue::Float(float))
            } else {
                wrong("a decimal result is too large")
            })
        }
        _ => None,
    }
}

fn to_int<'a>(of: &CelExpr, value: &CelValue<'_>) -> EvalResult<'a> {
    match value {
        CelValue::Int(int) => Ok(CelValue::Int(*int)),
        CelValue::Float(float) if float.abs() < 9e18 => {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "cut on purpose, within i64"
            )]
            let cut = float.trunc() as i128;
            Ok(CelValue::Int(cut))
        }
        other => match other.text().map(str::parse::<i64>) {
            Some(Ok(int)) => Ok(CelValue::Int(int.into())),
            _ => wrong(format!(
                "{} is {}, which int() cannot convert",
                of.name(),
                other.type_name()
            )),
        },
    }
}

fn to_text<'a>(of: &CelExpr, value: CelValue<'a>) -> EvalResult<'a> {
    match value {
        CelValue::Bool(is) => Ok(CelValue::Made(is.to_string().into())),
        CelValue::Int(int) => Ok(CelValue::Made(int.to_string().into())),
        CelValue::Text(_) | CelValue::Made(_) => Ok(value),
        other => wrong(format!(
            "{} is {}, which string() cannot convert",
            of.name(),
            other.type_name()
        )),
    }
}
