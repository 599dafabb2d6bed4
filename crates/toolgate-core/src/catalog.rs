//! Items, and catalogs: immutable snapshots of the items that a service offers.

use crate::{
    DefinitionNote, DefinitionPin, ItemNote, NoteAction,
    note::{HIDDEN_BY_CONFIG, MAX_NOTES_PER_ITEM, MAX_NOTES_PER_LIST},
};
use foldhash::HashMap as FoldHashMap;
use std::{
    any::{Any, TypeId},
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};
use toolgate_protocol::{
    json::Json,
    method::{
        definition::{Definition, ItemKind, ToolAnnotations},
        list::CacheHint,
        skills::SkillManifest,
        uri_template,
    },
};

/// Origin of an item: the configured id of its server, never the server's self-reported name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Origin {
    /// Configured id of the server that offers the item.
    pub server: Arc<str>,
    /// True if the operator trusts the annotations of the server.
    pub trusted: bool,
}

/// Instructions of a server for the model, as in its `initialize` result.
///
/// Specification: [discovery](https://modelcontextprotocol.io/specification/2026-07-28/server/discover).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ServerInstructions {
    /// Configured id of the server; set if several servers are combined.
    pub server: Option<Arc<str>>,
    /// Text of the server's instructions.
    pub text: String,
}

impl ServerInstructions {
    /// Creates the instructions of the only server.
    pub fn new(text: impl Into<String>) -> ServerInstructions {
        ServerInstructions {
            server: None,
            text: text.into(),
        }
    }
}

/// Definition of an item at its server, before the gateway overrode it.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_core::{Definition, Item, Json, OriginalDefinition};
///
/// /// Offers a tool under another definition, and adds arguments to each call.
/// fn override_tool(item: &Item, shown: Definition, fixed_arguments: Json) -> Item {
///     let original = OriginalDefinition::new(item.def.clone(), Some(fixed_arguments));
///     let mut overridden = item.with_def(shown);
///     overridden.original = Some(Arc::new(original));
///     overridden
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OriginalDefinition {
    /// Definition of the item as its server lists it, unchanged.
    pub def: Definition,
    /// Arguments that the operator fixes, an object: added to every call. Callers neither see nor send them.
    pub fixed_arguments: Option<Json>,
}

impl OriginalDefinition {
    /// Creates the original definition of an overridden item, with the arguments that the operator fixes.
    pub fn new(def: Definition, fixed_arguments: Option<Json>) -> OriginalDefinition {
        OriginalDefinition {
            def,
            fixed_arguments,
        }
    }
}

/// Values cached in an item, one per type.
type ItemCache = Vec<(TypeId, Arc<dyn Any + Send + Sync>)>;

