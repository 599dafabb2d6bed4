//! Overrides of tool definitions: name, title, description, visibility and fixed arguments.

use super::{AggregateMember, apps};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};
use toolgate_core::{Definition, HIDDEN_BY_CONFIG, Item, ItemKind, Json, OriginalDefinition};
use toolgate_policy::is_closed;
use toolgate_protocol::{json::ObjectWriter, method::skills};

/// Operator's changes to one tool's definition: name, visibility, title, description and fixed arguments. Values that
/// are not set stay as the server states them.
///
/// ```
/// use toolgate::aggregate::DefinitionOverride;
///
/// let search = DefinitionOverride::new()
///     .name("find")
///     .description("Finds notes of this team.")
///     .argument("team", "blue");
/// # let _ = search;
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct DefinitionOverride {
    name: Option<String>,
    hide: bool,
    title: Option<String>,
    description: Option<String>,
    fixed: Vec<(String, Json)>,
}

impl DefinitionOverride {
    /// Returns an override that leaves the tool's definition unchanged.
    pub fn new() -> DefinitionOverride {
        DefinitionOverride::default()
    }

    /// Renames the tool for callers. Rules, approvals and the audit log use the new name.
    pub fn name(mut self, name: impl Into<String>) -> DefinitionOverride {
        self.name = Some(name.into());
        self
    }

    /// Hides the overridden tool: callers cannot see or call it.
    pub fn hide(mut self) -> DefinitionOverride {
        self.hide = true;
        self
    }

    /// Replaces the tool's title, which hosts show to people.
    pub fn title(mut self, title: impl Into<String>) -> DefinitionOverride {
        self.title = Some(title.into());
        self
    }

    /// Replaces the tool's description, which the model reads.
    pub fn description(mut self, text: impl Into<String>) -> DefinitionOverride {
        self.description = Some(text.into());
        self
    }

    /// Fixes a tool argument: the value is added to every call of the tool. Callers do not see the argument, and a call
    /// that passes it is rejected. The value may be a secret: rules, approvers and the audit log never get it.
    pub fn argument(
        mut self,
        name: impl Into<String>,
        value: impl Into<Value>,
    ) -> DefinitionOverride {
        let name = name.into();
        self.fixed.retain(|(other, _)| *other != name);
        self.fixed.push((name, Json::from_value(&value.into())));
        self
    }

    fn fixed_arguments(&self) -> Option<Json> {
        let mut o = ObjectWriter::new();
        for (name, value) in &self.fixed {
            o.raw(name, value);
        }
        (!self.fixed.is_empty()).then(|| o.finish())
    }

    /// Returns the definition as callers see it.
    fn apply(&self, def: &Definition) -> Definition {
        let text = |json: Json, key, text: &Option<String>| match text {
            Some(text) => json.with(key, &Json::from_value(&text.as_str().into())),
            None => json,
        };
        let mut json = text(def.json().clone(), "title", &self.title);
        json = text(json, "description", &self.description);
        if !self.fixed.is_empty() {
            json = json.with(
                "inputSchema",
                &self.schema_without_fixed(&def.input_schema()),
            );
        }
        // Only text and parts of the schema changed, so the definition stays valid.
        Definition::read(ItemKind::Tool, json).unwrap_or_else(|_| def.clone())
    }

    /// Returns the input schema without the fixed arguments.
    fn schema_without_fixed(&self, schema: &Json) -> Json {
        let mut rest = schema.clone();
        if let Some(known) = schema.get("properties") {
            let set = self.fixed.iter();
            rest = rest.with(
                "properties",
                &set.fold(known, |k, (name, _)| k.without(name)),
            );
        }
        if let Some(required) = schema.get("required") {
            let asked = |name: &String| !self.fixed.iter().any(|(set, _)| set == name);
            let names: Vec<String> = required.items().filter_map(|name| name.string()).collect();
            let names: Value = names.into_iter().filter(asked).collect();
            rest = match names.as_array().is_some_and(Vec::is_empty) {
                true => rest.without("required"),
                false => rest.with("required", &Json::from_value(&names)),
            };
        }
        rest
    }

