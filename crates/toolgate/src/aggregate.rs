//! Many services joined into one.
//!
//! - A tool or prompt is named `prefix_name`, so that equal names cannot collide.
//! - A resource keeps its URI. If two members list the same URI, the first member owns it.
//! - A `ui://app` resource of a tool (MCP Apps) becomes `ui://prefix/app`.
//! - A file of a skill, `skill://x/SKILL.md`, becomes `skill://prefix/x/SKILL.md`.

mod apps;
mod changes;
mod links;
mod member_catalog;
mod names;
mod overrides;

use changes::JoinedChanges;
use futures_util::future::join_all;
pub use links::LinkLimits;
use links::{GivenResourceLink, ResourceLinkMemory};
use member_catalog::{ItemRoute, MemberCatalog, MemberNaming};
#[cfg(feature = "client")]
pub(crate) use names::{NameLimits, WireNames};
pub use names::{NameRules, PrefixError};
pub use overrides::{DefinitionOverride, DefinitionOverrides};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use toolgate_core::{
    BoxFuture, Call, CallArguments, Caller, Catalog, ChangeFilter, ChangeStream, Error, ErrorKind,
    Item, ItemKind, Json, ListRequest, Op, Origin, Outcome, Service, StartWait,
};

/// Default time-out of a member's list, also during a call.
const DEFAULT_LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Removes instructions that came with lists seeded from before this start: a list from the running server brings the
/// current ones.
fn forget_seeded_instructions(state: &mut [CachedLists], at: usize) {
    let parts = state
        .iter_mut()
        .filter_map(|known| known.parts[at].as_mut());
    for part in parts.filter(|part| part.seeded && part.has_instructions()) {
        *part = part.without_instructions();
    }
}

/// MCP server (or other [`Service`]) that an [`Aggregate`] joins with other servers into one, with its id and name
/// prefix.
pub struct AggregateMember {
    /// Configured id of the joined server, which is also the origin of its tools, resources and prompts.
    pub id: Arc<str>,
    /// Prefix of the joined server's tool and prompt names. Only a single joined server may have an empty one.
    pub prefix: String,
    /// Service that lists the joined server's tools, resources and prompts, and handles calls to them.
    pub service: Arc<dyn Service>,
}

/// Service that joins several MCP servers into one: it offers the tools, resources and prompts of all, with prefixed
/// names. [`Catalog::missing_servers`] names the members that cannot be listed; the others are not affected.
///
/// ```
/// use std::sync::Arc;
/// use toolgate::{
///     Service,
///     aggregate::{
///         Aggregate, AggregateMember, DefinitionOverride, DefinitionOverrides, LinkLimits, NameRules,
///         PrefixError,
///     },
/// };
///
/// /// Joins two servers. A tool `read` of the first one is named `files_read`.
/// fn join(files: Arc<dyn Service>, mail: Arc<dyn Service>) -> Result<Aggregate, PrefixError> {
///     let member = |id: &str, service| AggregateMember { id: id.into(), prefix: id.to_owned(), service };
///     let mut links = LinkLimits::default();
///     links.per_caller = 32;
///     let hidden = DefinitionOverrides::from_iter([("purge".to_owned(), DefinitionOverride::new().hide())]);
///     let joined = Aggregate::new(vec![member("files", files), member("mail", mail)])?;
///     Ok(joined.names(NameRules::Portable).links(links).override_tools("mail", hidden))
/// }
/// ```
pub struct Aggregate {
    members: Vec<AggregateMember>,
    /// True if the first member's names stay unchanged.
    first_unprefixed: bool,
    /// Rules for names of tools and prompts.
    name_rules: NameRules,
    /// Overrides of each member's tools.
    overrides: Vec<DefinitionOverrides>,
    /// Maximum time that a list waits for a member.
    list_timeout: Duration,
    /// Maximum time that a call waits for a member's list.
    call_timeout: Duration,
    state: Mutex<[CachedLists; ItemKind::ALL.len()]>,
    joined_changes: JoinedChanges,
    links: ResourceLinkMemory,
}

/// Cached lists of one item kind.
struct CachedLists {
    /// Last list of each member, under the joined names. It stays while the member is down.
    parts: Vec<Option<Arc<MemberCatalog>>>,
    /// Last joined snapshot, and the parts it was built from.
    joined: Option<(Vec<Option<Arc<MemberCatalog>>>, Catalog)>,
}