/// Tool, resource, resource template, prompt or skill that a server offers.
pub struct Item {
    /// Server that offers the item, and whether it is trusted.
    pub origin: Origin,
    /// Definition of the item under the name that callers use.
    pub def: Definition,
    /// Name of the item without the server's prefix, as the operator reads and writes it.
    pub local_name: String,
    /// Original definition at its server, if the item is overridden.
    pub original: Option<Arc<OriginalDefinition>>,
    /// Reason why the item is withheld from callers and visible to the operator only; `None` for an available item.
    pub withheld: Option<String>,
    /// Pin state of the item's original definition: new, accepted or changed; `None` if it was not compared with a pin.
    pub pin: Option<Arc<DefinitionPin>>,
    /// Notes for the operator on repaired or unchecked parts of the definition.
    pub notes: Vec<ItemNote>,
    cache: Mutex<ItemCache>,
    cached_full_name: OnceLock<Arc<str>>,
    /// Handle that an observer of calls keeps here, so that it looks nothing up for each call.
    observer_handle: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Item {
    /// Creates an item under the name that its server gives it.
    pub fn new(origin: Origin, def: Definition) -> Item {
        Item {
            local_name: def.name().to_owned(),
            origin,
            def,
            original: None,
            withheld: None,
            pin: None,
            notes: Vec::new(),
            cache: Mutex::default(),
            cached_full_name: OnceLock::new(),
            observer_handle: OnceLock::new(),
        }
    }

    /// Returns the same item with another definition and an empty cache.
    pub fn with_def(&self, def: Definition) -> Item {
        Item {
            origin: self.origin.clone(),
            def,
            local_name: self.local_name.clone(),
            original: self.original.clone(),
            withheld: self.withheld.clone(),
            pin: self.pin.clone(),
            notes: self.notes.clone(),
            cache: Mutex::default(),
            cached_full_name: OnceLock::new(),
            observer_handle: OnceLock::new(),
        }
    }

    /// Returns the same item with the pin state of its original definition.
    pub fn with_pin(&self, pin: Arc<DefinitionPin>) -> Item {
        Item {
            pin: Some(pin),
            ..self.with_def(self.def.clone())
        }
    }

    /// Returns the same item, withheld from all callers for this reason.
    pub fn withhold(&self, reason: String) -> Item {
        Item {
            withheld: Some(reason),
            ..self.with_def(self.def.clone())
        }
    }

    /// Returns the same item with an additional note for the operator. Duplicates are ignored, and so are notes beyond
    /// the limit of an item.
    ///
    /// ```
    /// # use toolgate_core::{Definition, Item, Json, NoteAction, Origin};
    /// # let json = Json::from_value(&serde_json::json!({"name": "t", "inputSchema": {"type": "object"}}));
    /// # let origin = Origin { server: "s".into(), trusted: false };
    /// # let item = Item::new(origin, Definition::tool(json).unwrap());
    /// let item = item.with_note(NoteAction::PartlyChecked, "the keyword \"pattern\" at /name is skipped");
    /// assert_eq!(item.all_notes().count(), 1);
    /// ```
    pub fn with_note(&self, action: NoteAction, reason: &str) -> Item {
        let mut item = self.with_def(self.def.clone());
        let note = ItemNote::new(action, reason);
        if item.notes.len() < MAX_NOTES_PER_ITEM && !item.notes.contains(&note) {
            item.notes.push(note);
        }
        item
    }

    /// Returns all notes on the item, the reason why it is withheld first.
    pub fn all_notes(&self) -> impl Iterator<Item = DefinitionNote> + '_ {
        let withheld = self.withheld_for_callers();
        let withheld = withheld.map(|why| ItemNote::new(NoteAction::Withheld, why));
        let notes = withheld.into_iter().chain(self.notes.iter().cloned());
        notes.map(|note| {
            let (server, kind) = (self.origin.server.clone(), self.kind());
            DefinitionNote::new(
                server,
                kind,
                self.upstream_name(),
                note.action,
                &note.reason,
            )
        })
    }

    /// Returns the reason why the item is withheld, if callers that may see the item may know the reason. `None` if the
    /// configuration hides the item.
    pub fn withheld_for_callers(&self) -> Option<&str> {
        self.withheld
            .as_deref()
            .filter(|why| *why != HIDDEN_BY_CONFIG)
    }

    /// Returns the kind of the item: tool, resource, template, prompt or skill.
    pub fn kind(&self) -> ItemKind {
        self.def.kind()
    }

    /// Returns the full name of the item in config, console, audit log and on the command line. It is `server.tool`,
    /// `server.resource:URI`, `server.prompt:NAME` or `server.skill:URI`.
    pub fn full_name(&self) -> String {
        [
            &*self.origin.server,
            ".",
            self.kind_prefix(),
            &self.local_name,
        ]
        .concat()
    }

    /// Returns the full name of the item, built once and shared.
    pub fn shared_name(&self) -> Arc<str> {
        self.cached_full_name
            .get_or_init(|| self.full_name().into())
            .clone()
    }

    /// Returns the handle that an observer of calls keeps with the item, made once. `None` if another type of observer
    /// was first.
    #[doc(hidden)]
    pub fn observer_handle<T: Any + Send + Sync>(
        &self,
        make: impl FnOnce() -> Arc<T>,
    ) -> Option<&T> {
        let handle = self.observer_handle.get_or_init(|| make());
        handle.downcast_ref()
    }

