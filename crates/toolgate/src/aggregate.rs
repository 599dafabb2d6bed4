//! Many services as one. A tool or prompt is called `prefix_name` here, so that equal names do not meet; a resource
//! keeps its URI, and of two with one URI the first member has it; but a page of a tool, `ui://app`, is `ui://prefix/app`,
//! and a file of a skill, `skill://x/SKILL.md`, is `skill://prefix/x/SKILL.md`.

mod apps;
mod changes;
mod links;
mod names;
mod overrides;
mod part;

use changes::Joint;
use futures_util::future::join_all;
pub use links::LinkLimits;
use links::{Link, Links};
pub use names::{BadPrefix, NameRules};
pub use overrides::{Override, Overrides};
use part::{Naming, Part, Route};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use toolgate_core::{
    Arguments, BoxFuture, Call, Caller, Catalog, Changes, Error, Interest, Item, ItemKind, Json,
    Kind, List, Op, Origin, Outcome, Service, StartWait,
};

/// How long a list, or a call, waits for a member at most.
const WAIT: Duration = Duration::from_secs(10);

/// Drops the instructions that came with lists from before this program started: a list of the server itself brings those
/// that hold now.
fn forget_seeded_instructions(state: &mut [Known], at: usize) {
    let parts = state
        .iter_mut()
        .filter_map(|known| known.parts[at].as_mut());
    for part in parts.filter(|part| part.seeded && part.has_instructions()) {
        *part = part.without_instructions();
    }
}

/// One of the services that are joined.
pub struct Member {
    /// The configured id; where its items come from.
    pub id: Arc<str>,
    /// What stands before the names of its tools; empty for none, which only a single member may have.
    pub prefix: String,
    /// The service.
    pub service: Arc<dyn Service>,
}

/// Many services as one. Members that cannot be listed are named in [`Catalog::missing`]; they sink nobody else.
pub struct Aggregate {
    members: Vec<Member>,
    /// Whether the names of the first member stay as they are.
    around: bool,
    /// Which names of tools and prompts clients can use.
    rules: NameRules,
    /// What is shown of the tools of each member instead of what it says.
    overrides: Vec<Overrides>,
    /// How long a list waits for a member at most.
    wait: Duration,
    /// How long a call does.
    call_wait: Duration,
    state: Mutex<[Known; ItemKind::ALL.len()]>,
    joint: Joint,
    links: Links,
}

/// What is known of the lists of one kind.
struct Known {
    /// The last list of each member, under the names used here; kept while the member is down.
    parts: Vec<Option<Arc<Part>>>,
    /// The last snapshot, and what it was made of.
    joined: Option<(Vec<Option<Arc<Part>>>, Catalog)>,
}

impl Aggregate {
    /// Joins services, in this order.
    ///
    /// # Errors
    /// [`BadPrefix`] where two names could meet: a prefix that stands twice or has other characters than
    /// `[A-Za-z0-9-]`, or an empty one beside others.
    pub fn new(members: Vec<Member>) -> Result<Aggregate, BadPrefix> {
        names::check(members.iter().map(|member| member.prefix.as_str()))?;
        let unknown = |_| Known {
            parts: members.iter().map(|_| None).collect(),
            joined: None,
        };
        let state = Mutex::new(ItemKind::ALL.map(unknown));
        Ok(Aggregate {
            overrides: members.iter().map(|_| Overrides::default()).collect(),
            around: false,
            rules: NameRules::default(),
            members,
            wait: WAIT,
            call_wait: WAIT,
            state,
            joint: Joint::default(),
            links: Links::default(),
        })
    }

    /// Joins services with one that they are put into: its names stay as they are. Names of it that begin with the prefix
    /// of another lead there.
    ///
    /// # Errors
    /// As of [`Aggregate::new`]; those that are put in need a prefix.
    pub fn around(own: Member, inner: Vec<Member>) -> Result<Aggregate, BadPrefix> {
        names::check_inner(inner.iter().map(|member| member.prefix.as_str()))?;
        let mut whole = Aggregate::new(vec![Member {
            prefix: String::new(),
            ..own
        }])?;
        whole.around = true;
        for known in whole
            .state
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
        {
            known.parts.extend(inner.iter().map(|_| None));
        }
        whole
            .overrides
            .extend(inner.iter().map(|_| Overrides::default()));
        whole.members.extend(inner);
        Ok(whole)
    }