impl Aggregate {
    /// Joins these servers into one; their items are listed in this order.
    ///
    /// # Errors
    /// [`PrefixError`] where two names could collide: a duplicate prefix, a prefix with characters other than
    /// `[A-Za-z0-9-]`, one longer than 32 characters, or an empty one among several.
    pub fn new(members: Vec<AggregateMember>) -> Result<Aggregate, PrefixError> {
        names::check(members.iter().map(|member| member.prefix.as_str()))?;
        let unknown = |_| CachedLists {
            parts: members.iter().map(|_| None).collect(),
            joined: None,
        };
        let state = Mutex::new(ItemKind::ALL.map(unknown));
        Ok(Aggregate {
            overrides: members
                .iter()
                .map(|_| DefinitionOverrides::default())
                .collect(),
            first_unprefixed: false,
            name_rules: NameRules::default(),
            members,
            list_timeout: DEFAULT_LIST_TIMEOUT,
            call_timeout: DEFAULT_LIST_TIMEOUT,
            state,
            joined_changes: JoinedChanges::default(),
            links: ResourceLinkMemory::default(),
        })
    }

    /// Joins prefixed servers to `own`, a server whose item names stay unchanged. A name that begins with the prefix of
    /// a mounted service goes to that service.
    ///
    /// # Errors
    /// As [`Aggregate::new`]. Every mounted service needs a prefix.
    pub(crate) fn with_mounts(
        own: AggregateMember,
        inner: Vec<AggregateMember>,
    ) -> Result<Aggregate, PrefixError> {
        names::check_inner(inner.iter().map(|member| member.prefix.as_str()))?;
        let mut whole = Aggregate::new(vec![AggregateMember {
            prefix: String::new(),
            ..own
        }])?;
        whole.first_unprefixed = true;
        for known in whole
            .state
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
        {
            known.parts.extend(inner.iter().map(|_| None));
        }
        whole
            .overrides
            .extend(inner.iter().map(|_| DefinitionOverrides::default()));
        whole.members.extend(inner);
        Ok(whole)
    }

    /// Sets the maximum time that a list or a call waits until a joined server has listed its items. Default: 10 s.
    pub fn list_timeout(mut self, timeout: Duration) -> Aggregate {
        self.list_timeout = timeout;
        self.call_timeout = timeout;
        self
    }

    /// Sets the allowed characters and length of the joined (prefixed) tool and prompt names. Default:
    /// [`NameRules::Specification`].
    pub fn names(mut self, rules: NameRules) -> Aggregate {
        self.name_rules = rules;
        self
    }

    /// Sets the maximum time that a call waits until the joined server that handles it has listed its items. A server
    /// that is still starting may need longer than a list waits. Default: the value of [`Aggregate::list_timeout`].
    pub fn call_timeout(mut self, timeout: Duration) -> Aggregate {
        self.call_timeout = timeout;
        self
    }

    /// Sets the cached items of a joined server, restored from before this start of the program. They are used until
    /// the server lists its items itself.
    pub fn seed(&self, id: &str, kind: ItemKind, listed: Catalog) {
        let Some(at) = self.members.iter().position(|member| *member.id == *id) else {
            return;
        };
        let mut state = self.state();
        let slot = &mut state[kind as usize].parts[at];
        if slot.is_none() {
            *slot = Some(MemberCatalog::build(&self.naming(at), listed, None).seeded());
        }
    }

    /// Sets the overrides of the tool definitions of the joined server with this id. An unknown id is ignored.
    pub fn override_tools(mut self, id: &str, overrides: DefinitionOverrides) -> Aggregate {
        if let Some(at) = self.members.iter().position(|member| *member.id == *id) {
            self.overrides[at] = overrides;
        }
        self
    }

    /// Sets the limits on resource links in results, which are remembered per caller so that the caller can read them.
    pub fn links(mut self, limits: LinkLimits) -> Aggregate {
        self.links.limits = limits;
        self
    }

