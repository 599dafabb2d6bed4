//! Which lists clients were given, so that a client hears that a list changed only if it differs from what it has.

use super::Front;
use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, RandomState},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::watch;
use toolgate_core::{Caller, Catalog, Item, ItemKind, List, StartWait};

/// Distinct lists of one kind that are remembered of clients that cannot be told apart.
const MAX_SHARED_LISTS: usize = 16;
/// Clients without a session of which something is remembered.
const MAX_CLIENTS: usize = 1024;

/// How long a change waits for lists that are on their way to the client.
const MAX_LIST_WAIT: Duration = Duration::from_secs(60);

/// A keyed digest of what a client sees of a list.
type Print = u64;

/// The lists that a client was given, or several clients that cannot be told apart.
pub(crate) struct GivenLists {
    /// How many lists of a kind are remembered: one, the last, where this is one client.
    most: usize,
    kinds: watch::Sender<[GivenList; ItemKind::ALL.len()]>,
}

#[derive(Default)]
struct GivenList {
    /// Requests for it that are not answered yet.
    in_flight: usize,
    /// What was given, with the number of each answer.
    prints: VecDeque<(u64, Print)>,
    answers: u64,
    /// The last answer that is not remembered any more.
    forgotten: u64,
}

/// A request for a list that is not answered yet.
pub(crate) struct Listing<'a> {
    given: &'a GivenLists,
    kind: ItemKind,
}

/// What one stream of changes told its client, by kind: after which answer, and of which list.
#[derive(Default)]
pub(crate) struct ToldLists([Option<(u64, Print)>; ItemKind::ALL.len()]);

impl GivenLists {
    /// For one client.
    pub(crate) fn of_one() -> GivenLists {
        GivenLists::with(1)
    }

    fn of_several() -> GivenLists {
        GivenLists::with(MAX_SHARED_LISTS)
    }

    fn with(most: usize) -> GivenLists {
        GivenLists {
            most,
            kinds: watch::Sender::default(),
        }
    }

    /// A client asks for a list.
    pub(crate) fn begin(&self, kind: ItemKind) -> Listing<'_> {
        self.change(kind, |list| list.in_flight += 1);
        Listing { given: self, kind }
    }

    /// Those of these lists that differ from what the client was given or told of. Waits for lists that are on their way
    /// to it, and for no server.
    pub(crate) async fn outdated(
        &self,
        server: &Front,
        caller: &Caller,
        changed: &[ItemKind],
        told: &mut ToldLists,
    ) -> Vec<ItemKind> {
        // Clients without a session cannot be told apart, so each change is reported to all of them.
        if self.most > 1 {
            return changed.to_vec();
        }
        let mut outdated = Vec::new();
        for kind in changed {
            let mut differs = false;
            // Templates and skills are told of with the resources.
            for part in with_parts(*kind).iter().filter(|part| server.lists(**part)) {
                differs |= self.differs(server, caller, *part, told).await;
            }
            if differs {
                outdated.push(*kind);
            }
        }
        outdated
    }

    async fn differs(
        &self,
        server: &Front,
        caller: &Caller,
        kind: ItemKind,
        told: &mut ToldLists,
    ) -> bool {
        let at = kind as usize;
        let mut kinds = self.kinds.subscribe();
        let answered = kinds.wait_for(|kinds| kinds[at].in_flight == 0);
        // Several clients together may always have one on its way.
        if tokio::time::timeout(MAX_LIST_WAIT, answered).await.is_err() {
            return true;
        }
        let ask = List {
            wait: StartWait::None,
            ..List::all(caller.clone(), kind)
        };
        let Ok(listed) = server.service.list(ask).await else {
            return true;
        };
        let now = print(&listed);
        let kinds = self.kinds.borrow();
        let list = &kinds[at];
        let since = told.0[at].map_or(0, |(answer, _)| answer);
        let mut given = list
            .prints
            .iter()
            .filter(|(answer, _)| *answer > since)
            .peekable();
        let differs = match (given.peek().is_some(), told.0[at]) {
            _ if self.most > 1 && list.forgotten > since => true,
            (true, _) => given.any(|(_, print)| *print != now),
            (false, Some((_, told))) => told != now,
            // Who was given none has no item of it.
            (false, None) => !listed.items().is_empty(),
        };
        told.0[at] = Some((list.answers, now));
        differs
    }

    fn change(&self, kind: ItemKind, change: impl FnOnce(&mut GivenList)) {
        self.kinds
            .send_modify(|kinds| change(&mut kinds[kind as usize]));
    }
}

