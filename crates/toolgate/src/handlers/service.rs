//! Service that calls the handlers.

use super::{
    Cx, HandlerExit, ItemRegistry, Tool, handler_exit::ExitReason, registry::OfferedItems,
};
use std::future::ready;
use toolgate_core::{
    BoxFuture, Call, Catalog, ChangeFilter, ChangeStream, Error, ItemKind, ListRequest, Next, Op,
    Outcome, Output, Service,
};

/// Innermost service of a server: calls the handlers, through the layers of each tool.
pub(super) struct HandlerService(UnlayeredHandlers);

/// Service that calls the handlers without the layers of their tools.
struct UnlayeredHandlers(ItemRegistry);

impl HandlerService {
    pub(super) fn new(registry: ItemRegistry) -> HandlerService {
        HandlerService(UnlayeredHandlers(registry))
    }

    async fn run(&self, call: Call) -> Result<Outcome, Error> {
        let UnlayeredHandlers(registry) = &self.0;
        let offered = registry.offered();
        let layers = match call.op {
            Op::Tool if offered.has_tool_layers => offered.tool(call.name()).map(Tool::layers),
            _ => None,
        };
        match layers.filter(|layers| !layers.is_empty()).cloned() {
            // Boxed, so that the future of a tool without layers is small.
            Some(layers) => {
                Box::pin(async move { Next::new(&layers, &self.0).call(call).await }).await
            }
            None => run_handler(registry, &offered, call).await,
        }
    }
}

async fn run_handler(
    registry: &ItemRegistry,
    offered: &OfferedItems,
    call: Call,
) -> Result<Outcome, Error> {
    if call.resumed_after.is_some() {
        return Err(call.lost_call_error());
    }
    let cx = Cx::new(call, registry.clone());
    let running = cx.cancel_on_drop();
    let own = cx.clone();
    let call = own.call();
    let done = match call.op {
        Op::Tool => tool(offered, call, cx).await,
        // Boxed, so that the future of a tool is small.
        Op::Prompt => Box::pin(prompt(offered, call, cx)).await,
        Op::Resource => Box::pin(resource(offered, call, cx)).await,
        Op::Complete(kind) => Box::pin(complete(offered, kind, call, cx)).await,
    };
    running.disarm();
    let stop = match done {
        Ok(output) => return Ok(Outcome::Done(output)),
        Err(stop) => stop,
    };
    match stop.0 {
        ExitReason::InputRequired(questions) => Ok(Outcome::InputRequired(questions)),
        ExitReason::Failed(error) => error.into_outcome(call),
    }
}

fn unknown(call: &Call) -> HandlerExit {
    HandlerExit::error(call.unknown_item_error())
}

/// Returns whether `name` is the item that the rules allowed: several templates may match a URI, and some may be hidden
/// from the caller.
fn is_allowed_item(call: &Call, name: &str) -> bool {
    call.item().is_none_or(|item| item.local_name == name)
}

async fn tool(offered: &OfferedItems, call: &Call, cx: Cx) -> Result<Output, HandlerExit> {
    let tool = offered.tool(call.name()).ok_or_else(|| unknown(call))?;
    tool.run(call, cx).await.map(Output::Tool)
}

async fn prompt(offered: &OfferedItems, call: &Call, cx: Cx) -> Result<Output, HandlerExit> {
    let prompt = offered.prompt(call.name()).ok_or_else(|| unknown(call))?;
    prompt.run(call, cx).await.map(Output::Prompt)
}

async fn resource(offered: &OfferedItems, call: &Call, cx: Cx) -> Result<Output, HandlerExit> {
    let uri = call.name();
    let skills = offered
        .skills
        .iter()
        .filter(|s| is_allowed_item(call, &s.uri()));
    if let Some(file) = skills.filter_map(|skill| skill.read(uri)).next() {
        return Ok(Output::Resource(file));
    }
    if let Some(resource) = offered.resource(uri).filter(|_| is_allowed_item(call, uri)) {
        return resource.read(cx).await.map(Output::Resource);
    }
    let mut templates = offered
        .templates
        .iter()
        .filter(|t| is_allowed_item(call, t.template()));
    let found = templates.find_map(|template| Some((template, template.match_uri(uri)?)));
    let (template, vars) = found.ok_or_else(|| unknown(call))?;
    template.read(uri, vars, cx).await.map(Output::Resource)
}

async fn complete(
    offered: &OfferedItems,
    kind: ItemKind,
    call: &Call,
    cx: Cx,
) -> Result<Output, HandlerExit> {
    let name = call.name();
    let completers = match kind {
        ItemKind::Prompt => offered.prompt(name).map(|p| &p.completers),
        _ => {
            let mut templates = offered
                .templates
                .iter()
                .filter(|t| is_allowed_item(call, t.template()));
            let found = templates.find(|t| t.template() == name || t.match_uri(name).is_some());
            found.map(|t| &t.completers)
        }
    };
    let completers = completers.ok_or_else(|| unknown(call))?;
    completers.complete(call, cx).await.map(Output::Complete)
}

impl Service for UnlayeredHandlers {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(ready(Ok(self.0.offered().catalog(ask.kind))))
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move { run_handler(&self.0, &self.0.offered(), call).await })
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async { Ok(ChangeStream::new(self.0.stale())) })
    }
}

impl Service for HandlerService {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        self.0.list(ask)
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(self.run(call))
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        self.0.changes(want)
    }
}
