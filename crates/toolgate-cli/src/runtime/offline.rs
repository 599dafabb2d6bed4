//! Offline view of a config and of the state in a data directory, without a running gateway. Nothing is written.

use crate::{
    config::Config,
    runtime::call_feed::CallFeed,
    runtime::compose,
    runtime::dry_run::{self, ExplainRequest, nearest_name},
    runtime::snapshot::PolicyBackends,
    runtime::store_location::StoreLocation,
};
use serde_json::Value;
use std::{path::Path, sync::Arc, time::SystemTime};
use tokio::sync::watch;
use toolgate_core::{
    BoxFuture, Call, Caller, Catalog, ChangeFilter, ChangeStream, DecisionStep, Definition, DryRun,
    Error, ErrorKind, Item, ItemKind, Json, ListRequest, Origin, Outcome, Service,
};
use toolgate_policy::{
    self as policy, AccessRule, ApprovalService, AuditRecorder, ChangedKeys, ContentReader,
    GrantView, MemoryStateStore, OnOutboundSecret, PinnedText, Pins, Policy, StateClock, StateRow,
    StateStore, WriteOutcome, WritePrecondition, pins::StoredPin as KeptPin,
};

/// Choice of a definition if the latest one is not the accepted one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DefinitionChoice {
    /// The latest definition, which the server would list now.
    Latest,
    /// The accepted definition, which past calls used.
    Accepted,
}

/// A config with the stored state of its servers.
pub(crate) struct OfflineView {
    config: Config,
    /// The policies, over servers that cannot be called.
    policies: Policy,
    servers: Arc<dyn Service>,
    rules: Vec<AccessRule>,
    /// Items of the servers by kind, sanitized and not hidden.
    catalogs: Vec<(ItemKind, Catalog)>,
    offline_servers: Vec<Arc<OfflineServer>>,
    approvals: Arc<ApprovalService>,
    /// Decrypts recorded contents.
    pub(crate) contents: ContentReader,
}

impl OfflineView {
    /// Reads the state of a data directory for the servers of a config. A missing state is empty.
    ///
    /// # Errors
    /// The state cannot be read.
    pub(crate) async fn open(
        config: Config,
        data: &Path,
        which: DefinitionChoice,
    ) -> Result<OfflineView, String> {
        let store = open_store(&StoreLocation::of(&config, data)?)?;
        policy::SecretRedactor::install(&config.secret_rules.files);
        OfflineView::over(config, store, which).await
    }

    /// Reads the state of a store for the servers of a config. The secret rules of this process stay as they are.
    ///
    /// # Errors
    /// The config is invalid, or the state cannot be read.
    pub(crate) async fn over(
        config: Config,
        store: Arc<dyn StateStore>,
        which: DefinitionChoice,
    ) -> Result<OfflineView, String> {
        let store: Arc<dyn StateStore> = Arc::new(ReadOnlyStore(store));
        let recorder = Arc::new(AuditRecorder::log());
        // The current freezes did not apply to past calls.
        let now: Arc<dyn StateStore> = match which {
            DefinitionChoice::Latest => store.clone(),
            DefinitionChoice::Accepted => Arc::new(MemoryStateStore::new()),
        };
        let kept = PolicyBackends {
            feed: Arc::new(CallFeed::new(0)),
            telemetry: None,
            approvals: ApprovalService::new(
                recorder.clone(),
                now,
                compose::approval_limits(&config),
            ),
            pins: Pins::new(store.clone(), recorder.clone()),
            recorder,
            content_keys: None,
            rate_sharing: None,
        };
        let pins = crate::runtime::pins::with_settings(&config, kept.pins.clone());
        let mut route = compose::gateway_policy(&config, &kept, pins.clone(), None);
        route.rate = route.rate.without_levels();
        let shelves: Vec<Arc<OfflineServer>> = offline_servers(&config, &pins, which);
        let services = shelves
            .iter()
            .map(|offline| offline.clone() as Arc<dyn Service>);
        let servers = compose::aggregate_services(&config, services.collect())?;
        let servers: Arc<dyn Service> = Arc::new(servers);
        let shown = route.inspection(servers.clone());
        let mut catalogs = Vec::new();
        for kind in ItemKind::ALL {
            let listed = shown
                .list(ListRequest::all(Caller::new("operator"), kind))
                .await;
            catalogs.push((kind, listed.map_err(|e| e.public_message().to_owned())?));
        }
        Ok(OfflineView {
            rules: compose::access_rules(&config),
            policies: route,
            servers,
            catalogs,
            offline_servers: shelves,
            approvals: kept.approvals,
            contents: ContentReader::new(store),
            config,
        })
    }

