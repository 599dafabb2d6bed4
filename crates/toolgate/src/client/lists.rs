//! Lists of a server: pages joined within limits, and cached until they are stale.

use super::{
    http::ParamHeaders,
    link::{RequestFailure, RequestPurpose},
    open::stamp,
    remote::RemoteServer,
    status::harmless,
};
use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
};
use tokio::time::{Duration, Instant, timeout};
use toolgate_core::{
    CacheHint, Catalog, Definition, DefinitionNote, Error, ErrorKind, Item, ItemKind, ListRequest,
    NoteAction,
};
use toolgate_wire::{
    json::{Json, ObjectWriter},
    message::{RpcError, code},
    method::{list::ListPage, skills},
    normalize::{self, NormalizedDefinition},
};

/// Cache time of a list if the server does not report changes.
const DEFAULT_LIST_TTL: Duration = Duration::from_secs(60);
/// Extra cache time of an old list after a refresh failed.
const STALE_LIST_TTL: Duration = Duration::from_secs(5);

/// Cached lists of all kinds.
#[derive(Default)]
pub(super) struct ListCaches {
    kinds: [ListCache; ItemKind::ALL.len()],
    /// Unlisted skills that were fetched by URI.
    got: Mutex<VecDeque<Arc<Item>>>,
}

impl ListCaches {
    pub(super) fn of(&self, kind: ItemKind) -> &ListCache {
        &self.kinds[kind as usize]
    }
}

impl ListCaches {
    /// Maximum number of unlisted skills that are cached; the oldest is evicted first.
    const MAX_UNLISTED_SKILLS: usize = 64;

    fn got(&self) -> Vec<Arc<Item>> {
        let got = self.got.lock().unwrap_or_else(PoisonError::into_inner);
        got.iter().cloned().collect()
    }

    fn get(&self, item: Arc<Item>) {
        let mut got = self.got.lock().unwrap_or_else(PoisonError::into_inner);
        got.retain(|other| other.def.name() != item.def.name());
        got.truncate(ListCaches::MAX_UNLISTED_SKILLS - 1);
        got.push_front(item);
    }
}

/// Cached list of one kind.
#[derive(Default)]
pub(super) struct ListCache {
    kept: Mutex<Option<CachedCatalog>>,
    /// Error of the last refresh; cleared by the next success.
    failure: Mutex<Option<String>>,
    /// Single-flight lock: one task reads the list, the others wait for its result.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct CachedCatalog {
    catalog: Catalog,
    /// Change counter of the connection at which the list was read.
    generation: u64,
    /// Time until which the list may be returned.
    shown_until: Instant,
    /// Time until which names may be looked up in it.
    used_until: Instant,
}

impl ListCache {
    /// Returns the number of items of the last list.
    pub(super) fn count(&self) -> Option<usize> {
        self.kept().as_ref().map(|kept| kept.catalog.items().len())
    }

    /// Returns the item with that name in the last list.
    pub(super) fn known(&self, name: &str) -> Option<Arc<Item>> {
        self.kept().as_ref()?.catalog.find(name).cloned()
    }

    /// Returns the notes on the last list and on its items.
    fn notes(&self) -> Vec<DefinitionNote> {
        let kept = self.kept();
        kept.iter()
            .flat_map(|kept| kept.catalog.all_notes())
            .collect()
    }

