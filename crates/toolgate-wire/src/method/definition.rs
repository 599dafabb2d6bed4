//! What a server offers: tools, resources, templates of resources and prompts, each as the text that came.

use super::skills;
use crate::json::{Json, Kind, ObjectWriter};
use std::borrow::Cow;

/// The kinds of things that a server offers.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ItemKind {
    /// A tool.
    Tool,
    /// A resource.
    Resource,
    /// A template of resources.
    Template,
    /// A prompt.
    Prompt,
    /// A skill: a folder of resources with instructions for a model (2026-07-28).
    Skill,
}

impl ItemKind {
    /// All of them.
    pub const ALL: [ItemKind; 5] = [
        ItemKind::Tool,
        ItemKind::Resource,
        ItemKind::Template,
        ItemKind::Prompt,
        ItemKind::Skill,
    ];

    /// The method that lists them.
    pub fn list_method(self) -> &'static str {
        match self {
            ItemKind::Tool => "tools/list",
            ItemKind::Resource => "resources/list",
            ItemKind::Template => "resources/templates/list",
            ItemKind::Prompt => "prompts/list",
            ItemKind::Skill => "skills/list",
        }
    }

    /// The kind that a method lists.
    pub fn listed_by(method: &str) -> Option<ItemKind> {
        ItemKind::ALL
            .into_iter()
            .find(|k| k.list_method() == method)
    }

    /// The member of a list that holds them.
    pub fn member(self) -> &'static str {
        match self {
            ItemKind::Tool => "tools",
            ItemKind::Resource => "resources",
            ItemKind::Template => "resourceTemplates",
            ItemKind::Prompt => "prompts",
            ItemKind::Skill => "skills",
        }
    }

    /// The capability that a server declares where it has some.
    pub fn capability(self) -> &'static str {
        match self {
            ItemKind::Tool => "tools",
            ItemKind::Resource | ItemKind::Template | ItemKind::Skill => "resources",
            ItemKind::Prompt => "prompts",
        }
    }

    /// The member of a definition by which it is used and told from the others.
    pub fn key(self) -> &'static str {
        match self {
            ItemKind::Tool | ItemKind::Prompt => "name",
            ItemKind::Resource | ItemKind::Skill => "uri",
            ItemKind::Template => "uriTemplate",
        }
    }

    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            ItemKind::Tool => "tool",
            ItemKind::Resource => "resource",
            ItemKind::Template => "resource template",
            ItemKind::Prompt => "prompt",
            ItemKind::Skill => "skill",
        }
    }
}

/// One thing that a server offers: the text as it came, and the name by which it is used.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    kind: ItemKind,
    name: String,
    json: Json,
}

/// What a tool claims to do. Claims, unless the operator trusts the server that makes them.
///
/// Source: `ToolAnnotations` of the schema.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy; never where it is read-only, whatever it says.
    pub destructive: bool,
    /// A second call changes nothing more; always where it is read-only.
    pub idempotent: bool,
    /// It reaches out of the server's own world.
    pub open_world: bool,
}

impl Default for Hints {
    /// What absent hints mean.
    fn default() -> Hints {
        Hints {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
        }
    }
}

/// One argument of a prompt.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// Whether the prompt needs it.
    pub required: bool,
}

