//! Borrowed view of a JSON value, for reading only.

use super::{Json, JsonKind, JsonText, lexer, member_positions::MemberIter, text, value};
use serde_json::Value;
use std::{borrow::Cow, ops::Range};

/// Borrowed view of a [`Json`] value or of a part of it. Access to its parts changes no reference count.
#[derive(Clone)]
pub struct JsonView<'a> {
    of: &'a JsonText,
    range: Range<usize>,
}

impl<'a> JsonView<'a> {
    pub(super) fn new(of: &'a JsonText, range: Range<usize>) -> JsonView<'a> {
        JsonView { of, range }
    }

    fn part(&self, range: Range<usize>) -> JsonView<'a> {
        let start = self.range.start;
        JsonView {
            of: self.of,
            range: start + range.start..start + range.end,
        }
    }

    /// Returns the JSON text of the viewed value.
    pub fn as_str(&self) -> &'a str {
        self.of.text.get(self.range.clone()).unwrap_or("null")
    }

    /// Returns the type of the viewed value: object, array, string, number, boolean or null.
    pub fn kind(&self) -> JsonKind {
        JsonKind::at(&self.of.text, self.range.start)
    }

    /// Returns true if the viewed value is `null`.
    pub(crate) fn is_null(&self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// Returns the members of a viewed JSON object as key and value, in their order; none for other values.
    pub fn members(&self) -> impl Iterator<Item = (Cow<'a, str>, JsonView<'a>)> + use<'a> {
        let of = self.clone();
        let found = MemberIter::of(&self.of.positions, &self.of.text, self.range.clone());
        found.map(move |member| (member.unescaped_key(), of.part(member.value)))
    }

    /// Returns a view of the value of the object's member with this key.
    pub(crate) fn get(&self, key: &str) -> Option<JsonView<'a>> {
        match self.of.positions.find(&self.of.text, &self.range, key) {
            Ok(value) => value.map(|value| self.part(value)),
            Err(()) => {
                let mut members = lexer::members(self.as_str());
                let found = members.find(|m| lexer::key_equals(m.key, key))?;
                Some(self.part(found.value))
            }
        }
    }

    /// Returns the items of a viewed JSON array; none for other values.
    pub fn items(&self) -> impl Iterator<Item = JsonView<'a>> + use<'a> {
        let of = self.clone();
        lexer::items(self.as_str()).map(move |item| of.part(item))
    }

    /// Returns the unescaped text of a viewed JSON string, borrowed if it has no escapes; `None` for other values.
    pub fn str_cow(&self) -> Option<Cow<'a, str>> {
        text::of_string(self.as_str())
    }

    /// Converts the viewed value to a `serde_json` tree, like [`Json::to_value`].
    pub fn to_value(&self) -> Value {
        value::read(self.as_str()).0
    }
}

impl Json {
    /// Returns the part of this value that the view shows. It shares the buffer of the whole.
    pub(crate) fn part(&self, view: &JsonView<'_>) -> Json {
        debug_assert!(std::ptr::eq(view.of, &*self.text));
        Json {
            text: self.text.clone(),
            range: view.range.clone(),
        }
    }

    /// Returns a borrowed view of the JSON value.
    pub fn view(&self) -> JsonView<'_> {
        JsonView::new(&self.text, self.range.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Json, JsonLimits};
    use super::*;

    /// Compares a view with its value, all the way down.
    fn same(view: &JsonView<'_>, json: &Json) {
        let whole = view;
        assert_eq!(view.as_str(), json.as_str());
        assert_eq!(view.kind(), json.kind());
        assert_eq!(view.str_cow(), json.str_cow());
        assert_eq!(view.to_value(), json.to_value());
        assert_eq!(json.part(view), *json);
        let (members, items): (Vec<_>, Vec<_>) = (json.members().collect(), json.items().collect());
        assert_eq!(view.members().count(), members.len());
        assert_eq!(view.items().count(), items.len());
        for ((key, view), (said, json)) in view.members().zip(&members) {
            assert_eq!(key, *said);
            assert_eq!(whole.get(said).map(|v| v.as_str()), Some(json.as_str()));
            same(&view, json);
        }
        view.items()
            .zip(&items)
            .for_each(|(view, json)| same(&view, json));
    }

    #[test]
    fn a_view_agrees_with_its_value() {
        for text in [
            r#" {"a": [1, {"b": 2.5e3}], "\u0062" : "x\"y", "c":{}, "d": null, "e": [true, "", []]} "#,
            r#"{"a":{"b":{"c":{"d":{"e":{"f":[{"g":1}]}}}}}}"#,
            r#""only""#,
            "[]",
            "-7",
        ] {
            let json = Json::read(text.as_bytes().to_vec(), &JsonLimits::default()).unwrap();
            same(&json.view(), &json);
        }
    }
}
