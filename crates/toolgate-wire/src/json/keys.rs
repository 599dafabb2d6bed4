//! Finds a key that stands twice.

use super::ReadErrorKind;
use std::{borrow::Cow, collections::HashSet};

/// So many keys are compared one by one, more by hash.
const FEW: usize = 16;

/// The keys of one object so far. The hash is seeded, so nobody can choose keys that collide.
pub(super) struct Keys<'a> {
    /// Where its keys begin among those of all objects that are open; it is the innermost one while keys are added.
    from: usize,
    /// All of them, once there are many. In a box, for few objects have so many.
    #[expect(
        clippy::box_collection,
        reason = "one word in each object that is open"
    )]
    many: Option<Box<HashSet<Cow<'a, str>>>>,
}

impl<'a> Keys<'a> {
    /// The keys of an object that opens now.
    pub(super) fn new(few: &[Cow<'a, str>]) -> Keys<'a> {
        let from = few.len();
        Keys { from, many: None }
    }

    /// The object ends.
    #[inline]
    pub(super) fn end(&self, few: &mut Vec<Cow<'a, str>>) {
        few.truncate(self.from);
    }

    #[inline(always)]
    pub(super) fn add(
        &mut self,
        few: &mut Vec<Cow<'a, str>>,
        key: Cow<'a, str>,
        limit: usize,
    ) -> Result<(), ReadErrorKind> {
        // Readers in C end a key at U+0000. Only an escape can bring one here.
        if matches!(&key, Cow::Owned(key) if key.contains('\0')) {
            return Err(ReadErrorKind::DuplicateKey);
        }
        let own = few.get(self.from..).unwrap_or_default();
        let new = if self.many.is_none() && own.len() < FEW.min(limit) {
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

    /// One more of many; whether it is new.
    #[cold]
    fn add_to_many(
        &mut self,
        few: &mut Vec<Cow<'a, str>>,
        key: Cow<'a, str>,
        limit: usize,
    ) -> Result<bool, ReadErrorKind> {
        let own = few.len() - self.from;
        let count = self.many.as_ref().map_or(own, |many| many.len());
        if count >= limit {
            return Err(ReadErrorKind::TooManyKeys);
        }
        let many = self.many.get_or_insert_default();
        many.extend(few.drain(self.from..));
        Ok(many.insert(key))
    }
}
