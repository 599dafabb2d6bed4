//! Lists of a server: pages joined within limits, and cached until they are stale.

use super::{
    connection::{RequestFailure, RequestPurpose},
    negotiate::write_client_meta,
    remote::RemoteServer,
    status::sanitize_line,
};
use crate::param_headers::ParamHeaders;
use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
};
use tokio::time::{Duration, Instant, timeout};
use toolgate_core::{
    CacheHint, Catalog, ClientCapabilities, Definition, DefinitionNote, Error, ErrorKind, Item,
    ItemKind, ListRequest, NoteAction,
};
use toolgate_protocol::{
    json::{Json, ObjectWriter},
    message::{RpcError, code},
    method::{list::ListPage, skills},
    normalize::{self, NormalizedDefinition},
};

/// Cache time of a list if the server does not report changes.
pub(super) const DEFAULT_LIST_TTL: Duration = Duration::from_secs(60);
/// Extra cache time of an old list after a refresh failed.
const STALE_LIST_TTL: Duration = Duration::from_secs(5);

/// Cached lists of all kinds.
#[derive(Default)]
pub(super) struct ListCaches {
    kinds: [ListCache; ItemKind::ALL.len()],
    /// Unlisted skills that were fetched by URI.
    unlisted_skills: Mutex<VecDeque<Arc<Item>>>,
}

impl ListCaches {
    pub(super) fn of(&self, kind: ItemKind) -> &ListCache {
        &self.kinds[kind as usize]
    }
}

impl ListCaches {
    /// Maximum number of unlisted skills that are cached; the oldest is evicted first.
    const MAX_UNLISTED_SKILLS: usize = 64;

    fn unlisted_skills(&self) -> Vec<Arc<Item>> {
        let got = self
            .unlisted_skills
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        got.iter().cloned().collect()
    }

    fn add_unlisted_skill(&self, item: Arc<Item>) {
        let mut got = self
            .unlisted_skills
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        got.retain(|other| other.def.name() != item.def.name());
        got.truncate(ListCaches::MAX_UNLISTED_SKILLS - 1);
        got.push_front(item);
    }
}

/// Cached list of one kind.
#[derive(Default)]
pub(super) struct ListCache {
    cached: Mutex<Option<CachedCatalog>>,
    /// Error of the last refresh; cleared by the next success.
    failure: Mutex<Option<String>>,
    /// Single-flight lock: one task reads the list, the others wait for its result.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct CachedCatalog {
    catalog: Catalog,
    /// The result that the items were read from, if there was only one.
    only_page: Option<Json>,
    /// Cache hint of the list as it was read last.
    hint: CacheHint,
    /// Change counter of the connection at which the list was read.
    generation: u64,
    /// Time until which the list may be returned.
    list_fresh_until: Instant,
    /// Time until which names may be looked up in it.
    lookup_fresh_until: Instant,
}

impl CachedCatalog {
    /// Makes the list fresh from now on.
    fn renew(&mut self, lifetime: Duration, generation: u64) {
        self.generation = generation;
        self.list_fresh_until = Instant::now() + lifetime;
        // Where a list is stale immediately, the lookup before each call must not double the traffic.
        self.lookup_fresh_until = Instant::now() + lifetime.max(DEFAULT_LIST_TTL);
    }
}

impl ListCache {
    /// Returns the number of items of the last list.
    pub(super) fn count(&self) -> Option<usize> {
        self.cached()
            .as_ref()
            .map(|kept| kept.catalog.items().len())
    }

    /// Returns the last list, and the time until which it may be returned.
    pub(super) fn current(&self) -> Option<(Catalog, Instant)> {
        let cached = self.cached();
        let cached = cached.as_ref()?;
        Some((cached.catalog.clone(), cached.list_fresh_until))
    }

    /// Returns the last list if it was read from this very result.
    fn read_from(&self, result: &Json) -> Option<Catalog> {
        let cached = self.cached();
        let cached = cached.as_ref()?;
        let source = cached.only_page.as_ref()?;
        source.is_same_text(result).then(|| cached.catalog.clone())
    }

