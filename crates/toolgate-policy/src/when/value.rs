//! Values during the evaluation of a condition, borrowed from the call where possible.

use serde_json::Value;
use std::{cmp::Ordering, rc::Rc};

#[derive(Clone, Debug)]
pub(super) enum V<'a> {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(&'a str),
    Made(Rc<str>),
    List(Rc<Vec<V<'a>>>),
    Array(&'a [Value]),
    Object(&'a serde_json::Map<String, Value>),
}

impl<'a> V<'a> {
    pub(super) fn of(value: &'a Value) -> V<'a> {
        match value {
            Value::Null => V::Null,
            Value::Bool(is) => V::Bool(*is),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(int), _) => V::Int(int.into()),
                (None, Some(int)) => V::Int(int.into()),
                (None, None) => V::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => V::Text(text),
            Value::Array(items) => V::Array(items),
            Value::Object(members) => V::Object(members),
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            V::Text(text) => Some(text),
            V::Made(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the type name, for messages.
    pub(super) fn word(&self) -> &'static str {
        match self {
            V::Null => "null",
            V::Bool(_) => "true or false",
            V::Int(_) | V::Float(_) => "a number",
            V::Text(_) | V::Made(_) => "a string",
            V::List(_) | V::Array(_) => "a list",
            V::Object(_) => "an object",
        }
    }

    /// Returns the number of items of a list, or of keys of an object.
    pub(super) fn len(&self) -> Option<usize> {
        match self {
            V::List(items) => Some(items.len()),
            V::Array(items) => Some(items.len()),
            V::Object(members) => Some(members.len()),
            _ => None,
        }
    }

    /// Returns an item of a list.
    pub(super) fn item(&self, at: usize) -> Option<V<'a>> {
        match self {
            V::List(items) => items.get(at).cloned(),
            V::Array(items) => items.get(at).map(V::of),
            _ => None,
        }
    }

    /// Iterates over the items of a list, or the keys of an object.
    pub(super) fn each(&self) -> Option<Box<dyn Iterator<Item = V<'a>> + 'a>> {
        match self {
            V::List(items) => {
                let items = items.clone();
                Some(Box::new(
                    (0..items.len()).filter_map(move |at| items.get(at).cloned()),
                ))
            }
            V::Array(items) => Some(Box::new(items.iter().map(V::of))),
            V::Object(members) => Some(Box::new(members.keys().map(|key| V::Text(key)))),
            _ => None,
        }
    }

    /// Compares two numbers or two texts exactly; `None` for all other values and for NaN.
    pub(super) fn order(&self, other: &V<'_>) -> Option<Ordering> {
        match (self, other) {
            (V::Int(a), V::Int(b)) => Some(a.cmp(b)),
            (V::Float(a), V::Float(b)) => a.partial_cmp(b),
            (V::Int(a), V::Float(b)) => int_to_float(*a, *b),
            (V::Float(a), V::Int(b)) => int_to_float(*b, *a).map(Ordering::reverse),
            _ => Some(self.text()?.cmp(other.text()?)),
        }
    }
}

/// Compares an integer with a float, without rounding the integer.
fn int_to_float(int: i128, float: f64) -> Option<Ordering> {
    /// A bound beyond all integers that a call can hold.
    const FAR: f64 = 1e30;
    if float.is_nan() {
        None
    } else if float.abs() > FAR {
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
