//! Unlisted resources: a result may link to one, and the protocol allows reading it.

use std::sync::Arc;
use toolgate_core::{
    BoxFuture, Call, Catalog, ChangeFilter, ChangeStream, Definition, DefinitionPin, Error, Item,
    ItemKind, ListRequest, Origin, Outcome, Service,
};
use toolgate_protocol::json::ObjectWriter;

/// URI template that matches every URI.
pub(super) const ANY_URI_TEMPLATE: &str = "{+uri}";

/// Service wrapper that allows reading any resource. The rules of the application still apply to its URI: it counts as
/// a resource of a template, so that no other spelling of the URI bypasses them.
pub(super) struct UnlistedResources {
    pub(super) server: Arc<dyn Service>,
    pub(super) origin: Origin,
}

impl UnlistedResources {
    async fn list_with_template(&self, ask: ListRequest, uri: &str) -> Result<Catalog, Error> {
        let catalog = self.server.list(ask).await?;
        if catalog.find(uri).is_some() {
            return Ok(catalog);
        }
        let mut items = catalog.items().to_vec();
        items.extend(self.item(uri));
        Ok(catalog.with_items(items))
    }

    fn item(&self, uri: &str) -> Option<Arc<Item>> {
        let mut o = ObjectWriter::new();
        o.str("uriTemplate", ANY_URI_TEMPLATE);
        o.str("name", uri);
        let def = Definition::read(ItemKind::Template, o.finish()).ok()?;
        let mut item = Item::new(self.origin.clone(), def);
        item.local_name = uri.to_owned();
        Some(Arc::new(item.with_pin(Arc::new(DefinitionPin::unlisted()))))
    }
}

impl Service for UnlistedResources {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        match ask.only_name.clone() {
            Some(uri) if ask.kind == ItemKind::Template => {
                Box::pin(async move { self.list_with_template(ask, &uri).await })
            }
            _ => self.server.list(ask),
        }
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        self.server.call(call)
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        self.server.changes(want)
    }
}