    /// Returns the item with that name in the last list.
    pub(super) fn find(&self, name: &str) -> Option<Arc<Item>> {
        self.cached().as_ref()?.catalog.find(name).cloned()
    }

    /// Returns the notes on the last list and on its items.
    fn notes(&self) -> Vec<DefinitionNote> {
        let kept = self.cached();
        kept.iter()
            .flat_map(|kept| kept.catalog.all_notes())
            .collect()
    }

    /// Returns the error of the last refresh.
    fn failure(&self) -> MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cached(&self) -> MutexGuard<'_, Option<CachedCatalog>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Items of all pages of a list, joined by pagination.
#[derive(Default)]
struct JoinedPages {
    items: Vec<Json>,
    hint: CacheHint,
    cut: bool,
    /// The result with all items, if there is only one page.
    only_page: Option<Json>,
}

/// List that was read from the server.
enum ListRead {
    /// The server repeated the text of its last list.
    Repeated(Catalog),
    Items(JoinedPages),
}

impl RemoteServer {
    /// Returns the notes on all lists that were read, and on those whose last refresh failed.
    pub(super) fn definition_notes(&self) -> Vec<DefinitionNote> {
        let lists = ItemKind::ALL.map(|kind| (kind, self.lists.of(kind)));
        let mut notes = Vec::new();
        for (kind, list) in lists {
            let failure = list.failure().clone();
            notes.extend(failure.map(|why| self.note(kind, "", NoteAction::ListFailed, &why)));
            notes.extend(list.notes());
        }
        notes
    }

    fn note(&self, kind: ItemKind, name: &str, action: NoteAction, why: &str) -> DefinitionNote {
        DefinitionNote::new(self.options.origin.server.clone(), kind, name, action, why)
    }

    /// Returns a complete list, with the unlisted skills that were fetched by URI.
    pub(super) async fn list_for(&self, ask: ListRequest) -> Result<Catalog, Error> {
        let kind = ask.kind;
        let catalog = self.cached_or_read(ask).await?;
        let got = match kind {
            ItemKind::Skill => self.lists.unlisted_skills(),
            _ => Vec::new(),
        };
        let new = |item: &Arc<Item>| catalog.find(item.def.name()).is_none();
        let more: Vec<Arc<Item>> = got.into_iter().filter(new).collect();
        if more.is_empty() {
            return Ok(catalog);
        }
        Ok(catalog.with_items(catalog.items().iter().cloned().chain(more).collect()))
    }

    /// Fetches an unlisted skill by URI. From now on it is part of the list here.
    pub(super) async fn get_skill(&self, uri: &str) -> Result<(), Error> {
        if !self.peer.has_capability_for(ItemKind::Skill) {
            return Err(self.upstream_error("does not offer skills"));
        }
        let params = |_: &_| {
            let mut o = ObjectWriter::new();
            self.write_request_meta(&mut o);
            o.str("uri", uri);
            o.finish()
        };
        let asked = self.link.request(skills::GET, RequestPurpose::List, params);
        let result = match timeout(self.options.list_timeout, asked).await {
            Ok(result) => result.map_err(|failure| self.request_error(failure))?,
            Err(_) => {
                return Err(self.upstream_error("did not answer the request for a skill in time"));
            }
        };
        let entry = result
            .get("skill")
            .ok_or_else(|| self.invalid_result_error("it has no \"skill\""))?;
        if entry.as_str().len() > self.options.max_list_bytes {
            return Err(self.upstream_error(format_args!(
                "sent a skill that is longer than {} bytes, which is the limit",
                self.options.max_list_bytes
            )));
        }
        let def = Definition::read(ItemKind::Skill, entry)
            .map_err(|why| self.invalid_result_error(why))?;
        if def.name() != uri {
            return Err(
                self.invalid_result_error("it contains a different skill from the requested one")
            );
        }
        self.lists
            .add_unlisted_skill(Arc::new(Item::new(self.options.origin.clone(), def)));
        Ok(())
    }

