//! Cache of serialized list pages, valid while the list is the same snapshot.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};
use toolgate_core::{Catalog, ItemKind};
use toolgate_protocol::{dialect::Dialect, json::Json};

/// One cached page, as written for one protocol revision.
struct CachedListPage {
    catalog: Catalog,
    revision: &'static str,
    kind: ItemKind,
    start: usize,
    result: Json,
}

/// The page cache of one server, shared by all callers: callers that see the same items have the same snapshot.
#[derive(Default)]
pub(crate) struct ListPageCache(Mutex<VecDeque<CachedListPage>>);

impl ListPageCache {
    /// The largest number of cached pages, and of bytes in them. The oldest pages are evicted.
    const MAX_PAGES: usize = 32;
    const MAX_PAGE_CACHE_BYTES: usize = 8 << 20;

    /// Returns the page of a kind that starts at an item: from the cache, or from `make`.
    pub(crate) fn get_or_write(
        &self,
        catalog: &Catalog,
        dialect: &Dialect,
        (kind, start): (ItemKind, usize),
        make: impl FnOnce() -> Json,
    ) -> Json {
        let same = |page: &&CachedListPage| {
            (page.kind, page.start) == (kind, start)
                && page.revision == dialect.revision
                && page.catalog.is_same_snapshot(catalog)
        };
        let found = self
            .pages()
            .iter()
            .find(same)
            .map(|page| page.result.clone());
        found.unwrap_or_else(|| {
            let result = make();
            self.insert(CachedListPage {
                catalog: catalog.clone(),
                revision: dialect.revision,
                kind,
                start,
                result: result.clone(),
            });
            result
        })
    }

    fn insert(&self, page: CachedListPage) {
        let mut kept = self.pages();
        kept.push_front(page);
        let mut bytes = 0;
        let fits = kept
            .iter()
            .take(ListPageCache::MAX_PAGES)
            .take_while(|page| {
                bytes += page.result.as_str().len();
                bytes <= ListPageCache::MAX_PAGE_CACHE_BYTES
            });
        let count = fits.count();
        kept.truncate(count);
    }

    fn pages(&self) -> MutexGuard<'_, VecDeque<CachedListPage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use toolgate_protocol::dialect::{self, MODERN};

    #[test]
    fn writes_a_page_once_per_list_revision_and_start() {
        let (pages, made) = (ListPageCache::default(), Cell::new(0));
        let (list, other) = (Catalog::default(), Catalog::new(Vec::new()));
        let old = dialect::find("2025-11-25").unwrap();
        for _ in 0..2 {
            for (list, dialect, place) in [
                (&list, MODERN, (ItemKind::Tool, 0)),
                (&list, MODERN, (ItemKind::Tool, 1)),
                (&list, MODERN, (ItemKind::Prompt, 0)),
                (&list, old, (ItemKind::Tool, 0)),
                (&other, MODERN, (ItemKind::Tool, 0)),
            ] {
                pages.get_or_write(list, dialect, place, || {
                    made.set(made.get() + 1);
                    Json::from_value(&serde_json::json!({}))
                });
            }
        }
        assert_eq!(made.get(), 5);
    }

    #[test]
    fn limits_the_pages_and_their_bytes() {
        let (pages, list) = (ListPageCache::default(), Catalog::default());
        let put = |start, bytes: usize| {
            let text = Json::from_value(&"x".repeat(bytes - 2).into());
            pages.get_or_write(&list, MODERN, (ItemKind::Tool, start), || text);
        };
        (0..=ListPageCache::MAX_PAGES).for_each(|start| put(start, 10));
        assert_eq!(pages.pages().len(), ListPageCache::MAX_PAGES);
        put(100, ListPageCache::MAX_PAGE_CACHE_BYTES - 10);
        assert_eq!(pages.pages().len(), 2, "the newest that fit");
        put(101, ListPageCache::MAX_PAGE_CACHE_BYTES + 1);
        assert_eq!(pages.pages().len(), 0, "one byte over is not kept");
    }
}
