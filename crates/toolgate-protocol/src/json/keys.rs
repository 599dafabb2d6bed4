//! Detection of duplicate keys.

use super::ReadErrorKind;
use std::{borrow::Cow, collections::HashSet};

/// Maximum number of keys to compare one by one; more are hashed.
const MAX_LINEAR_KEYS: usize = 16;

/// Keys of one object so far. The hash is seeded, so an attacker cannot choose colliding keys.
pub(super) struct ObjectKeys<'a> {
    /// Index of its first key among those of all open objects. Keys are only added to the innermost object.
    first: usize,
    /// Hash set of all keys, once there are many. Boxed, because few objects have so many.
    #[expect(clippy::box_collection, reason = "one pointer in each open object")]
    hashed: Option<Box<HashSet<Cow<'a, str>>>>,
}

impl<'a> ObjectKeys<'a> {
    /// Starts the keys of a new object.
    pub(super) fn new(few: &[Cow<'a, str>]) -> ObjectKeys<'a> {
        let from = few.len();
        ObjectKeys {
            first: from,
            hashed: None,
        }
    }

    /// Ends the object and removes its keys.
    #[inline]
    pub(super) fn end(&self, few: &mut Vec<Cow<'a, str>>) {
        few.truncate(self.first);
    }

    #[inline(always)]
    pub(super) fn add(
        &mut self,
        few: &mut Vec<Cow<'a, str>>,
        key: Cow<'a, str>,
        limit: usize,
    ) -> Result<(), ReadErrorKind> {
        let own = few.get(self.first..).unwrap_or_default();
        let new = if self.hashed.is_none() && own.len() < MAX_LINEAR_KEYS.min(limit) {
            let new = own.iter().all(|other| **other != *key);
            few.push(key);
            new
        } else {
            self.add_to_many(few, key, limit)?
        };
        if new {
            Ok(())
        } else {
            Err(ReadErrorKind::DuplicateKey)
        }
    }

    /// Adds a key to the hash set. Returns true if it is new.
    #[cold]
    fn add_to_many(
        &mut self,
        few: &mut Vec<Cow<'a, str>>,
        key: Cow<'a, str>,
        limit: usize,
    ) -> Result<bool, ReadErrorKind> {
        let own = few.len() - self.first;
        let count = self.hashed.as_ref().map_or(own, |many| many.len());
        if count >= limit {
            return Err(ReadErrorKind::TooManyKeys);
        }
        let many = self.hashed.get_or_insert_default();
        many.extend(few.drain(self.first..));
        Ok(many.insert(key))
    }
}
