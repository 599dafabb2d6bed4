//! What a service offers, as a snapshot.

use crate::{
    DefinitionNote, ItemNote, NoteAction, Pinning,
    note::{HIDDEN_BY_CONFIG, MAX_NOTES_PER_ITEM, MAX_NOTES_PER_LIST},
};
use ahash::AHashMap;
use std::{
    any::{Any, TypeId},
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};
use toolgate_wire::{
    json::Json,
    method::{
        definition::{Definition, Hints, ItemKind},
        list::CacheHint,
        skills::Manifest,
        uri_template,
    },
};

/// Where an item comes from: the configured id of the server, never its self-reported name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Origin {
    /// The configured id.
    pub server: Arc<str>,
    /// Whether the operator believes its annotations.
    pub trusted: bool,
}

/// What a server says of how to use it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct About {
    /// Which one, where there are several.
    pub server: Option<Arc<str>>,
    /// Its words.
    pub text: String,
}

/// What a thing is at the server it comes from, where callers are shown something else.
#[derive(Clone, Debug, PartialEq)]
pub struct Own {
    /// Its definition, as it came.
    pub def: Definition,
    /// Arguments that are put into every call of it, an object. Callers neither see nor send them.
    pub fixed: Option<Json>,
}

/// A few things, of a type each.
type Kept = Vec<(TypeId, Arc<dyn Any + Send + Sync>)>;

/// One thing that can be used.
pub struct Item {
    /// Where it comes from.
    pub origin: Origin,
    /// Its definition, under the name that the asker uses.
    pub def: Definition,
    /// Its name within its server, as the operator reads and writes it.
    pub local: String,
    /// What it is at its server, where it is shown as something else.
    pub own: Option<Arc<Own>>,
    /// Why it may be seen by the operator only; `None` for a good item.
    pub withheld: Option<String>,
    /// What is known of the definition as it came; `None` where nobody looked.
    pub pin: Option<Arc<Pinning>>,
    /// What was changed in its definition or is not checked of it.
    pub notes: Vec<ItemNote>,
    memo: Mutex<Kept>,
    full: OnceLock<Arc<str>>,
}

impl Item {
    /// An item under the server's own name.
    pub fn new(origin: Origin, def: Definition) -> Item {
        Item {
            local: def.name().to_owned(),
            origin,
            def,
            own: None,
            withheld: None,
            pin: None,
            notes: Vec::new(),
            memo: Mutex::default(),
            full: OnceLock::new(),
        }
    }

    /// The same item with another definition; what was worked out about the old one is forgotten.
    pub fn with_def(&self, def: Definition) -> Item {
        Item {
            origin: self.origin.clone(),
            def,
            local: self.local.clone(),
            own: self.own.clone(),
            withheld: self.withheld.clone(),
            pin: self.pin.clone(),
            notes: self.notes.clone(),
            memo: Mutex::default(),
            full: OnceLock::new(),
        }
    }

    /// The same item, with what is known of its definition as it came.
    pub fn pinned(&self, pin: Arc<Pinning>) -> Item {
        Item {
            pin: Some(pin),
            ..self.with_def(self.def.clone())
        }
    }

    /// The same item, kept from all callers for a reason.
    pub fn withhold(&self, reason: String) -> Item {
        Item {
            withheld: Some(reason),
            ..self.with_def(self.def.clone())
        }
    }

    /// The same item with a note for the operator. The same note is kept once; only so many are kept.
    ///
    /// ```
    /// # use toolgate_core::{Definition, Item, Json, NoteAction, Origin};
    /// # let json = Json::from_value(&serde_json::json!({"name": "t", "inputSchema": {"type": "object"}}));
    /// # let origin = Origin { server: "s".into(), trusted: false };
    /// # let item = Item::new(origin, Definition::tool(json).unwrap());
    /// let item = item.noted(NoteAction::PartlyChecked, "the keyword \"pattern\" at /name is skipped");
    /// assert_eq!(item.all_notes().count(), 1);
    /// ```
    pub fn noted(&self, action: NoteAction, reason: &str) -> Item {
        let mut item = self.with_def(self.def.clone());
        let note = ItemNote::new(action, reason);
        if item.notes.len() < MAX_NOTES_PER_ITEM && !item.notes.contains(&note) {
            item.notes.push(note);
        }
        item
    }

