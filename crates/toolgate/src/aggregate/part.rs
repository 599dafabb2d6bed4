//! The list of one member under the names of the whole, and how the lists are joined.

use super::{Member, names::wire_name};
use std::{collections::HashMap, sync::Arc};
use toolgate_core::{About, CacheHint, Catalog, Item, ItemKind};

/// The list of one member under the names of the whole.
pub(super) struct Part {
    /// As the member gave it.
    theirs: Catalog,
    /// Its items, renamed; in the same order.
    items: Vec<Arc<Item>>,
    /// From a name to the member's own.
    routes: HashMap<String, String>,
}

impl Part {
    /// Renames a member's list. The same list makes the same part, and an item that stays is the same object.
    pub(super) fn of(member: &Member, theirs: Catalog, old: Option<&Arc<Part>>) -> Arc<Part> {
        if let Some(old) = old.filter(|old| old.theirs.same(&theirs)) {
            return old.clone();
        }
        let kept = old.map(|old| old.by_origin()).unwrap_or_default();
        let mut part = Part {
            theirs: theirs.clone(),
            items: Vec::new(),
            routes: HashMap::new(),
        };
        for item in theirs.items() {
            let name = match item.kind() {
                ItemKind::Tool | ItemKind::Prompt => part.free_name(member, item.def.name()),
                // Where a URI leads is in the URI.
                ItemKind::Resource | ItemKind::Template => item.def.name().to_owned(),
            };
            part.routes.insert(name.clone(), item.def.name().to_owned());
            let same = kept
                .get(&Arc::as_ptr(item))
                .filter(|kept| kept.def.name() == name);
            part.items
                .push(same.map_or_else(|| rename(member, item, &name), |same| Arc::clone(same)));
        }
        Arc::new(part)
    }

    /// Whether it is the URI of a resource or of a template.
    pub(super) fn lists(&self, uri: &str) -> bool {
        self.routes.contains_key(uri)
    }

    /// Whether a URI is listed, or fits a template.
    pub(super) fn fits(&self, uri: &str) -> bool {
        self.theirs.find(uri).is_some()
    }

    /// The member's own name of a tool or prompt.
    pub(super) fn route(&self, name: &str) -> Option<String> {
        self.routes.get(name).cloned()
    }

    /// A name that no other tool of this member has. The hash keeps them apart; that two hashes are equal would
    /// be a server's own doing, and hides nothing either.
    fn free_name(&self, member: &Member, tool: &str) -> String {
        let mut names = (0..=u32::MAX).map(|salt| wire_name(&member.prefix, tool, salt));
        names
            .find(|name| !self.routes.contains_key(name))
            .unwrap_or_default()
    }

    /// The renamed items by the member's own, which live as long as `theirs`.
    fn by_origin(&self) -> HashMap<*const Item, &Arc<Item>> {
        self.theirs
            .items()
            .iter()
            .map(Arc::as_ptr)
            .zip(&self.items)
            .collect()
    }
}

fn rename(member: &Member, item: &Arc<Item>, name: &str) -> Arc<Item> {
    let same = item.def.name() == name;
    let def = if same {
        item.def.clone()
    } else {
        item.def.renamed(name)
    };
    let mut renamed = item.with_def(def);
    renamed.origin.server = member.id.clone();
    Arc::new(renamed)
}

/// Whether two lists of parts are the same objects.
pub(super) fn same(one: &[Option<Arc<Part>>], two: &[Option<Arc<Part>>]) -> bool {
    let same = |pair: (&Option<Arc<Part>>, &Option<Arc<Part>>)| match pair {
        (Some(one), Some(two)) => Arc::ptr_eq(one, two),
        (one, two) => one.is_none() && two.is_none(),
    };
    one.len() == two.len() && one.iter().zip(two).all(same)
}

/// One snapshot of all parts. Members without one are missing.
pub(super) fn join(members: &[Member], parts: &[Option<Arc<Part>>]) -> Catalog {
    let (mut items, mut missing, mut about) = (Vec::new(), Vec::new(), Vec::new());
    let mut hint: Option<CacheHint> = None;
    for (member, part) in members.iter().zip(parts) {
        let Some(part) = part else {
            missing.push(member.id.to_string());
            continue;
        };
        items.extend(part.items.iter().cloned());
        let theirs = part.theirs.hint();
        hint = Some(hint.map_or(theirs, |hint| hint.and(theirs)));
        missing.extend(
            part.theirs
                .missing()
                .iter()
                .map(|inner| format!("{}/{inner}", member.id)),
        );
        about.extend(part.theirs.about().iter().map(|about| About {
            server: (!member.prefix.is_empty()).then(|| member.id.clone()),
            text: about.to_string(),
        }));
    }
    // Absence of a server that is down must not be kept.
    let hint = hint.filter(|_| missing.is_empty()).unwrap_or_default();
    let hint = CacheHint {
        // What one caller may see is not what another may.
        public: false,
        ..hint
    };
    let joined = Catalog::of(items, missing, None);
    joined.with_about(about).with_hint(hint)
}
