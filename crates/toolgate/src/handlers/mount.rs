//! Mounting of a server in another one.

use super::{BuildError, ItemRegistry, build, service::HandlerService};
use crate::{
    aggregate::{Aggregate, AggregateMember, DefinitionOverrides},
    edge::ServerCapabilities,
};
use std::sync::Arc;
use toolgate_core::{
    BoxFuture, Call, Catalog, ChangeFilter, ChangeStream, DecisionLog, Error, ItemKind,
    ListRequest, Outcome, RoundSlots, Service,
};
use toolgate_policy::{SchemaBounds, check_schemas};
use toolgate_protocol::json::{Json, ObjectWriter};

/// Built server without an edge.
pub(super) struct BuiltServer {
    /// The service: policies around the handlers.
    pub(super) service: Arc<dyn Service>,
    pub(super) registry: ItemRegistry,
    /// True if the registry is everything the server offers: no mounts, no overrides.
    pub(super) has_only_own_items: bool,
    pub(super) offers: ServerCapabilities,
    pub(super) instructions: Option<String>,
}

/// Composes the service of a server from its own items, its overrides and its mounted servers.
pub(super) type ComposeFn = fn(
    &ItemRegistry,
    DefinitionOverrides,
    Vec<(String, BuiltServer)>,
) -> Result<Arc<dyn Service>, BuildError>;

/// Returns the service of a server's own items and its mounted servers.
pub(super) fn compose(
    registry: &ItemRegistry,
    overrides: DefinitionOverrides,
    inner: Vec<(String, BuiltServer)>,
) -> Result<Arc<dyn Service>, BuildError> {
    let own: Arc<dyn Service> = Arc::new(HandlerService::new(registry.clone()));
    let offered = registry.offered();
    let tools = offered.catalog(ItemKind::Tool);
    let shown = overrides.check(tools.items());
    let wrong = |(tool, why)| BuildError::new(format!("the override of the tool {tool:?}"), why);
    for tool in shown.map_err(wrong)? {
        build::check_tool(&tool)
            .and_then(|()| check_schemas(&tool, &SchemaBounds::default()))
            .map_err(|why| BuildError::new(build::describe(&tool), why))?;
        build::check_mount_prefix(&tool, &offered.mounts)?;
    }
    let id = registry.origin().server.clone();
    if let Some((name, _)) = inner.iter().find(|(name, _)| **name == *id) {
        let why = "it has the name of the outer server; give it another name";
        return Err(BuildError::new(format!("the mounted server {name:?}"), why));
    }
    let member = |(name, built): (String, BuiltServer)| AggregateMember {
        id: name.as_str().into(),
        prefix: name.clone(),
        service: Arc::new(MountedServer {
            name,
            service: built.service,
        }),
    };
    let own = AggregateMember {
        id: id.clone(),
        prefix: String::new(),
        service: own,
    };
    let whole = Aggregate::with_mounts(own, inner.into_iter().map(member).collect());
    let whole = whole.map_err(|bad| BuildError::new("a mounted server", bad.to_string()))?;
    Ok(Arc::new(whole.override_tools(&id, overrides)))
}

/// Returns the combined capabilities of two servers.
pub(super) fn join_offers(
    one: &ServerCapabilities,
    other: &ServerCapabilities,
) -> ServerCapabilities {
    let mut extensions = ObjectWriter::new();
    let theirs = other.extensions.iter().flat_map(Json::members);
    let ours = |id: &str| {
        one.extensions
            .as_ref()
            .is_some_and(|all| all.get(id).is_some())
    };
    let theirs = theirs.filter(|(id, _)| !ours(id));
    let all = one.extensions.iter().flat_map(Json::members).chain(theirs);
    let mut any = false;
    for (id, settings) in all {
        extensions.raw(&id, &settings);
        any = true;
    }
    ServerCapabilities {
        tools: one.tools || other.tools,
        resources: one.resources || other.resources,
        subscribe: one.subscribe || other.subscribe,
        prompts: one.prompts || other.prompts,
        completions: one.completions || other.completions,
        list_changed: one.list_changed || other.list_changed,
        tasks: one.tasks.or(other.tasks),
        skills: one.skills || other.skills,
        extensions: any.then(|| extensions.finish()),
    }
}

/// Mounted server. Its slots, decision log and call id are separate from those of the outer server.
struct MountedServer {
    name: String,
    service: Arc<dyn Service>,
}

impl MountedServer {
    fn slot(&self, name: &str) -> String {
        format!("{}/{name}", self.name)
    }

    async fn forward(&self, mut call: Call) -> Result<Outcome, Error> {
        if call.resumed_after.is_some() {
            return Err(call.lost_call_error());
        }
        call.id = format!("{}/{}", call.id, self.name).into();
        call.decision_log = DecisionLog::default();
        let head = self.slot("");
        let own = |(name, kept): (&String, &String)| {
            Some((name.strip_prefix(&head)?.to_owned(), kept.clone()))
        };
        call.round.slots = call.round.slots.iter().filter_map(own).collect();
        let mut outcome = self.service.call(call).await?;
        if let Outcome::InputRequired(questions) = &mut outcome {
            let slots = std::mem::take(&mut questions.slots).into_iter();
            questions.slots = slots
                .map(|(name, kept)| (self.slot(&name), kept))
                .collect::<RoundSlots>();
        }
        Ok(outcome)
    }
}

impl Service for MountedServer {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        let mut request = ask;
        request.decision_log = DecisionLog::default();
        self.service.list(request)
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(self.forward(call))
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        self.service.changes(want)
    }
}
