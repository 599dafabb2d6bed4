//! Cache of filtered catalogs. As long as neither a list nor a caller's view of it changes, the caller gets the same
//! snapshot, and values derived from it stay valid.

use crate::Catalog;
use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};
use toolgate_wire::method::list::CacheHint;

/// A complete catalog, and the filtered catalog of one visibility pattern.
struct FilteredCatalog {
    whole: Catalog,
    sees: Vec<bool>,
    seen: Catalog,
}

/// Cache of the most recent filtered catalogs of one gate. Visibility itself is evaluated for every list.
#[derive(Default)]
pub(crate) struct VisibilityCache(Mutex<VecDeque<FilteredCatalog>>);

impl VisibilityCache {
    /// Maximum number of entries; a further one evicts the oldest.
    const MAX_ENTRIES: usize = 16;

    /// Returns the catalog of the items that `sees` marks as visible, in the order of the list.
    pub(crate) fn cut(&self, whole: &Catalog, sees: Vec<bool>, public: bool) -> Catalog {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |cut: &&FilteredCatalog| {
            cut.whole.same(whole) && cut.sees == sees && cut.seen.hint().public == public
        };
        if let Some(cut) = kept.iter().find(same) {
            return cut.seen.clone();
        }
        let items = whole.items().iter().zip(&sees).filter(|(_, sees)| **sees);
        let seen = whole.with_items(items.map(|(item, _)| item.clone()).collect());
        let seen = seen.with_hint(CacheHint {
            public,
            ..whole.hint()
        });
        kept.truncate(VisibilityCache::MAX_ENTRIES - 1);
        kept.push_front(FilteredCatalog {
            whole: whole.clone(),
            sees,
            seen: seen.clone(),
        });
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_cut_of_the_same_list_is_the_same() {
        let (cuts, whole) = (VisibilityCache::default(), Catalog::default());
        let first = cuts.cut(&whole, vec![true, false], false);
        assert!(first.same(&cuts.cut(&whole, vec![true, false], false)));
        assert!(!first.same(&cuts.cut(&whole, vec![false, true], false)));
        assert!(!first.same(&cuts.cut(&whole, vec![true, false], true)));
        let other = Catalog::new(Vec::new());
        assert!(!first.same(&cuts.cut(&other, vec![true, false], false)));
    }

    #[test]
    fn the_oldest_goes() {
        let (cuts, whole) = (VisibilityCache::default(), Catalog::default());
        let cut = |n: usize| cuts.cut(&whole, vec![true; n], false);
        let first = cut(0);
        (1..VisibilityCache::MAX_ENTRIES).for_each(|n| drop(cut(n)));
        assert!(first.same(&cut(0)));
        cut(VisibilityCache::MAX_ENTRIES);
        assert!(!first.same(&cut(0)), "one over");
    }
}