    /// Returns a complete list from the cache or the server. An unchanged list is the same object.
    async fn cached_or_read(&self, ask: ListRequest) -> Result<Catalog, Error> {
        let (kind, shown) = (ask.kind, ask.only_name.is_none());
        if let Some(kept) = self.fresh_list(kind, shown) {
            return Ok(kept);
        }
        let _reading = self.lists.of(kind).reading.lock().await;
        if let Some(kept) = self.fresh_list(kind, shown) {
            return Ok(kept);
        }
        let generation = self.link.generation.load(Relaxed);
        let read = timeout(self.options.list_timeout, self.read_list(kind)).await;
        let late = |_| {
            self.upstream_error(format_args!(
                "did not list its {} within {:?}",
                plural(kind),
                self.options.list_timeout
            ))
        };
        match read.map_err(late).and_then(|read| read) {
            Ok(read) => {
                *self.lists.of(kind).failure() = None;
                Ok(match read {
                    ListRead::Repeated(catalog) => self.renew_list(kind, catalog, generation),
                    ListRead::Items(joined) => self.store_list(kind, joined, generation),
                })
            }
            Err(error) => {
                *self.lists.of(kind).failure() = Some(error.public_message().to_owned());
                self.stale_list(kind, error)
            }
        }
    }

    pub(super) fn fresh_list(&self, kind: ItemKind, shown: bool) -> Option<Catalog> {
        if self.link.is_lost() {
            return None;
        }
        let kept = self.lists.of(kind).cached();
        let kept = kept.as_ref()?;
        let until = if shown {
            kept.list_fresh_until
        } else {
            kept.lookup_fresh_until
        };
        let unchanged = kept.generation == self.link.generation.load(Relaxed);
        (unchanged && Instant::now() < until).then(|| kept.catalog.clone())
    }

    /// Extends the cache time of the old list after a failed refresh, as long as the server runs.
    fn stale_list(&self, kind: ItemKind, error: Error) -> Result<Catalog, Error> {
        let mut kept = self.lists.of(kind).cached();
        let Some(kept) = kept.as_mut().filter(|_| !self.link.is_lost()) else {
            return Err(error);
        };
        self.link.notes.record(format!(
            "its last known list of {} is used, because the new list could not be read: {}",
            plural(kind),
            error.public_message()
        ));
        kept.generation = self.link.generation.load(Relaxed);
        kept.list_fresh_until = Instant::now() + STALE_LIST_TTL;
        kept.lookup_fresh_until = kept.list_fresh_until;
        Ok(kept.catalog.clone())
    }

    async fn read_list(&self, kind: ItemKind) -> Result<ListRead, Error> {
        let mut joined = JoinedPages::default();
        // A server without tools may omit the capability; other lists are requested only if declared.
        if kind != ItemKind::Tool && !self.peer.has_capability_for(kind) {
            return Ok(ListRead::Items(joined));
        }
        let (mut cursor, mut cursors, mut bytes) = (None::<Json>, HashSet::new(), 0);
        for _ in 0..self.options.max_pages {
            let result = match self.request_page(kind, cursor.as_ref()).await {
                Ok(result) => result,
                Err(RequestFailure::Rpc(error))
                    if cursor.is_none() && self.means_empty_list(kind, &error) =>
                {
                    return Ok(ListRead::Items(joined));
                }
                Err(failure) => return Err(self.list_error(kind, failure)),
            };
            if cursor.is_none()
                && let Some(catalog) = self.lists.of(kind).read_from(&result)
            {
                return Ok(ListRead::Repeated(catalog));
            }
            let page = self
                .read_page(kind, &result)
                .map_err(|failure| self.list_error(kind, failure))?;
            joined.only_page = (cursor.is_none() && page.next.is_none()).then_some(result);
            joined.hint = match &cursor {
                None => page.hint,
                Some(_) => joined.hint.stricter(page.hint),
            };
            bytes += page
                .items
                .iter()
                .map(|item| item.as_str().len())
                .sum::<usize>();
            if bytes > self.options.max_list_bytes {
                return Err(self.upstream_error(format_args!(
                    "lists more than {} bytes of {}, which is the limit",
                    self.options.max_list_bytes,
                    plural(kind)
                )));
            }
            joined.items.extend(page.items);
            joined.cut = joined.items.len() > self.options.max_items;
            match page.next {
                None => return Ok(ListRead::Items(joined)),
                // Servers of revisions with a handshake end a list with it.
                Some(next) if is_empty(&next) && !self.peer.dialect.empty_cursors => {
                    return Ok(ListRead::Items(joined));
                }
                Some(next) if is_empty(&next) && cursors.contains(next.as_str()) => {
                    return Ok(ListRead::Items(joined));
                }
                Some(_) if joined.cut => return Ok(ListRead::Items(joined)),
                Some(next) if !cursors.insert(next.as_str().to_owned()) => {
                    return Err(self.upstream_error(format_args!(
                        "repeats a cursor in the pages of its {}, so the list would never end; report this to the author of the server",
                        plural(kind)
                    )));
                }
                next => cursor = next,
            }
        }
        Err(self.upstream_error(format_args!(
            "has more than {} pages of {}, which is the limit",
            self.options.max_pages,
            plural(kind)
        )))
    }