    /// Another bound on how long a list or a call waits for a member to list what it has; 10 s.
    pub fn wait(mut self, wait: Duration) -> Aggregate {
        self.wait = wait;
        self.call_wait = wait;
        self
    }

    /// Other rules for names of tools and prompts; those of the specification.
    pub fn names(mut self, rules: NameRules) -> Aggregate {
        self.rules = rules;
        self
    }

    /// Another bound on how long a call waits for the member that it goes to: one that starts may need longer than a list
    /// waits.
    pub fn call_wait(mut self, wait: Duration) -> Aggregate {
        self.call_wait = wait;
        self
    }

    /// Takes for known what a member listed before this program started, as long as it has not listed anything here.
    pub fn seed(&self, id: &str, kind: ItemKind, listed: Catalog) {
        let Some(at) = self.members.iter().position(|member| *member.id == *id) else {
            return;
        };
        let mut state = self.state();
        let slot = &mut state[kind as usize].parts[at];
        if slot.is_none() {
            *slot = Some(Part::of(&self.naming(at), listed, None).seeded());
        }
    }

    /// What is shown of the tools of the member of that id instead of what it says.
    pub fn overriding(mut self, id: &str, overrides: Overrides) -> Aggregate {
        if let Some(at) = self.members.iter().position(|member| *member.id == *id) {
            self.overrides[at] = overrides;
        }
        self
    }

    /// Other bounds on the links to resources that callers were given and may read.
    pub fn links(mut self, limits: LinkLimits) -> Aggregate {
        self.links.limits = limits;
        self
    }

    /// Takes over what another one knew of the members that both have: same id, same prefix, same service. What callers
    /// were given of them can still be read.
    pub fn after(mut self, old: &Aggregate) -> Aggregate {
        let same = |one: &Member, two: &Member| {
            let service = Arc::ptr_eq(&one.service, &two.service);
            one.id == two.id && one.prefix == two.prefix && service
        };
        let stays = |member: &Member| old.members.iter().position(|other| same(member, other));
        let from: Vec<Option<usize>> = self.members.iter().map(stays).collect();
        let known = old.state();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (ours, theirs) in state.iter_mut().zip(known.iter()) {
            let part = |(at, from): (usize, &Option<usize>)| {
                let part = theirs.parts[(*from)?].as_ref()?;
                let same = self.overrides[at] == old.overrides[(*from)?];
                match same && self.rules == old.rules {
                    true => Some(part.clone()),
                    false => Some(part.again(&Naming {
                        member: &self.members[at],
                        over: &self.overrides[at],
                        plain: self.around && at == 0,
                        rules: self.rules,
                    })),
                }
            };
            ours.parts = from.iter().enumerate().map(part).collect();
        }
        drop(known);
        self.links.share(&old.links);
        self
    }

