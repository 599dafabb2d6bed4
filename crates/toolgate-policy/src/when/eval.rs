//! Evaluator of CEL expressions, with a step budget: each node costs a step, and texts cost by their length.

use super::{
    facts::Facts,
    tree::{Binary, Each, Expr, Function},
    value::V,
};
use serde_json::{Map, Value};
use std::{cmp::Ordering, rc::Rc};

/// Reason why an evaluation has no value.
pub(super) enum Stop {
    /// A value is missing or has the wrong type. Another operand may still decide the result.
    Wrong(String),
    /// The step budget is spent. The evaluation stops.
    Spent,
}

type Given<'a> = Result<V<'a>, Stop>;

/// Bytes of text that cost one step.
const BYTES_A_STEP: usize = 32;

pub(super) struct Evaluator<'a> {
    pub(super) facts: &'a Facts<'a>,
    pub(super) left: usize,
    /// Cached arguments: the check that all numbers are exact reads the whole text.
    pub(super) args: Option<&'a Map<String, Value>>,
    /// Variables in scope, innermost last.
    pub(super) names: Vec<(&'a str, V<'a>)>,
}

fn wrong<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Wrong(why.into()))
}

impl<'a> Evaluator<'a> {
    fn spend(&mut self, steps: usize) -> Result<(), Stop> {
        self.left = self.left.checked_sub(steps).ok_or(Stop::Spent)?;
        Ok(())
    }

    pub(super) fn value(&mut self, expr: &'a Expr) -> Given<'a> {
        self.spend(1)?;
        match expr {
            Expr::Null => Ok(V::Null),
            Expr::Bool(is) => Ok(V::Bool(*is)),
            Expr::Int(int) => Ok(V::Int(*int)),
            Expr::Float(float) => Ok(V::Float(*float)),
            Expr::Text(text) => Ok(V::Text(text)),
            Expr::Args => self.args(),
            Expr::Fact(fact) => self.facts.value(*fact).map_err(Stop::Wrong),
            Expr::Var(name) => {
                let found = self.names.iter().rev().find(|(known, _)| known == name);
                found.map_or_else(
                    || wrong("a name is unknown"),
                    |(_, value)| Ok(value.clone()),
                )
            }
            Expr::List(parts) => {
                let items: Result<Vec<_>, _> = parts.iter().map(|part| self.value(part)).collect();
                Ok(V::List(Rc::new(items?)))
            }
            Expr::Select(of, key) => self.select(expr, of, key),
            Expr::Has(of, key) => match self.value(of)? {
                V::Object(members) => Ok(V::Bool(members.contains_key(key))),
                other => wrong(format!("{} is {}, not an object", of.name(), other.word())),
            },
            Expr::Index(of, at) => self.index(of, at),
            Expr::Not(of) => Ok(V::Bool(!self.truth(of)?)),
            Expr::Neg(of) => match self.value(of)? {
                V::Int(int) => whole(-int),
                V::Float(float) => Ok(V::Float(-float)),
                other => wrong(format!("{} is {}, not a number", of.name(), other.word())),
            },
            Expr::All(parts) => self.joined(parts.iter().map(|part| (part, None)), false),
            Expr::Any(parts) => self.joined(parts.iter().map(|part| (part, None)), true),
            Expr::Cond(parts) => {
                let [test, yes, no] = parts.as_ref();
                let test = self.truth(test)?;
                self.value(if test { yes } else { no })
            }
            Expr::Binary(binary, parts) => {
                let [left, right] = parts.as_ref();
                let values = (self.value(left)?, self.value(right)?);
                self.binary(*binary, (left, right), values)
            }
            Expr::Call(function, parts) => self.call(*function, parts),
            Expr::Matches(of, pattern) => {
                let text = self.value(of)?;
                let text = a_text(of, &text)?;
                let words = 1 + pattern.as_str().len() / BYTES_A_STEP;
                self.spend(1 + text.len().saturating_mul(words) / BYTES_A_STEP)?;
                Ok(V::Bool(pattern.is_match(text)))
            }
            Expr::Each(each, of, name, body) => self.each(*each, of, name, body),
        }
    }

    fn args(&mut self) -> Given<'a> {
        let args = match self.args {
            Some(args) => args,
            None => self.facts.args().map_err(Stop::Wrong)?,
        };
        self.args = Some(args);
        Ok(V::Object(args))
    }

    fn truth(&mut self, expr: &'a Expr) -> Result<bool, Stop> {
        match self.value(expr)? {
            V::Bool(is) => Ok(is),
            other => wrong(format!(
                "{} is {}, not true or false",
                expr.name(),
                other.word()
            )),
        }
    }

    /// Evaluates `||` and `exists` (`sought` is true), or `&&` and `all` (`sought` is false). One operand that equals
    /// `sought` decides, even if another fails: the order of the operands does not matter, as in CEL.
    fn joined(
        &mut self,
        parts: impl Iterator<Item = (&'a Expr, Option<(&'a str, V<'a>)>)>,
        sought: bool,
    ) -> Given<'a> {
        let mut trouble = None;
        for (part, name) in parts {
            match self.under(name, |me| me.truth(part)) {
                Ok(is) if is == sought => return Ok(V::Bool(sought)),
                Ok(_) => {}
                Err(Stop::Spent) => return Err(Stop::Spent),
                Err(wrong) => trouble = trouble.or(Some(wrong)),
            }
        }
        trouble.map_or(Ok(V::Bool(!sought)), Err)
    }

