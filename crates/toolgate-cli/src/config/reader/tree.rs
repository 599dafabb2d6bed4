//! TOML tree of a config file: reads it with serde and turns errors about settings into errors with positions.

use super::{
    deserializer::ValueDeserializer,
    expected_value,
    setting_error::{SettingError, SettingPlace, SettingProblem},
    setting_path::{PathStep, SettingPath},
};
use crate::config::{
    error::{ConfigError, ConfigText, suggestion},
    renamed,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{marker::PhantomData, path::Path};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// TOML tree of a config file.
pub(in crate::config) struct ConfigTree<'a> {
    doc: ConfigText<'a>,
    root: Spanned<DeValue<'a>>,
}

impl<'a> ConfigTree<'a> {
    /// Parses a text.
    ///
    /// # Errors
    /// The text is not TOML.
    pub(in crate::config) fn parse(doc: ConfigText<'a>) -> Result<ConfigTree<'a>, toml::de::Error> {
        let root = DeTable::parse(doc.text)?;
        let span = root.span();
        Ok(ConfigTree {
            doc,
            root: Spanned::new(span, DeValue::Table(root.into_inner())),
        })
    }

    /// Reads the tree; relative paths in it start at `base`.
    ///
    /// # Errors
    /// A setting is unknown, missing or invalid.
    pub(in crate::config) fn read<T: DeserializeOwned>(
        &self,
        base: &Path,
    ) -> Result<T, SettingError> {
        let root = ValueDeserializer {
            value: self.root.get_ref(),
            path: SettingPath::default(),
            base,
        };
        root.read(PhantomData)
    }

    /// Returns true if the file has a setting.
    pub(in crate::config) fn contains(&self, path: &SettingPath) -> bool {
        self.value(path).is_some()
    }

    /// Returns the position of the value of a setting as `file:line:column`.
    pub(in crate::config) fn position(&self, path: &SettingPath) -> String {
        self.doc.position(self.offset(path, false))
    }

    /// Returns the line of the value of a setting, from 1.
    pub(in crate::config) fn line(&self, path: &SettingPath) -> usize {
        self.doc.line_and_column(self.offset(path, false)).0
    }

    /// Returns the line of the key of a setting, from 1.
    pub(in crate::config) fn key_line(&self, path: &SettingPath) -> usize {
        self.doc.line_and_column(self.offset(path, true)).0
    }

    /// Returns the error with position and message; the schema knows the valid values.
    pub(in crate::config) fn error(&self, error: SettingError, schema: &Value) -> ConfigError {
        let SettingPlace { path, at_key } = error.place.unwrap_or(SettingPlace {
            path: SettingPath::default(),
            at_key: false,
        });
        let text = match error.problem {
            SettingProblem::OtherFile(error) => return error,
            SettingProblem::Message(text) => text,
            SettingProblem::About(text) => format!("{} {text}", path.label()),
            SettingProblem::Mismatch => self.mismatch(&path, schema),
            SettingProblem::UnknownKey => self.unknown_key(&path, schema),
            SettingProblem::MissingKey(key) => {
                let example = expected_value::example(schema, &path.key(key));
                format!("{} has no {key:?}; write {key} = {example}", path.section())
            }
        };
        self.doc.error(self.offset(&path, at_key), text)
    }

    fn unknown_key(&self, path: &SettingPath, schema: &Value) -> String {
        let Some((key, section)) = path.split() else {
            return "the file has an unknown key".to_owned();
        };
        let label = path.label();
        if let Some(setting) = renamed::settings_of(&section.section()).find(|s| s.old_key == key) {
            let old = self.value(path).and_then(|value| value.get_ref().as_str());
            let fix = match old.and_then(|old| setting.new_value(old)) {
                Some(value) => format!("write {} = {value:?}", setting.key),
                None => "rename it".to_owned(),
            };
            return format!("{label} is called {:?} now; {fix}", setting.key);
        }
        let top = expected_value::keys_at(schema, &SettingPath::default());
        let hint = match top.contains(&key) && section != SettingPath::default() {
            true => "; it belongs at the top of the file, before the first [section]".to_owned(),
            false => suggestion(key, expected_value::keys_at(schema, &section)),
        };
        format!("unknown key {label}{hint}")
    }

    fn mismatch(&self, path: &SettingPath, schema: &Value) -> String {
        let label = path.label();
        let (Some(value), Some((key, section))) = (self.value(path), path.split()) else {
            return format!("{label} has a value of the wrong type");
        };
        let value = value.get_ref();
        let section = section.section();
        let mut settings = renamed::settings_of(&section);
        if let (Some(old), Some(setting)) = (value.as_str(), settings.find(|s| s.key == key))
            && let Some(now) = setting.new_value(old)
        {
            return format!("{label} is {old:?}, which is called {now:?} now; rename it");
        }
        let given = match value {
            DeValue::String(word) if expected_value::has_words(schema, path) => format!("{word:?}"),
            DeValue::Integer(digits) if expected_value::is_integer(schema, path) => {
                digits.to_string()
            }
            DeValue::Integer(_) if expected_value::is_anything(schema, path) => {
                return format!(
                    "{label} has an integer that does not fit into 64 bits; write a smaller one"
                );
            }
            other => format!("{} {}", article(other), type_name(other)),
        };
        let quotes = match value {
            DeValue::String(_) if expected_value::is_unquoted(schema, path) => " without quotes",
            _ => "",
        };
        format!(
            "{label} is {given}; write {}{quotes}",
            expected_value::describe(schema, path)
        )
    }

    fn value(&self, path: &SettingPath) -> Option<&Spanned<DeValue<'a>>> {
        path.steps()
            .iter()
            .try_fold(&self.root, |value, step| Some(find(value, step)?.1))
    }

    /// Returns the byte offset of the value or the key at a path, or of the nearest table around it.
    fn offset(&self, path: &SettingPath, at_key: bool) -> usize {
        let (mut key_start, mut value) = (0, &self.root);
        for step in path.steps() {
            let Some(found) = find(value, step) else {
                break;
            };
            (key_start, value) = found;
        }
        match at_key {
            true => key_start,
            false => value.span().start,
        }
    }
}

/// Returns the value one step below another value, and the offset of its key. An array element has no key, so its own
/// offset stands for it.
fn find<'t, 'a>(
    value: &'t Spanned<DeValue<'a>>,
    step: &PathStep,
) -> Option<(usize, &'t Spanned<DeValue<'a>>)> {
    match step {
        PathStep::Key(key) => {
            let mut entries = value.get_ref().as_table()?.iter();
            let (name, value) = entries.find(|(name, _)| name.get_ref() == key)?;
            Some((name.span().start, value))
        }
        PathStep::Index(at) => {
            let value = value.get_ref().as_array()?.get(*at)?;
            Some((value.span().start, value))
        }
    }
}

fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::Datetime(_) => "date-time",
        other => other.type_str(),
    }
}

fn article(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::Integer(_) | DeValue::Array(_) => "an",
        _ => "a",
    }
}

/// Converts the parser's message to one line with the position.
pub(in crate::config) fn toml_syntax_error(
    doc: ConfigText<'_>,
    error: &toml::de::Error,
) -> ConfigError {
    let text = error.message().lines().collect::<Vec<_>>().join("; ");
    doc.error(
        error.span().map_or(0, |span| span.start),
        format!("the file is not valid TOML: {text}"),
    )
}
