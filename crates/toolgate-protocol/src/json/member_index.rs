//! Index of an object's members, for many lookups.

use super::{Json, lexer, member_positions::MemberIter};
use std::ops::Range;

/// Index of an object's members. [`Json::get`] scans the text each time; the index scans it once.
#[derive(Clone, Debug, Default)]
pub struct MemberIndex {
    object: Option<Json>,
    /// Ranges of raw keys and of values; `None` if the reader has recorded them in its own index.
    list: Option<Vec<(Range<usize>, Range<usize>)>>,
}

impl MemberIndex {
    /// Indexes an object; the index of any other value is empty.
    pub(super) fn of(json: &Json) -> MemberIndex {
        let range = |m: lexer::RawMember<'_>| (m.start + 1..m.start + 1 + m.key.len(), m.value);
        let found = json.members_in();
        let known = matches!(found, MemberIter::Indexed { .. });
        MemberIndex {
            list: (!known).then(|| found.map(range).collect()),
            object: Some(json.clone()),
        }
    }

    /// Returns the value of the object's member with this key.
    pub fn get(&self, key: &str) -> Option<Json> {
        let of = self.object.as_ref()?;
        let Some(list) = &self.list else {
            return of.get(key);
        };
        let says = |inner: &Range<usize>| {
            let inner = of.as_str().get(inner.clone()).unwrap_or_default();
            lexer::key_equals(inner, key)
        };
        let (_, value) = list.iter().find(|(inner, _)| says(inner))?;
        Some(of.slice(value.clone()))
    }

    /// Returns the unescaped text of the member with this key, if its value is a string.
    pub fn string(&self, key: &str) -> Option<String> {
        self.get(key)?.string()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Json, JsonLimits};

    #[test]
    fn the_index_finds_the_same_members_as_get() {
        let text = r#" {"a": [1, {"b": 2}], "\u0062" : "x\"y", "c":{}, "d": null } "#;
        let json = Json::read(text.as_bytes().to_vec(), &JsonLimits::default()).unwrap();
        let members = json.index();
        for key in ["a", "b", "c", "d", "e", ""] {
            assert_eq!(members.get(key), json.get(key), "{key}");
        }
        assert_eq!(members.string("b").as_deref(), Some("x\"y"));
        assert_eq!(json.get("a").unwrap().index().get("a"), None);
    }
}