    fn under<T>(
        &mut self,
        name: Option<(&'a str, V<'a>)>,
        then: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let before = self.names.len();
        self.names.extend(name);
        let then = then(self);
        self.names.truncate(before);
        then
    }

    fn each(&mut self, each: Each, of: &'a Expr, name: &'a str, body: &'a Expr) -> Given<'a> {
        let over = self.value(of)?;
        let Some(items) = over.each() else {
            return wrong(format!("{} is {}, not a list", of.name(), over.word()));
        };
        if matches!(each, Each::All | Each::Exists) {
            let parts = items.map(|item| (body, Some((name, item))));
            return self.joined(parts, each == Each::Exists);
        }
        let mut kept = Vec::new();
        for item in items {
            let named = Some((name, item.clone()));
            if each == Each::Map {
                kept.push(self.under(named, |me| me.value(body))?);
            } else if self.under(named, |me| me.truth(body))? {
                kept.push(item);
            }
        }
        Ok(match each {
            Each::ExistsOne => V::Bool(kept.len() == 1),
            _ => V::List(Rc::new(kept)),
        })
    }

    fn select(&mut self, whole: &'a Expr, of: &'a Expr, key: &str) -> Given<'a> {
        match self.value(of)? {
            V::Object(members) => match members.get(key) {
                Some(value) => Ok(V::of(value)),
                None => wrong(format!("{} is missing", whole.name())),
            },
            other => wrong(format!("{} is {}, not an object", of.name(), other.word())),
        }
    }

