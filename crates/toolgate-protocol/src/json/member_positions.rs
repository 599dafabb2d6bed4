//! Index of the members near the root of a text. The reader records it in its single pass, because the members of a
//! request are looked up many times.

use super::lexer::{self, RawMember};
use std::ops::Range;

/// Maximum depth of recorded members: the message, `params`, `_meta` and their values.
const MAX_INDEXED_DEPTH: usize = 4;
/// Maximum number of recorded members; a message has about twenty.
const MAX_INDEXED_MEMBERS: usize = 64;

/// Recorded member: the ranges of its raw key and of its value.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct MemberPosition {
    key: (u32, u32),
    value: (u32, u32),
    /// Number of enclosing objects.
    depth: u16,
    /// True if the key has no escapes, so that the raw key is its text.
    plain: bool,
}

/// Recorded members near the root of a text, in the order of their keys.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberPositions {
    list: Vec<MemberPosition>,
    /// Position of the root value.
    root: u32,
    /// True if there were more members than the limit: then no object is known to be complete.
    is_incomplete: bool,
}

impl MemberPositions {
    /// Creates an index for a text with this root position. A text beyond 4 GiB has no index.
    pub(super) fn new(root: usize, bytes: usize) -> MemberPositions {
        MemberPositions {
            list: Vec::with_capacity(20),
            root: u32::try_from(root).unwrap_or_default(),
            is_incomplete: u32::try_from(bytes).is_err(),
        }
    }

    /// Records the start of a member at this depth, outside arrays. Returns its index if it is recorded. The ranges of
    /// its key and the start of its value are already known.
    #[inline(always)]
    pub(super) fn begin_member(
        &mut self,
        key: &Range<usize>,
        plain: bool,
        value: usize,
        depth: usize,
    ) -> Option<usize> {
        if depth > MAX_INDEXED_DEPTH || self.is_incomplete {
            return None;
        }
        if self.list.len() >= MAX_INDEXED_MEMBERS {
            self.is_incomplete = true;
            return None;
        }
        // All positions fit, because a longer text has no index.
        let at = |n: usize| n as u32;
        self.list.push(MemberPosition {
            key: (at(key.start), at(key.end)),
            value: (at(value), at(value)),
            depth: depth as u16,
            plain,
        });
        Some(self.list.len() - 1)
    }

    /// Records the end of a member's value.
    #[inline]
    pub(super) fn end_member(&mut self, place: usize, end: usize) {
        if let Some(place) = self.list.get_mut(place) {
            place.value.1 = end as u32;
        }
    }

    /// Returns the range of a member's value in the object at `range`, relative to the start of the object; `Ok(None)`
    /// if there is no member of that key.
    ///
    /// # Errors
    /// Returns `Err(())` if the object is not indexed.
    pub(super) fn find(
        &self,
        whole: &str,
        range: &Range<usize>,
        key: &str,
    ) -> Result<Option<Range<usize>>, ()> {
        let mut rest = self.within(range.start).ok_or(())?;
        while let Some((place, more)) = rest.split_first() {
            let (from, to) = (place.key.0 as usize, place.key.1 as usize);
            if from >= range.end {
                break;
            }
            if !place.plain || to - from == key.len() {
                let inner = whole.get(from..to).unwrap_or_default();
                let same = match place.plain {
                    true => inner == key,
                    false => lexer::key_equals(inner, key),
                };
                if same {
                    let value = place.value.0 as usize..place.value.1 as usize;
                    return Ok(Some(value.start - range.start..value.end - range.start));
                }
            }
            rest = skip_nested_members(place, more);
        }
        Ok(None)
    }

    /// Returns the recorded members from the start of this value on, if all of its members were recorded.
    fn within(&self, start: usize) -> Option<&[MemberPosition]> {
        let start = u32::try_from(start).ok()?;
        if self.is_incomplete || self.list.is_empty() {
            return None;
        }
        // The value is the root, or belongs to the last member whose key begins before it.
        let first = self.list.partition_point(|place| place.key.0 <= start);
        let known = match first.checked_sub(1) {
            None => start == self.root,
            Some(own) => self.list.get(own).is_some_and(|own| {
                own.value.0 == start && (own.depth as usize) < MAX_INDEXED_DEPTH
            }),
        };
        known.then(|| self.list.get(first..).unwrap_or_default())
    }
}

/// Skips the members nested in the value of `place`, which follow it in the list.
fn skip_nested_members<'a>(
    place: &MemberPosition,
    mut more: &'a [MemberPosition],
) -> &'a [MemberPosition] {
    while let Some((next, rest)) = more.split_first()
        && next.key.0 < place.value.1
    {
        more = rest;
    }
    more
}

