//! A member with things of every kind.

use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use tokio::sync::watch;
use toolgate::{
    Call, Caller, Content, Error, Json, Outcome, Service,
    aggregate::{Aggregate, AggregateMember},
    core::{
        BoxFuture, Catalog, ChangeCounters, ChangeFilter, ChangeStream, Definition, ErrorKind,
        Item, ItemKind, ListRequest, MaybeReady, Op, Origin, Output, ToolResult,
    },
    rule::{Rule, RuleDecision},
};

/// A member with things of every kind. It answers with its own name.
pub(crate) struct Offer {
    name: String,
    lists: Mutex<Option<BTreeMap<ItemKind, Catalog>>>,
    pub(crate) called: Mutex<Vec<(Op, String)>>,
    /// Number of subscribers of each resource.
    heard: Arc<Mutex<BTreeMap<String, u32>>>,
    pub(crate) stale: watch::Sender<ChangeCounters>,
    /// Kinds of the requested lists.
    pub(crate) listed: Mutex<Vec<ItemKind>>,
    pub(crate) slow: bool,
}

impl Offer {
    pub(crate) fn new(name: &str) -> Offer {
        Offer {
            name: name.to_owned(),
            lists: Mutex::new(Some(BTreeMap::new())),
            called: Mutex::default(),
            heard: Arc::default(),
            stale: watch::Sender::default(),
            listed: Mutex::default(),
            slow: false,
        }
    }

    pub(crate) fn with(self, kind: ItemKind, names: &[&str]) -> Offer {
        self.set(kind, names);
        self
    }

    pub(crate) fn set(&self, kind: ItemKind, names: &[&str]) {
        let item = |name: &&str| {
            let origin = Origin {
                server: "own".into(),
                trusted: true,
            };
            let json = json!({kind.key_member(): name, "name": self.name});
            let def = match kind {
                ItemKind::Prompt => json!({"name": name}),
                ItemKind::Tool => json!({"name": name, "inputSchema": {"type": "object"}}),
                _ => json,
            };
            Arc::new(Item::new(
                origin,
                Definition::read(kind, Json::from_value(&def)).unwrap(),
            ))
        };
        let catalog = Catalog::new(names.iter().map(item).collect());
        let mut lists = self.lists.lock().unwrap();
        lists.get_or_insert_default().insert(kind, catalog);
    }

    pub(crate) fn go_down(&self) {
        *self.lists.lock().unwrap() = None;
    }

    pub(crate) fn called(&self) -> Vec<String> {
        let called = self.called.lock().unwrap();
        called.iter().map(|(_, name)| name.clone()).collect()
    }

    /// The resources that somebody listens to.
    pub(crate) fn heard(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        let some = heard.iter().filter(|(_, count)| **count > 0);
        some.map(|(uri, _)| uri.clone()).collect()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut ChangeCounters)) {
        self.stale.send_modify(change);
    }
}

/// Somebody listens.
struct Hearing(Arc<Mutex<BTreeMap<String, u32>>>, Vec<String>);

impl Drop for Hearing {
    fn drop(&mut self) {
        let mut heard = self.0.lock().unwrap();
        self.1
            .iter()
            .for_each(|uri| *heard.get_mut(uri).unwrap() -= 1);
    }
}

impl Service for Offer {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        self.listed.lock().unwrap().push(ask.kind);
        Box::pin(async move {
            if self.slow {
                std::future::pending::<()>().await;
            }
            let lists = self.lists.lock().unwrap();
            let lists = lists
                .as_ref()
                .ok_or_else(|| Error::new(ErrorKind::Upstream, "down"))?;
            Ok(lists.get(&ask.kind).cloned().unwrap_or_default())
        })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        let used = (call.op, call.name().to_owned());
        self.called.lock().unwrap().push(used);
        let mut content = vec![Content::text(self.name.as_str())];
        // Whoever asks for a link is given one.
        let link = call
            .arguments()
            .raw()
            .get("link")
            .and_then(|uri| uri.string());
        content.extend(link.map(|uri| Content::link(&uri, "n")));
        let result = ToolResult {
            content,
            ..ToolResult::default()
        };
        Box::pin(async { Ok(Outcome::Done(Output::Tool(result))) })
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        let mut heard = self.heard.lock().unwrap();
        for uri in &want.uris {
            *heard.entry(uri.clone()).or_default() += 1;
        }
        drop(heard);
        let hearing = Hearing(self.heard.clone(), want.uris);
        Box::pin(async { Ok(ChangeStream::new(self.stale.subscribe()).keep_alive(hearing)) })
    }
}

/// The members under their own names.
pub(crate) fn join(members: &[&Arc<Offer>]) -> Aggregate {
    let member = |offer: &&Arc<Offer>| {
        let service: Arc<dyn Service> = (*offer).clone();
        AggregateMember {
            id: offer.name.as_str().into(),
            prefix: offer.name.clone(),
            service,
        }
    };
    Aggregate::new(members.iter().map(member).collect()).unwrap()
}

pub(crate) fn who() -> Caller {
    Caller::new("test")
}

pub(crate) fn all(kind: ItemKind) -> ListRequest {
    ListRequest::all(who(), kind)
}

pub(crate) fn call(op: Op, name: &str) -> Call {
    Call::new("c1", who(), op, name, Json::from_value(&json!({})))
}

/// The answer, which is the name of the member that gave it.
pub(crate) async fn use_it(service: &dyn Service, op: Op, name: &str) -> Result<String, Error> {
    match service.call(call(op, name)).await? {
        Outcome::Done(Output::Tool(result)) => Ok(result.content[0]
            .json
            .get("text")
            .unwrap()
            .string()
            .unwrap()),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.items().iter().map(|item| item.def.name()).collect()
}

/// Hides a server from all.
pub(crate) struct Hide(pub(crate) &'static str);

impl Rule for Hide {
    fn name(&self) -> &'static str {
        "hide"
    }

    fn is_visible(&self, _: &Caller, item: &Item) -> bool {
        &*item.origin.server != self.0
    }

    fn decide<'a>(&'a self, _: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        assert_ne!(
            &*item.origin.server, self.0,
            "a hidden item is never judged"
        );
        MaybeReady::Ready(RuleDecision::Allow)
    }
}
