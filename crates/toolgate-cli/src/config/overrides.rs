//! `[server.NAME.tools.TOOL]`: overrides of a tool definition.

use super::{
    config_value,
    environment::check_env_name,
    error::ConfigError,
    limits::GatewayLimits,
    plaintext,
    section::{ConfigField, ConfigSection},
};
use serde_json::{Map, Value};
use std::fmt;
use toml::de::DeValue;
use toolgate::{DefinitionOverride, aggregate::NameRules};

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

/// Omits the arguments, which may be secret.
impl fmt::Debug for ToolOverride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolOverride")
            .field("tool", &self.tool)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

const KEYS: &[&str] = &[
    "name",
    "hide",
    "title",
    "description",
    "arguments",
    "call_seconds",
];

impl ToolOverride {
    /// Reads all sections `[server.NAME.tools.TOOL]`, in the order of the file.
    pub(super) fn read_all(
        field: &ConfigField<'_>,
        id: &str,
        prefix: &str,
        limits: &GatewayLimits,
    ) -> Result<Vec<ToolOverride>, ConfigError> {
        let name = format!("[server.{id}.tools]");
        let write = format!("a section for each tool, such as [server.{id}.tools.search]");
        let all = field.any_section(name, &write)?;
        let entries = all.entries().into_iter();
        let read = |(tool, at, field): (&str, usize, ConfigField<'_>)| {
            let name = format!("[server.{id}.tools.{tool}]");
            let write = format!("a section that begins with {name}");
            let section = field.section(name, &write, KEYS)?;
            let (line, _) = section.doc.line_and_column(at);
            ToolOverride::read(tool, &section, prefix, limits, line)
        };
        entries.map(read).collect()
    }

    fn read(
        tool: &str,
        section: &ConfigSection<'_>,
        prefix: &str,
        limits: &GatewayLimits,
        line: usize,
    ) -> Result<ToolOverride, ConfigError> {
        let text = |key: &str| -> Result<Option<String>, ConfigError> {
            let field = section.get(key);
            field.map(|f| f.text().map(str::to_owned)).transpose()
        };
        let name = section.get("name");
        let call_seconds = section.get("call_seconds");
        let hide = section.get("hide").map(|f| f.boolean()).transpose()?;
        Ok(ToolOverride {
            tool: tool.to_owned(),
            name: name
                .map(|field| read_tool_name(&field, prefix))
                .transpose()?,
            hide: hide.unwrap_or(false),
            title: text("title")?,
            description: text("description")?,
            arguments: match section.get("arguments") {
                Some(field) => arguments(&field)?,
                None => Vec::new(),
            },
            call_seconds: call_seconds
                .map(|field| field.number(1..=limits.call_max_seconds))
                .transpose()?,
            line,
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
                        "environment variable {name} is not set; set it to the value of argument {key:?} of {}",
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

/// Reads a tool name that stays valid and unchanged behind the prefix.
fn read_tool_name(field: &ConfigField<'_>, prefix: &str) -> Result<String, ConfigError> {
    let name = field.text()?;
    let head = match prefix {
        "" => String::new(),
        prefix => format!("{prefix}_"),
    };
    if NameRules::Specification.keeps_name(prefix, name) {
        return Ok(name.to_owned());
    }
    Err(field.key_error(format!(
        "is {name:?}; write 1 to {} letters, digits, \"_\", \"-\" and \".\"",
        128_usize.saturating_sub(head.len())
    )))
}

fn arguments(field: &ConfigField<'_>) -> Result<Vec<(String, FixedValue)>, ConfigError> {
    let section = field.any_section("arguments", "{ name = value }")?;
    let read = |(name, _, field): (&str, usize, ConfigField<'_>)| {
        Ok((name.to_owned(), read_fixed_value(name, &field)?))
    };
    section.entries().into_iter().map(read).collect()
}

fn read_fixed_value(name: &str, field: &ConfigField<'_>) -> Result<FixedValue, ConfigError> {
    if let Some(clear) = config_value::marked_plaintext(field) {
        return clear.map(|text| FixedValue::Value(text.into()));
    }
    if let DeValue::String(text) = field.value()
        && let Some(why) = plaintext::secret_reason(name, text)
    {
        return Err(field.key_error(format!(
            "{why}, and would be in plaintext in this file; write {{ env = \"NAME\" }}; if it is not a secret, write {{ {} = \"…\" }}",
            config_value::PLAINTEXT_KEY
        )));
    }
    if let Ok(table) = field.any_section("", "")
        && let [("env", _, of)] = table.entries().as_slice()
    {
        let name = of.text()?;
        let named = check_env_name(name).map_err(|_| {
            of.key_error(
                "is not a valid name of an environment variable; write the name, not the value",
            )
        });
        return named.map(|()| FixedValue::Env {
            name: name.to_owned(),
            place: of.position(),
        });
    }
    toml_to_json(field.value())
        .map(FixedValue::Value)
        .map_err(|text| field.key_error(text))
}

/// Converts a TOML value to JSON.
fn toml_to_json(from: &DeValue<'_>) -> Result<Value, String> {
    Ok(match from {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(yes) => Value::Bool(*yes),
        DeValue::Integer(digits) => {
            let number = i64::from_str_radix(digits.as_str(), digits.radix());
            number
                .map_err(|_| "has an integer that does not fit into 64 bits".to_owned())?
                .into()
        }
        DeValue::Float(digits) => {
            let number: Option<f64> = digits.as_str().parse().ok();
            let number = number.and_then(serde_json::Number::from_f64);
            number
                .ok_or("has a number that JSON cannot represent")?
                .into()
        }
        DeValue::Datetime(_) => {
            return Err("has a date-time; write it as a string in quotes".to_owned());
        }
        DeValue::Array(list) => {
            let list = list.iter().map(|one| toml_to_json(one.get_ref()));
            Value::Array(list.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => {
            let one = |(key, of): (
                &toml::Spanned<std::borrow::Cow<'_, str>>,
                &toml::Spanned<DeValue<'_>>,
            )| {
                Ok::<_, String>((key.get_ref().to_string(), toml_to_json(of.get_ref())?))
            };
            Value::Object(table.iter().map(one).collect::<Result<Map<_, _>, _>>()?)
        }
    })
}

#[cfg(test)]
#[path = "overrides/tests.rs"]
mod tests;
