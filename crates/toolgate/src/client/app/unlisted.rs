//! Resources that no list shows: a result may link to one, and the protocol lets it be read.

use std::sync::Arc;
use toolgate_core::{
    BoxFuture, Call, Catalog, Changes, Definition, Error, Interest, Item, ItemKind, List, Origin,
    Outcome, Service,
};
use toolgate_wire::json::ObjectWriter;

/// A server of which any resource may be read. The rules of the application still see its URI.
pub(super) struct Unlisted {
    pub(super) server: Arc<dyn Service>,
    pub(super) origin: Origin,
}

impl Unlisted {
    async fn look(&self, ask: List) -> Result<Catalog, Error> {
        let wanted = ask.only.clone().filter(|_| ask.kind == ItemKind::Resource);
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
        o.str("uri", uri);
        o.str("name", uri);
        let def = Definition::read(ItemKind::Resource, o.finish()).ok()?;
        Some(Arc::new(Item::new(self.origin.clone(), def)))
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
