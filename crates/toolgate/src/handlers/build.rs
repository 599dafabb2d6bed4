//! Validation of a server's definitions when it is built.

use super::{Skill, app_page, registry::OfferedItems};
use crate::param_headers::ParamHeaders;
use std::{collections::HashSet, fmt};
use toolgate_core::{Definition, Item, ItemKind};
use toolgate_policy::{SchemaBounds, check_item_schemas};
use toolgate_protocol::method::meta;

/// Error of building an MCP server: an invalid tool, resource, prompt or other setting, and the reason.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BuildError {
    what: String,
    why: String,
}

impl BuildError {
    pub(super) fn new(what: impl Into<String>, why: impl Into<String>) -> BuildError {
        BuildError {
            what: what.into(),
            why: why.into(),
        }
    }
}

impl BuildError {
    /// Returns the error with the context of an outer server.
    pub(super) fn within(self, outer: &str) -> BuildError {
        BuildError {
            what: format!("{outer}: {}", self.what),
            why: self.why,
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

impl std::error::Error for BuildError {}

/// Maximum length of a tool name, in characters.
const MAX_TOOL_NAME_CHARS: usize = 128;

/// Validates all definitions. Returns them by kind, in the order of [`ItemKind::ALL`].
pub(super) fn check(
    offered: &OfferedItems,
) -> Result<[Vec<Definition>; ItemKind::ALL.len()], BuildError> {
    let tools = check_definitions(
        offered.tools.iter().map(|t| (t.name(), t.definition())),
        ItemKind::Tool,
    )?;
    for tool in &offered.tools {
        app_page::check_page(tool, &offered.resources)
            .map_err(|why| BuildError::new(format!("the tool {:?}", tool.name()), why))?;
    }
    for resource in &offered.resources {
        app_page::check_uri(resource)
            .map_err(|why| BuildError::new(format!("the resource {:?}", resource.uri()), why))?;
    }
    for tool in &tools {
        check_tool(tool).map_err(|why| BuildError::new(describe(tool), why))?;
    }
    let skills: Vec<(String, &Skill)> = offered.skills.iter().map(|s| (s.uri(), s)).collect();
    let files = skills.iter().map(|(uri, s)| (uri.as_str(), s.resource()));
    let resources = offered.resources.iter().map(|r| (r.uri(), r.definition()));
    let resources = resources.chain(files);
    let skills = skills.iter().map(|(uri, s)| (uri.as_str(), s.definition()));
    let skills = check_definitions(skills, ItemKind::Skill)?;
    let templates = offered
        .templates
        .iter()
        .map(|t| (t.template(), t.definition()));
    let prompts = offered.prompts.iter().map(|p| (p.name(), p.definition()));
    Ok([
        tools,
        check_definitions(resources, ItemKind::Resource)?,
        check_definitions(templates, ItemKind::Template)?,
        check_definitions(prompts, ItemKind::Prompt)?,
        skills,
    ])
}

/// Checks that the name of a tool or prompt does not begin with the prefix of a mounted server.
pub(super) fn check_mount_prefix(
    definition: &Definition,
    mounts: &[String],
) -> Result<(), BuildError> {
    let named = matches!(definition.kind(), ItemKind::Tool | ItemKind::Prompt);
    let begins = |mount: &&String| {
        let rest = definition.name().strip_prefix(mount.as_str());
        named && rest.is_some_and(|rest| rest.starts_with('_'))
    };
    match mounts.iter().find(begins) {
        None => Ok(()),
        Some(mount) => {
            let why = format!(
                "names that begin with \"{mount}_\" are reserved for the mounted server; rename it"
            );
            Err(BuildError::new(describe(definition), why))
        }
    }
}

pub(super) fn describe(definition: &Definition) -> String {
    format!("the {} {:?}", definition.kind().as_str(), definition.name())
}

/// Checks that the `_meta` keys are valid and not reserved by the protocol, except for those of its extensions.
fn check_meta(definition: &Definition) -> Result<(), String> {
    let meta = definition.json().get("_meta");
    for (key, _) in meta.iter().flat_map(toolgate_core::Json::members) {
        if !meta::is_key(&key) {
            return Err(format!(
                "{key:?} is not a valid _meta key; use one such as \"example.com/key\""
            ));
        }
        if meta::is_reserved(&key) && !key.starts_with(meta::PREFIX) {
            return Err(format!(
                "the _meta key {key:?} is reserved for the protocol; use a prefix of your own"
            ));
        }
    }
    Ok(())
}

/// Checks that each definition is complete and each name is unique.
fn check_definitions<'a>(
    definitions: impl Iterator<Item = (&'a str, Result<Definition, String>)>,
    kind: ItemKind,
) -> Result<Vec<Definition>, BuildError> {
    let (mut seen, mut list) = (HashSet::new(), Vec::new());
    for (name, definition) in definitions {
        let wrong = |why: String| BuildError::new(format!("the {} {name:?}", kind.as_str()), why);
        if !seen.insert(name) {
            return Err(wrong(
                "its name is not unique; rename one of the two".to_owned(),
            ));
        }
        let definition = definition.map_err(wrong)?;
        check_meta(&definition).map_err(wrong)?;
        list.push(definition);
    }
    Ok(list)
}

/// Checks the name, the input type and the headers of a tool.
pub(super) fn check_tool(tool: &Definition) -> Result<(), String> {
    let name = tool.name();
    let good = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || name.len() > MAX_TOOL_NAME_CHARS || !name.chars().all(good) {
        return Err(format!(
            "its name is invalid; use 1 to {MAX_TOOL_NAME_CHARS} of the characters A-Z, a-z, 0-9, \"_\", \"-\" and \".\""
        ));
    }
    if tool
        .input_schema()
        .get("type")
        .and_then(|t| t.string())
        .as_deref()
        != Some("object")
    {
        return Err("the root of its inputSchema must have \"type\": \"object\"".to_owned());
    }
    ParamHeaders::read(&tool.input_schema())?;
    Ok(())
}

/// Checks that validation can use every keyword of a tool's schemas. The item keeps the compiled schemas.
pub(super) fn check_schemas(tool: &Item) -> Result<(), BuildError> {
    let found = check_item_schemas(tool, &SchemaBounds::default());
    found.map_err(|why| BuildError::new(describe(&tool.def), why))
}
