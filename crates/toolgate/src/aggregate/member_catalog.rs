//! List of one member under the joined names, and the joining of these lists.

use super::{
    AggregateMember, DefinitionOverrides, NameRules, apps, names::WireNames,
    overrides::ItemPresentation,
};
use std::{collections::HashMap, sync::Arc};
use toolgate_core::{
    CacheHint, Catalog, DefinitionNote, Item, ItemKind, Json, Outcome, Output, ServerInstructions,
};

/// Settings for naming the items of one member.
pub(super) struct MemberNaming<'a> {
    pub(super) member: &'a AggregateMember,
    pub(super) overrides: &'a DefinitionOverrides,
    /// True if names stay unchanged.
    pub(super) keep_names: bool,
    /// Rules for names of tools and prompts.
    pub(super) rules: NameRules,
}

/// List of one member under the joined names.
#[derive(Clone)]
pub(super) struct MemberCatalog {
    /// The member's list, unchanged.
    original: Catalog,
    /// The items under the joined names, in the same order.
    items: Vec<Arc<Item>>,
    /// Routes by joined name.
    routes: HashMap<String, ItemRoute>,
    /// Prefix of the member's names.
    prefix: String,
    /// UI resources that its tools refer to, with the index of the tool.
    ui_resources: HashMap<String, usize>,
    /// True if the list was stored before this start and not yet refreshed.
    pub(super) seeded: bool,
}

/// Route of a joined name to the member's item.
#[derive(Clone)]
pub(super) struct ItemRoute {
    /// The member's own name or URI.
    pub(super) name: String,
    /// Fixed arguments that are added to every call.
    pub(super) fixed: Option<Json>,
}

impl MemberCatalog {
    /// Renames a member's list. An identical list returns the same part, and an unchanged item remains the same object.
    pub(super) fn build(
        naming: &MemberNaming<'_>,
        theirs: Catalog,
        old: Option<&Arc<MemberCatalog>>,
    ) -> Arc<MemberCatalog> {
        if let Some(old) = old.filter(|old| old.original.is_same_snapshot(&theirs)) {
            return old.clone();
        }
        let kept = old.map(|old| old.by_origin()).unwrap_or_default();
        let mut part = MemberCatalog {
            original: theirs.clone(),
            items: Vec::new(),
            routes: HashMap::new(),
            prefix: naming.member.prefix.clone(),
            ui_resources: HashMap::new(),
            seeded: false,
        };
        let faces = naming.overrides.present_all(theirs.items());
        // A visible item takes precedence over a hidden one with the same name.
        let (seen, hidden): (Vec<_>, Vec<_>) = theirs
            .items()
            .iter()
            .zip(faces)
            .enumerate()
            .partition(|(_, (_, face))| !face.is_hidden());
        let mut shown = Vec::new();
        let mut wire = wire_names(naming, [&seen, &hidden]).into_iter();
        for (at, (item, face)) in seen.into_iter().chain(hidden) {
            let assigned = wire.next().unwrap_or_default();
            let name = match item.kind() {
                ItemKind::Tool | ItemKind::Prompt => assigned,
                // A URI is its own route, except for UI resources and skills, whose URIs each member assigns on its
                // own.
                ItemKind::Resource | ItemKind::Template | ItemKind::Skill => {
                    apps::prefixed_uri(&part.prefix, item.def.name()).into_owned()
                }
            };
            if item.kind() == ItemKind::Tool && !face.is_hidden() {
                let pages = apps::ui_resource_uris(&part.prefix, &item.def);
                part.ui_resources
                    .extend(pages.into_iter().map(|uri| (uri, at)));
            }
            let route = ItemRoute {
                name: item.def.name().to_owned(),
                fixed: face.fixed_arguments(),
            };
            part.routes.insert(name.clone(), route);
            let same = kept
                .get(&Arc::as_ptr(item))
                .filter(|kept| face.matches(kept, &name));
            let item = match same {
                Some(same) => Arc::clone(same),
                None => Arc::new(face.to_item(item, &name, naming.member)),
            };
            shown.push((at, item));
        }
        shown.sort_by_key(|(at, _)| *at);
        part.items = shown.into_iter().map(|(_, item)| item).collect();
        Arc::new(part)
    }

    /// Returns the same list under other naming settings.
    pub(super) fn rename_with(&self, naming: &MemberNaming<'_>) -> Arc<MemberCatalog> {
        let part = MemberCatalog::build(naming, self.original.clone(), None);
        match self.seeded {
            true => part.seeded(),
            false => part,
        }
    }

    /// Returns the same list, marked as stored before this start.
    pub(super) fn seeded(&self) -> Arc<MemberCatalog> {
        Arc::new(MemberCatalog {
            seeded: true,
            ..self.clone()
        })
    }

    pub(super) fn has_instructions(&self) -> bool {
        !self.original.server_instructions().is_empty()
    }

