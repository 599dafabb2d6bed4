//! The list of one member under the names of the whole, and how the lists are joined.

use super::{Member, NameRules, Overrides, apps, names::WireNames, overrides::Face};
use std::{collections::HashMap, sync::Arc};
use toolgate_core::{About, CacheHint, Catalog, DefinitionNote, Item, ItemKind, Json};

/// How the things of one member are named.
pub(super) struct Naming<'a> {
    pub(super) member: &'a Member,
    pub(super) over: &'a Overrides,
    /// Whether names stay as they are.
    pub(super) plain: bool,
    /// Which names clients can use.
    pub(super) rules: NameRules,
}

/// The list of one member under the names of the whole.
#[derive(Clone)]
pub(super) struct Part {
    /// As the member gave it.
    theirs: Catalog,
    /// Its items, renamed; in the same order.
    items: Vec<Arc<Item>>,
    /// From a name to the member's own.
    routes: HashMap<String, Route>,
    /// What stands before its names.
    prefix: String,
    /// The pages that its tools name, with the tool.
    pages: HashMap<String, usize>,
    /// Whether it was listed before this program started.
    pub(super) seeded: bool,
}

/// Where a name leads.
#[derive(Clone)]
pub(super) struct Route {
    /// The member's own name.
    pub(super) name: String,
    /// The arguments that are put into every call.
    pub(super) fixed: Option<Json>,
}

impl Part {
    /// Renames a member's list. The same list makes the same part, and an item that stays is the same object.
    pub(super) fn of(naming: &Naming<'_>, theirs: Catalog, old: Option<&Arc<Part>>) -> Arc<Part> {
        if let Some(old) = old.filter(|old| old.theirs.same(&theirs)) {
            return old.clone();
        }
        let kept = old.map(|old| old.by_origin()).unwrap_or_default();
        let mut part = Part {
            theirs: theirs.clone(),
            items: Vec::new(),
            routes: HashMap::new(),
            prefix: naming.member.prefix.clone(),
            pages: HashMap::new(),
            seeded: false,
        };
        let faces = naming.over.faces(theirs.items());
        // What nobody may see gives way to what has its name now.
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
                // Where a URI leads is in the URI, but for pages of tools and skills, which each member names for itself.
                ItemKind::Resource | ItemKind::Template | ItemKind::Skill => {
                    apps::outward(&part.prefix, item.def.name()).into_owned()
                }
            };
            if item.kind() == ItemKind::Tool && !face.is_hidden() {
                let pages = apps::pages(&part.prefix, &item.def);
                part.pages.extend(pages.into_iter().map(|uri| (uri, at)));
            }
            let route = Route {
                name: item.def.name().to_owned(),
                fixed: face.fixed(),
            };
            part.routes.insert(name.clone(), route);
            let same = kept
                .get(&Arc::as_ptr(item))
                .filter(|kept| face.is(kept, &name));
            let item = match same {
                Some(same) => Arc::clone(same),
                None => Arc::new(face.show(item, &name, naming.member)),
            };
            shown.push((at, item));
        }
        shown.sort_by_key(|(at, _)| *at);
        part.items = shown.into_iter().map(|(_, item)| item).collect();
        Arc::new(part)
    }

    /// The same list under other names.
    pub(super) fn again(&self, naming: &Naming<'_>) -> Arc<Part> {
        let part = Part::of(naming, self.theirs.clone(), None);
        match self.seeded {
            true => part.seeded(),
            false => part,
        }
    }

    /// The same list, marked as listed before this program started.
    pub(super) fn seeded(&self) -> Arc<Part> {
        Arc::new(Part {
            seeded: true,
            ..self.clone()
        })
    }

    pub(super) fn has_instructions(&self) -> bool {
        !self.theirs.about().is_empty()
    }

    /// The same list without the instructions of the server.
    pub(super) fn without_instructions(&self) -> Arc<Part> {
        Arc::new(Part {
            theirs: self.theirs.clone().with_about(Vec::new()),
            ..self.clone()
        })
    }

    /// Whether it is the URI of a resource or of a template.
    pub(super) fn lists(&self, uri: &str) -> bool {
        self.routes.contains_key(uri)
    }

    /// Whether a URI is listed, or fits a template.
    pub(super) fn fits(&self, uri: &str) -> bool {
        apps::inward(&self.prefix, uri).is_some_and(|own| self.theirs.find(&own).is_some())
    }

    /// The tool that names a page, as it is shown.
    pub(super) fn naming(&self, page: &str) -> Option<&Arc<Item>> {
        self.items.get(*self.pages.get(page)?)
    }

    /// The member's own name of a tool or prompt.
    pub(super) fn route(&self, name: &str) -> Option<Route> {
        self.routes.get(name).cloned()
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

/// An item of a member by its place in the list, and how it is shown.
type Shown<'a> = (usize, (&'a Arc<Item>, Face<'a>));

/// The names of the items of a member on the wire: first of those that are seen, then of those that the configuration
/// hides, which take no name from the others.
fn wire_names(naming: &Naming<'_>, groups: [&Vec<Shown<'_>>; 2]) -> Vec<String> {
    let mut names = WireNames::new(&naming.member.prefix, naming.rules);
    let mut all = Vec::new();
    for group in groups {
        let local: Vec<&str> = group
            .iter()
            .map(|(_, (_, face))| face.local.as_str())
            .collect();
        match naming.plain {
            true => all.extend(names.keep(&local)),
            false => all.extend(names.assign(&local)),
        }
    }
    all
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
    let mut notes = Vec::new();
    let mut hint: Option<CacheHint> = None;
    for (member, part) in members.iter().zip(parts) {
        let Some(part) = part else {
            missing.push(member.id.to_string());
            continue;
        };
        items.extend(part.items.iter().cloned());
        let of_member = |note: &DefinitionNote| DefinitionNote {
            server: member.id.clone(),
            ..note.clone()
        };
        notes.extend(part.theirs.notes().iter().map(of_member));
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
    joined.with_about(about).with_hint(hint).with_notes(notes)
}
