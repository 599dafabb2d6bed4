//! What a server offers right now.

use super::{Prompt, Resource, Skill, Template, Tool, build, build::BuildError};
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};
use tokio::sync::watch;
use toolgate_core::{CacheHint, Catalog, Item, ItemKind, Origin, Stale};

/// What a server offers right now, to be changed while it runs. Cheap to clone; all clones are one.
///
/// Whoever listens is told of each change; changes within 10 ms are told as one.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    origin: Origin,
    offered: RwLock<Arc<Offered>>,
    stale: watch::Sender<Stale>,
    mounted: Vec<(String, Registry)>,
}

/// A snapshot: the lists, and the functions behind them.
#[derive(Clone, Default)]
pub(super) struct Offered {
    pub(super) tools: Vec<Tool>,
    pub(super) prompts: Vec<Prompt>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<Template>,
    pub(super) skills: Vec<Skill>,
    pub(super) hint: CacheHint,
    /// Names of servers that are mounted here: no own name begins so.
    pub(super) mounts: Vec<String>,
    catalogs: [Catalog; ItemKind::ALL.len()],
    /// Whether a tool may want arguments repeated in headers, however its definition is cleaned.
    pub(super) mirrors: bool,
    /// Where things of a name or a URI stand.
    places: [HashMap<String, usize>; ItemKind::ALL.len()],
}

impl Offered {
    pub(super) fn catalog(&self, kind: ItemKind) -> Catalog {
        self.catalogs[kind as usize].clone()
    }

    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.get(self.place(ItemKind::Tool, name)?)
    }

    pub(super) fn prompt(&self, name: &str) -> Option<&Prompt> {
        self.prompts.get(self.place(ItemKind::Prompt, name)?)
    }

    pub(super) fn resource(&self, uri: &str) -> Option<&Resource> {
        self.resources.get(self.place(ItemKind::Resource, uri)?)
    }

    fn place(&self, kind: ItemKind, name: &str) -> Option<usize> {
        self.places[kind as usize].get(name).copied()
    }

    /// Checks all definitions, and makes the lists of them.
    fn checked(mut self, origin: &Origin) -> Result<Offered, BuildError> {
        let found = build::check(&self)?;
        let mut all = found.iter().flatten();
        all.try_for_each(|def| build::is_own(def, &self.mounts))?;
        let hint = self.hint;
        let tools = found.iter().flatten();
        self.mirrors = tools
            .filter(|def| def.kind() == ItemKind::Tool)
            .any(|def| may_mirror(def.input_schema().as_str()));
        self.places = Default::default();
        for definition in found.iter().flat_map(|list| list.iter().enumerate()) {
            let (at, definition) = definition;
            let places = &mut self.places[definition.kind() as usize];
            places.insert(definition.name().to_owned(), at);
        }
        let lists = found.map(|definitions| {
            let items = definitions.into_iter();
            let items = items.map(|def| Arc::new(Item::new(origin.clone(), def)));
            Catalog::new(items.collect()).with_hint(hint)
        });
        self.catalogs = lists;
        Ok(self)
    }
}

impl Registry {
    pub(super) fn new(
        name: &str,
        offered: Offered,
        mounted: Vec<(String, Registry)>,
    ) -> Result<Registry, BuildError> {
        let origin = Origin {
            server: name.into(),
            // Its own words about its own tools.
            trusted: true,
        };
        let offered = Arc::new(offered.checked(&origin)?);
        Ok(Registry(Arc::new(Inner {
            origin,
            offered: RwLock::new(offered),
            stale: watch::Sender::default(),
            mounted,
        })))
    }

    /// What a server offers that is mounted under that name.
    pub fn mounted(&self, name: &str) -> Option<&Registry> {
        let mut mounted = self.0.mounted.iter();
        mounted
            .find(|(known, _)| known == name)
            .map(|(_, registry)| registry)
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.0.origin
    }

