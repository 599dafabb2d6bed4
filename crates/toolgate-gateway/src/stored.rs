//! Offline view of a config and of the state in a data directory, without a running gateway. Nothing is written.

use crate::{
    board::Board,
    config::Config,
    explained::{self, Asked, nearest},
    plan::Kept,
    stack,
};
use serde_json::Value;
use std::{path::Path, sync::Arc, time::SystemTime};
use tokio::sync::watch;
use toolgate::{
    BoxFuture, Call, Caller, Catalog, Changes, Definition, Error, Interest, Item, ItemKind, Json,
    Kind, List, Origin, Outcome, Refusal, Service, Step, Way,
};
use toolgate_journal::state::{self, State, StateLimits};
use toolgate_policy::{
    self as policy, AccessRule, Clock, Desk, Expect, GrantView, Memory, OnLeak, PinnedText, Pins,
    Recorder, Route, Row, Store, Written, pins::Kept as KeptPin,
};

/// Choice of a definition if the latest one is not the accepted one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Which {
    /// The latest definition, which the server would list now.
    Last,
    /// The accepted definition, which past calls used.
    Accepted,
}

/// A config with the stored state of its servers.
pub(crate) struct Stored {
    config: Config,
    /// The policies, over servers that cannot be called.
    route: Route,
    servers: Arc<dyn Service>,
    rules: Vec<AccessRule>,
    /// Items of the servers by kind, sanitized and not hidden.
    catalogs: Vec<(ItemKind, Catalog)>,
    shelves: Vec<Arc<Shelf>>,
    desk: Arc<Desk>,
}

impl Stored {
    /// Reads the state of a data directory for the servers of a config. A missing state is empty.
    ///
    /// # Errors
    /// The state cannot be read.
    pub(crate) async fn open(config: Config, data: &Path, which: Which) -> Result<Stored, String> {
        let store = store(&data.join("state"))?;
        policy::Secrets::install(&config.secret_rules.files);
        let recorder = Arc::new(Recorder::log());
        // The current freezes did not apply to past calls.
        let now: Arc<dyn Store> = match which {
            Which::Last => store.clone(),
            Which::Accepted => Arc::new(Memory::new()),
        };
        let kept = Kept {
            board: Arc::new(Board::new()),
            desk: Desk::new(recorder.clone(), now, stack::desk_limits(&config)),
            pins: Pins::new(store.clone(), recorder.clone()),
            recorder,
            store,
        };
        let mut route = stack::route(&config, &kept, None);
        route.rate = route.rate.uncounted();
        let shelves: Vec<Arc<Shelf>> = shelves(&config, &route.pins, which);
        let services = shelves
            .iter()
            .map(|shelf| shelf.clone() as Arc<dyn Service>);
        let servers = stack::joined(&config, services.collect())?;
        let servers: Arc<dyn Service> = Arc::new(servers);
        let shown = policy::inspect(&route, servers.clone());
        let mut catalogs = Vec::new();
        for kind in ItemKind::ALL {
            let listed = shown.list(List::all(Caller::new("operator"), kind)).await;
            catalogs.push((kind, listed.map_err(|e| e.public().to_owned())?));
        }
        Ok(Stored {
            rules: stack::access_rules(&config),
            route,
            servers,
            catalogs,
            shelves,
            desk: kept.desk,
            config,
        })
    }

    /// Explains a call with stored definitions.
    ///
    /// # Errors
    /// The item is unknown; the message says why.
    pub(crate) async fn explain(&self, asked: Asked) -> Result<Value, String> {
        let Some(found) = explained::find(&self.catalogs, &asked.name) else {
            return Err(self.unknown(&asked.name));
        };
        let call = asked.call(&found);
        let item = found.item;
        let pipeline = policy::pipeline(&self.route, self.servers.clone());
        let mut way = pipeline.explain(&call, &item).await;
        let needs = explained::door(&mut way, &self.config, &call, &item);
        let shelf = self.shelf(&item.origin.server);
        let at = shelf.and_then(|shelf| shelf.at(&item));
        let why = match at {
            Some(at) => format!(
                "its definition is the one that was stored {}; the server was not asked",
                ago(at)
            ),
            None => "its definition is a stored one; the server was not asked".to_owned(),
        };
        let told = Step {
            by: "stored",
            verdict: "told",
            why,
        };
        way.steps.insert(0, told);
        Ok(explained::told(&way, &needs))
    }

