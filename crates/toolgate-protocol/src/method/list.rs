//! Pages of lists, and cache hints.

use super::definition::ItemKind;
use crate::json::{Json, JsonKind, ObjectWriter};

/// Cache hint of a result: its lifetime and scope (2026-07-28). The default is stale at once and private.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CacheHint {
    /// Time for which the result may be cached, in milliseconds; 0 is stale at once.
    pub ttl_ms: u64,
    /// True if the result may be cached for all callers.
    pub public: bool,
}

impl CacheHint {
    /// Reads the cache hint of a result. An absent or invalid hint is stale at once and private.
    pub fn read(result: &Json) -> CacheHint {
        let scope = result.get("cacheScope").and_then(|s| s.string());
        CacheHint {
            ttl_ms: result.get("ttlMs").and_then(|t| t.u64()).unwrap_or(0),
            public: scope.as_deref() == Some("public"),
        }
    }

    /// Writes the members of the cache hint into an open result.
    pub fn write(&self, o: &mut ObjectWriter) {
        o.int("ttlMs", i64::try_from(self.ttl_ms).unwrap_or(i64::MAX));
        o.str("cacheScope", if self.public { "public" } else { "private" });
    }

    /// Combines two cache hints: the shorter lifetime, and public only if both are.
    pub fn stricter(self, other: CacheHint) -> CacheHint {
        CacheHint {
            ttl_ms: self.ttl_ms.min(other.ttl_ms),
            public: self.public && other.public,
        }
    }
}

/// Page of a list result such as that of `tools/list` (pagination), with the cursor of the next page.
#[derive(Clone, Debug)]
pub struct ListPage {
    /// Definitions of the page, unchanged.
    pub items: Vec<Json>,
    /// Cursor of the next page (`nextCursor`); absent on the last page. An empty string is a cursor.
    pub next: Option<Json>,
    /// Cache hint of the page.
    pub hint: CacheHint,
}

impl ListPage {
    /// Reads one page of the list of items of that kind; `None` if its items are missing.
    pub fn read(kind: ItemKind, result: &Json) -> Option<ListPage> {
        let items = result
            .get(kind.list_member())
            .filter(|t| t.kind() == JsonKind::Array)?;
        let next = result
            .get("nextCursor")
            .filter(|c| c.kind() == JsonKind::String);
        Some(ListPage {
            items: items.items().collect(),
            next,
            hint: CacheHint::read(result),
        })
    }
}