    /// Returns a fixed argument that the tool does not accept.
    fn unknown_argument(&self, schema: &Json) -> Option<&str> {
        if self.fixed.is_empty() {
            return None;
        }
        let tree = schema.to_value();
        let takes = |name: &str| tree["properties"].get(name).is_some();
        let mut set = self.fixed.iter().map(|(name, _)| name.as_str());
        let closed = is_closed(&tree)
            || (tree["additionalProperties"] == false && tree.get("patternProperties").is_none());
        set.find(|name| !takes(name)).filter(|_| closed)
    }
}

impl fmt::Debug for DefinitionOverride {
    /// Omits the values of fixed arguments, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fixed: Vec<&String> = self.fixed.iter().map(|(name, _)| name).collect();
        f.debug_struct("DefinitionOverride")
            .field("name", &self.name)
            .field("hide", &self.hide)
            .field("title", &self.title)
            .field("description", &self.description)
            .field("arguments", &fixed)
            .finish()
    }
}

/// Operator's changes to the tool definitions of one server, by the server's own tool names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DefinitionOverrides(BTreeMap<String, DefinitionOverride>);

impl FromIterator<(String, DefinitionOverride)> for DefinitionOverrides {
    fn from_iter<T: IntoIterator<Item = (String, DefinitionOverride)>>(
        all: T,
    ) -> DefinitionOverrides {
        DefinitionOverrides(all.into_iter().collect())
    }
}

/// Presentation of one item after its override.
pub(super) struct ItemPresentation<'a> {
    over: Option<&'a DefinitionOverride>,
    /// Name within its server.
    pub(super) local: String,
    /// Reason why the item is withheld.
    withheld: Option<String>,
}

impl DefinitionOverrides {
    /// Adds the override of a tool.
    pub(crate) fn set(&mut self, tool: &str, over: DefinitionOverride) {
        self.0.insert(tool.to_owned(), over);
    }

    /// Returns whether no override is set.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the overridden definitions. No item may be withheld except those that are hidden on purpose.
    ///
    /// # Errors
    /// The tool and what is wrong with its override.
    pub(crate) fn check(&self, items: &[Arc<Item>]) -> Result<Vec<Definition>, (String, String)> {
        let is = |tool: &&String| items.iter().any(|item| item.def.name() == **tool);
        if let Some(strange) = self.0.keys().find(|tool| !is(tool)) {
            let known: Vec<&str> = items.iter().map(|item| item.def.name()).collect();
            let why = format!(
                "the server has no tool with this name; its tools are {}",
                known.join(", ")
            );
            return Err((strange.clone(), why));
        }
        let mut shown = Vec::new();
        for (item, face) in items.iter().zip(self.present_all(items)) {
            match &face.withheld {
                _ if face.is_hidden() => {}
                Some(why) => return Err((item.def.name().to_owned(), why.clone())),
                None => shown.push(face.renamed(item)),
            }
        }
        Ok(shown)
    }

    /// Applies the overrides to each item. All tools that would share one name are withheld.
    pub(super) fn present_all(&self, items: &[Arc<Item>]) -> Vec<ItemPresentation<'_>> {
        let mut faces: Vec<ItemPresentation<'_>> =
            items.iter().map(|item| self.present(item)).collect();
        while let Some(clash) = name_collisions(items, &faces) {
            for (at, why) in clash {
                let face = &mut faces[at];
                face.withheld.get_or_insert(why);
                // Under its own name it can only collide with a tool that was given this name.
                face.local = items[at].def.name().to_owned();
            }
        }
        faces
    }

    fn present(&self, item: &Item) -> ItemPresentation<'_> {
        let own = item.def.name();
        let over = self.0.get(own).filter(|_| item.kind() == ItemKind::Tool);
        let withheld = over.and_then(|over| {
            if over.hide {
                return Some(HIDDEN_BY_CONFIG.to_owned());
            }
            let stranger = over.unknown_argument(&item.def.input_schema())?;
            Some(format!(
                "the configuration sets the argument {stranger:?}, which the tool does not accept; remove that setting"
            ))
        });
        let name = over.and_then(|over| over.name.clone());
        ItemPresentation {
            over,
            local: name.unwrap_or_else(|| own.to_owned()),
            withheld,
        }
    }
}