    /// Returns the same list without the server's instructions.
    pub(super) fn without_instructions(&self) -> Arc<MemberCatalog> {
        Arc::new(MemberCatalog {
            original: self.original.clone().with_server_instructions(Vec::new()),
            ..self.clone()
        })
    }

    /// Returns whether the list contains this URI, of a resource or as the text of a template.
    pub(super) fn lists(&self, uri: &str) -> bool {
        self.routes.contains_key(uri)
    }

    /// Returns whether the list contains a URI or a template that matches it.
    pub(super) fn matches(&self, uri: &str) -> bool {
        apps::unprefixed_uri(&self.prefix, uri)
            .is_some_and(|own| self.original.find(&own).is_some())
    }

    /// Returns the visible tool that refers to a UI resource.
    pub(super) fn tool_of_ui_resource(&self, page: &str) -> Option<&Arc<Item>> {
        self.items.get(*self.ui_resources.get(page)?)
    }

    /// Returns the route of a joined name.
    pub(super) fn route(&self, name: &str) -> Option<ItemRoute> {
        self.routes.get(name).cloned()
    }

    /// Returns the renamed items by the address of the member's own item, which lives as long as `theirs`.
    fn by_origin(&self) -> HashMap<*const Item, &Arc<Item>> {
        self.original
            .items()
            .iter()
            .map(Arc::as_ptr)
            .zip(&self.items)
            .collect()
    }
}

/// Item of a member with its index in the list and its overrides.
type PresentedItem<'a> = (usize, (&'a Arc<Item>, ItemPresentation<'a>));

/// Returns the wire names of a member's items. Visible items are named before those that the configuration hides, so
/// that a hidden item takes no name from a visible one.
fn wire_names(naming: &MemberNaming<'_>, groups: [&Vec<PresentedItem<'_>>; 2]) -> Vec<String> {
    let mut names = WireNames::new(&naming.member.prefix, naming.rules);
    let mut all = Vec::new();
    for group in groups {
        let local: Vec<&str> = group
            .iter()
            .map(|(_, (_, face))| face.local.as_str())
            .collect();
        match naming.keep_names {
            true => all.extend(names.assign_unchanged(&local)),
            false => all.extend(names.assign(&local)),
        }
    }
    all
}

/// Returns whether two lists consist of the same part objects.
pub(super) fn same_parts(
    one: &[Option<Arc<MemberCatalog>>],
    two: &[Option<Arc<MemberCatalog>>],
) -> bool {
    let same = |pair: (&Option<Arc<MemberCatalog>>, &Option<Arc<MemberCatalog>>)| match pair {
        (Some(one), Some(two)) => Arc::ptr_eq(one, two),
        (one, two) => one.is_none() && two.is_none(),
    };
    one.len() == two.len() && one.iter().zip(two).all(same)
}

/// Makes the cache hint of a read resource private, as that of a joined list is: the policy in front decides for each
/// caller, so a shared cache must not store the contents.
pub(super) fn forbid_shared_caching(outcome: &mut Outcome) {
    if let Outcome::Done(Output::Resource(read)) = outcome {
        read.hint.public = false;
    }
}

/// Joins all parts into one snapshot. Members without a part are listed as missing.
pub(super) fn join_parts(
    members: &[AggregateMember],
    parts: &[Option<Arc<MemberCatalog>>],
) -> Catalog {
    let (mut items, mut missing, mut about) = (Vec::new(), Vec::new(), Vec::new());
    let mut notes = Vec::new();
    let mut hint: Option<CacheHint> = None;
    for (member, part) in members.iter().zip(parts) {
        let Some(part) = part else {
            missing.push(member.id.to_string());
            continue;
        };
        items.extend(part.items.iter().cloned());
        let of_member = |note: &DefinitionNote| {
            let mut note = note.clone();
            note.server = member.id.clone();
            note
        };
        notes.extend(part.original.notes().iter().map(of_member));
        let theirs = part.original.cache_hint();
        hint = Some(hint.map_or(theirs, |hint| hint.stricter(theirs)));
        missing.extend(
            part.original
                .missing_servers()
                .iter()
                .map(|inner| format!("{}/{inner}", member.id)),
        );
        about.extend(part.original.server_instructions().iter().map(|about| {
            let mut instructions = ServerInstructions::new(about.to_string());
            instructions.server = (!member.prefix.is_empty()).then(|| member.id.clone());
            instructions
        }));
    }
    // Clients must not cache the absence of a server that is down.
    let hint = hint.filter(|_| missing.is_empty()).unwrap_or_default();
    let hint = CacheHint {
        // Callers may see different items, so a shared cache must not store the list.
        public: false,
        ..hint
    };
    let joined = Catalog::with_missing_servers(items, missing, None);
    joined
        .with_server_instructions(about)
        .with_cache_hint(hint)
        .with_notes(notes)
}