    /// Dry-runs a call of an item at a point in time.
    pub(crate) async fn way_at(&self, call: &Call, item: &Arc<Item>, at: SystemTime) -> Way {
        let route = Route {
            access: self.route.access.clone().at(at),
            ..self.route.clone()
        };
        let pipeline = policy::pipeline(&route, self.servers.clone());
        pipeline.explain(call, item).await
    }

    /// Returns the access rules.
    pub(crate) fn rules(&self) -> &[AccessRule] {
        &self.rules
    }

    /// Returns the action for secrets in the arguments for a server.
    pub(crate) fn on_leak(&self, server: &str) -> OnLeak {
        self.route.cleaning.leaks.found.of(server)
    }

    /// Returns whether the config has a server of that ID.
    pub(crate) fn has(&self, server: &str) -> bool {
        self.shelf(server).is_some()
    }

    /// Returns the items of the servers by kind, sanitized and not hidden.
    pub(crate) fn catalogs(&self) -> &[(ItemKind, Catalog)] {
        &self.catalogs
    }

    /// Returns the full names of a server's stored items under its current command or address; `None` if there are
    /// none.
    pub(crate) fn names(&self, server: &str) -> Option<Vec<String>> {
        let shelf = self.shelf(server)?;
        let long = shelf.long.iter().map(|(_, name)| name.clone());
        let names = shelf.items.iter().map(|one| one.item.full_name());
        let names: Vec<String> = names.chain(long).collect();
        (!names.is_empty()).then_some(names)
    }

    /// Returns the remembered approvals that are still valid.
    pub(crate) fn valid_grants(&self) -> Vec<GrantView> {
        let now = self.desk.now();
        let all = self.desk.grants().into_iter();
        all.filter(|grant| grant.over(now).is_none()).collect()
    }

    fn shelf(&self, server: &str) -> Option<&Arc<Shelf>> {
        self.shelves.iter().find(|shelf| *shelf.server == *server)
    }

    /// Returns the reason for which a name is unknown.
    fn unknown(&self, name: &str) -> String {
        let server = name.split('.').next().unwrap_or_default();
        let Some(shelf) = self.shelf(server) else {
            return format!("{name:?} cannot be explained: the config has no server {server:?}");
        };
        if shelf.long.iter().any(|(_, long)| long == name) {
            return format!(
                "{name:?} cannot be explained: its definition is too long to be stored"
            );
        }
        if shelf.other {
            return format!(
                "{name:?} cannot be explained: the stored definitions of {server} belong to another command or address; start a gateway with this config once"
            );
        }
        let all = self.catalogs.iter().flat_map(|(_, list)| list.items());
        let near = nearest(name, all.map(|item| item.full_name()));
        let hint = near.map_or_else(String::new, |name| format!("; did you mean {name:?}?"));
        format!(
            "{name:?} cannot be explained: no gateway has seen it, so its definition is not known{hint}"
        )
    }
}

/// Stored items of one server. It can be listed, but not called.
struct Shelf {
    server: Arc<str>,
    items: Vec<Placed>,
    /// Names of definitions that are too long to be stored.
    long: Vec<(ItemKind, String)>,
    /// True if everything stored belongs to another command or address.
    other: bool,
}

struct Placed {
    item: Arc<Item>,
    /// Time of storage, in milliseconds since the Unix epoch.
    at: u64,
}

impl Shelf {
    fn at(&self, item: &Item) -> Option<u64> {
        let is = |one: &&Placed| one.item.kind() == item.kind() && one.item.local == item.given();
        self.items.iter().find(is).map(|one| one.at)
    }
}