    /// Takes over the cached items of servers that `old`, an earlier aggregate, also joins: same id, prefix and
    /// service. Callers can still read the resource links they were given.
    #[doc(hidden)]
    pub fn inherit_lists(mut self, old: &Aggregate) -> Aggregate {
        let same = |one: &AggregateMember, two: &AggregateMember| {
            let service = Arc::ptr_eq(&one.service, &two.service);
            one.id == two.id && one.prefix == two.prefix && service
        };
        let stays =
            |member: &AggregateMember| old.members.iter().position(|other| same(member, other));
        let from: Vec<Option<usize>> = self.members.iter().map(stays).collect();
        let known = old.state();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (ours, theirs) in state.iter_mut().zip(known.iter()) {
            let part = |(at, from): (usize, &Option<usize>)| {
                let part = theirs.parts[(*from)?].as_ref()?;
                let same = self.overrides[at] == old.overrides[(*from)?];
                match same && self.name_rules == old.name_rules {
                    true => Some(part.clone()),
                    false => Some(part.rename_with(&MemberNaming {
                        member: &self.members[at],
                        overrides: &self.overrides[at],
                        keep_names: self.first_unprefixed && at == 0,
                        rules: self.name_rules,
                    })),
                }
            };
            ours.parts = from.iter().enumerate().map(part).collect();
        }
        drop(known);
        self.links.share_memory(&old.links);
        self
    }