    fn naming(&self, at: usize) -> Naming<'_> {
        Naming {
            member: &self.members[at],
            over: &self.overrides[at],
            plain: self.around && at == 0,
            rules: self.rules,
        }
    }

    /// All members are asked at once.
    async fn list_all(&self, ask: List) -> Catalog {
        self.ask_all(ask).await.0
    }

    /// All members are asked at once. Those that are still starting and have not listed anything are named.
    async fn ask_all(&self, ask: List) -> (Catalog, Vec<Arc<str>>) {
        let kind = ask.kind;
        let lists = self
            .members
            .iter()
            .enumerate()
            .map(|(at, _)| self.refresh(at, ask.clone()));
        let (mut parts, mut starting) = (Vec::new(), Vec::new());
        for listed in join_all(lists).await {
            match listed {
                Ok(part) => parts.push(Some(part)),
                Err(error) => {
                    starting.extend_from_slice(error.starting());
                    parts.push(None);
                }
            }
        }
        (self.join(kind, parts), starting)
    }

    /// Only the owner of the name is asked, so that a call to a good server never waits for a bad one. While the
    /// owner is down its last list answers for it: what cannot be seen stays unknown, and a call says why it fails.
    async fn list_for(&self, name: &str, ask: List) -> Result<Catalog, Error> {
        let kind = ask.kind;
        let Some(at) = self.owner(kind, name) else {
            return match kind {
                ItemKind::Tool | ItemKind::Prompt => self.list_unowned(name, ask).await,
                ItemKind::Resource | ItemKind::Template => self.list_new(name, ask).await,
                ItemKind::Skill => Ok(self.list_skills(name, ask).await),
            };
        };
        let trail = ask.trail.clone();
        let refreshed = self.refresh(at, ask).await;
        if let (Err(error), None) = (refreshed, self.part(kind, at)) {
            if !error.starting().is_empty() {
                let starting = error.starting().to_vec();
                return Err(Error::not_known_yet(kind, name, starting));
            }
            // Nobody knows yet who may see it: it is unknown, and the cause is for the operator.
            trail.add("aggregate", "unknown", error.public());
        }
        Ok(self.known(kind))
    }

    /// The name begins with no member's prefix. Members that have not listed anything are asked; nobody is waited for.
    async fn list_unowned(&self, name: &str, ask: List) -> Result<Catalog, Error> {
        let kind = ask.kind;
        let unlisted = (0..self.members.len()).filter(|at| self.part(kind, *at).is_none());
        let ask = List {
            wait: StartWait::None,
            ..ask
        };
        let lists = unlisted.map(|at| self.refresh(at, ask.clone()));
        let listed = join_all(lists).await;
        let errors = listed.iter().filter_map(|listed| listed.as_ref().err());
        let starting: Vec<Arc<str>> = errors.flat_map(|e| e.starting().to_vec()).collect();
        match starting.is_empty() {
            true => Ok(self.known(kind)),
            false => Err(Error::not_known_yet(kind, name, starting)),
        }
    }

    /// Nobody is known to have a skill with that file. Most resources are of none, so only those are asked who may have it:
    /// the member in whose name it is, or the one that lists it as a resource.
    async fn list_skills(&self, uri: &str, ask: List) -> Catalog {
        let kind = ask.kind;
        let of = |at: &usize| apps::inward(&self.members[*at].prefix, uri).is_some();
        let listing = || {
            let kinds = [ItemKind::Resource, ItemKind::Template];
            kinds.iter().find_map(|kind| self.owner(*kind, uri))
        };
        let may: Vec<usize> = match (apps::is_own(uri), listing()) {
            (true, _) => (0..self.members.len()).filter(of).collect(),
            (false, Some(at)) => vec![at],
            (false, None) if self.is_known(kind) => Vec::new(),
            (false, None) => (0..self.members.len()).collect(),
        };
        let ask = List {
            wait: StartWait::List,
            ..ask
        };
        join_all(may.into_iter().map(|at| self.refresh(at, ask.clone()))).await;
        self.known(kind)
    }

    /// Nobody is known to list that URI: it may be new, unless a template has it. A link that the caller was given
    /// counts last, so that nobody takes the place of a server that lists it.
    async fn list_new(&self, uri: &str, ask: List) -> Result<Catalog, Error> {
        let kind = ask.kind;
        let template = || self.owner(ItemKind::Template, uri).is_some();
        let link = self.linked(&ask.caller, uri).map(|(_, link)| link.item());
        let link = match link {
            None => self.page(uri).map(|(_, page)| Some(page)),
            link => link,
        };
        if !template() && (link.is_none() || !self.is_known(kind)) {
            let ask = List {
                wait: StartWait::List,
                ..ask
            };
            let (listed, starting) = self.ask_all(ask).await;
            // Templates are what is looked for last.
            let is_last = kind == ItemKind::Template && link.is_none();
            if is_last && !starting.is_empty() && listed.find(uri).is_none() {
                return Err(Error::not_known_yet(ItemKind::Resource, uri, starting));
            }
        }
        Ok(match link {
            Some(Some(link)) if kind == ItemKind::Template && !template() => {
                Catalog::new(vec![link])
            }
            _ => self.known(kind),
        })
    }

    /// A page that a tool names, and the member that has it: lists need not show it. Tools that nobody asked for yet are
    /// not looked at: who reads a page has seen the tool.
    fn page(&self, uri: &str) -> Option<(usize, Arc<Item>)> {
        let tools = self.state()[ItemKind::Tool as usize].parts.clone();
        let mut tools = tools.iter().enumerate();
        tools.find_map(|(at, part)| Some((at, apps::page(part.as_ref()?, uri)?)))
    }

    /// Whether all members have listed that kind.
    fn is_known(&self, kind: ItemKind) -> bool {
        self.state()[kind as usize]
            .parts
            .iter()
            .all(Option::is_some)
    }

    /// What is known without asking anybody; servers that never answered are named as missing.
    pub fn known(&self, kind: ItemKind) -> Catalog {
        let parts = self.state()[kind as usize].parts.clone();
        self.join(kind, parts)
    }

    async fn refresh(&self, at: usize, ask: List) -> Result<Arc<Part>, Error> {
        let (member, kind) = (&self.members[at], ask.kind);
        let wait = match ask.wait {
            StartWait::Call => self.call_wait,
            StartWait::List | StartWait::None => self.wait,
        };
        let only = ask
            .only
            .as_ref()
            .map(|name| self.inner_name(kind, at, name).into());
        let asked = member.service.list(List { only, ..ask });
        let late = |_| {
            Error::new(
                Kind::Upstream,
                format!(
                    "the server {} did not list its {}s within {:?}",
                    member.id,
                    kind.word(),
                    wait
                ),
            )
        };
        let catalog = tokio::time::timeout(wait, asked).await.map_err(late)??;
        let mut state = self.state();
        let slot = &mut state[kind as usize].parts[at];
        let part = Part::of(&self.naming(at), catalog, slot.as_ref());
        *slot = Some(part.clone());
        if !part.seeded {
            forget_seeded_instructions(&mut *state, at);
        }
        Ok(part)
    }

    /// The same parts make the same snapshot.
    fn join(&self, kind: ItemKind, parts: Vec<Option<Arc<Part>>>) -> Catalog {
        let mut state = self.state();
        let known = &mut state[kind as usize];
        if let Some((of, joined)) = &known.joined
            && part::same(of, &parts)
        {
            return joined.clone();
        }
        let joined = part::join(&self.members, &parts);
        known.joined = Some((parts, joined.clone()));
        joined
    }

    /// The member that a name belongs to. Prefixes have no `_`, so there is one at most; a URI belongs to the first
    /// that is known to list it, or else to the first with a template that it fits.
    fn owner(&self, kind: ItemKind, name: &str) -> Option<usize> {
        if !named(kind) {
            let state = self.state();
            let parts = &state[kind as usize].parts;
            let first = |has: fn(&Part, &str) -> bool| {
                let mut parts = parts.iter();
                parts.position(|part| part.as_ref().is_some_and(|part| has(part, name)))
            };
            return first(Part::lists).or_else(|| first(Part::fits));
        }
        let begins = |prefix: &str| {
            let rest = name.strip_prefix(prefix);
            !prefix.is_empty() && rest.is_some_and(|rest| rest.starts_with('_'))
        };
        let mut members = self.members.iter();
        let by_prefix = members.position(|member| begins(&member.prefix));
        by_prefix.or_else(|| self.members.iter().position(|m| m.prefix.is_empty()))
    }

    /// A link that this caller was given, and the member that gave it, where that is still one of ours.
    fn linked(&self, caller: &Caller, uri: &str) -> Option<(usize, Link)> {
        let link = self.links.find(caller, uri)?;
        let at = self.members.iter().position(|m| link.is_of(&m.service))?;
        Some((at, link))
    }

    fn part(&self, kind: ItemKind, at: usize) -> Option<Arc<Part>> {
        self.state()[kind as usize].parts[at].clone()
    }

    /// The member's own word for a name, as far as it is known.
    fn inner_name(&self, kind: ItemKind, at: usize, name: &str) -> String {
        if !named(kind) {
            return self.inner_uri(at, name);
        }
        let part = self.part(kind, at).filter(|_| named(kind));
        let known = part.and_then(|part| part.route(name));
        known.map_or_else(|| name.to_owned(), |route| route.name)
    }

    /// The member's own URI of what is known here by that one.
    fn inner_uri(&self, at: usize, uri: &str) -> String {
        let own = apps::inward(&self.members[at].prefix, uri);
        own.map_or_else(|| uri.to_owned(), Cow::into_owned)
    }

    /// The member that has a resource: where it was looked up, the one that was judged; else one that lists it, or
    /// one with a template that it fits.
    async fn holder(
        &self,
        caller: &Caller,
        kinds: &[ItemKind],
        uri: &str,
        of: Option<&Arc<str>>,
    ) -> Option<usize> {
        let judged = |server: &Arc<str>| self.members.iter().position(|m| m.id == *server);
        let listed = || kinds.iter().find_map(|kind| self.owner(*kind, uri));
        let linked = || self.linked(caller, uri).map(|(at, _)| at);
        let page = || self.page(uri).map(|(at, _)| at);
        let known = || listed().or_else(linked).or_else(page);
        if let Some(at) = of.and_then(judged).or_else(known) {
            return Some(at);
        }
        let lists = kinds
            .iter()
            .map(|kind| self.list_all(List::all(caller.clone(), *kind)));
        join_all(lists).await;
        known()
    }

    /// Where a call goes, and under which name.
    async fn route(&self, call: &Call) -> Result<Option<(usize, Route)>, Error> {
        let kinds = call.op.kinds();
        if !kinds.iter().any(|kind| named(*kind)) {
            let judged = call.item().map(|item| &item.origin.server);
            let at = self.holder(&call.caller, kinds, call.name(), judged).await;
            let route = |at| {
                let name = self.inner_uri(at, call.name());
                (at, Route { name, fixed: None })
            };
            return Ok(at.map(route));
        }
        for kind in kinds {
            let Some(at) = self.owner(*kind, call.name()) else {
                continue;
            };
            if self.part(*kind, at).is_none() {
                let ask = List {
                    wait: StartWait::Call,
                    ..List::all(call.caller.clone(), *kind)
                };
                self.refresh(at, ask).await?;
            }
            let part = self.part(*kind, at);
            if let Some(inner) = part.and_then(|part| part.route(call.name())) {
                return Ok(Some((at, inner)));
            }
        }
        Ok(None)
    }

    async fn forward(&self, mut call: Call) -> Result<Outcome, Error> {
        let Some((at, inner)) = self.route(&call).await? else {
            return Err(call.unknown());
        };
        call.of.name = inner.name;
        for (name, value) in inner.fixed.iter().flat_map(Json::members) {
            let whole = call.arguments().raw().with(&name, &value);
            call.of.arguments = Arguments::new(whole);
        }
        let member = &self.members[at];
        let origin = Origin {
            server: member.id.clone(),
            trusted: call.item().is_some_and(|item| item.origin.trusted),
        };
        let caller = call.caller.clone();
        let mut outcome = member.service.call(call).await?;
        apps::outcome(&member.prefix, &mut outcome);
        self.links.note(&caller, &member.service, &origin, &outcome);
        Ok(outcome)
    }

    /// Hears of lists of all members, and of each resource from the one member that has it.
    async fn hear(&self, want: Interest) -> Changes {
        let lists = Interest {
            lists: want.lists.clone(),
            ..Interest::lists(want.caller.clone())
        };
        let mut changes = self.joint.listen(&self.members, &want).await.only(&lists);
        let mut theirs = vec![Vec::new(); self.members.len()];
        for uri in &want.uris {
            let (kinds, judged) = (Op::Resource.kinds(), want.owners.get(uri));
            if let Some(at) = self.holder(&want.caller, kinds, uri, judged).await {
                theirs[at].push(uri.clone());
            }
        }
        let asked = self
            .members
            .iter()
            .zip(theirs)
            .map(|(member, uris)| hear_one(member, uris, &want));
        for theirs in join_all(asked).await.into_iter().flatten() {
            changes = changes.and(theirs);
        }
        changes.only(&want)
    }

    fn state(&self) -> MutexGuard<'_, [Known; ItemKind::ALL.len()]> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one member tells of its own resources, where any are wanted, by the URIs that are used here.