    /// Explains a call with stored definitions.
    ///
    /// # Errors
    /// The item is unknown; the message says why.
    pub(crate) async fn explain(&self, asked: ExplainRequest) -> Result<Value, String> {
        let Some(found) = dry_run::resolve_name(&self.catalogs, &asked.name) else {
            return Err(self.unknown_reason(&asked.name));
        };
        let call = asked.into_call(&found);
        let item = found.item;
        let pipeline = self.policies.over(self.servers.clone());
        let mut way = pipeline.explain(&call, &item).await;
        let needs = dry_run::add_authentication(&mut way, &self.config, &call, &item);
        let offline = self.server(&item.origin.server);
        let at = offline.and_then(|offline| offline.stored_at(&item));
        let why = match at {
            Some(at) => format!(
                "its definition was stored {}; the server was not contacted",
                format_age(at)
            ),
            None => "its definition is the stored one; the server was not contacted".to_owned(),
        };
        let told = DecisionStep::new("stored", "info", why);
        way.steps.insert(0, told);
        Ok(dry_run::to_json(&way, &needs))
    }

    /// Dry-runs a call of an item at a point in time.
    pub(crate) async fn dry_run_at(&self, call: &Call, item: &Arc<Item>, at: SystemTime) -> DryRun {
        let mut route = self.policies.clone();
        route.access = self.policies.access.clone().at(at);
        let pipeline = route.over(self.servers.clone());
        pipeline.explain(call, item).await
    }

    /// Returns the access rules.
    pub(crate) fn rules(&self) -> &[AccessRule] {
        &self.rules
    }

    /// Returns the action for secrets in the arguments for a server.
    pub(crate) fn outbound_secret_action(&self, server: &str) -> OnOutboundSecret {
        self.policies.sanitizers.outbound_secrets.found.of(server)
    }

    /// Returns whether the config has a server of that ID.
    pub(crate) fn has_server(&self, server: &str) -> bool {
        self.server(server).is_some()
    }

    /// Returns the items of the servers by kind, sanitized and not hidden.
    pub(crate) fn catalogs(&self) -> &[(ItemKind, Catalog)] {
        &self.catalogs
    }

    /// Returns the full names of a server's stored items under its current command or address; `None` if there are
    /// none.
    pub(crate) fn stored_names(&self, server: &str) -> Option<Vec<String>> {
        let offline = self.server(server)?;
        let long = offline.too_long.iter().map(|(_, name)| name.clone());
        let names = offline.items.iter().map(|one| one.item.full_name());
        let names: Vec<String> = names.chain(long).collect();
        (!names.is_empty()).then_some(names)
    }

    /// Returns the remembered approvals that are still valid.
    pub(crate) fn valid_grants(&self) -> Vec<GrantView> {
        let now = self.approvals.now();
        let all = self.approvals.grants().into_iter();
        all.filter(|grant| grant.end_reason(now).is_none())
            .collect()
    }

    fn server(&self, server: &str) -> Option<&Arc<OfflineServer>> {
        self.offline_servers
            .iter()
            .find(|offline| *offline.server == *server)
    }

    /// Returns the reason for which a name is unknown.
    fn unknown_reason(&self, name: &str) -> String {
        let server = name.split('.').next().unwrap_or_default();
        if let Some(disabled) = self.config.disabled_reason(server) {
            return format!("{name:?} cannot be explained: {disabled}");
        }
        let Some(offline) = self.server(server) else {
            return format!("{name:?} cannot be explained: the config has no server {server:?}");
        };
        if offline.too_long.iter().any(|(_, long)| long == name) {
            return format!(
                "{name:?} cannot be explained: its definition is too large to be stored"
            );
        }
        if offline.is_foreign {
            return format!(
                "{name:?} cannot be explained: the stored definitions of {server} belong to another command or address; start a gateway with this config once"
            );
        }
        let all = self.catalogs.iter().flat_map(|(_, list)| list.items());
        let near = nearest_name(name, all.map(|item| item.full_name()));
        let hint = near.map_or_else(String::new, |name| format!("; did you mean {name:?}?"));
        format!(
            "{name:?} cannot be explained: no gateway has listed it yet, so its definition is unknown; start a gateway with this config once{hint}"
        )
    }
}

/// Stored items of one server. It can be listed, but not called.
struct OfflineServer {
    server: Arc<str>,
    items: Vec<OfflineItem>,
    /// Names of definitions that are too long to be stored.
    too_long: Vec<(ItemKind, String)>,
    /// True if everything stored belongs to another command or address.
    is_foreign: bool,
}

struct OfflineItem {
    item: Arc<Item>,
    /// Time of storage, in milliseconds since the Unix epoch.
    stored_at: u64,
}