    /// Returns the error of the last refresh.
    fn failure(&self) -> MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, Option<CachedCatalog>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Items of all pages of a list.
#[derive(Default)]
struct JoinedPages {
    items: Vec<Json>,
    hint: CacheHint,
    cut: bool,
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
        let catalog = self.listed_for(ask).await?;
        let got = match kind {
            ItemKind::Skill => self.lists.got(),
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
        if !self.peer.has(ItemKind::Skill) {
            return Err(self.upstream("does not offer skills"));
        }
        let params = |_: &_| {
            let mut o = ObjectWriter::new();
            self.stamp(&mut o);
            o.str("uri", uri);
            o.finish()
        };
        let asked = self.link.request(skills::GET, RequestPurpose::List, params);
        let result = match timeout(self.options.list, asked).await {
            Ok(result) => result.map_err(|failure| self.failed(failure))?,
            Err(_) => return Err(self.upstream("did not answer the request for a skill")),
        };
        let entry = result
            .get("skill")
            .ok_or_else(|| self.invalid("it has no \"skill\""))?;
        if entry.as_str().len() > self.options.list_bytes {
            return Err(self.invalid("the skill is too large"));
        }
        let def = Definition::read(ItemKind::Skill, entry).map_err(|why| self.invalid(why))?;
        if def.name() != uri {
            return Err(self.invalid("it contains another skill"));
        }
        self.lists
            .get(Arc::new(Item::new(self.options.origin.clone(), def)));
        Ok(())
    }

    /// Returns a complete list from the cache or the server. An unchanged list is the same object.
    async fn listed_for(&self, ask: ListRequest) -> Result<Catalog, Error> {
        let (kind, shown) = (ask.kind, ask.only.is_none());
        if let Some(kept) = self.good(kind, shown) {
            return Ok(kept);
        }
        let _reading = self.lists.of(kind).reading.lock().await;
        if let Some(kept) = self.good(kind, shown) {
            return Ok(kept);
        }
        let generation = self.link.generation.load(Relaxed);
        let read = timeout(self.options.list, self.read_list(kind)).await;
        let late = |_| {
            self.upstream(format_args!(
                "did not list its {} within {:?}",
                many(kind),
                self.options.list
            ))
        };
        match read.map_err(late).and_then(|read| read) {
            Ok(joined) => {
                *self.lists.of(kind).failure() = None;
                Ok(self.keep(kind, joined, generation))
            }
            Err(error) => {
                *self.lists.of(kind).failure() = Some(error.public().to_owned());
                self.old_list(kind, error)
            }
        }
    }

    fn good(&self, kind: ItemKind, shown: bool) -> Option<Catalog> {
        if self.link.is_lost() {
            return None;
        }
        let kept = self.lists.of(kind).kept();
        let kept = kept.as_ref()?;
        let until = if shown {
            kept.shown_until
        } else {
            kept.used_until
        };
        let unchanged = kept.generation == self.link.generation.load(Relaxed);
        (unchanged && Instant::now() < until).then(|| kept.catalog.clone())
    }

    /// Extends the cache time of the old list after a failed refresh, as long as the server runs.
    fn old_list(&self, kind: ItemKind, error: Error) -> Result<Catalog, Error> {
        let mut kept = self.lists.of(kind).kept();
        let Some(kept) = kept.as_mut().filter(|_| !self.link.is_lost()) else {
            return Err(error);
        };
        self.link.notes.say(format!(
            "a stale list of its {} is used: {}",
            many(kind),
            error.public()
        ));
        kept.generation = self.link.generation.load(Relaxed);
        kept.shown_until = Instant::now() + STALE_LIST_TTL;
        kept.used_until = kept.shown_until;
        Ok(kept.catalog.clone())
    }