/// Returns the items that share a name because of an override, with the reason.
fn name_collisions(
    items: &[Arc<Item>],
    faces: &[ItemPresentation<'_>],
) -> Option<Vec<(usize, String)>> {
    if faces.iter().all(|face| face.over.is_none()) {
        return None;
    }
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, face) in faces
        .iter()
        .enumerate()
        .filter(|(_, face)| !face.is_hidden())
    {
        by_name.entry(&face.local).or_default().push(at);
    }
    let mut clash = Vec::new();
    for (name, of) in by_name {
        // If all have their own names, no override caused the collision.
        if of.len() < 2 || of.iter().all(|at| items[*at].def.name() == name) {
            continue;
        }
        for at in &of {
            let others = of.iter().filter(|other| *other != at);
            let others: Vec<&str> = others.map(|other| items[*other].def.name()).collect();
            let why = format!(
                "the configuration gives the name {name:?} to this tool and to {}; give each a different name",
                others.join(", ")
            );
            clash.push((*at, why));
        }
    }
    (!clash.is_empty()).then_some(clash)
}

impl ItemPresentation<'_> {
    /// Returns the item as callers see it, under the given joined name.
    pub(super) fn to_item(&self, item: &Arc<Item>, name: &str, member: &AggregateMember) -> Item {
        let page = match item.kind() {
            ItemKind::Tool => apps::prefixed_tool(&member.prefix, &item.def),
            ItemKind::Skill if item.def.name() != name => {
                let outward = |uri: &str| apps::prefixed_uri(&member.prefix, uri).into_owned();
                skills::with_uris(&item.def, outward)
            }
            _ => None,
        };
        let is_uri = !matches!(item.kind(), ItemKind::Tool | ItemKind::Prompt);
        let other = self.over.is_some() || page.is_some() || (is_uri && item.def.name() != name);
        let def = page.unwrap_or_else(|| item.def.clone());
        let def = match self.over {
            Some(over) => over.apply(&def),
            None => def,
        };
        let def = match def.name() == name {
            true => def,
            false => def.renamed(name),
        };
        let mut shown = item.with_def(def);
        shown.origin.server = member.id.clone();
        shown.local_name = match is_uri {
            true => name.to_owned(),
            false => self.local.clone(),
        };
        let own = || OriginalDefinition::new(item.def.clone(), self.fixed_arguments());
        shown.original = other.then(|| Arc::new(own()));
        if shown.withheld.is_none() {
            shown.withheld.clone_from(&self.withheld);
        }
        shown
    }

    /// Returns the definition under its name within its server.
    fn renamed(&self, item: &Item) -> Definition {
        let def = match self.over {
            Some(over) => over.apply(&item.def),
            None => item.def.clone(),
        };
        def.renamed(&self.local)
    }

    /// Returns whether the configuration hides the item, which frees its name.
    pub(super) fn is_hidden(&self) -> bool {
        self.over.is_some_and(|over| over.hide)
    }

    /// Returns whether `shown` already equals this presentation under that name.
    pub(super) fn matches(&self, shown: &Item, name: &str) -> bool {
        let withheld = self.withheld.is_none() || shown.withheld == self.withheld;
        let local = !matches!(shown.kind(), ItemKind::Tool | ItemKind::Prompt)
            || shown.local_name == self.local;
        shown.def.name() == name && local && withheld
    }

    /// Returns the fixed arguments that are added to every call.
    pub(super) fn fixed_arguments(&self) -> Option<Json> {
        self.over.and_then(DefinitionOverride::fixed_arguments)
    }
}
