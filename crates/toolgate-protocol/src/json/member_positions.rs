//! Index of the members near the root of a text. The reader records it in its single pass, because the members of a
//! request are looked up many times.

use super::lexer::{self, RawMember};
use std::ops::Range;

/// Maximum depth of recorded members: the message, `params`, `_meta` and their values.
const MAX_INDEXED_DEPTH: usize = 4;
/// Maximum number of recorded members; a message has about twenty.
const MAX_INDEXED_MEMBERS: usize = 64;
/// Maximum number of recorded members up to the end of an array. With more, the members in this array and in later ones
/// are not recorded: long arrays must not displace the members outside.
const MAX_INDEXED_IN_ARRAYS: usize = 32;

/// Recorded member: the ranges of its raw key and of its value.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct MemberPosition {
    key: (u32, u32),
    value: (u32, u32),
    /// Number of recorded members in the value, which follow this one.
    nested: u16,
    /// Number of enclosing objects and arrays.
    depth: u8,
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
    /// Number of members before the outermost open array.
    before_array: usize,
    /// True if no more members in arrays are recorded.
    skips_arrays: bool,
}

impl MemberPositions {
    /// Creates an index for a text with this root position. A text beyond 4 GiB has no index.
    pub(super) fn new(root: usize, bytes: usize) -> MemberPositions {
        MemberPositions {
            list: Vec::with_capacity(20),
            root: u32::try_from(root).unwrap_or_default(),
            is_incomplete: u32::try_from(bytes).is_err(),
            before_array: 0,
            skips_arrays: false,
        }
    }

    /// Records the start of an array that is in no other array.
    pub(super) fn begin_array(&mut self) {
        self.before_array = self.list.len();
    }

    /// Records the start of an object in an array. The entry has no key: it stands before the members of the object, so
    /// that they can be found.
    pub(super) fn begin_element(&mut self, start: usize, depth: usize) {
        if depth < MAX_INDEXED_DEPTH {
            self.begin_member(&(start..start), true, start, depth, true);
        }
    }

    /// Records the start of a member at this depth. Returns its index if it is recorded. The ranges of its key and the
    /// start of its value are already known.
    #[inline(always)]
    pub(super) fn begin_member(
        &mut self,
        key: &Range<usize>,
        plain: bool,
        value: usize,
        depth: usize,
        in_array: bool,
    ) -> Option<usize> {
        if depth > MAX_INDEXED_DEPTH || self.is_incomplete {
            return None;
        }
        if in_array && (self.skips_arrays || self.list.len() >= MAX_INDEXED_IN_ARRAYS) {
            if !self.skips_arrays {
                self.skips_arrays = true;
                self.list.truncate(self.before_array);
            }
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
            nested: 0,
            depth: depth as u8,
            plain,
        });
        Some(self.list.len() - 1)
    }

    /// Records the end of a member's value.
    #[inline]
    pub(super) fn end_member(&mut self, place: usize, end: usize) {
        let nested = self.list.len().saturating_sub(place + 1);
        if let Some(place) = self.list.get_mut(place) {
            place.value.1 = end as u32;
            place.nested = nested as u16;
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
        if !is_object(whole, range) {
            return Ok(None);
        }
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
            rest = more.get(usize::from(place.nested)..).unwrap_or_default();
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

fn is_object(whole: &str, range: &Range<usize>) -> bool {
    whole.as_bytes().get(range.start) == Some(&b'{')
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
        let known = places.within(range.start);
        match known.filter(|_| is_object(whole, &range)) {
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
        *rest = more.get(usize::from(place.nested)..).unwrap_or_default();
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
        for count in [1, 10, 11, 15, 16, 17, 40] {
            let items = vec![r#"{"a":{"b":[{"c":1}]},"d":[[{"e":2}],3]}"#; count].join(",");
            let list =
                format!(r#"{{"x":[{{"y":1}}],"items":[{items}],"next":{{"z":[{{"w":0}}]}}}}"#);
            compare_index_with_text(&read(&list));
            compare_index_with_text(&read(&format!("[{items}]")));
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
    fn a_long_array_displaces_no_members_outside() {
        let items = vec![r#"{"a":1}"#; 100].join(",");
        let json = read(&format!(r#"{{"x":[{items}],"y":[{{"a":1}}],"z":2}}"#));
        let keys = json.text.positions.list.iter();
        let keys: Vec<_> = keys.map(|place| place.key.1 - place.key.0).collect();
        assert_eq!(keys, [1, 1, 1], "x, y and z");
    }

    #[test]
    fn indexes_only_members_near_the_root() {
        let json = read(r#"{"a":{"b":{"c":{"d":{"e":1}}}},"f":[{"g":1}]}"#);
        let keys = json.text.positions.list.len();
        assert_eq!(keys, 7, "a to d, f, its element, and g");
        let deep = json.get("a").and_then(|a| a.get("b")?.get("c")?.get("d"));
        assert_eq!(deep.unwrap().get("e").unwrap().as_str(), "1");
        let item = json.get("f").and_then(|f| f.items().next());
        assert_eq!(item.unwrap().get("g").unwrap().as_str(), "1");
    }
}