    async fn read_list(&self, kind: ItemKind) -> Result<JoinedPages, Error> {
        let mut joined = JoinedPages::default();
        // A server without tools may omit the capability; other lists are requested only if declared.
        if kind != ItemKind::Tool && !self.peer.has(kind) {
            return Ok(joined);
        }
        let (mut cursor, mut cursors, mut bytes) = (None::<Json>, HashSet::new(), 0);
        for _ in 0..self.options.pages {
            let page = match self.read_page(kind, cursor.as_ref()).await {
                Ok(page) => page,
                Err(RequestFailure::Rpc(error))
                    if cursor.is_none() && self.has_none(kind, &error) =>
                {
                    return Ok(joined);
                }
                Err(failure) => return Err(self.unlisted(kind, failure)),
            };
            joined.hint = match &cursor {
                None => page.hint,
                Some(_) => joined.hint.and(page.hint),
            };
            bytes += page
                .items
                .iter()
                .map(|item| item.as_str().len())
                .sum::<usize>();
            if bytes > self.options.list_bytes {
                return Err(self.upstream(format_args!(
                    "lists more than {} bytes of {}",
                    self.options.list_bytes,
                    many(kind)
                )));
            }
            joined.items.extend(page.items);
            joined.cut = joined.items.len() > self.options.tools;
            match page.next {
                None => return Ok(joined),
                // Legacy servers end a list with an empty cursor; in 2026-07-28 an empty cursor is an ordinary cursor.
                Some(next) if is_empty(&next) && !self.peer.dialect.stateless => {
                    return Ok(joined);
                }
                Some(next) if is_empty(&next) && cursors.contains(next.as_str()) => {
                    return Ok(joined);
                }
                Some(_) if joined.cut => return Ok(joined),
                Some(next) if !cursors.insert(next.as_str().to_owned()) => {
                    return Err(self.upstream(format_args!(
                        "repeats a cursor in the pages of its {}",
                        many(kind)
                    )));
                }
                next => cursor = next,
            }
        }
        Err(self.upstream(format_args!(
            "has more than {} pages of {}",
            self.options.pages,
            many(kind)
        )))
    }

    async fn read_page(
        &self,
        kind: ItemKind,
        cursor: Option<&Json>,
    ) -> Result<ListPage, RequestFailure> {
        let params = |_: &_| {
            let mut o = ObjectWriter::new();
            self.stamp(&mut o);
            if let Some(cursor) = cursor {
                o.raw("cursor", cursor);
            }
            o.finish()
        };
        let result = self
            .link
            .request(kind.list_method(), RequestPurpose::List, params)
            .await?;
        let complete = result
            .get("resultType")
            .filter(|_| self.peer.dialect.stateless);
        if complete.is_some_and(|kind| kind.str_cow().as_deref() != Some("complete")) {
            return Err(RequestFailure::Malformed("the list is not complete"));
        }
        ListPage::read(kind, &result).ok_or(RequestFailure::Malformed("the list has no items"))
    }

    /// Writes the `_meta` of a stateless request on behalf of no caller.
    pub(super) fn stamp(&self, o: &mut ObjectWriter) {
        if self.peer.dialect.stateless {
            let (dialect, options) = (self.peer.dialect, &self.options);
            o.object("_meta", |m| {
                stamp(m, dialect, &options.client, &options.standing())
            });
        }
    }

    /// Returns whether an error means an empty list: a server may support only one list of a capability, or declare
    /// none and support none.
    fn has_none(&self, kind: ItemKind, error: &RpcError) -> bool {
        error.code == code::METHOD_NOT_FOUND && (kind == ItemKind::Template || !self.peer.has(kind))
    }

    fn unlisted(&self, kind: ItemKind, failure: RequestFailure) -> Error {
        match failure {
            RequestFailure::Rpc(error) => self.upstream(format_args!(
                "answered the request for its {} with an error: {}",
                many(kind),
                harmless(&error.message, 200)
            )),
            RequestFailure::Unsent(error) => error,
            RequestFailure::Malformed(reason) => {
                self.upstream(format_args!("sent a malformed list: {reason}"))
            }
            RequestFailure::Unusable(reason) => self.upstream(format_args!(
                "listed its {}, but the list {reason}",
                many(kind)
            )),
            RequestFailure::NoRoom => self.upstream(format_args!(
                "listed its {}, but the memory budget for messages in flight is exhausted",
                many(kind)
            )),
            RequestFailure::Lost { .. } => Error::new(
                ErrorKind::Upstream,
                format!("the server {} stopped", self.name()),
            ),
            RequestFailure::Http { words, .. } => {
                self.upstream(format_args!("did not list its {}: it {words}", many(kind)))
            }
        }
    }

