//! Cache of filtered catalogs. As long as neither a list nor a caller's view of it changes, the caller gets the same
//! snapshot, and values derived from it stay valid.

use crate::Catalog;
use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};
use toolgate_protocol::method::list::CacheHint;

/// A complete catalog, and the filtered catalog of one visibility pattern.
struct FilteredCatalog {
    complete: Catalog,
    visible: Vec<bool>,
    filtered: Catalog,
}

/// Cache of the most recent filtered catalogs of one gate. Visibility itself is evaluated for every list.
#[derive(Default)]
pub(crate) struct VisibilityCache(Mutex<VecDeque<FilteredCatalog>>);

impl VisibilityCache {
    /// Maximum number of entries; a further one evicts the oldest.
    const MAX_ENTRIES: usize = 16;

    /// Returns the catalog of the items that `visible` marks as visible, in the order of the list.
    pub(crate) fn filtered(&self, whole: &Catalog, sees: Vec<bool>, public: bool) -> Catalog {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |cut: &&FilteredCatalog| {
            cut.complete.is_same_snapshot(whole)
                && cut.visible == sees
                && cut.filtered.cache_hint().public == public
        };
        if let Some(cut) = kept.iter().find(same) {
            return cut.filtered.clone();
        }
        let items = whole.items().iter().zip(&sees).filter(|(_, sees)| **sees);
        let seen = whole.with_items(items.map(|(item, _)| item.clone()).collect());
        let seen = seen.with_cache_hint(CacheHint {
            public,
            ..whole.cache_hint()
        });
        kept.truncate(VisibilityCache::MAX_ENTRIES - 1);
        kept.push_front(FilteredCatalog {
            complete: whole.clone(),
            visible: sees,
            filtered: seen.clone(),
        });
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_visibility_of_a_list_yields_the_same_snapshot() {
        let (cuts, whole) = (VisibilityCache::default(), Catalog::default());
        let first = cuts.filtered(&whole, vec![true, false], false);
        assert!(first.is_same_snapshot(&cuts.filtered(&whole, vec![true, false], false)));
        assert!(!first.is_same_snapshot(&cuts.filtered(&whole, vec![false, true], false)));
        assert!(!first.is_same_snapshot(&cuts.filtered(&whole, vec![true, false], true)));
        let other = Catalog::new(Vec::new());
        assert!(!first.is_same_snapshot(&cuts.filtered(&other, vec![true, false], false)));
    }

    #[test]
    fn evicts_the_oldest_entry() {
        let (cuts, whole) = (VisibilityCache::default(), Catalog::default());
        let cut = |n: usize| cuts.filtered(&whole, vec![true; n], false);
        let first = cut(0);
        (1..VisibilityCache::MAX_ENTRIES).for_each(|n| drop(cut(n)));
        assert!(first.is_same_snapshot(&cut(0)));
        cut(VisibilityCache::MAX_ENTRIES);
        assert!(!first.is_same_snapshot(&cut(0)), "one over");
    }
}
