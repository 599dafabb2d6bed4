//! Finds a key that stands twice.

use super::ReadErrorKind;
use std::{borrow::Cow, collections::HashSet};

/// So many keys are compared one by one, more by hash.
const FEW: usize = 16;

/// The keys of one object so far. The hash is seeded, so nobody can choose keys that collide.
pub(super) struct Keys<'a> {
    /// Where its keys begin among those of all objects that are open; it is the innermost one while keys are added.
    from: usize,
    /// All of them, once there are many.
    many: Option<HashSet<Cow<'a, str>>>,
}

impl<'a> Keys<'a> {
    /// The keys of an object that opens now.
    pub(super) fn new(few: &[Cow<'a, str>]) -> Keys<'a> {
        let from = few.len();
        Keys { from, many: None }
    }

    /// The object ends.
    pub(super) fn end(&self, few: &mut Vec<Cow<'a, str>>) {
        few.truncate(self.from);
    }

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
        let count = self.many.as_ref().map_or(own.len(), HashSet::len);
        if count >= limit {
            return Err(ReadErrorKind::TooManyKeys);
        }
        let new = if count < FEW {
            let new = !own.contains(&key);
            few.push(key);
            new
        } else {
            let many = self.many.get_or_insert_default();
            many.extend(few.drain(self.from..));
            many.insert(key)
        };
        if new {
            Ok(())
        } else {
            Err(ReadErrorKind::DuplicateKey)
        }
    }
}