    /// Returns the full name of the item without the server, for example `prompt:NAME`; unique within the server.
    pub fn local_key(&self) -> String {
        [self.kind_prefix(), &self.local_name].concat()
    }

    /// Returns the name of the item at its server, by which it is pinned and called.
    pub fn upstream_name(&self) -> &str {
        self.original
            .as_ref()
            .map_or(&self.local_name, |own| own.def.name())
    }

    /// Returns the item's kind prefix and its name at its server, for example `prompt:NAME`; for a tool the name alone.
    pub fn upstream_key(&self) -> String {
        [self.kind_prefix(), self.upstream_name()].concat()
    }

    /// Returns the input schema of the tool at its server, before overrides.
    pub fn upstream_input_schema(&self) -> Json {
        let def = self.original.as_ref().map_or(&self.def, |own| &own.def);
        def.input_schema()
    }

    /// Returns the arguments that the operator fixes for the item, which are added to every call.
    pub fn fixed_arguments(&self) -> Option<&Json> {
        self.original.as_ref()?.fixed_arguments.as_ref()
    }

    fn kind_prefix(&self) -> &'static str {
        match self.kind() {
            ItemKind::Tool => "",
            ItemKind::Resource | ItemKind::Template => Item::RESOURCE_PREFIX,
            ItemKind::Prompt => Item::PROMPT_PREFIX,
            ItemKind::Skill => Item::SKILL_PREFIX,
        }
    }

    /// Prefix of resource and template URIs in full item names, as in `server.resource:URI`.
    pub const RESOURCE_PREFIX: &str = "resource:";
    /// Prefix of prompt names in full item names, as in `server.prompt:NAME`.
    pub const PROMPT_PREFIX: &str = "prompt:";
    /// Prefix of skill URIs in full item names, as in `server.skill:URI`.
    pub const SKILL_PREFIX: &str = "skill:";

    /// Returns true if a URI other than its own belongs to the item: it matches the template or names a skill's file.
    #[doc(hidden)]
    pub fn matches_uri(&self, uri: &str) -> bool {
        match self.kind() {
            ItemKind::Template => uri_template::matches_template(self.def.name(), uri),
            ItemKind::Skill => self.manifest().is_some_and(|files| files.contains(uri)),
            ItemKind::Tool | ItemKind::Resource | ItemKind::Prompt => false,
        }
    }

    /// Returns the manifest of a skill's files; `None` for items of other kinds.
    pub fn manifest(&self) -> Option<Arc<SkillManifest>> {
        match self.kind() {
            ItemKind::Skill => self
                .cached(|item| SkillManifest::of(&item.def).map(Arc::new))
                .as_ref()
                .clone(),
            _ => None,
        }
    }

    /// Returns the tool annotations, or the most cautious defaults if the server is not trusted.
    pub fn annotations(&self) -> ToolAnnotations {
        if self.origin.trusted {
            self.def.annotations()
        } else {
            ToolAnnotations::default()
        }
    }

    /// Returns a value derived from the item, computed once per type and cached in the item.
    pub fn cached<T: Any + Send + Sync>(&self, make: impl FnOnce(&Item) -> T) -> Arc<T> {
        self.cached_while(|_| true, make)
    }

    /// Returns a value derived from the item and from something else, cached in the item as long as it is current.
    ///
    /// Computes the value again, and replaces the cached one, if `is_current` returns false.
    #[doc(hidden)]
    pub fn cached_while<T: Any + Send + Sync>(
        &self,
        is_current: impl FnOnce(&T) -> bool,
        make: impl FnOnce(&Item) -> T,
    ) -> Arc<T> {
        let own = TypeId::of::<T>();
        let kept = self.lock_cache().iter().find(|(of, _)| *of == own).cloned();
        let kept = kept.and_then(|(_, kept)| kept.downcast::<T>().ok());
        if let Some(kept) = kept.filter(|kept| is_current(kept)) {
            return kept;
        }
        let made = Arc::new(make(self));
        let mut kept = self.lock_cache();
        // Two threads may have computed the value at once: the last one stays.
        kept.retain(|(of, _)| *of != own);
        kept.push((own, made.clone()));
        made
    }

    fn lock_cache(&self) -> std::sync::MutexGuard<'_, ItemCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Item({})", self.full_name())
    }
}