    fn naming(&self, at: usize) -> MemberNaming<'_> {
        MemberNaming {
            member: &self.members[at],
            overrides: &self.overrides[at],
            keep_names: self.first_unprefixed && at == 0,
            rules: self.name_rules,
        }
    }

    /// Lists all members concurrently.
    async fn list_all(&self, ask: ListRequest) -> Catalog {
        self.list_all_members(ask).await.0
    }

    /// Lists all members concurrently. Also returns the ids of members that are still starting and have no list yet.
    async fn list_all_members(&self, ask: ListRequest) -> (Catalog, Vec<Arc<str>>) {
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
                    starting.extend_from_slice(error.starting_servers());
                    parts.push(None);
                }
            }
        }
        (self.join(kind, parts), starting)
    }

    /// Lists only the member that owns the name, so that a call to a healthy server never waits for a failing one.
    /// While the owner is down, its last list is used: hidden items stay unknown, and the call itself reports the
    /// failure.
    async fn list_for(&self, name: &str, ask: ListRequest) -> Result<Catalog, Error> {
        let kind = ask.kind;
        let Some(at) = self.owner(kind, name) else {
            return match kind {
                ItemKind::Tool | ItemKind::Prompt => self.list_unowned(name, ask).await,
                ItemKind::Resource | ItemKind::Template => self.list_unlisted_uri(name, ask).await,
                ItemKind::Skill => Ok(self.list_skills(name, ask).await),
            };
        };
        let trail = ask.decision_log.clone();
        let refreshed = self.refresh(at, ask).await;
        if let (Err(error), None) = (refreshed, self.part(kind, at)) {
            if !error.starting_servers().is_empty() {
                let starting = error.starting_servers().to_vec();
                return Err(Error::unknown_while_starting(kind, name, starting));
            }
            // Without a list it is unknown who may see the item. The caller gets "unknown"; the cause goes to the
            // decision log.
            trail.add("aggregate", "unknown", error.public_message());
        }
        Ok(self.cached(kind))
    }

    /// Handles a name without a known prefix: lists the members that have no list yet, without waiting for servers that
    /// start.
    async fn list_unowned(&self, name: &str, ask: ListRequest) -> Result<Catalog, Error> {
        let kind = ask.kind;
        let unlisted = (0..self.members.len()).filter(|at| self.part(kind, *at).is_none());
        let mut ask = ask;
        ask.start_wait = StartWait::None;
        let lists = unlisted.map(|at| self.refresh(at, ask.clone()));
        let listed = join_all(lists).await;
        let errors = listed.iter().filter_map(|listed| listed.as_ref().err());
        let starting: Vec<Arc<str>> = errors.flat_map(|e| e.starting_servers().to_vec()).collect();
        match starting.is_empty() {
            true => Ok(self.cached(kind)),
            false => Err(Error::unknown_while_starting(kind, name, starting)),
        }
    }

    /// Handles a file that belongs to no known skill. Most resources belong to none, so only likely owners are listed:
    /// the members whose prefix the URI has, or the member that lists it as a resource.
    async fn list_skills(&self, uri: &str, ask: ListRequest) -> Catalog {
        let kind = ask.kind;
        let of = |at: &usize| apps::unprefixed_uri(&self.members[*at].prefix, uri).is_some();
        let listing = || {
            let kinds = [ItemKind::Resource, ItemKind::Template];
            kinds.iter().find_map(|kind| self.owner(*kind, uri))
        };
        let may: Vec<usize> = match (apps::is_member_assigned(uri), listing()) {
            (true, _) => (0..self.members.len()).filter(of).collect(),
            (false, Some(at)) => vec![at],
            (false, None) if self.is_cached(kind) => Vec::new(),
            (false, None) => (0..self.members.len()).collect(),
        };
        let mut ask = ask;
        ask.start_wait = StartWait::List;
        join_all(may.into_iter().map(|at| self.refresh(at, ask.clone()))).await;
        self.cached(kind)
    }

    /// Handles a URI that no cached list contains: it may be new, unless a template matches it. A resource link of the
    /// caller is used last, so that it cannot shadow a server that lists the URI.
    async fn list_unlisted_uri(&self, uri: &str, ask: ListRequest) -> Result<Catalog, Error> {
        let kind = ask.kind;
        let template = || self.owner(ItemKind::Template, uri).is_some();
        let link = self
            .find_link(&ask.caller, uri)
            .map(|(_, link)| link.item());
        let link = match link {
            None => self.ui_resource(uri).map(|(_, page)| Some(page)),
            link => link,
        };
        if !template() && (link.is_none() || !self.is_cached(kind)) {
            let mut ask = ask;
            ask.start_wait = StartWait::List;
            let (listed, starting) = self.list_all_members(ask).await;
            // Templates are looked up last.
            let is_last = kind == ItemKind::Template && link.is_none();
            if is_last && !starting.is_empty() && listed.find(uri).is_none() {
                return Err(Error::unknown_while_starting(
                    ItemKind::Resource,
                    uri,
                    starting,
                ));
            }
        }
        Ok(match link {
            Some(Some(link)) if kind == ItemKind::Template && !template() => {
                Catalog::new(vec![link])
            }
            _ => self.cached(kind),
        })
    }

    /// Returns the UI resource that a tool refers to, with its member: the member need not list it. Only cached tool
    /// lists are searched, because a caller that reads the resource has seen the tool.
    fn ui_resource(&self, uri: &str) -> Option<(usize, Arc<Item>)> {
        let tools = self.state()[ItemKind::Tool as usize].parts.clone();
        let mut tools = tools.iter().enumerate();
        tools.find_map(|(at, part)| Some((at, apps::ui_resource(part.as_ref()?, uri)?)))
    }

    /// Returns whether all members have a cached list of that kind.
    fn is_cached(&self, kind: ItemKind) -> bool {
        self.state()[kind as usize]
            .parts
            .iter()
            .all(Option::is_some)
    }

    /// Returns the cached items of all joined servers of one kind, such as tools, without contacting any server.
    /// Servers without cached items are named in [`Catalog::missing_servers`].
    pub fn cached(&self, kind: ItemKind) -> Catalog {
        let parts = self.state()[kind as usize].parts.clone();
        self.join(kind, parts)
    }

    async fn refresh(&self, at: usize, ask: ListRequest) -> Result<Arc<MemberCatalog>, Error> {
        let (member, kind) = (&self.members[at], ask.kind);
        let wait = match ask.start_wait {
            StartWait::Call => self.call_timeout,
            _ => self.list_timeout,
        };
        let only = ask
            .only_name
            .as_ref()
            .map(|name| self.member_name(kind, at, name).into());
        let mut request = ask;
        request.only_name = only;
        let asked = member.service.list(request);
        let late = |_| {
            Error::new(
                ErrorKind::Upstream,
                format!(
                    "the server {} did not list its {}s within {:?}",
                    member.id,
                    kind.as_str(),
                    wait
                ),
            )
        };
        let catalog = tokio::time::timeout(wait, asked).await.map_err(late)??;
        let mut state = self.state();
        let slot = &mut state[kind as usize].parts[at];
        let part = MemberCatalog::build(&self.naming(at), catalog, slot.as_ref());
        *slot = Some(part.clone());
        if !part.seeded {
            forget_seeded_instructions(&mut *state, at);
        }
        Ok(part)
    }

    /// Joins the parts. Identical parts give the same cached snapshot.
    fn join(&self, kind: ItemKind, parts: Vec<Option<Arc<MemberCatalog>>>) -> Catalog {
        let mut state = self.state();
        let known = &mut state[kind as usize];
        if let Some((of, joined)) = &known.joined
            && member_catalog::same_parts(of, &parts)
        {
            return joined.clone();
        }
        let joined = member_catalog::join_parts(&self.members, &parts);
        known.joined = Some((parts, joined.clone()));
        joined
    }

    /// Returns the index of the member that owns a name. Prefixes contain no `_`, so at most one matches. A URI belongs
    /// to the first member that lists it, or else to the first with a matching template.
    fn owner(&self, kind: ItemKind, name: &str) -> Option<usize> {
        if !has_prefixed_names(kind) {
            let state = self.state();
            let parts = &state[kind as usize].parts;
            let first = |has: fn(&MemberCatalog, &str) -> bool| {
                let mut parts = parts.iter();
                parts.position(|part| part.as_ref().is_some_and(|part| has(part, name)))
            };
            return first(MemberCatalog::lists).or_else(|| first(MemberCatalog::matches));
        }
        let begins = |prefix: &str| {
            let rest = name.strip_prefix(prefix);
            !prefix.is_empty() && rest.is_some_and(|rest| rest.starts_with('_'))
        };
        let mut members = self.members.iter();
        let by_prefix = members.position(|member| begins(&member.prefix));
        by_prefix.or_else(|| self.members.iter().position(|m| m.prefix.is_empty()))
    }

    /// Returns a resource link that this caller was given, with the member that gave it, if that is still a member.
    fn find_link(&self, caller: &Caller, uri: &str) -> Option<(usize, GivenResourceLink)> {
        let link = self.links.find(caller, uri)?;
        let at = self.members.iter().position(|m| link.is_from(&m.service))?;
        Some((at, link))
    }

    fn part(&self, kind: ItemKind, at: usize) -> Option<Arc<MemberCatalog>> {
        self.state()[kind as usize].parts[at].clone()
    }

    /// Returns the member's own name for an item, or `name` if it is not cached.
    fn member_name(&self, kind: ItemKind, at: usize, name: &str) -> String {
        if !has_prefixed_names(kind) {
            return self.member_uri(at, name);
        }
        let part = self.part(kind, at).filter(|_| has_prefixed_names(kind));
        let known = part.and_then(|part| part.route(name));
        known.map_or_else(|| name.to_owned(), |route| route.name)
    }

    /// Returns the member's own URI for a joined one.
    fn member_uri(&self, at: usize, uri: &str) -> String {
        let own = apps::unprefixed_uri(&self.members[at].prefix, uri);
        own.map_or_else(|| uri.to_owned(), Cow::into_owned)
    }

    /// Returns the member that owns a resource: the server that the rules decided on, if the item was looked up; else a
    /// member that lists it or has a matching template. Lists all members if no cached list answers.
    async fn find_resource_owner(
        &self,
        caller: &Caller,
        kinds: &[ItemKind],
        uri: &str,
        of: Option<&Arc<str>>,
    ) -> Option<usize> {
        let judged = |server: &Arc<str>| self.members.iter().position(|m| m.id == *server);
        let listed = || kinds.iter().find_map(|kind| self.owner(*kind, uri));
        let linked = || self.find_link(caller, uri).map(|(at, _)| at);
        let page = || self.ui_resource(uri).map(|(at, _)| at);
        let known = || listed().or_else(linked).or_else(page);
        if let Some(at) = of.and_then(judged).or_else(known) {
            return Some(at);
        }
        let lists = kinds
            .iter()
            .map(|kind| self.list_all(ListRequest::all(caller.clone(), *kind)));
        join_all(lists).await;
        known()
    }

    /// Returns the target member of a call, and its route there.
    async fn route(&self, call: &Call) -> Result<Option<(usize, ItemRoute)>, Error> {
        let kinds = call.op.kinds();
        if !kinds.iter().any(|kind| has_prefixed_names(*kind)) {
            let judged = call.item().map(|item| &item.origin.server);
            let at = self
                .find_resource_owner(&call.caller, kinds, call.name(), judged)
                .await;
            let route = |at| {
                let name = self.member_uri(at, call.name());
                (at, ItemRoute { name, fixed: None })
            };
            return Ok(at.map(route));
        }
        for kind in kinds {
            let Some(at) = self.owner(*kind, call.name()) else {
                continue;
            };
            if self.part(*kind, at).is_none() {
                let mut ask = ListRequest::all(call.caller.clone(), *kind);
                ask.start_wait = StartWait::Call;
                self.refresh(at, ask).await?;
            }
            let part = self.part(*kind, at);
            if let Some(inner) = part.and_then(|part| part.route(call.name())) {
                return Ok(Some((at, inner)));
            }
        }
        Ok(None)
    }

    /// Returns the member that handles a call, and the item's own name there.
    pub(crate) async fn member_of(&self, call: &Call) -> Result<Option<(usize, String)>, Error> {
        let route = self.route(call).await?;
        Ok(route.map(|(at, route)| (at, route.name)))
    }

    async fn forward(&self, mut call: Call) -> Result<Outcome, Error> {
        let Some((at, inner)) = self.route(&call).await? else {
            return Err(call.unknown_item_error());
        };
        call.invocation.name = inner.name;
        for (name, value) in inner.fixed.iter().flat_map(Json::members) {
            let whole = call.arguments().raw().with(&name, &value);
            call.invocation.arguments = CallArguments::new(whole);
        }
        let member = &self.members[at];
        let origin = Origin {
            server: member.id.clone(),
            trusted: call.item().is_some_and(|item| item.origin.trusted),
        };
        let caller = call.caller.clone();
        let mut outcome = member.service.call(call).await?;
        member_catalog::forbid_shared_caching(&mut outcome);
        apps::prefix_outcome(&member.prefix, &mut outcome);
        self.links
            .remember(&caller, &member.service, &origin, &outcome);
        Ok(outcome)
    }

    /// Subscribes to the list changes of all members, and to each resource at the one member that owns it.
    async fn subscribe_members(&self, want: ChangeFilter) -> ChangeStream {
        let mut lists = ChangeFilter::all_lists(want.caller.clone());
        lists.lists = want.lists.clone();
        let mut changes = self
            .joined_changes
            .subscribe(&self.members, &want)
            .await
            .filtered(&lists);
        let mut theirs = vec![Vec::new(); self.members.len()];
        for uri in &want.uris {
            let (kinds, judged) = (Op::Resource.kinds(), want.owners.get(uri));
            if let Some(at) = self
                .find_resource_owner(&want.caller, kinds, uri, judged)
                .await
            {
                theirs[at].push(uri.clone());
            }
        }
        let asked = self
            .members
            .iter()
            .zip(theirs)
            .map(|(member, uris)| subscribe_member(member, uris, &want));
        for theirs in join_all(asked).await.into_iter().flatten() {
            changes = changes.merged_with(theirs);
        }
        changes.filtered(&want)
    }

    fn state(&self) -> MutexGuard<'_, [CachedLists; ItemKind::ALL.len()]> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Subscribes to a member's own resources, if any are wanted, and renames them to the joined URIs.
