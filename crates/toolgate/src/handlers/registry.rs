//! Registry of a running server's items.

use super::{Prompt, Resource, ResourceTemplate, Skill, Tool, build, build::BuildError};
use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::watch;
use toolgate_core::{CacheHint, Catalog, ChangeCounters, Item, ItemKind, Origin};

/// Registry of the items of a running MCP server, to add and remove tools, resources, prompts and skills at run time.
/// Cheap to clone; all clones share one state.
///
/// Subscribed clients are notified of each change; changes within 10 ms are combined.
///
/// ```
/// use toolgate::{Server, handlers::ItemRegistry, tool};
///
/// /// Prints a page.
/// #[tool]
/// fn print(page: u32) -> String {
///     format!("printed {page}")
/// }
///
/// # fn main() -> Result<(), toolgate::handlers::BuildError> {
/// let (server, items) = Server::new("printer", "1.0.0").build_with_registry()?;
///
/// /// Offers the tool while there is paper.
/// fn paper_changed(items: &ItemRegistry, has_paper: bool) -> Result<(), toolgate::handlers::BuildError> {
///     match has_paper {
///         true => items.set_tool(print)?,
///         false => drop(items.remove_tool("print")),
///     }
///     Ok(())
/// }
///
/// paper_changed(&items, true)?;
/// # drop(server);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ItemRegistry(Arc<RegistryState>);

struct RegistryState {
    origin: Origin,
    offered: RwLock<Arc<OfferedItems>>,
    stale: watch::Sender<ChangeCounters>,
    mounted: Vec<(String, ItemRegistry)>,
    /// True once a tool had rules of its own.
    has_tool_rules: AtomicBool,
}

/// Snapshot of the items: the lists, and their handlers.
#[derive(Clone, Default)]
pub(super) struct OfferedItems {
    pub(super) tools: Vec<Tool>,
    pub(super) prompts: Vec<Prompt>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
    pub(super) skills: Vec<Skill>,
    pub(super) hint: CacheHint,
    /// Prefixes of the mounted servers, with which no own name may begin.
    pub(super) mounts: Vec<String>,
    catalogs: [Catalog; ItemKind::ALL.len()],
    /// True if a tool may have arguments that are repeated as headers, also after its definition is sanitized.
    pub(super) has_param_headers: bool,
    /// True if a tool has layers of its own.
    pub(super) has_tool_layers: bool,
    /// Indexes of items by name or URI, by kind.
    indexes: [HashMap<String, usize>; ItemKind::ALL.len()],
}

impl OfferedItems {
    pub(super) fn catalog(&self, kind: ItemKind) -> Catalog {
        self.catalogs[kind as usize].clone()
    }

    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.get(self.index_of(ItemKind::Tool, name)?)
    }

    pub(super) fn prompt(&self, name: &str) -> Option<&Prompt> {
        self.prompts.get(self.index_of(ItemKind::Prompt, name)?)
    }

    pub(super) fn resource(&self, uri: &str) -> Option<&Resource> {
        self.resources.get(self.index_of(ItemKind::Resource, uri)?)
    }

    fn has_tool_rules(&self) -> bool {
        self.tools.iter().any(|tool| !tool.rules().is_empty())
    }

    fn index_of(&self, kind: ItemKind, name: &str) -> Option<usize> {
        self.indexes[kind as usize].get(name).copied()
    }

    /// Validates all definitions and builds the lists.
    fn validate(mut self, origin: &Origin) -> Result<OfferedItems, BuildError> {
        let found = build::check(&self)?;
        let mut all = found.iter().flatten();
        all.try_for_each(|def| build::check_mount_prefix(def, &self.mounts))?;
        let hint = self.hint;
        let tools = found.iter().flatten();
        self.has_param_headers = tools
            .filter(|def| def.kind() == ItemKind::Tool)
            .any(|def| may_have_param_headers(def.input_schema().as_str()));
        self.has_tool_layers = self.tools.iter().any(|tool| !tool.layers().is_empty());
        self.indexes = Default::default();
        for definition in found.iter().flat_map(|list| list.iter().enumerate()) {
            let (at, definition) = definition;
            let places = &mut self.indexes[definition.kind() as usize];
            places.insert(definition.name().to_owned(), at);
        }
        let items = found.map(|definitions| -> Vec<Arc<Item>> {
            let items = definitions.into_iter();
            items
                .map(|def| Arc::new(Item::new(origin.clone(), def)))
                .collect()
        });
        let mut tools = items[ItemKind::Tool as usize].iter();
        tools.try_for_each(|tool| build::check_schemas(tool))?;
        self.catalogs = items.map(|items| Catalog::new(items).with_cache_hint(hint));
        Ok(self)
    }
}