impl OfflineServer {
    fn stored_at(&self, item: &Item) -> Option<u64> {
        let is = |one: &&OfflineItem| {
            one.item.kind() == item.kind() && one.item.local_name == item.upstream_name()
        };
        self.items.iter().find(is).map(|one| one.stored_at)
    }
}

fn offline_servers(
    config: &Config,
    pins: &Pins,
    which: DefinitionChoice,
) -> Vec<Arc<OfflineServer>> {
    let kept = pins.stored();
    let servers = config.servers.iter();
    let to_offline = |server: &crate::config::ServerSettings| {
        let of = || kept.iter().filter(|one| *one.server == *server.id);
        let ours = of().any(|one| one.same_identity);
        let mut offline = OfflineServer {
            server: server.id.as_str().into(),
            items: Vec::new(),
            too_long: Vec::new(),
            is_foreign: !ours && of().next().is_some(),
        };
        // Pins of another command or address say nothing about the current server. Past calls used some
        // definition, so these pins count for them.
        let counts =
            |one: &&KeptPin| one.same_identity || (!ours && which == DefinitionChoice::Accepted);
        for one in of().filter(counts) {
            let origin = Origin {
                server: offline.server.clone(),
                trusted: server.trust_annotations,
            };
            offline.add_pin(one, origin, which);
        }
        Arc::new(offline)
    };
    servers.map(to_offline).collect()
}

impl OfflineServer {
    fn add_pin(&mut self, one: &KeptPin, origin: Origin, which: DefinitionChoice) {
        let counts: Option<&PinnedText> = match which {
            DefinitionChoice::Latest => one.pending.as_ref().or(one.accepted.as_ref()),
            DefinitionChoice::Accepted => one.accepted.as_ref().or(one.pending.as_ref()),
        };
        let Some(counts) = counts else {
            return;
        };
        match parse_item(one.kind, counts, origin) {
            Some(item) => self.items.push(OfflineItem {
                item,
                stored_at: counts.stored_at,
            }),
            None => self.too_long.push((one.kind, one.name.clone())),
        }
    }
}

/// Parses a stored definition as an item; `None` if it is too long to be stored.
pub(crate) fn parse_item(kind: ItemKind, stored: &PinnedText, origin: Origin) -> Option<Arc<Item>> {
    let text = stored.text.clone()?;
    let json = Json::read(text.into_bytes(), &Default::default()).ok()?;
    let def = Definition::read(kind, json).ok()?;
    Some(Arc::new(Item::new(origin, def)))
}

impl Service for OfflineServer {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        let of = self.items.iter().map(|one| &one.item);
        let items = of.filter(|item| item.kind() == ask.kind).cloned();
        let catalog = Catalog::new(items.collect());
        Box::pin(async move { Ok(catalog) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move { Err(call.unknown_item_error()) })
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async { Ok(ChangeStream::new(watch::Sender::default().subscribe())) })
    }
}

/// Opens the stored tables; empty ones if there are none.
fn open_store(location: &StoreLocation) -> Result<Arc<dyn StateStore>, String> {
    if !location.exists() {
        return Ok(Arc::new(MemoryStateStore::new()));
    }
    let state = location
        .open()
        .map_err(|e| format!("cannot open the stored approvals and pins: {}", e.detail()))?;
    Ok(state.store)
}

/// Store that rejects writes.
struct ReadOnlyStore(Arc<dyn StateStore>);

impl StateStore for ReadOnlyStore {
    fn entries(&self, table: &str) -> Vec<StateRow> {
        self.0.entries(table)
    }

    fn versions(&self, table: &str) -> Vec<(String, u64)> {
        self.0.versions(table)
    }

    fn changes_since(&self, table: &str, count: Option<u64>) -> ChangedKeys {
        self.0.changes_since(table, count)
    }

    fn row(&self, table: &str, key: &str) -> Option<StateRow> {
        self.0.row(table, key)
    }

    fn write(
        &self,
        _: &str,
        _: &str,
        _: Option<Value>,
        _: WritePrecondition,
    ) -> BoxFuture<'static, Result<WriteOutcome, Error>> {
        let error = Error::new(
            ErrorKind::Bug,
            "a dry run cannot change the stored approvals and pins",
        );
        Box::pin(async { Err(error) })
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.0.changed()
    }

    fn clock(&self) -> &Arc<StateClock> {
        self.0.clock()
    }
}

/// Formats the age of a moment, which is given in milliseconds since the Unix epoch.
pub(crate) fn format_age(at: u64) -> String {
    let now = crate::timestamp::millis(SystemTime::now());
    let seconds = now.saturating_sub(at) / 1000;
    match seconds {
        0..120 => format!("{seconds} s ago"),
        120..7200 => format!("{} min ago", seconds / 60),
        7200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