    /// Requests one page of a list; pagination continues at the cursor of the page before.
    async fn request_page(
        &self,
        kind: ItemKind,
        cursor: Option<&Json>,
    ) -> Result<Json, RequestFailure> {
        let params = |_: &_| {
            let mut o = ObjectWriter::new();
            self.write_request_meta(&mut o);
            if let Some(cursor) = cursor {
                o.raw("cursor", cursor);
            }
            o.finish()
        };
        let method = kind.list_method();
        let request = self.link.request(method, RequestPurpose::List, params);
        request.await
    }

    /// Reads one page of a list.
    fn read_page(&self, kind: ItemKind, result: &Json) -> Result<ListPage, RequestFailure> {
        let complete = self.peer.dialect.result_type(result);
        if complete.is_some_and(|kind| kind.str_cow().as_deref() != Some("complete")) {
            return Err(RequestFailure::Malformed(
                "its resultType is not \"complete\"",
            ));
        }
        ListPage::read(kind, result).ok_or(RequestFailure::Malformed(
            "the result has no array of items",
        ))
    }

    /// Writes the `_meta` of a request on behalf of no caller, if the revision has it.
    pub(super) fn write_request_meta(&self, o: &mut ObjectWriter) {
        self.write_request_meta_with(o, || self.options.standing_capabilities());
    }

    /// Writes the `_meta` of a request that declares these capabilities, if the revision has it.
    pub(super) fn write_request_meta_with(
        &self,
        o: &mut ObjectWriter,
        capabilities: impl FnOnce() -> ClientCapabilities,
    ) {
        let dialect = self.peer.dialect;
        if dialect.request_meta {
            let client = &self.options.client;
            o.object("_meta", |m| {
                write_client_meta(m, dialect, client, &capabilities())
            });
        }
    }

    /// Returns whether an error means an empty list: a server may support only one list of a capability, or declare
    /// none and support none.
    fn means_empty_list(&self, kind: ItemKind, error: &RpcError) -> bool {
        error.code == code::METHOD_NOT_FOUND
            && (kind == ItemKind::Template || !self.peer.has_capability_for(kind))
    }

    fn list_error(&self, kind: ItemKind, failure: RequestFailure) -> Error {
        match failure {
            RequestFailure::Rpc(error) => self.upstream_error(format_args!(
                "answered the request for its {} with an error: {}",
                plural(kind),
                sanitize_line(&error.message, 200)
            )),
            RequestFailure::Rejected(error) => error,
            RequestFailure::Malformed(reason) => {
                self.upstream_error(format_args!("sent a malformed list: {reason}; report this to the author of the server"))
            }
            RequestFailure::Unusable(reason) => self.upstream_error(format_args!(
                "listed its {}, but the list {reason}",
                plural(kind)
            )),
            RequestFailure::BudgetExceeded => self.upstream_error(format_args!(
                "listed its {}, but the memory budget for messages in flight is exhausted; try again when other calls have ended",
                plural(kind)
            )),
            RequestFailure::ConnectionLost { .. } => Error::new(
                ErrorKind::Upstream,
                format!(
                    "the server {} stopped before it listed its {}; list again when it is running",
                    self.name(),
                    plural(kind)
                ),
            ),
            RequestFailure::Http { words, .. } => self.upstream_error(format_args!(
                "did not list its {}: it {words}",
                plural(kind)
            )),
        }
    }

