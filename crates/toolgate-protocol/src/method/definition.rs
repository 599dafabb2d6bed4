//! Definitions of items: tools, resources, resource templates, prompts and skills, each with its original text.

use super::skills;
use crate::json::{Json, JsonKind, ObjectWriter};
use std::borrow::Cow;

/// Kind of an item that a server offers: tool, resource, resource template, prompt or skill.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ItemKind {
    /// Tool, listed by `tools/list`.
    Tool,
    /// Resource, listed by `resources/list`.
    Resource,
    /// Resource template, listed by `resources/templates/list`.
    Template,
    /// Prompt, listed by `prompts/list`.
    Prompt,
    /// Skill: a folder of resources with instructions for a model (2026-07-28).
    Skill,
}

impl ItemKind {
    /// All kinds of items.
    pub const ALL: [ItemKind; 5] = [
        ItemKind::Tool,
        ItemKind::Resource,
        ItemKind::Template,
        ItemKind::Prompt,
        ItemKind::Skill,
    ];

    /// Returns the method that lists items of this kind, for example `tools/list`.
    pub fn list_method(self) -> &'static str {
        match self {
            ItemKind::Tool => "tools/list",
            ItemKind::Resource => "resources/list",
            ItemKind::Template => "resources/templates/list",
            ItemKind::Prompt => "prompts/list",
            ItemKind::Skill => "skills/list",
        }
    }

    /// Returns the item kind that a list method lists, for example tools for `tools/list`.
    pub fn listed_by(method: &str) -> Option<ItemKind> {
        ItemKind::ALL
            .into_iter()
            .find(|k| k.list_method() == method)
    }

    /// Returns the member of a list result that contains the items, for example `tools`.
    pub fn list_member(self) -> &'static str {
        match self {
            ItemKind::Tool => "tools",
            ItemKind::Resource => "resources",
            ItemKind::Template => "resourceTemplates",
            ItemKind::Prompt => "prompts",
            ItemKind::Skill => "skills",
        }
    }

    /// Returns the capability that a server declares if it has items of this kind, for example `prompts`.
    pub fn capability(self) -> &'static str {
        match self {
            ItemKind::Tool => "tools",
            ItemKind::Resource | ItemKind::Template | ItemKind::Skill => "resources",
            ItemKind::Prompt => "prompts",
        }
    }

    /// Returns the member of a definition that identifies the item, for example `name` or `uri`.
    pub fn key_member(self) -> &'static str {
        match self {
            ItemKind::Tool | ItemKind::Prompt => "name",
            ItemKind::Resource | ItemKind::Skill => "uri",
            ItemKind::Template => "uriTemplate",
        }
    }

    /// Returns the name of the item kind for people.
    pub fn as_str(self) -> &'static str {
        match self {
            ItemKind::Tool => "tool",
            ItemKind::Resource => "resource",
            ItemKind::Template => "resource template",
            ItemKind::Prompt => "prompt",
            ItemKind::Skill => "skill",
        }
    }
}

/// Definition of a tool, resource, template, prompt or skill, as JSON, and its identifying name.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    kind: ItemKind,
    name: String,
    json: Json,
}

/// Tool annotations: claims about the behavior of a tool, which count only if the operator trusts the server.
///
/// Source: `ToolAnnotations` of the schema.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ToolAnnotations {
    /// Annotation `readOnlyHint`: the tool changes nothing.
    pub read_only: bool,
    /// Annotation `destructiveHint`: the tool may destroy data; always false if it is read-only.
    pub destructive: bool,
    /// Annotation `idempotentHint`: repeated calls have no further effect; always true if it is read-only.
    pub idempotent: bool,
    /// Annotation `openWorldHint`: the tool interacts with systems outside of its server.
    pub open_world: bool,
}

impl Default for ToolAnnotations {
    /// Returns the values of absent annotations.
    fn default() -> ToolAnnotations {
        ToolAnnotations {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
        }
    }
}

/// Argument of a prompt, as the prompt's definition declares it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PromptArgument {
    /// Name of the argument.
    pub name: String,
    /// True if the argument is required.
    pub required: bool,
}

