//! `[server.NAME.tools.TOOL]`: overrides of a tool definition.

use super::{
    env_name::EnvName,
    error::ConfigError,
    limits::GatewayLimits,
    plaintext,
    reader::{ConfigTree, IntRange, NamedSettings, SettingError, SettingPath},
    value_source::PLAINTEXT_KEY,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::fmt;
use toolgate::aggregate::{DefinitionOverride, NameRules};

/// Override of one tool definition.
#[derive(Clone)]
pub(crate) struct ToolOverride {
    /// Tool name that the server uses.
    pub(crate) tool: String,
    /// Replacement name.
    pub(crate) name: Option<String>,
    /// True hides the tool from all callers.
    pub(crate) hide: bool,
    title: Option<String>,
    description: Option<String>,
    arguments: Vec<(String, FixedValue)>,
    /// Call timeout in seconds, if different from the server's.
    pub(crate) call_seconds: Option<u64>,
    /// Line in the file, from 1.
    pub(crate) line: usize,
}

/// Fixed value of an argument in every call; it may be secret.
#[derive(Clone)]
enum FixedValue {
    Value(Value),
    /// Value of an environment variable; `place` is its position in the config.
    Env {
        name: String,
        place: String,
    },
}

/// Compares the settings, wherever they are in the config.
impl PartialEq for ToolOverride {
    fn eq(&self, other: &ToolOverride) -> bool {
        let texts = |one: &ToolOverride| {
            let one = one.clone();
            (one.tool, one.name, one.title, one.description)
        };
        texts(self) == texts(other)
            && (self.hide, self.call_seconds) == (other.hide, other.call_seconds)
            && self.arguments == other.arguments
    }
}

impl PartialEq for FixedValue {
    fn eq(&self, other: &FixedValue) -> bool {
        match (self, other) {
            (FixedValue::Value(one), FixedValue::Value(other)) => one == other,
            (FixedValue::Env { name: one, .. }, FixedValue::Env { name: other, .. }) => {
                one == other
            }
            _ => false,
        }
    }
}

/// Omits the arguments, which may be secret.
impl fmt::Debug for ToolOverride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolOverride")
            .field("tool", &self.tool)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Override of one tool definition, `[server.NAME.tools.TOOL]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ToolSection {
    /// Name of the tool after the prefix, instead of its own: letters, digits, `_`, `-` and `.`, at most 128 with the
    /// prefix. Default: its own.
    name: Option<String>,
    /// True hides the tool from every caller. Another tool can use its name.
    hide: bool,
    /// Another title. Default: its own.
    title: Option<String>,
    /// Another description. Default: its own.
    description: Option<String>,
    /// Fixed arguments of every call, which callers neither see nor set, such as
    /// `{ team = "blue", depth = 3, key = { env = "NAME" } }`. `{ env = "NAME" }` is the value of an environment
    /// variable, as text.
    #[schemars(example = serde_json::json!({"name": "value"}))]
    arguments: NamedSettings<Value>,
    /// Time limit of a call of this tool, at most `call_max_seconds` of `[limits]`. Default: that of the server.
    #[serde(with = "IntRange::<1, 604_800>")]
    call_seconds: Option<u64>,
}

impl ToolOverride {
    /// Checks all overrides of a server, in the order of the file.
    pub(super) fn check_all(
        sections: NamedSettings<ToolSection>,
        prefix: &str,
        limits: &GatewayLimits,
        tree: &ConfigTree<'_>,
        path: &SettingPath,
    ) -> Result<Vec<ToolOverride>, SettingError> {
        let check = |(tool, section): (String, ToolSection)| {
            let path = path.key(&tool);
            ToolOverride::check(tool, section, prefix, limits, tree, &path)
        };
        sections.0.into_iter().map(check).collect()
    }

    fn check(
        tool: String,
        section: ToolSection,
        prefix: &str,
        limits: &GatewayLimits,
        tree: &ConfigTree<'_>,
        path: &SettingPath,
    ) -> Result<ToolOverride, SettingError> {
        if let Some(name) = &section.name {
            check_tool_name(name, prefix)
                .map_err(|text| SettingError::about(path.key("name"), text))?;
        }
        limits.check_call_seconds(section.call_seconds, path)?;
        let path_of_arguments = path.key("arguments");
        let argument = |(name, value): (String, Value)| {
            let path = path_of_arguments.key(&name);
            let fixed = FixedValue::check(&name, value, tree, &path)?;
            Ok((name, fixed))
        };
        Ok(ToolOverride {
            tool,
            name: section.name,
            hide: section.hide,
            title: section.title,
            description: section.description,
            arguments: section
                .arguments
                .0
                .into_iter()
                .map(argument)
                .collect::<Result<_, SettingError>>()?,
            call_seconds: section.call_seconds,
            line: tree.key_line(path),
        })
    }

    /// Resolves the environment variables.
    ///
    /// # Errors
    /// An environment variable is not set.
    pub(crate) fn resolve(&self) -> Result<DefinitionOverride, ConfigError> {
        self.resolve_with(|name| std::env::var(name).ok())
    }

    fn resolve_with(
        &self,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<DefinitionOverride, ConfigError> {
        let mut over = DefinitionOverride::new();
        if let Some(name) = &self.name {
            over = over.name(name.as_str());
        }
        if let Some(title) = &self.title {
            over = over.title(title.as_str());
        }
        if let Some(text) = &self.description {
            over = over.description(text.as_str());
        }
        for (key, value) in &self.arguments {
            let value = match value {
                FixedValue::Value(value) => value.clone(),
                FixedValue::Env { name, place } => Value::String(env(name).ok_or_else(|| {
                    let text = format!(
                        "the environment variable {name} is not set; set it to the value for the argument {key:?} of the tool {}",
                        self.tool
                    );
                    ConfigError::new(place, text)
                })?),
            };
            over = over.argument(key.as_str(), value);
        }
        Ok(if self.hide { over.hide() } else { over })
    }

    /// Returns the tool name that rules use.
    pub(crate) fn rule_name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.tool)
    }
}

/// Checks that a tool name stays valid and unchanged behind the prefix.
fn check_tool_name(name: &str, prefix: &str) -> Result<(), String> {
    let head = match prefix {
        "" => 0,
        prefix => prefix.len() + 1,
    };
    match NameRules::Specification.keeps_name(prefix, name) {
        true => Ok(()),
        false => Err(format!(
            "is {name:?}; write 1 to {} letters, digits, \"_\", \"-\" and \".\"",
            128_usize.saturating_sub(head)
        )),
    }
}

impl FixedValue {
    fn check(
        name: &str,
        value: Value,
        tree: &ConfigTree<'_>,
        path: &SettingPath,
    ) -> Result<FixedValue, SettingError> {
        let table = value.as_object().filter(|table| table.len() == 1);
        let entry = |key: &str| table.and_then(|table| table.get(key));
        if let Some(marked @ Value::String(_)) = entry(PLAINTEXT_KEY) {
            return Ok(FixedValue::Value(marked.clone()));
        }
        if let Some(Value::String(variable)) = entry("env") {
            let path = path.key("env");
            return match EnvName::try_from(variable.clone()) {
                Ok(EnvName(name)) => Ok(FixedValue::Env {
                    name,
                    place: tree.position(&path),
                }),
                Err(text) => Err(SettingError::about(path, text)),
            };
        }
        match value
            .as_str()
            .and_then(|text| plaintext::secret_reason(name, text))
        {
            None => Ok(FixedValue::Value(value)),
            Some(why) => Err(SettingError::about(
                path.clone(),
                format!(
                    "{why}, and would be in plaintext in this file; write {{ env = \"NAME\" }}; if it is not a secret, write {{ {PLAINTEXT_KEY} = \"…\" }}"
                ),
            )),
        }
    }
}

#[cfg(test)]
#[path = "overrides/tests.rs"]
mod tests;
