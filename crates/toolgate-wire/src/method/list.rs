//! A page of a list, and how long it may be kept.

use super::definition::ItemKind;
use crate::json::{Json, Kind, ObjectWriter};

/// How long a result is fresh, and for whom (2026-07-28). Stale at once and private, unless somebody says more.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CacheHint {
    /// Milliseconds; 0 is stale at once.
    pub ttl_ms: u64,
    /// Whether what one caller got may be given to another.
    pub public: bool,
}

impl CacheHint {
    /// Reads the hint of a result. An absent or broken one is stale at once and private.
    pub fn read(result: &Json) -> CacheHint {
        let scope = result.get("cacheScope").and_then(|s| s.string());
        CacheHint {
            ttl_ms: result.get("ttlMs").and_then(|t| t.u64()).unwrap_or(0),
            public: scope.as_deref() == Some("public"),
        }
    }

    /// Writes the two members.
    pub fn write(&self, o: &mut ObjectWriter) {
        o.int("ttlMs", i64::try_from(self.ttl_ms).unwrap_or(i64::MAX));
        o.str("cacheScope", if self.public { "public" } else { "private" });
    }

    /// What holds for both.
    pub fn and(self, other: CacheHint) -> CacheHint {
        CacheHint {
            ttl_ms: self.ttl_ms.min(other.ttl_ms),
            public: self.public && other.public,
        }
    }
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct Page {
    /// The definitions as they came.
    pub items: Vec<Json>,
    /// Where the next page begins; absent at the end. An empty string is a cursor.
    pub next: Option<Json>,
    /// How long it is fresh.
    pub hint: CacheHint,
}

impl Page {
    /// Reads a page of a list of that kind; `None` where its items are missing.
    pub fn read(kind: ItemKind, result: &Json) -> Option<Page> {
        let items = result
            .get(kind.member())
            .filter(|t| t.kind() == Kind::Array)?;
        let next = result
            .get("nextCursor")
            .filter(|c| c.kind() == Kind::String);
        Some(Page {
            items: items.items().collect(),
            next,
            hint: CacheHint::read(result),
        })
    }
}