impl fmt::Display for ServerInstructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            Some(server) => write!(f, "{server}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Immutable list of the items of one kind that a service offers, with an index by name. Cheap to clone.
///
/// ```
/// use std::sync::Arc;
/// use serde_json::json;
/// use toolgate_core::{
///     Catalog, Definition, DefinitionNote, DefinitionPin, Item, ItemKind, ItemNote, Json, NoteAction, Origin, PinState,
///     ServerInstructions,
/// };
///
/// let definition = json!({"name": "read", "inputSchema": {"type": "object"}});
/// let origin = Origin { server: "files".into(), trusted: false };
/// let item = Item::new(origin, Definition::tool(Json::from_value(&definition))?)
///     .with_note(NoteAction::Repaired, "its title had control characters")
///     .with_pin(Arc::new(DefinitionPin::new("4be1", PinState::Accepted)));
///
/// let mut help = ServerInstructions::new("Paths begin at the root.");
/// help.server = Some("files".into());
/// let note = ItemNote::new(NoteAction::Dropped, "no name");
/// let catalog = Catalog::new(vec![Arc::new(item)])
///     .with_server_instructions(vec![help])
///     .with_notes(vec![DefinitionNote::from_note("files", ItemKind::Tool, "2", note)]);
/// assert_eq!(catalog.find("read").map(|item| item.full_name()), Some("files.read".to_owned()));
/// assert_eq!(catalog.all_notes().count(), 2);
/// # Ok::<(), &'static str>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Catalog(Arc<CatalogSnapshot>);

#[derive(Clone, Debug, Default)]
struct CatalogSnapshot {
    items: Vec<Arc<Item>>,
    /// Position of each item by name; every call uses it.
    index: FoldHashMap<String, usize>,
    missing_servers: Vec<String>,
    server_instructions: Vec<ServerInstructions>,
    /// Notes on dropped definitions and on the list itself.
    notes: Vec<DefinitionNote>,
    cache_hint: CacheHint,
}

impl Catalog {
    /// Creates a catalog of these items; the first of several items with one name is kept.
    pub fn new(items: Vec<Arc<Item>>) -> Catalog {
        Catalog::with_missing_servers(items, Vec::new(), None)
    }

    /// Creates a catalog with the names of unavailable servers, so that their missing items do not look removed.
    pub fn with_missing_servers(
        items: Vec<Arc<Item>>,
        missing: Vec<String>,
        instructions: Option<String>,
    ) -> Catalog {
        let text = instructions.into_iter();
        let about = text
            .map(|text| ServerInstructions { server: None, text })
            .collect();
        Catalog::build(items, missing, about)
    }

    fn build(
        items: Vec<Arc<Item>>,
        missing: Vec<String>,
        about: Vec<ServerInstructions>,
    ) -> Catalog {
        let mut inner = CatalogSnapshot {
            missing_servers: missing,
            server_instructions: about,
            ..CatalogSnapshot::default()
        };
        for item in items {
            if !inner.index.contains_key(item.def.name()) {
                inner
                    .index
                    .insert(item.def.name().to_owned(), inner.items.len());
                inner.items.push(item);
            }
        }
        Catalog(Arc::new(inner))
    }

    /// Returns the items of the catalog, in their order.
    pub fn items(&self) -> &[Arc<Item>] {
        &self.0.items
    }

    /// Finds the item with this name, else the first template or skill that the URI belongs to.
    pub fn find(&self, name: &str) -> Option<&Arc<Item>> {
        if let Some(at) = self.0.index.get(name) {
            return self.0.items.get(*at);
        }
        self.0.items.iter().find(|item| item.matches_uri(name))
    }

    /// Returns the item with exactly this name.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Item>> {
        self.0.items.get(*self.0.index.get(name)?)
    }

    /// Returns the item of that name, else all templates that the URI matches and all skills with that file. A server
    /// may interpret the URI as any of them.
    pub(crate) fn matching<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Arc<Item>> {
        let exact = self.named(name);
        let others = match exact {
            Some(_) => &[],
            None => self.items(),
        };
        let fits = move |item: &&Arc<Item>| item.matches_uri(name);
        exact.into_iter().chain(others.iter().filter(fits))
    }

    /// Returns the notes on dropped definitions and on the list itself.
    pub fn notes(&self) -> &[DefinitionNote] {
        &self.0.notes
    }

    /// Returns all notes of the catalog: those on the list, then those on its items.
    pub fn all_notes(&self) -> impl Iterator<Item = DefinitionNote> + '_ {
        let items = self.0.items.iter().flat_map(|item| item.all_notes());
        self.0.notes.iter().cloned().chain(items)
    }

    /// Returns the cache hint of the list: how long it may be cached, and for whom.
    pub fn cache_hint(&self) -> CacheHint {
        self.0.cache_hint
    }

    /// Returns the servers that were unavailable when the catalog was built.
    pub fn missing_servers(&self) -> &[String] {
        &self.0.missing_servers
    }

    /// Returns the instructions of the servers, one entry each.
    pub fn server_instructions(&self) -> &[ServerInstructions] {
        &self.0.server_instructions
    }

    /// Returns the instructions of all servers as one text. A server's part begins with its name if there are several
    /// servers.
    pub fn instructions(&self) -> Option<String> {
        let words = self
            .0
            .server_instructions
            .iter()
            .map(ServerInstructions::to_string);
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| words.join("\n\n"))
    }

    /// Returns the same catalog with other items, for example after filtering.
    pub fn with_items(&self, items: Vec<Arc<Item>>) -> Catalog {
        let made = Catalog::build(
            items,
            self.0.missing_servers.clone(),
            self.0.server_instructions.clone(),
        );
        made.modify(|inner| {
            inner.notes.clone_from(&self.0.notes);
            inner.cache_hint = self.0.cache_hint;
        })
    }

    /// Returns the same catalog with other missing servers.
    pub(crate) fn with_missing(self, missing: Vec<String>) -> Catalog {
        self.modify(|inner| inner.missing_servers = missing)
    }

    /// Returns the same catalog with other server instructions.
    pub fn with_server_instructions(self, instructions: Vec<ServerInstructions>) -> Catalog {
        self.modify(|inner| inner.server_instructions = instructions)
    }

    /// Returns the same catalog with another cache hint.
    pub fn with_cache_hint(self, hint: CacheHint) -> Catalog {
        self.modify(|inner| inner.cache_hint = hint)
    }

    /// Returns the same catalog with these notes, limited to the first [`MAX_NOTES_PER_LIST`] of each server.
    pub fn with_notes(self, mut notes: Vec<DefinitionNote>) -> Catalog {
        let mut counts = FoldHashMap::<Arc<str>, usize>::default();
        notes.retain(|note| {
            let count = counts.entry(note.server.clone()).or_default();
            *count += 1;
            *count <= MAX_NOTES_PER_LIST
        });
        self.modify(|inner| inner.notes = notes)
    }

    /// Applies a change to the catalog, copying its content if it is shared.
    fn modify(mut self, change: impl FnOnce(&mut CatalogSnapshot)) -> Catalog {
        match Arc::get_mut(&mut self.0) {
            Some(inner) => change(inner),
            None => {
                let mut inner = CatalogSnapshot::clone(&self.0);
                change(&mut inner);
                self.0 = Arc::new(inner);
            }
        }
        self
    }

    /// Returns true if both catalogs share one snapshot, so that values derived from either are valid for both.
    pub fn is_same_snapshot(&self, other: &Catalog) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