    /// All notes on it, with the reason why it is withheld first.
    pub fn all_notes(&self) -> impl Iterator<Item = DefinitionNote> + '_ {
        let withheld = self.withheld_for_callers();
        let withheld = withheld.map(|why| ItemNote::new(NoteAction::Withheld, why));
        let notes = withheld.into_iter().chain(self.notes.iter().cloned());
        notes.map(|note| {
            let (server, kind) = (self.origin.server.clone(), self.kind());
            DefinitionNote::new(server, kind, self.given(), note.action, &note.reason)
        })
    }

    /// Why it is withheld, as far as a caller may know who may see the item; `None` where the configuration hides it.
    pub fn withheld_for_callers(&self) -> Option<&str> {
        self.withheld
            .as_deref()
            .filter(|why| *why != HIDDEN_BY_CONFIG)
    }

    /// What it is.
    pub fn kind(&self) -> ItemKind {
        self.def.kind()
    }

    /// Its name in config, console, record and on the command line: `server.tool`, `server.resource:URI` or
    /// `server.prompt:NAME`.
    pub fn full_name(&self) -> String {
        [&*self.origin.server, ".", self.prefix(), &self.local].concat()
    }

    /// The same, made once: an item that is listed keeps its name.
    pub fn shared_name(&self) -> Arc<str> {
        self.full.get_or_init(|| self.full_name().into()).clone()
    }

    /// The part of its full name behind the server: no two things of one server share it.
    pub fn own_name(&self) -> String {
        [self.prefix(), &self.local].concat()
    }

    /// Its name at its server: what it is pinned and called by.
    pub fn given(&self) -> &str {
        self.own.as_ref().map_or(&self.local, |own| own.def.name())
    }

    /// [`Item::own_name`] with its name at its server.
    pub fn given_name(&self) -> String {
        [self.prefix(), self.given()].concat()
    }

    /// What its server takes, as a schema.
    pub fn taken(&self) -> Json {
        let def = self.own.as_ref().map_or(&self.def, |own| &own.def);
        def.input_schema()
    }

    /// The arguments that are put into every call of it.
    pub fn fixed(&self) -> Option<&Json> {
        self.own.as_ref()?.fixed.as_ref()
    }

    fn prefix(&self) -> &'static str {
        match self.kind() {
            ItemKind::Tool => "",
            ItemKind::Resource | ItemKind::Template => Item::RESOURCE,
            ItemKind::Prompt => Item::PROMPT,
            ItemKind::Skill => Item::SKILL,
        }
    }

    /// What stands before the URI of a resource in its full name.
    pub const RESOURCE: &str = "resource:";
    /// What stands before the name of a prompt in its full name.
    pub const PROMPT: &str = "prompt:";
    /// What stands before the URI of a skill in its full name.
    pub const SKILL: &str = "skill:";

    /// Whether a URI that is not its own leads to it: one that fits it as a template, or that of a file of it as a skill.
    pub fn has(&self, uri: &str) -> bool {
        match self.kind() {
            ItemKind::Template => uri_template::fits(self.def.name(), uri),
            ItemKind::Skill => self.manifest().is_some_and(|files| files.has(uri)),
            ItemKind::Tool | ItemKind::Resource | ItemKind::Prompt => false,
        }
    }

    /// The files of it, where it is a skill.
    pub fn manifest(&self) -> Option<Arc<Manifest>> {
        match self.kind() {
            ItemKind::Skill => self
                .memo(|item| Manifest::of(&item.def).map(Arc::new))
                .as_ref()
                .clone(),
            _ => None,
        }
    }

    /// What it claims to do, or the most careful reading where its server is not trusted.
    pub fn hints(&self) -> Hints {
        if self.origin.trusted {
            self.def.hints()
        } else {
            Hints::default()
        }
    }

    /// What a duty works out about this item, made once and kept as long as the item.
    pub fn memo<T: Any + Send + Sync>(&self, make: impl FnOnce(&Item) -> T) -> Arc<T> {
        let own = TypeId::of::<T>();
        let kept = self.kept().iter().find(|(of, _)| *of == own).cloned();
        if let Some(Ok(kept)) = kept.map(|(_, kept)| kept.downcast()) {
            return kept;
        }
        let made = Arc::new(make(self));
        let mut kept = self.kept();
        // Two may have made it at once: one of them is kept.
        kept.retain(|(of, _)| *of != own);
        kept.push((own, made.clone()));
        made
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.memo.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Item({})", self.full_name())
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            Some(server) => write!(f, "{server}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// A snapshot of what is offered of one kind, with an index by name. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Catalog(Arc<Inner>);

#[derive(Clone, Debug, Default)]
struct Inner {
    items: Vec<Arc<Item>>,
    /// By name; each call asks it.
    index: AHashMap<String, usize>,
    missing: Vec<String>,
    about: Vec<About>,
    /// Notes on what is not among the items, and on the list itself.
    notes: Vec<DefinitionNote>,
    hint: CacheHint,
}

impl Catalog {
    /// A snapshot of these items. Of two of one name the first is kept.
    pub fn new(items: Vec<Arc<Item>>) -> Catalog {
        Catalog::of(items, Vec::new(), None)
    }

    /// A snapshot in which servers that are down are named, so that their absence does not read as removal.
    pub fn of(
        items: Vec<Arc<Item>>,
        missing: Vec<String>,
        instructions: Option<String>,
    ) -> Catalog {
        let text = instructions.into_iter();
        let about = text.map(|text| About { server: None, text }).collect();
        Catalog::made(items, missing, about)
    }

    fn made(items: Vec<Arc<Item>>, missing: Vec<String>, about: Vec<About>) -> Catalog {
        let mut inner = Inner {
            missing,
            about,
            ..Inner::default()
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

    /// The items in their order.
    pub fn items(&self) -> &[Arc<Item>] {
        &self.0.items
    }

    /// The item of that name, or the first template that a URI fits, or the first skill that has a file of that URI.
    pub fn find(&self, name: &str) -> Option<&Arc<Item>> {
        if let Some(at) = self.0.index.get(name) {
            return self.0.items.get(*at);
        }
        self.0.items.iter().find(|item| item.has(name))
    }

    /// The item of that name, or all templates that a URI fits, or all skills that have such a file: a server may take the URI for any of them.
    pub(crate) fn fitting<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Arc<Item>> {
        let exact = self.0.index.get(name).and_then(|at| self.0.items.get(*at));
        let others = match exact {
            Some(_) => &[],
            None => self.items(),
        };
        let fits = move |item: &&Arc<Item>| item.has(name);
        exact.into_iter().chain(others.iter().filter(fits))
    }

    /// Notes on dropped definitions and on the list itself.
    pub fn notes(&self) -> &[DefinitionNote] {
        &self.0.notes
    }

    /// All notes: those on the list, and those on its items.
    pub fn all_notes(&self) -> impl Iterator<Item = DefinitionNote> + '_ {
        let items = self.0.items.iter().flat_map(|item| item.all_notes());
        self.0.notes.iter().cloned().chain(items)
    }

    /// How long it may be kept, and for whom.
    pub fn hint(&self) -> CacheHint {
        self.0.hint
    }

    /// The servers that could not be asked.
    pub fn missing(&self) -> &[String] {
        &self.0.missing
    }

    /// What the servers say of how to use them.
    pub fn about(&self) -> &[About] {
        &self.0.about
    }

    /// How a model should use it all: the words of the servers, each under its name where there are several.
    pub fn instructions(&self) -> Option<String> {
        let words = self.0.about.iter().map(About::to_string);
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| words.join("\n\n"))
    }

    /// The same snapshot with other items.
    pub fn with_items(&self, items: Vec<Arc<Item>>) -> Catalog {
        let made = Catalog::made(items, self.0.missing.clone(), self.0.about.clone());
        made.changed(|inner| {
            inner.notes.clone_from(&self.0.notes);
            inner.hint = self.0.hint;
        })
    }

    /// The same snapshot with other words of the servers.
    pub fn with_about(self, about: Vec<About>) -> Catalog {
        self.changed(|inner| inner.about = about)
    }

    /// The same snapshot with another word on how long it may be kept.
    pub fn with_hint(self, hint: CacheHint) -> Catalog {
        self.changed(|inner| inner.hint = hint)
    }

    /// The same snapshot with these notes; of each server the first [`MAX_NOTES_PER_LIST`] are kept.
    pub fn with_notes(self, mut notes: Vec<DefinitionNote>) -> Catalog {
        let mut counts = AHashMap::<Arc<str>, usize>::new();
        notes.retain(|note| {
            let count = counts.entry(note.server.clone()).or_default();
            *count += 1;
            *count <= MAX_NOTES_PER_LIST
        });
        self.changed(|inner| inner.notes = notes)
    }

    /// Another snapshot, which takes over what this one has unless `change` replaces it.
    fn changed(mut self, change: impl FnOnce(&mut Inner)) -> Catalog {
        match Arc::get_mut(&mut self.0) {
            Some(inner) => change(inner),
            None => {
                let mut inner = Inner::clone(&self.0);
                change(&mut inner);
                self.0 = Arc::new(inner);
            }
        }
        self
    }

    /// Whether the two are one snapshot, so that what was worked out for one holds for the other.
    pub fn same(&self, other: &Catalog) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