impl Definition {
    /// Reads a definition of that kind.
    ///
    /// # Errors
    /// Says which member is missing or wrong.
    pub fn read(kind: ItemKind, json: Json) -> Result<Definition, &'static str> {
        if json.kind() != Kind::Object {
            return Err("the definition is not an object");
        }
        let text = |key: &str| json.get(key).and_then(|n| n.string());
        let Some(name) = text(kind.key()) else {
            return Err(match kind {
                ItemKind::Tool => "the tool has no \"name\"",
                ItemKind::Prompt => "the prompt has no \"name\"",
                ItemKind::Resource => "the resource has no \"uri\"",
                ItemKind::Template => "the template has no \"uriTemplate\"",
                ItemKind::Skill => "the skill has no \"uri\"",
            });
        };
        match kind {
            ItemKind::Tool => schemas(&json)?,
            ItemKind::Prompt => arguments(&json)?,
            ItemKind::Resource | ItemKind::Template if text("name").is_none() => {
                return Err("\"name\" is missing");
            }
            ItemKind::Resource | ItemKind::Template => {}
            ItemKind::Skill => drop(skills::read(&json)?),
        }
        Ok(Definition { kind, name, json })
    }

    /// Reads the definition of a tool.
    ///
    /// # Errors
    /// Says which member is missing or wrong.
    pub fn tool(json: Json) -> Result<Definition, &'static str> {
        Definition::read(ItemKind::Tool, json)
    }

    /// What it is.
    pub fn kind(&self) -> ItemKind {
        self.kind
    }

    /// The name, URI or template by which it is used, in the words of whoever made this definition.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole definition.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// The same thing under another name; all other bytes stay.
    pub fn renamed(&self, name: &str) -> Definition {
        let json = self
            .json
            .with(self.kind.key(), &Json::from_value(&name.into()));
        Definition {
            kind: self.kind,
            name: name.to_owned(),
            json,
        }
    }

    /// What a person should see as its name: `title`, then for a tool `annotations.title`, then `name`.
    pub fn title(&self) -> Cow<'_, str> {
        let own = self.json.get("title").and_then(|t| t.string());
        let old = || match self.kind {
            ItemKind::Tool => self.json.get("annotations")?.get("title")?.string(),
            ItemKind::Skill => self.json.get("frontmatter")?.get("name")?.string(),
            _ => self.json.get("name")?.string(),
        };
        own.or_else(old)
            .map_or(Cow::Borrowed(&self.name), Cow::Owned)
    }

    /// What it says of itself.
    pub fn description(&self) -> Option<String> {
        match self.kind {
            ItemKind::Skill => self.json.get("frontmatter")?.get("description")?.string(),
            _ => self.json.get("description")?.string(),
        }
    }

    /// The schema of a tool's arguments.
    pub fn input_schema(&self) -> Json {
        self.json
            .get("inputSchema")
            .unwrap_or_else(|| Json::from_value(&serde_json::json!({"type": "object"})))
    }

    /// The schema of a tool's structured result.
    pub fn output_schema(&self) -> Option<Json> {
        self.json.get("outputSchema")
    }

    /// The arguments that a prompt takes.
    pub fn prompt_arguments(&self) -> Vec<PromptArgument> {
        let read = |a: Json| {
            Some(PromptArgument {
                name: a.get("name")?.string()?,
                required: a.get("required").and_then(|r| r.bool()).unwrap_or(false),
            })
        };
        let list = self.json.get("arguments");
        list.iter().flat_map(Json::items).filter_map(read).collect()
    }

    /// What it claims to do. Whatever is not a tool is there to be read.
    pub fn hints(&self) -> Hints {
        let absent = Hints::default();
        let claims = self.json.get("annotations");
        let said = |key: &str| claims.as_ref()?.get(key)?.bool();
        let tool = self.kind == ItemKind::Tool;
        let read_only = !tool || said("readOnlyHint").unwrap_or(absent.read_only);
        let if_it_writes = |key: &str, absent| match read_only {
            true => None,
            false => Some(said(key).unwrap_or(absent)),
        };
        Hints {
            read_only,
            destructive: if_it_writes("destructiveHint", absent.destructive).unwrap_or(false),
            idempotent: if_it_writes("idempotentHint", absent.idempotent).unwrap_or(true),
            open_world: said("openWorldHint").unwrap_or(absent.open_world),
        }
    }
}

fn schemas(json: &Json) -> Result<(), &'static str> {
    if json
        .get("inputSchema")
        .is_none_or(|s| s.kind() != Kind::Object)
    {
        return Err("\"inputSchema\" is not an object");
    }
    let output = json.get("outputSchema");
    if output.is_some_and(|s| !matches!(s.kind(), Kind::Object | Kind::Bool)) {
        return Err("\"outputSchema\" is not a schema");
    }
    Ok(())
}

fn arguments(json: &Json) -> Result<(), &'static str> {
    let Some(list) = json.get("arguments") else {
        return Ok(());
    };
    if list.kind() != Kind::Array {
        return Err("\"arguments\" is not an array");
    }
    let named = |a: Json| a.get("name").and_then(|n| n.string()).is_some();
    if list.items().all(named) {
        Ok(())
    } else {
        Err("an argument has no \"name\"")
    }
}

/// Where a completion looks: the parameter `ref`.
pub fn reference(kind: ItemKind, name: &str) -> Json {
    let mut o = ObjectWriter::new();
    match kind {
        ItemKind::Prompt => {
            o.str("type", "ref/prompt");
            o.str("name", name);
        }
        _ => {
            o.str("type", "ref/resource");
            o.str("uri", name);
        }
    }
    o.finish()
}