    pub(super) fn offered(&self) -> Arc<Offered> {
        let offered = self.0.offered.read();
        offered.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn stale(&self) -> watch::Receiver<Stale> {
        self.0.stale.subscribe()
    }

    fn change(&self, kind: ItemKind, change: impl FnOnce(&mut Offered)) -> Result<(), BuildError> {
        let offered = self.0.offered.write();
        let mut offered = offered.unwrap_or_else(PoisonError::into_inner);
        let mut next = Offered::clone(&offered);
        change(&mut next);
        *offered = Arc::new(next.checked(&self.0.origin)?);
        drop(offered);
        self.0.stale.send_modify(|stale| stale.list(kind));
        Ok(())
    }

    /// Adds a tool, or puts it in the place of the one of that name.
    ///
    /// # Errors
    /// Its definition is wrong; then nothing changes.
    pub fn set_tool(&self, tool: impl super::IntoTool) -> Result<(), BuildError> {
        let tool = tool.into_tool();
        self.change(ItemKind::Tool, |offered| {
            put(&mut offered.tools, tool, |a, b| a.name() == b.name())
        })
    }

    /// Takes a tool away; whether there was one. Calls that run go on.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.remove(ItemKind::Tool, |offered| {
            taken(&mut offered.tools, |tool| tool.name() == name)
        })
    }

    /// Adds a prompt, or puts it in the place of the one of that name.
    ///
    /// # Errors
    /// Its definition is wrong; then nothing changes.
    pub fn set_prompt(&self, prompt: Prompt) -> Result<(), BuildError> {
        self.change(ItemKind::Prompt, |offered| {
            put(&mut offered.prompts, prompt, |a, b| a.name() == b.name())
        })
    }

    /// Takes a prompt away; whether there was one.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.remove(ItemKind::Prompt, |offered| {
            taken(&mut offered.prompts, |prompt| prompt.name() == name)
        })
    }

    /// Adds a resource, or puts it in the place of the one of that URI.
    ///
    /// # Errors
    /// Its definition is wrong; then nothing changes.
    pub fn set_resource(&self, resource: Resource) -> Result<(), BuildError> {
        self.change(ItemKind::Resource, |offered| {
            put(&mut offered.resources, resource, |a, b| a.uri() == b.uri())
        })
    }

    /// Takes a resource away; whether there was one.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.remove(ItemKind::Resource, |offered| {
            taken(&mut offered.resources, |resource| resource.uri() == uri)
        })
    }

    /// Adds a template, or puts it in the place of the same one.
    ///
    /// # Errors
    /// Its definition is wrong; then nothing changes.
    pub fn set_template(&self, template: Template) -> Result<(), BuildError> {
        self.change(ItemKind::Resource, |offered| {
            put(&mut offered.templates, template, |a, b| {
                a.template() == b.template()
            })
        })
    }

    /// Takes a template away; whether there was one.
    pub fn remove_template(&self, template: &str) -> bool {
        self.remove(ItemKind::Resource, |offered| {
            taken(&mut offered.templates, |t| t.template() == template)
        })
    }

    /// Adds a skill, or puts it in the place of the one of that URI. A server that is built without one does not say that it
    /// has any.
    ///
    /// # Errors
    /// It is wrong; then nothing changes.
    pub fn set_skill(&self, skill: Skill) -> Result<(), BuildError> {
        self.change(ItemKind::Skill, |offered| {
            put(&mut offered.skills, skill, |a, b| a.uri() == b.uri())
        })
    }

    /// Takes a skill away by the URI of its `SKILL.md`; whether there was one.
    pub fn remove_skill(&self, uri: &str) -> bool {
        self.remove(ItemKind::Skill, |offered| {
            taken(&mut offered.skills, |skill| skill.uri() == uri)
        })
    }

    /// Tells those who listen to it that a resource holds something else now.
    pub fn updated(&self, uri: &str) {
        self.0.stale.send_modify(|stale| stale.update(uri));
    }

    fn remove(&self, kind: ItemKind, remove: impl FnOnce(&mut Offered) -> bool) -> bool {
        let mut removed = false;
        // Fewer definitions cannot be worse than all of them.
        let changed = self.change(kind, |offered| removed = remove(offered));
        removed && changed.is_ok()
    }
}

/// Whether a schema may have the keyword by which a header repeats an argument: what cleans definitions could bring it about where
/// a sign is escaped, or is not seen.
fn may_mirror(schema: &str) -> bool {
    schema.contains("mcp-header") || schema.contains('\\') || !schema.is_ascii()
}

fn put<T>(list: &mut Vec<T>, new: T, same: impl Fn(&T, &T) -> bool) {
    match list.iter_mut().find(|old| same(old, &new)) {
        Some(old) => *old = new,
        None => list.push(new),
    }
}

fn taken<T>(list: &mut Vec<T>, is: impl Fn(&T) -> bool) -> bool {
    let before = list.len();
    list.retain(|one| !is(one));
    list.len() < before
}