    fn keep(&self, kind: ItemKind, joined: JoinedPages, generation: u64) -> Catalog {
        let ttl = Duration::from_millis(joined.hint.ttl_ms);
        let shown = if self.peer.dialect.stateless {
            ttl.min(self.options.keep)
        } else if self.peer.tells_changes(kind) && !self.link.deaf.load(Relaxed) {
            self.options.keep
        } else {
            DEFAULT_LIST_TTL.min(self.options.keep)
        };
        let hint = joined.hint;
        let (items, notes) = self.items(kind, joined);
        let list = self.lists.of(kind);
        let mut kept = list.kept();
        let old = kept.as_ref();
        let same = |old: &&CachedCatalog| {
            same_items(old.catalog.items(), &items) && old.catalog.notes() == notes
        };
        let catalog = match old.filter(same) {
            Some(old) => old.catalog.clone(),
            None => Catalog::of(items, Vec::new(), self.peer.instructions.clone())
                .with_hint(hint)
                .with_notes(notes),
        };
        // Reports a change that the server did not report.
        if old.is_some_and(|old| old.generation == generation && !old.catalog.same(&catalog)) {
            self.link.changes.send_modify(|stale| stale.list(kind));
        }
        // Where a list is stale immediately, the lookup before each call must not double the traffic.
        let (now, used) = (Instant::now(), shown.max(DEFAULT_LIST_TTL));
        let made = CachedCatalog {
            catalog: catalog.clone(),
            generation,
            shown_until: now + shown,
            used_until: now + used,
        };
        *kept = Some(made);
        catalog
    }

    /// Returns the readable items and the notes on the others. An unchanged item remains the same object.
    fn items(&self, kind: ItemKind, joined: JoinedPages) -> (Vec<Arc<Item>>, Vec<DefinitionNote>) {
        let old = self.lists.of(kind).kept();
        let old = old.as_ref().map(|kept| kept.catalog.clone());
        let old = old.unwrap_or_default();
        let (mut items, mut notes, mut names) =
            (Vec::<Arc<Item>>::new(), Vec::new(), HashSet::new());
        let most = self.options.tools;
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
            match self.readable(kind, json.clone(), &mut names) {
                Ok(item) => items.push(
                    match old.find(item.def.name()).filter(|old| is_same(old, &item)) {
                        Some(old) => old.clone(),
                        None => Arc::new(item),
                    },
                ),
                Err(reason) => {
                    let name = json.get(kind.key()).and_then(|name| name.string());
                    let place = || format!("number {}", at + 1);
                    let name = name.map_or_else(place, |name| harmless(&name, 128));
                    notes.push(self.note(kind, &name, NoteAction::Dropped, reason));
                }
            }
        }
        if joined.cut {
            let why = format!(
                "the server lists more than {most} {}; the rest are dropped; raise tools_per_server",
                many(kind)
            );
            // First, so that the limit on notes cannot drop it.
            notes.insert(0, self.note(kind, "", NoteAction::Dropped, &why));
        }
        (items, notes)
    }

    /// Returns the item with a valid definition: with notes on repairs, or withheld. Arguments that a server wants
    /// repeated as headers must follow the rules on `x-mcp-header`.
    fn readable(
        &self,
        kind: ItemKind,
        json: Json,
        names: &mut HashSet<String>,
    ) -> Result<Item, &'static str> {
        if self.link.apart.load(Relaxed) {
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
        if kind == ItemKind::Tool && self.mirrors() {
            ParamHeaders::read(&def.input_schema()).inspect_err(|_| {
                let words = "a tool breaks the rules on \"x-mcp-header\" and was dropped";
                self.link.notes.say(words);
            })?;
        }
        if !names.insert(def.name().to_owned()) {
            return Err("its name is already in the list; only the first one is kept");
        }
        let item = Item::new(self.options.origin.clone(), def);
        let item = repairs.iter().fold(item, |item, line| {
            item.noted(NoteAction::Repaired, &harmless(line, MAX_REASON_CHARS))
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
fn many(kind: ItemKind) -> &'static str {
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