    /// Stores a list of an earlier connection, which is fresh until this time.
    pub(super) fn seed_list(
        &self,
        kind: ItemKind,
        items: Vec<Json>,
        hint: CacheHint,
        fresh_until: Instant,
    ) {
        let joined = JoinedPages {
            items,
            hint,
            ..JoinedPages::default()
        };
        self.store_list(kind, joined, self.link.generation.load(Relaxed));
        if let Some(cached) = self.lists.of(kind).cached().as_mut() {
            cached.list_fresh_until = fresh_until;
            cached.lookup_fresh_until = fresh_until;
        }
    }

    /// Returns the time for which a list may be returned.
    fn list_lifetime(&self, kind: ItemKind, hint: CacheHint) -> Duration {
        if self.peer.dialect.cache_hints {
            Duration::from_millis(hint.ttl_ms).min(self.options.max_list_ttl)
        } else if self.peer.reports_list_changes(kind)
            && !self.link.has_no_change_stream.load(Relaxed)
        {
            self.options.max_list_ttl
        } else {
            DEFAULT_LIST_TTL.min(self.options.max_list_ttl)
        }
    }

    /// Stores the last list again, which the server has repeated.
    fn renew_list(&self, kind: ItemKind, catalog: Catalog, generation: u64) -> Catalog {
        if let Some(cached) = self.lists.of(kind).cached().as_mut() {
            cached.renew(self.list_lifetime(kind, cached.hint), generation);
        }
        catalog
    }

    fn store_list(&self, kind: ItemKind, joined: JoinedPages, generation: u64) -> Catalog {
        let lifetime = self.list_lifetime(kind, joined.hint);
        let only_page = joined.only_page.clone();
        let hint = joined.hint;
        let (items, notes) = self.items(kind, joined);
        let list = self.lists.of(kind);
        let mut kept = list.cached();
        let old = kept.as_ref();
        let same = |old: &&CachedCatalog| {
            same_items(old.catalog.items(), &items) && old.catalog.notes() == notes
        };
        let catalog = match old.filter(same) {
            Some(old) => old.catalog.clone(),
            None => {
                Catalog::with_missing_servers(items, Vec::new(), self.peer.instructions.clone())
                    .with_cache_hint(hint)
                    .with_notes(notes)
            }
        };
        // Reports a change that the server did not report.
        if old.is_some_and(|old| {
            old.generation == generation && !old.catalog.is_same_snapshot(&catalog)
        }) {
            self.link
                .changes
                .send_modify(|stale| stale.count_list_change(kind));
        }
        let now = Instant::now();
        let mut made = CachedCatalog {
            catalog: catalog.clone(),
            only_page,
            hint,
            generation,
            list_fresh_until: now,
            lookup_fresh_until: now,
        };
        made.renew(lifetime, generation);
        *kept = Some(made);
        catalog
    }