async fn subscribe_member(
    member: &AggregateMember,
    uris: Vec<String>,
    want: &ChangeFilter,
) -> Option<ChangeStream> {
    if uris.is_empty() {
        return None;
    }
    let own = |uri: &String| {
        let own = apps::unprefixed_uri(&member.prefix, uri)?;
        Some((Arc::from(own), Arc::from(uri.as_str())))
    };
    let names: BTreeMap<Arc<str>, Arc<str>> = uris.iter().filter_map(own).collect();
    let mut want = ChangeFilter::all_lists(want.caller.clone());
    want.lists = Vec::new();
    want.uris = names.keys().map(|own| own.to_string()).collect();
    let theirs = member.service.changes(want.clone()).await.ok()?;
    Some(theirs.filtered(&want).with_renamed_uris(&names))
}

/// Returns whether items of that kind have prefixed names rather than URIs.
fn has_prefixed_names(kind: ItemKind) -> bool {
    matches!(kind, ItemKind::Tool | ItemKind::Prompt)
}

impl Service for Aggregate {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(async move {
            match ask.only_name.clone() {
                Some(name) => self.list_for(&name, ask).await,
                None => Ok(self.list_all(ask).await),
            }
        })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(self.forward(call))
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async move { Ok(self.subscribe_members(want).await) })
    }
}