impl Listing<'_> {
    /// The client is given this list, from its start.
    pub(crate) fn answered(&self, listed: &Catalog) {
        let (most, print) = (self.given.most, print(listed));
        self.given.change(self.kind, |list| {
            list.answers += 1;
            list.prints.retain(|(_, known)| *known != print);
            list.prints.push_back((list.answers, print));
            if list.prints.len() > most {
                let (answer, _) = list.prints.pop_front().unwrap_or_default();
                list.forgotten = answer;
            }
        });
    }
}

impl Drop for Listing<'_> {
    fn drop(&mut self) {
        self.given.change(self.kind, |list| list.in_flight -= 1);
    }
}

/// Adds to the lists of which it is not clear yet whether they are to be told of.
pub(crate) fn add(pending: &mut Vec<ItemKind>, lists: Vec<ItemKind>) {
    pending.extend(lists);
    pending.sort_unstable();
    pending.dedup();
}

/// The digest of what a client sees of a list; made once for each item as long as the item lives.
fn print(listed: &Catalog) -> Print {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    struct OfItem(u64);
    let of_item = |item: &Arc<Item>| {
        item.memo(|item| OfItem(KEY.hash_one(item.def.json().canonical())))
            .0
    };
    let each: Vec<u64> = listed.items().iter().map(of_item).collect();
    KEY.hash_one(each)
}

/// The lists whose changes are told under one name.
fn with_parts(kind: ItemKind) -> &'static [ItemKind] {
    match kind {
        ItemKind::Tool => &[ItemKind::Tool],
        ItemKind::Prompt => &[ItemKind::Prompt],
        ItemKind::Resource | ItemKind::Template | ItemKind::Skill => {
            &[ItemKind::Resource, ItemKind::Template, ItemKind::Skill]
        }
    }
}

/// The lists of clients without a session: each by its connection, or all of one caller together.
#[derive(Default)]
pub(crate) struct GivenByClient(Mutex<HashMap<ClientKey, (u64, Arc<GivenLists>)>>);

#[derive(Clone, Eq, Hash, PartialEq)]
enum ClientKey {
    Connection(u64),
    Caller(Arc<str>),
}

impl GivenByClient {
    /// Those of a client: of its connection where it has one for itself. The one that was used longest ago is forgotten
    /// when there are too many.
    pub(crate) fn of(&self, caller: &Caller, connection: Option<u64>) -> Arc<GivenLists> {
        let key = match connection {
            Some(number) => ClientKey::Connection(number),
            None => ClientKey::Caller(caller.name().into()),
        };
        let mut all = self.all();
        let now = all
            .values()
            .map(|(used, _)| used + 1)
            .max()
            .unwrap_or_default();
        if all.len() >= MAX_CLIENTS && !all.contains_key(&key) {
            let oldest = all.iter().min_by_key(|(_, (used, _))| *used);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| all.remove(&key));
        }
        let (used, given) = all.entry(key).or_insert_with(|| {
            let given = match connection {
                Some(_) => GivenLists::of_one(),
                None => GivenLists::of_several(),
            };
            (0, Arc::new(given))
        });
        *used = now;
        given.clone()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<ClientKey, (u64, Arc<GivenLists>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
