//! Finds a key that stands twice.

use super::ReadErrorKind;
use std::{borrow::Cow, collections::HashSet};

/// So many keys are compared one by one, more by hash.
const FEW: usize = 16;

/// The keys of one object so far. The hash is seeded, so nobody can choose keys that collide.
#[derive(Default)]
pub(super) struct Keys<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Keys<'a> {
    pub(super) fn add(&mut self, key: Cow<'a, str>, limit: usize) -> Result<(), ReadErrorKind> {
        // Readers in C end a key at U+0000. Only an escape can bring one here.
        if matches!(&key, Cow::Owned(key) if key.contains('\0')) {
            return Err(ReadErrorKind::DuplicateKey);
        }
        if self.few.len() + self.many.len() >= limit {
            return Err(ReadErrorKind::TooManyKeys);
        }
        let new = if self.many.is_empty() && self.few.len() < FEW {
            let new = !self.few.contains(&key);
            self.few.push(key);
            new
        } else {
            self.many.extend(self.few.drain(..));
            self.many.insert(key)
        };
        if new {
            Ok(())
        } else {
            Err(ReadErrorKind::DuplicateKey)
        }
    }
}