/// Iterator over the members of an object, from the index or from its text; none for other values.
pub(super) enum MemberIter<'a> {
    /// Members from the index; those behind the end of the range belong to other objects.
    Indexed {
        whole: &'a str,
        rest: &'a [MemberPosition],
        range: Range<usize>,
    },
    /// Members from the text, because the object is not indexed.
    Scanned(Option<lexer::ContainerParts<'a>>),
}

impl<'a> MemberIter<'a> {
    /// Returns the members of the value at `range` of `whole`.
    pub(super) fn of(
        places: &'a MemberPositions,
        whole: &'a str,
        range: Range<usize>,
    ) -> MemberIter<'a> {
        match places.within(range.start) {
            Some(rest) => MemberIter::Indexed { whole, rest, range },
            None => {
                let text = whole.get(range).unwrap_or_default();
                MemberIter::Scanned(lexer::ContainerParts::of(text, super::JsonKind::Object))
            }
        }
    }
}

impl<'a> Iterator for MemberIter<'a> {
    type Item = RawMember<'a>;

    /// Returns the next member, with ranges relative to the start of the object.
    #[inline]
    fn next(&mut self) -> Option<RawMember<'a>> {
        let (whole, rest, range) = match self {
            MemberIter::Indexed { whole, rest, range } => (*whole, rest, range),
            MemberIter::Scanned(parts) => return parts.as_mut()?.member(),
        };
        let (place, more) = rest.split_first()?;
        let (from, to) = (place.key.0 as usize, place.key.1 as usize);
        if from >= range.end {
            return None;
        }
        *rest = skip_nested_members(place, more);
        let value = place.value.0 as usize - range.start..place.value.1 as usize - range.start;
        Some(RawMember {
            key: whole.get(from..to).unwrap_or_default(),
            start: from - 1 - range.start,
            value,
            is_plain_key: place.plain,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Json, JsonLimits};
    use super::*;

    fn read(text: &str) -> Json {
        Json::read(text.as_bytes().to_vec(), &JsonLimits::default()).unwrap()
    }

    /// Compares the members of all values from the index and from the text alone.
    fn compare_index_with_text(json: &Json) {
        let found: Vec<_> = json.members().map(|(k, v)| (k.into_owned(), v)).collect();
        let sought = lexer::members(json.as_str());
        let sought: Vec<_> = sought
            .map(|m| (m.key.to_owned(), m.start, m.value))
            .collect();
        let in_places = MemberIter::of(&json.text.positions, &json.text.text, json.range.clone());
        let in_places: Vec<_> = in_places
            .map(|m| (m.key.to_owned(), m.start, m.value))
            .collect();
        assert_eq!(in_places, sought, "{}", json.as_str());
        assert_eq!(found.len(), sought.len());
        for (key, value) in found {
            let alone = read(json.as_str()).get(&key).unwrap();
            assert_eq!(value, alone);
            assert_eq!(json.get(&key), Some(alone));
            compare_index_with_text(&value);
        }
        json.items().for_each(|item| compare_index_with_text(&item));
    }

    #[test]
    fn the_index_agrees_with_the_text() {
        for text in [
            "{}",
            " [ ] ",
            r#" {"a" : {} , "b":[{"c":{"d":1}},2], "e":{"f":{"g":{"h":{"i":{"j":1}}}}} } "#,
            r#"{"a":{"a":{"a":{"a":{"a":{"a":{"a":{}}}}}}},"b":"x"}"#,
            r#"{"\u0061\"":"{\"b\":1}","b":{"x":[],"y":{}},"c":null}"#,
            r#"[{"a":{"b":{"c":1}}},{"a":1}]"#,
            r#"{"a":[[{"b":{"c":1}}]],"d":{"e":true}}"#,
            "7",
        ] {
            compare_index_with_text(&read(text));
        }
        for count in [
            MAX_INDEXED_MEMBERS - 1,
            MAX_INDEXED_MEMBERS,
            MAX_INDEXED_MEMBERS + 1,
        ] {
            let wide: Vec<String> = (0..count).map(|n| format!(r#""k{n}":{{}}"#)).collect();
            let wide = format!("{{{}}}", wide.join(","));
            assert_eq!(read(&wide).members().count(), count);
            compare_index_with_text(&read(&wide));
        }
    }

    #[test]
    fn indexes_only_members_near_the_root() {
        let json = read(r#"{"a":{"b":{"c":{"d":{"e":1}}}},"f":[{"g":1}]}"#);
        let keys = json.text.positions.list.len();
        assert_eq!(keys, 5, "a to d, and f");
        let deep = json.get("a").and_then(|a| a.get("b")?.get("c")?.get("d"));
        assert_eq!(deep.unwrap().get("e").unwrap().as_str(), "1");
        let item = json.get("f").and_then(|f| f.items().next());
        assert_eq!(item.unwrap().get("g").unwrap().as_str(), "1");
    }
}
