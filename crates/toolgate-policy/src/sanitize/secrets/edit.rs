//! Redaction of server content, string by string.

use super::{field::FIELD_RULE, find};
use crate::sanitize::edit::{ContentLocation, StringEditor};
use std::{collections::BTreeMap, sync::Arc};
use toolgate_core::{ContentKind, Json};
use toolgate_protocol::json::StringAt;

/// A redaction in progress; counts its matches by rule.
#[derive(Default)]
pub(super) struct SecretRedaction {
    /// Counts without redacting.
    pub(super) dry: bool,
    /// Number of matches of each rule.
    pub(super) seen: BTreeMap<Arc<str>, u64>,
}

impl SecretRedaction {
    /// Redacts a value without a special structure.
    pub(super) fn other(&mut self, json: &Json) -> Option<(Json, bool)> {
        self.value(json, SearchedMembers::All)
    }

    fn value(&mut self, json: &Json, members: SearchedMembers) -> Option<(Json, bool)> {
        // Nearly all values are clean.
        if !find::may_hold(json.as_str()) {
            return None;
        }
        let mut path: Vec<String> = Vec::new();
        let mut keys = false;
        let new = json.map_strings(&mut |at| {
            let new = self.string(&at, &path, members);
            if at.key {
                keys |= new.is_some();
                path.resize(at.depth.saturating_sub(1), String::new());
                path.push(at.text.to_owned());
            }
            new
        })?;
        (!self.dry).then_some((new, keys))
    }

    /// Redacts one string; `path` are the member names that lead to it.
    fn string(
        &mut self,
        at: &StringAt<'_>,
        path: &[String],
        members: SearchedMembers,
    ) -> Option<String> {
        // Images and audio are checked elsewhere; their Base64 text has no meaning.
        if let SearchedMembers::But(data) = members
            && !at.key
            && at.depth == data.len()
            && path == data
        {
            return None;
        }
        let key = path.last().map_or("", String::as_str);
        if let Some(new) = self.prose(at.text) {
            return Some(new);
        }
        if at.key || members == SearchedMembers::OfSchema || !FIELD_RULE.holds(key, at.text) {
            return None;
        }
        self.count(FIELD_RULE.id.into());
        Some(find::mark(FIELD_RULE.id))
    }

    fn prose(&mut self, text: &str) -> Option<String> {
        let mut found = Vec::new();
        let new = find::redact(text, &mut |rule| found.push(rule.clone()));
        found.into_iter().for_each(|rule| self.count(rule));
        new
    }

    fn count(&mut self, rule: Arc<str>) {
        *self.seen.entry(rule).or_default() += 1;
    }
}

/// The members of a value that are searched, and whether their names count.
#[derive(Clone, Copy, Eq, PartialEq)]
enum SearchedMembers {
    /// All members; their names indicate secrets.
    All,
    /// All members except the Base64 data at this path.
    But(&'static [&'static str]),
    /// All members, without regard to names: a property `password` holds a schema.
    OfSchema,
}

impl StringEditor for SecretRedaction {
    fn text(&mut self, text: &str) -> Option<String> {
        let new = self.prose(text)?;
        (!self.dry).then_some(new)
    }

    fn json(&mut self, place: ContentLocation, json: &Json) -> Option<(Json, bool)> {
        let members = match place {
            ContentLocation::Block(ContentKind::Image | ContentKind::Audio) => {
                SearchedMembers::But(&["data"])
            }
            ContentLocation::Block(ContentKind::Resource) => {
                SearchedMembers::But(&["resource", "blob"])
            }
            ContentLocation::Contents => SearchedMembers::But(&["blob"]),
            ContentLocation::Definition => SearchedMembers::OfSchema,
            ContentLocation::Block(_) | ContentLocation::Structured | ContentLocation::Other => {
                SearchedMembers::All
            }
        };
        self.value(json, members)
    }

    fn flaw(&self) -> &'static str {
        "a possible secret"
    }
}