    fn index(&mut self, of: &'a Expr, at: &'a Expr) -> Given<'a> {
        let (over, index) = (self.value(of)?, self.value(at)?);
        let found = match (&over, &index) {
            (V::Object(members), V::Text(_) | V::Made(_)) => {
                members.get(index.text().unwrap_or_default()).map(V::of)
            }
            (V::Array(_) | V::List(_), V::Int(at)) => {
                usize::try_from(*at).ok().and_then(|at| over.item(at))
            }
            _ => {
                let (of, is, by) = (of.name(), over.word(), index.word());
                return wrong(format!("{of} is {is} and cannot be indexed by {by}"));
            }
        };
        found.map_or_else(|| wrong(format!("{} has no such item", of.name())), Ok)
    }

    fn binary(
        &mut self,
        binary: Binary,
        sides: (&Expr, &Expr),
        (left, right): (V<'a>, V<'a>),
    ) -> Given<'a> {
        match binary {
            Binary::Equal => Ok(V::Bool(self.equal(&left, &right, sides)?)),
            Binary::Unequal => Ok(V::Bool(!self.equal(&left, &right, sides)?)),
            Binary::In => self.within(&left, &right, sides),
            Binary::Less | Binary::AtMost | Binary::More | Binary::AtLeast => {
                self.read(&left)?;
                let Some(order) = left.order(&right) else {
                    return wrong(unlike(sides, &left, &right));
                };
                Ok(V::Bool(match binary {
                    Binary::Less => order == Ordering::Less,
                    Binary::AtMost => order != Ordering::Greater,
                    Binary::More => order == Ordering::Greater,
                    _ => order != Ordering::Less,
                }))
            }
            Binary::Add if left.text().is_some() && right.text().is_some() => {
                self.read(&left)?;
                self.read(&right)?;
                let made = [left.text(), right.text()].map(Option::unwrap_or_default);
                Ok(V::Made(made.concat().into()))
            }
            _ => {
                count(binary, &left, &right).unwrap_or_else(|| wrong(unlike(sides, &left, &right)))
            }
        }
    }

    fn read(&mut self, value: &V<'_>) -> Result<(), Stop> {
        self.spend(value.text().map_or(0, str::len) / BYTES_A_STEP)
    }

    /// Returns whether two values are equal. Different types are an error, except for null, so that a list cannot
    /// bypass a rule that expects a text.
    fn equal(&mut self, left: &V<'_>, right: &V<'_>, sides: (&Expr, &Expr)) -> Result<bool, Stop> {
        self.spend(1)?;
        self.read(left)?;
        match (left, right) {
            (V::Null, V::Null) => Ok(true),
            (V::Null, _) | (_, V::Null) => Ok(false),
            (V::Bool(a), V::Bool(b)) => Ok(a == b),
            (V::Object(a), V::Object(b)) if a.len() != b.len() => Ok(false),
            (V::Object(a), V::Object(b)) => {
                for (key, value) in *a {
                    let Some(other) = b.get(key) else {
                        return Ok(false);
                    };
                    if !self.equal(&V::of(value), &V::of(other), sides)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (a, b) if a.word() == "a list" && b.word() == "a list" => {
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
                None => wrong(unlike(sides, left, right)),
            },
        }
    }

    fn within(&mut self, sought: &V<'a>, of: &V<'a>, sides: (&Expr, &Expr)) -> Given<'a> {
        if let (V::Object(members), Some(key)) = (of, sought.text()) {
            return Ok(V::Bool(members.contains_key(key)));
        }
        let Some(items) = of.each().filter(|_| !matches!(of, V::Object(_))) else {
            return wrong(unlike(sides, sought, of));
        };
        let mut trouble = None;
        for item in items {
            match self.equal(sought, &item, sides) {
                Ok(true) => return Ok(V::Bool(true)),
                Ok(false) => {}
                Err(Stop::Spent) => return Err(Stop::Spent),
                Err(wrong) => trouble = Some(wrong),
            }
        }
        trouble.map_or(Ok(V::Bool(false)), Err)
    }

    fn call(&mut self, function: Function, parts: &'a [Expr]) -> Given<'a> {
        let Some(of) = parts.first() else {
            return wrong("a function has no argument");
        };
        let value = self.value(of)?;
        self.read(&value)?;
        match function {
            Function::Size => match (value.len(), value.text()) {
                (Some(length), _) => Ok(V::Int(length as i128)),
                (None, Some(text)) => Ok(V::Int(text.chars().count() as i128)),
                (None, None) => wrong(format!("{} is {} and has no size", of.name(), value.word())),
            },
            Function::Int => to_int(of, &value),
            Function::Text => to_text(of, value),
            Function::LowerAscii => Ok(V::Made(a_text(of, &value)?.to_ascii_lowercase().into())),
            Function::StartsWith | Function::EndsWith | Function::Contains => {
                let Some(with) = parts.get(1) else {
                    return wrong("a function has no argument");
                };
                let sought = self.value(with)?;
                self.read(&sought)?;
                let (text, sought) = (a_text(of, &value)?, a_text(with, &sought)?);
                Ok(V::Bool(match function {
                    Function::StartsWith => text.starts_with(sought),
                    Function::EndsWith => text.ends_with(sought),
                    _ => text.contains(sought),
                }))
            }
        }
    }
}

fn a_text<'v>(of: &Expr, value: &'v V<'_>) -> Result<&'v str, Stop> {
    value.text().map_or_else(
        || wrong(format!("{} is {}, not a string", of.name(), value.word())),
        Ok,
    )
}

fn unlike(sides: (&Expr, &Expr), left: &V<'_>, right: &V<'_>) -> String {
    let (a, b) = (sides.0.name(), sides.1.name());
    let (left, right) = (left.word(), right.word());
    format!("{a} is {left} and {b} is {right}, which cannot be combined")
}

/// Returns an integer if it is in the range of JSON integers: `i64::MIN` to `u64::MAX`.
fn whole<'a>(int: i128) -> Given<'a> {
    if (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&int) {
        Ok(V::Int(int))
    } else {
        wrong("a number exceeds 64 bits")
    }
}

/// Computes an arithmetic operation; `None` if an operand is not a number or their types differ: nothing is rounded
/// implicitly.
fn count<'a>(binary: Binary, left: &V<'_>, right: &V<'_>) -> Option<Given<'a>> {
    match (left, right) {
        (V::Int(a), V::Int(b)) => Some(match binary {
            Binary::Add => whole(a + b),
            Binary::Subtract => whole(a - b),
            Binary::Multiply => a.checked_mul(*b).map_or(whole(i128::MAX), whole),
            Binary::Divide | Binary::Remainder if *b == 0 => wrong("a number is divided by zero"),
            Binary::Divide => whole(a / b),
            _ => whole(a % b),
        }),
        (V::Float(a), V::Float(b)) => {
            let float = match binary {
                Binary::Add => a + b,
                Binary::Subtract => a - b,
                Binary::Multiply => a * b,
                Binary::Divide => a / b,
                _ => return None,
            };
            let finite = float.is_finite();
            Some(if finite {
                Ok(V::Float(float))
            } else {
                wrong("a number overflows")
            })
        }
        _ => None,
    }
}

fn to_int<'a>(of: &Expr, value: &V<'_>) -> Given<'a> {
    match value {
        V::Int(int) => Ok(V::Int(*int)),
        V::Float(float) if float.abs() < 9e18 => {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "cut on purpose, within i64"
            )]
            let cut = float.trunc() as i128;
            Ok(V::Int(cut))
        }
        other => match other.text().map(str::parse::<i64>) {
            Some(Ok(int)) => Ok(V::Int(int.into())),
            _ => wrong(format!(
                "{} is {} that is not an integer",
                of.name(),
                other.word()
            )),
        },
    }
}

fn to_text<'a>(of: &Expr, value: V<'a>) -> Given<'a> {
    match value {
        V::Bool(is) => Ok(V::Made(is.to_string().into())),
        V::Int(int) => Ok(V::Made(int.to_string().into())),
        V::Text(_) | V::Made(_) => Ok(value),
        other => wrong(format!(
            "{} is {}, which string() does not accept",
            of.name(),
            other.word()
        )),
    }
}