impl Definition {
    /// Reads the definition of an item of this kind.
    ///
    /// # Errors
    /// Returns the reason if a member is missing or wrong.
    pub fn read(kind: ItemKind, json: Json) -> Result<Definition, &'static str> {
        if json.kind() != JsonKind::Object {
            return Err("the definition is not an object");
        }
        let text = |key: &str| json.get(key).and_then(|n| n.string());
        let Some(name) = text(kind.key_member()) else {
            return Err(match kind {
                ItemKind::Tool => "the \"name\" of the tool is missing or not a string",
                ItemKind::Prompt => "the \"name\" of the prompt is missing or not a string",
                ItemKind::Resource => "the \"uri\" of the resource is missing or not a string",
                ItemKind::Template => {
                    "the \"uriTemplate\" of the template is missing or not a string"
                }
                ItemKind::Skill => "the \"uri\" of the skill is missing or not a string",
            });
        };
        match kind {
            ItemKind::Tool => check_schemas(&json)?,
            ItemKind::Prompt => check_arguments(&json)?,
            ItemKind::Resource | ItemKind::Template if text("name").is_none() => {
                return Err("\"name\" is missing or not a string");
            }
            ItemKind::Resource | ItemKind::Template => {}
            ItemKind::Skill => drop(skills::read(&json)?),
        }
        Ok(Definition { kind, name, json })
    }

    /// Reads the definition of a tool.
    ///
    /// # Errors
    /// Returns the reason if a member is missing or wrong.
    pub fn tool(json: Json) -> Result<Definition, &'static str> {
        Definition::read(ItemKind::Tool, json)
    }

    /// Returns the kind of the defined item.
    pub fn kind(&self) -> ItemKind {
        self.kind
    }

    /// Returns the name, URI or URI template of the item, as the author of this definition uses it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the complete definition as JSON.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// Returns the same definition under another name or URI; all other bytes stay.
    pub fn renamed(&self, name: &str) -> Definition {
        let json = self
            .json
            .with(self.kind.key_member(), &Json::from_value(&name.into()));
        Definition {
            kind: self.kind,
            name: name.to_owned(),
            json,
        }
    }

    /// Returns the display name of the item: `title`, then for a tool `annotations.title`, then `name`.
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

    /// Returns the `description` of the item.
    pub fn description(&self) -> Option<String> {
        match self.kind {
            ItemKind::Skill => self.json.get("frontmatter")?.get("description")?.string(),
            _ => self.json.get("description")?.string(),
        }
    }

    /// Returns the `inputSchema` of a tool; `{"type": "object"}` if it has none.
    pub fn input_schema(&self) -> Json {
        self.json
            .get("inputSchema")
            .unwrap_or_else(|| Json::from_value(&serde_json::json!({"type": "object"})))
    }

    /// Returns the `outputSchema` of a tool.
    pub fn output_schema(&self) -> Option<Json> {
        self.json.get("outputSchema")
    }

    /// Returns whether a prompt has a list of arguments, which may be empty. A prompt without one is free-form: its
    /// server accepts arguments that it does not list.
    ///
    /// ```
    /// use toolgate_protocol::{json::{Json, JsonLimits}, method::definition::{Definition, ItemKind}};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let read = |text: &str| -> Result<Definition, Box<dyn std::error::Error>> {
    ///     let json = Json::read(text.as_bytes().to_vec(), &JsonLimits::default())?;
    ///     Ok(Definition::read(ItemKind::Prompt, json)?)
    /// };
    /// assert!(read(r#"{"name": "greet", "arguments": []}"#)?.declares_arguments());
    /// assert!(!read(r#"{"name": "fill"}"#)?.declares_arguments());
    /// # Ok(())
    /// # }
    /// ```
    pub fn declares_arguments(&self) -> bool {
        self.json.get("arguments").is_some()
    }

    /// Returns the declared arguments of a prompt.
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

    /// Returns the tool annotations (`readOnlyHint` and others). Items other than tools are read-only.
    pub fn annotations(&self) -> ToolAnnotations {
        let absent = ToolAnnotations::default();
        let claims = self.json.get("annotations");
        let said = |key: &str| claims.as_ref()?.get(key)?.bool();
        let tool = self.kind == ItemKind::Tool;
        let read_only = !tool || said("readOnlyHint").unwrap_or(absent.read_only);
        let if_it_writes = |key: &str, absent| match read_only {
            true => None,
            false => Some(said(key).unwrap_or(absent)),
        };
        ToolAnnotations {
            read_only,
            destructive: if_it_writes("destructiveHint", absent.destructive).unwrap_or(false),
            idempotent: if_it_writes("idempotentHint", absent.idempotent).unwrap_or(true),
            open_world: said("openWorldHint").unwrap_or(absent.open_world),
        }
    }
}

fn check_schemas(json: &Json) -> Result<(), &'static str> {
    if json
        .get("inputSchema")
        .is_none_or(|s| s.kind() != JsonKind::Object)
    {
        return Err("\"inputSchema\" is missing or not an object");
    }
    let output = json.get("outputSchema");
    if output.is_some_and(|s| !matches!(s.kind(), JsonKind::Object | JsonKind::Bool)) {
        return Err("\"outputSchema\" is neither an object nor a boolean");
    }
    Ok(())
}

fn check_arguments(json: &Json) -> Result<(), &'static str> {
    let Some(list) = json.get("arguments") else {
        return Ok(());
    };
    if list.kind() != JsonKind::Array {
        return Err("\"arguments\" is not an array");
    }
    let named = |a: Json| a.get("name").and_then(|n| n.string()).is_some();
    if list.items().all(named) {
        Ok(())
    } else {
        Err("the \"name\" of an argument is missing or not a string")
    }
}

/// Returns the parameter `ref` of `completion/complete` for a prompt or a resource template.
pub fn completion_reference(kind: ItemKind, name: &str) -> Json {
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
