//! What a service offers, as a snapshot.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::watch;
use toolgate_wire::method::tools_list::{Hints, Tool};

/// Where an item comes from: the configured id of the server, never its self-reported name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Origin {
    /// The configured id.
    pub server: Arc<str>,
    /// Whether the operator believes its annotations.
    pub trusted: bool,
}

/// One thing that can be used.
pub struct Item {
    /// Where it comes from.
    pub origin: Origin,
    /// Its definition, under the name that the asker uses.
    pub tool: Tool,
    /// Its name at the server it comes from.
    pub local: String,
    /// Why it may be seen by the operator only; `None` for a good item.
    pub withheld: Option<String>,
    memo: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Item {
    /// An item under the server's own name.
    pub fn new(origin: Origin, tool: Tool) -> Item {
        Item {
            local: tool.name().to_owned(),
            origin,
            tool,
            withheld: None,
            memo: Mutex::default(),
        }
    }

    /// The same item with another definition; what was worked out about the old one is forgotten.
    pub fn with_tool(&self, tool: Tool) -> Item {
        let (origin, local, withheld) = (
            self.origin.clone(),
            self.local.clone(),
            self.withheld.clone(),
        );
        Item {
            origin,
            tool,
            local,
            withheld,
            memo: Mutex::default(),
        }
    }

    /// The same item, kept from all callers for a reason.
    pub fn withhold(&self, reason: String) -> Item {
        Item {
            withheld: Some(reason),
            ..self.with_tool(self.tool.clone())
        }
    }

    /// `server.tool`: its name in config, console, record and on the command line.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.origin.server, self.local)
    }

    /// What it claims to do, or the most careful reading where its server is not trusted.
    pub fn hints(&self) -> Hints {
        if self.origin.trusted {
            self.tool.hints()
        } else {
            Hints::default()
        }
    }

    /// What a duty works out about this item, made once and kept as long as the item.
    pub fn memo<T: Any + Send + Sync>(&self, make: impl FnOnce(&Item) -> T) -> Arc<T> {
        let kept = self.kept().get(&TypeId::of::<T>()).cloned();
        if let Some(Ok(kept)) = kept.map(Arc::downcast) {
            return kept;
        }
        let made = Arc::new(make(self));
        self.kept().insert(TypeId::of::<T>(), made.clone());
        made
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<TypeId, Arc<dyn Any + Send + Sync>>> {
        self.memo.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Item({})", self.full_name())
    }
}

/// A snapshot of what is offered, with an index by name. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Catalog(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    items: Vec<Arc<Item>>,
    index: HashMap<String, usize>,
    missing: Vec<String>,
    instructions: Option<String>,
}

impl Catalog {
    /// A snapshot of these items. Of two of one name the first is kept.
    pub fn new(items: Vec<Arc<Item>>) -> Catalog {
        Catalog::of(items, Vec::new(), None)
    }

    /// A snapshot in which servers that are down are named, so that their absence does not read as removal.
    pub fn of(
        items: Vec<Arc<Item>>,
        missing: Vec<String>,
        instructions: Option<String>,
    ) -> Catalog {
        let mut inner = Inner {
            missing,
            instructions,
            ..Inner::default()
        };
        for item in items {
            if !inner.index.contains_key(item.tool.name()) {
                inner
                    .index
                    .insert(item.tool.name().to_owned(), inner.items.len());
                inner.items.push(item);
            }
        }
        Catalog(Arc::new(inner))
    }

    /// The items in their order.
    pub fn items(&self) -> &[Arc<Item>] {
        &self.0.items
    }

    /// The item of that name.
    pub fn find(&self, name: &str) -> Option<&Arc<Item>> {
        self.0.items.get(*self.0.index.get(name)?)
    }

    /// The servers that could not be asked.
    pub fn missing(&self) -> &[String] {
        &self.0.missing
    }

    /// How a model should use it all.
    pub fn instructions(&self) -> Option<&str> {
        self.0.instructions.as_deref()
    }

    /// The same snapshot with other items.
    pub fn with_items(&self, items: Vec<Arc<Item>>) -> Catalog {
        Catalog::of(items, self.0.missing.clone(), self.0.instructions.clone())
    }

    /// The same snapshot with other instructions.
    pub fn with_instructions(&self, instructions: Option<String>) -> Catalog {
        Catalog::of(self.0.items.clone(), self.0.missing.clone(), instructions)
    }

    /// Whether the two are one snapshot, so that what was worked out for one holds for the other.
    pub fn same(&self, other: &Catalog) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What went stale, never the new content.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stale {
    /// How often the list of tools changed so far.
    pub tools: u64,
}

/// Tells when something went stale. Several changes may be told as one.
#[derive(Clone, Debug)]
pub struct Changes(watch::Receiver<Stale>);

impl Changes {
    /// Changes that a sender counts.
    pub fn new(from: watch::Receiver<Stale>) -> Changes {
        Changes(from)
    }

    /// Waits for the next change; `None` when there will be none any more.
    pub async fn next(&mut self) -> Option<Stale> {
        self.0.changed().await.ok()?;
        Some(*self.0.borrow_and_update())
    }
}