async fn hear_one(member: &Member, uris: Vec<String>, want: &Interest) -> Option<Changes> {
    if uris.is_empty() {
        return None;
    }
    let own = |uri: &String| {
        let own = apps::inward(&member.prefix, uri)?;
        Some((Arc::from(own), Arc::from(uri.as_str())))
    };
    let names: BTreeMap<Arc<str>, Arc<str>> = uris.iter().filter_map(own).collect();
    let want = Interest {
        lists: Vec::new(),
        uris: names.keys().map(|own| own.to_string()).collect(),
        ..Interest::lists(want.caller.clone())
    };
    let theirs = member.service.changes(want.clone()).await.ok()?;
    Some(theirs.only(&want).renamed(&names))
}

/// Whether things of that kind have names that are changed here, and not URIs.
fn named(kind: ItemKind) -> bool {
    matches!(kind, ItemKind::Tool | ItemKind::Prompt)
}

impl Service for Aggregate {
    fn list(&self, ask: List) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(async move {
            match ask.only.clone() {
                Some(name) => self.list_for(&name, ask).await,
                None => Ok(self.list_all(ask).await),
            }
        })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(self.forward(call))
    }

    fn changes(&self, want: Interest) -> BoxFuture<'_, Result<Changes, Error>> {
        Box::pin(async move { Ok(self.hear(want).await) })
    }
}