fn shelves(config: &Config, pins: &Pins, which: Which) -> Vec<Arc<Shelf>> {
    let kept = pins.kept();
    let servers = config.servers.iter();
    let shelf = |server: &crate::config::Server| {
        let of = || kept.iter().filter(|one| *one.server == *server.id);
        let ours = of().any(|one| one.ours);
        let mut shelf = Shelf {
            server: server.id.as_str().into(),
            items: Vec::new(),
            long: Vec::new(),
            other: !ours && of().next().is_some(),
        };
        // Pins of another command or address say nothing about the current server. Past calls used some
        // definition, so these pins count for them.
        let counts = |one: &&KeptPin| one.ours || (!ours && which == Which::Accepted);
        for one in of().filter(counts) {
            let origin = Origin {
                server: shelf.server.clone(),
                trusted: server.trust_annotations,
            };
            shelf.place(one, origin, which);
        }
        Arc::new(shelf)
    };
    servers.map(shelf).collect()
}

impl Shelf {
    fn place(&mut self, one: &KeptPin, origin: Origin, which: Which) {
        let counts: Option<&PinnedText> = match which {
            Which::Last => one.other.as_ref().or(one.accepted.as_ref()),
            Which::Accepted => one.accepted.as_ref().or(one.other.as_ref()),
        };
        let Some(counts) = counts else {
            return;
        };
        match item(one.kind, counts, origin) {
            Some(item) => self.items.push(Placed {
                item,
                at: counts.at,
            }),
            None => self.long.push((one.kind, one.name.clone())),
        }
    }
}

/// Parses a stored definition as an item; `None` if it is too long to be stored.
pub(crate) fn item(kind: ItemKind, stored: &PinnedText, origin: Origin) -> Option<Arc<Item>> {
    let text = stored.text.clone()?;
    let json = Json::read(text.into_bytes(), &Default::default()).ok()?;
    let def = Definition::read(kind, json).ok()?;
    Some(Arc::new(Item::new(origin, def)))
}

impl Service for Shelf {
    fn list(&self, ask: List) -> BoxFuture<'_, Result<Catalog, Error>> {
        let of = self.items.iter().map(|one| &one.item);
        let items = of.filter(|item| item.kind() == ask.kind).cloned();
        let catalog = Catalog::new(items.collect());
        Box::pin(async move { Ok(catalog) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move { Err(call.unknown()) })
    }

    fn changes(&self, _: Interest) -> BoxFuture<'_, Result<Changes, Error>> {
        Box::pin(async { Ok(Changes::new(watch::Sender::default().subscribe())) })
    }
}

/// Opens the tables of a directory; empty ones if there are none.
fn store(dir: &Path) -> Result<Arc<dyn Store>, String> {
    if !dir.join("state.jsonl").exists() {
        return Ok(Arc::new(Memory::new()));
    }
    let state = state::State::open(dir, StateLimits::default());
    let state = state.map_err(|e| format!("cannot open the state: {}", e.detail()))?;
    Ok(Arc::new(ReadOnly(state)))
}

/// Store that rejects writes.
struct ReadOnly(State);

impl Store for ReadOnly {
    fn entries(&self, table: &str) -> Vec<Row> {
        self.0.entries(table)
    }

    fn versions(&self, table: &str) -> Vec<(String, u64)> {
        self.0.versions(table)
    }

    fn row(&self, table: &str, key: &str) -> Option<Row> {
        self.0.row(table, key)
    }

    fn write(
        &self,
        _: &str,
        _: &str,
        _: Option<Value>,
        _: Expect,
    ) -> BoxFuture<'static, Result<Written, Error>> {
        let error = Error::new(Kind::Refused(Refusal::Record), "nothing is written here");
        Box::pin(async { Err(error) })
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.0.changed()
    }

    fn clock(&self) -> &Arc<Clock> {
        self.0.clock()
    }
}

/// Formats the age of a moment, which is given in milliseconds since the Unix epoch.
pub(crate) fn ago(at: u64) -> String {
    let now = crate::board::millis(SystemTime::now());
    let seconds = now.saturating_sub(at) / 1000;
    match seconds {
        0..120 => format!("{seconds} s ago"),
        120..7200 => format!("{} min ago", seconds / 60),
        7200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
