//! The service: what it lists, and where each use of it goes.

use std::sync::Arc;

use tokio::sync::watch;
use toolgate::{
    BoxFuture, Call, Catalog, Changes, Definition, Error, Interest, Item, ItemKind, Json, List, Op,
    Origin, Outcome, Service, Stale,
};

use crate::{input, prompts, resources, tools};

/// Everything that the suite asks for.
pub(crate) struct Everything {
    tools: Catalog,
    resources: Catalog,
    templates: Catalog,
    prompts: Catalog,
    /// Counts the changes that some tools tell of.
    stale: watch::Sender<Stale>,
}

impl Everything {
    /// Reads all definitions.
    ///
    /// # Errors
    /// One of them is broken.
    pub(crate) fn new() -> Result<Everything, &'static str> {
        let all_tools = tools::definitions().into_iter().chain(input::definitions());
        Ok(Everything {
            tools: catalog(ItemKind::Tool, all_tools)?,
            resources: catalog(ItemKind::Resource, resources::definitions())?,
            templates: catalog(ItemKind::Template, resources::templates())?,
            prompts: catalog(ItemKind::Prompt, prompts::definitions())?,
            stale: watch::Sender::default(),
        })
    }

    /// Tells those who listen that a list changed. It did not: the suite only wants to hear of it.
    pub(crate) fn changed(&self, kind: ItemKind) {
        self.stale.send_modify(|stale| stale.list(kind));
    }

    fn offers(&self, kind: ItemKind) -> &Catalog {
        match kind {
            ItemKind::Tool => &self.tools,
            ItemKind::Resource => &self.resources,
            ItemKind::Template => &self.templates,
            ItemKind::Prompt => &self.prompts,
        }
    }
}

fn catalog(
    kind: ItemKind,
    definitions: impl IntoIterator<Item = serde_json::Value>,
) -> Result<Catalog, &'static str> {
    let origin = Origin {
        server: "everything".into(),
        trusted: true,
    };
    let read = definitions
        .into_iter()
        .map(|value| Definition::read(kind, Json::from_value(&value)));
    let items = read.map(|def| def.map(|def| Arc::new(Item::new(origin.clone(), def))));
    items.collect::<Result<Vec<_>, _>>().map(Catalog::new)
}

impl Service for Everything {
    fn list(&self, ask: List) -> BoxFuture<'_, Result<Catalog, Error>> {
        let found = self.offers(ask.kind).clone();
        Box::pin(async { Ok(found) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let known = |kind: &ItemKind| self.offers(*kind).find(call.name()).is_some();
            if !call.op.kinds().iter().any(known) {
                return Err(call.unknown());
            }
            match call.op {
                Op::Tool if input::is_one(call.name()) => input::call(&call),
                Op::Tool => tools::call(self, &call).await,
                Op::Resource => resources::read(&call),
                Op::Prompt => prompts::get(&call),
                Op::Complete(_) => Ok(prompts::complete(&call)),
            }
        })
    }

    fn changes(&self, _: Interest) -> BoxFuture<'_, Result<Changes, Error>> {
        Box::pin(async { Ok(Changes::new(self.stale.subscribe())) })
    }
}