    /// Returns the readable items and the notes on the others. An unchanged item remains the same object.
    fn items(&self, kind: ItemKind, joined: JoinedPages) -> (Vec<Arc<Item>>, Vec<DefinitionNote>) {
        let old = self.lists.of(kind).cached();
        let old = old.as_ref().map(|kept| kept.catalog.clone());
        let old = old.unwrap_or_default();
        let (mut items, mut notes, mut names) =
            (Vec::<Arc<Item>>::new(), Vec::new(), HashSet::new());
        let most = self.options.max_items;
        for (at, json) in joined.items.into_iter().take(most).enumerate() {
            // Text that was read before was valid and gives the same item, so it is not read again.
            let same = old
                .items()
                .get(items.len())
                .filter(|item| item.notes.is_empty());
            let unchanged = same.filter(|item| item.withheld.is_none() && *item.def.json() == json);
            if let Some(item) = unchanged.filter(|item| names.insert(item.def.name().to_owned())) {
                items.push(item.clone());
                continue;
            }
            match self.read_item(kind, json.clone(), &mut names) {
                Ok(item) => items.push(
                    match old.find(item.def.name()).filter(|old| is_same(old, &item)) {
                        Some(old) => old.clone(),
                        None => Arc::new(item),
                    },
                ),
                Err(reason) => {
                    let name = json.get(kind.key_member()).and_then(|name| name.string());
                    let place = || format!("number {}", at + 1);
                    let name = name.map_or_else(place, |name| sanitize_line(&name, 128));
                    notes.push(self.note(kind, &name, NoteAction::Dropped, reason));
                }
            }
        }
        if joined.cut {
            let why = format!(
                "the server lists more than {most} {}; the rest are dropped; raise tools_per_server",
                plural(kind)
            );
            // First, so that the limit on notes cannot drop it.
            notes.insert(0, self.note(kind, "", NoteAction::Dropped, &why));
        }
        (items, notes)
    }

    /// Returns the item with a valid definition: with notes on repairs, or withheld. Arguments that a server wants
    /// repeated as headers must follow the rules on `x-mcp-header`.
    fn read_item(
        &self,
        kind: ItemKind,
        json: Json,
        names: &mut HashSet<String>,
    ) -> Result<Item, &'static str> {
        if self.link.rereads_items.load(Relaxed) {
            // Strictly, so that an item that a strict reader rejects hides only itself.
            let text = json.as_str().as_bytes().to_vec();
            Json::read(text, &self.link.limits)
                .map_err(|_| "it has a duplicate key, or a key with U+0000")?;
        }
        let NormalizedDefinition {
            definition: def,
            repairs,
            withheld,
        } = normalize::definition(kind, json)?;
        let reads_as_other = [
            Item::RESOURCE_PREFIX,
            Item::PROMPT_PREFIX,
            Item::SKILL_PREFIX,
        ]
        .iter()
        .any(|prefix| def.name().starts_with(prefix));
        if kind == ItemKind::Tool && reads_as_other {
            return Err(
                "its name begins with a prefix that is reserved for resources, prompts and skills",
            );
        }
        if kind == ItemKind::Tool && self.repeats_arguments() {
            ParamHeaders::read(&def.input_schema()).inspect_err(|_| {
                let words =
                    "one of its tools violates the rules for \"x-mcp-header\" and was dropped";
                self.link.notes.record(words);
            })?;
        }
        if !names.insert(def.name().to_owned()) {
            return Err("its name is already in the list; only the first one is kept");
        }
        let item = Item::new(self.options.origin.clone(), def);
        let item = repairs.iter().fold(item, |item, line| {
            item.with_note(NoteAction::Repaired, &sanitize_line(line, MAX_REASON_CHARS))
        });
        Ok(match withheld {
            Some(why) => item.withhold(why),
            None => item,
        })
    }
}

/// Maximum length of a note's reason, in characters.
const MAX_REASON_CHARS: usize = 300;

/// Returns whether two items have the same definition, notes and withholding.
fn is_same(old: &Item, new: &Item) -> bool {
    old.def == new.def && old.notes == new.notes && old.withheld == new.withheld
}

fn is_empty(cursor: &Json) -> bool {
    cursor.str_cow().is_some_and(|text| text.is_empty())
}

/// Returns the plural noun of a kind.
fn plural(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Tool => "tools",
        ItemKind::Resource => "resources",
        ItemKind::Template => "resource templates",
        ItemKind::Prompt => "prompts",
        ItemKind::Skill => "skills",
    }
}

fn same_items(old: &[Arc<Item>], new: &[Arc<Item>]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| Arc::ptr_eq(old, new))
}