impl ItemRegistry {
    pub(super) fn new(
        name: &str,
        offered: OfferedItems,
        mounted: Vec<(String, ItemRegistry)>,
    ) -> Result<ItemRegistry, BuildError> {
        let origin = Origin {
            server: name.into(),
            // A server trusts its own annotations.
            trusted: true,
        };
        let offered = Arc::new(offered.validate(&origin)?);
        let has_tool_rules = AtomicBool::new(offered.has_tool_rules());
        Ok(ItemRegistry(Arc::new(RegistryState {
            origin,
            offered: RwLock::new(offered),
            stale: watch::Sender::default(),
            mounted,
            has_tool_rules,
        })))
    }

    /// Returns the registry of the server that is mounted in this one under that name.
    pub fn mounted(&self, name: &str) -> Option<&ItemRegistry> {
        let mut mounted = self.0.mounted.iter();
        mounted
            .find(|(known, _)| known == name)
            .map(|(_, registry)| registry)
    }

    /// Returns whether a tool has, or had, rules of its own.
    pub(super) fn has_tool_rules(&self) -> bool {
        self.0.has_tool_rules.load(Ordering::SeqCst)
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.0.origin
    }

    pub(super) fn offered(&self) -> Arc<OfferedItems> {
        let offered = self.0.offered.read();
        offered.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn stale(&self) -> watch::Receiver<ChangeCounters> {
        self.0.stale.subscribe()
    }

    fn change(
        &self,
        kind: ItemKind,
        change: impl FnOnce(&mut OfferedItems),
    ) -> Result<(), BuildError> {
        let offered = self.0.offered.write();
        let mut offered = offered.unwrap_or_else(PoisonError::into_inner);
        let mut next = OfferedItems::clone(&offered);
        change(&mut next);
        let next = next.validate(&self.0.origin)?;
        if next.has_tool_rules() {
            // Before the tool can be called.
            self.0.has_tool_rules.store(true, Ordering::SeqCst);
        }
        *offered = Arc::new(next);
        drop(offered);
        self.0
            .stale
            .send_modify(|stale| stale.count_list_change(kind));
        Ok(())
    }

    /// Adds a tool to the running server, or replaces the one with that name.
    ///
    /// # Errors
    /// The definition is invalid; then nothing changes.
    pub fn set_tool(&self, tool: impl super::IntoTool) -> Result<(), BuildError> {
        let tool = tool.into_tool();
        self.change(ItemKind::Tool, |offered| {
            insert_or_replace(&mut offered.tools, tool, |a, b| a.name() == b.name())
        })
    }

    /// Removes a tool from the running server. Returns whether it existed. Running calls continue.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.remove(ItemKind::Tool, |offered| {
            remove_matching(&mut offered.tools, |tool| tool.name() == name)
        })
    }

    /// Adds a prompt to the running server, or replaces the one with that name.
    ///
    /// # Errors
    /// The definition is invalid; then nothing changes.
    pub fn set_prompt(&self, prompt: impl super::IntoPrompt) -> Result<(), BuildError> {
        let prompt = prompt.into_prompt();
        self.change(ItemKind::Prompt, |offered| {
            insert_or_replace(&mut offered.prompts, prompt, |a, b| a.name() == b.name())
        })
    }

    /// Removes a prompt from the running server. Returns whether it existed.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.remove(ItemKind::Prompt, |offered| {
            remove_matching(&mut offered.prompts, |prompt| prompt.name() == name)
        })
    }

    /// Adds a resource to the running server, or replaces the one with that URI.
    ///
    /// # Errors
    /// The definition is invalid; then nothing changes.
    pub fn set_resource(&self, resource: impl super::IntoResource) -> Result<(), BuildError> {
        let resource = resource.into_resource();
        self.change(ItemKind::Resource, |offered| {
            insert_or_replace(&mut offered.resources, resource, |a, b| a.uri() == b.uri())
        })
    }

    /// Removes a resource from the running server. Returns whether it existed.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.remove(ItemKind::Resource, |offered| {
            remove_matching(&mut offered.resources, |resource| resource.uri() == uri)
        })
    }

    /// Adds a resource template to the running server, or replaces the one with the same URI template.
    ///
    /// # Errors
    /// The definition is invalid; then nothing changes.
    pub fn set_template(
        &self,
        template: impl super::IntoResourceTemplate,
    ) -> Result<(), BuildError> {
        let template = template.into_resource_template();
        self.change(ItemKind::Resource, |offered| {
            insert_or_replace(&mut offered.templates, template, |a, b| {
                a.template() == b.template()
            })
        })
    }

    /// Removes a resource template from the running server. Returns whether it existed.
    pub fn remove_template(&self, template: &str) -> bool {
        self.remove(ItemKind::Resource, |offered| {
            remove_matching(&mut offered.templates, |t| t.template() == template)
        })
    }

    /// Adds a skill to the running server, or replaces the one with that URI. A server that was built without skills
    /// does not declare the skills capability.
    ///
    /// # Errors
    /// The skill is invalid; then nothing changes.
    pub fn set_skill(&self, skill: Skill) -> Result<(), BuildError> {
        self.change(ItemKind::Skill, |offered| {
            insert_or_replace(&mut offered.skills, skill, |a, b| a.uri() == b.uri())
        })
    }

    /// Removes a skill from the running server, by the URI of its `SKILL.md`. Returns whether it existed.
    pub fn remove_skill(&self, uri: &str) -> bool {
        self.remove(ItemKind::Skill, |offered| {
            remove_matching(&mut offered.skills, |skill| skill.uri() == uri)
        })
    }

    /// Notifies clients that subscribed to a resource that its contents changed (`notifications/resources/updated`).
    ///
    /// The URI must be equal to the one that the client subscribed to, with the same percent-encoding:
    /// `note:///my%20note`. Any other URI is ignored. It may be a resource of a template.
    pub fn updated(&self, uri: &str) {
        self.0.stale.send_modify(|stale| stale.count_update(uri));
    }

    fn remove(&self, kind: ItemKind, remove: impl FnOnce(&mut OfferedItems) -> bool) -> bool {
        let mut removed = false;
        // A removal cannot make valid definitions invalid.
        let changed = self.change(kind, |offered| removed = remove(offered));
        removed && changed.is_ok()
    }
}

/// Returns whether a schema may contain `x-mcp-header`, also after sanitizing: removing an escaped or invisible
/// character could produce it.
fn may_have_param_headers(schema: &str) -> bool {
    schema.contains("mcp-header") || schema.contains('\\') || !schema.is_ascii()
}

fn insert_or_replace<T>(list: &mut Vec<T>, new: T, same: impl Fn(&T, &T) -> bool) {
    match list.iter_mut().find(|old| same(old, &new)) {
        Some(old) => *old = new,
        None => list.push(new),
    }
}

fn remove_matching<T>(list: &mut Vec<T>, is: impl Fn(&T) -> bool) -> bool {
    let before = list.len();
    list.retain(|one| !is(one));
    list.len() < before
}
