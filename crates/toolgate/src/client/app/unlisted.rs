//! Unlisted resources: a result may link to one, and the protocol allows reading it.

use std::sync::Arc;
use toolgate_core::{
    BoxFuture, Call, Catalog, Changes, Definition, Error, Interest, Item, ItemKind, List, Origin,
    Outcome, Pinning, Service,
};
use toolgate_wire::json::ObjectWriter;

/// URI template that matches every URI.
const ANY: &str = "{+uri}";

/// Service wrapper that allows reading any resource. The rules of the application still apply to its URI: it counts as
/// a resource of a template, so that no other spelling of the URI bypasses them.
pub(super) struct Unlisted {
    pub(super) server: Arc<dyn Service>,
    pub(super) origin: Origin,
}

impl Unlisted {
    async fn look(&self, ask: List) -> Result<Catalog, Error> {
        let wanted = ask.only.clone().filter(|_| ask.kind == ItemKind::Template);
        let catalog = self.server.list(ask).await?;
        match wanted {
            Some(uri) if catalog.find(&uri).is_none() => {
                let mut items = catalog.items().to_vec();
                items.extend(self.item(&uri));
                Ok(catalog.with_items(items))
            }
            _ => Ok(catalog),
        }
    }

    fn item(&self, uri: &str) -> Option<Arc<Item>> {
        let mut o = ObjectWriter::new();
        o.str("uriTemplate", ANY);
        o.str("name", uri);
        let def = Definition::read(ItemKind::Template, o.finish()).ok()?;
        let mut item = Item::new(self.origin.clone(), def);
        item.local = uri.to_owned();
        Some(Arc::new(item.pinned(Arc::new(Pinning::unlisted()))))
    }
}

impl Service for Unlisted {
    fn list(&self, ask: List) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(self.look(ask))
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        self.server.call(call)
    }

    fn changes(&self, want: Interest) -> BoxFuture<'_, Result<Changes, Error>> {
        self.server.changes(want)
    }
}
