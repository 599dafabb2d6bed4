//! Values during the evaluation of a condition, borrowed from the call where possible.

use serde_json::Value;
use std::{cmp::Ordering, rc::Rc};

#[derive(Clone, Debug)]
pub(super) enum CelValue<'a> {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(&'a str),
    Made(Rc<str>),
    List(Rc<Vec<CelValue<'a>>>),
    Array(&'a [Value]),
    Object(&'a serde_json::Map<String, Value>),
}

impl<'a> CelValue<'a> {
    pub(super) fn of(value: &'a Value) -> CelValue<'a> {
        match value {
            Value::Null => CelValue::Null,
            Value::Bool(is) => CelValue::Bool(*is),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(int), _) => CelValue::Int(int.into()),
                (None, Some(int)) => CelValue::Int(int.into()),
                (None, None) => CelValue::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => CelValue::Text(text),
            Value::Array(items) => CelValue::Array(items),
            Value::Object(members) => CelValue::Object(members),
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            CelValue::Text(text) => Some(text),
            CelValue::Made(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the type name, for messages.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            CelValue::Null => "null",
            CelValue::Bool(_) => "a boolean",
            CelValue::Int(_) => "an integer",
            CelValue::Float(_) => "a decimal number",
            CelValue::Text(_) | CelValue::Made(_) => "a string",
            CelValue::List(_) | CelValue::Array(_) => "a list",
            CelValue::Object(_) => "an object",
        }
    }

    /// Returns the number of items of a list, or of keys of an object.
    pub(super) fn len(&self) -> Option<usize> {
        match self {
            CelValue::List(items) => Some(items.len()),
            CelValue::Array(items) => Some(items.len()),
            CelValue::Object(members) => Some(members.len()),
            _ => None,
        }
    }

    /// Returns an item of a list.
    pub(super) fn item(&self, at: usize) -> Option<CelValue<'a>> {
        match self {
            CelValue::List(items) => items.get(at).cloned(),
            CelValue::Array(items) => items.get(at).map(CelValue::of),
            _ => None,
        }
    }

    /// Iterates over the items of a list, or the keys of an object.
    pub(super) fn each(&self) -> Option<Box<dyn Iterator<Item = CelValue<'a>> + 'a>> {
        match self {
            CelValue::List(items) => {
                let items = items.clone();
                Some(Box::new(
                    (0..items.len()).filter_map(move |at| items.get(at).cloned()),
                ))
            }
            CelValue::Array(items) => Some(Box::new(items.iter().map(CelValue::of))),
            CelValue::Object(members) => {
                Some(Box::new(members.keys().map(|key| CelValue::Text(key))))
            }
            _ => None,
        }
    }

    /// Compares two numbers or two texts exactly; `None` for all other values and for NaN.
    pub(super) fn order(&self, other: &CelValue<'_>) -> Option<Ordering> {
        match (self, other) {
            (CelValue::Int(a), CelValue::Int(b)) => Some(a.cmp(b)),
            (CelValue::Float(a), CelValue::Float(b)) => a.partial_cmp(b),
            (CelValue::Int(a), CelValue::Float(b)) => int_to_float(*a, *b),
            (CelValue::Float(a), CelValue::Int(b)) => int_to_float(*b, *a).map(Ordering::reverse),
            _ => Some(self.text()?.cmp(other.text()?)),
        }
    }
}

/// Compares an integer with a float, without rounding the integer.
fn int_to_float(int: i128, float: f64) -> Option<Ordering> {
    /// A bound beyond all integers that a call can hold.
    const MAX_CALL_NUMBER: f64 = 1e30;
    if float.is_nan() {
        None
    } else if float.abs() > MAX_CALL_NUMBER {
        Some(if float > 0.0 {
            Ordering::Less
        } else {
            Ordering::Greater
        })
    } else {
        let floor = float.floor();
        #[allow(
            clippy::cast_possible_truncation,
            reason = "whole, and far from the ends of i128"
        )]
        let whole = int.cmp(&(floor as i128));
        Some(whole.then(if float > floor {
            Ordering::Less
        } else {
            Ordering::Equal
        }))
    }
}
