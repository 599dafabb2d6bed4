//! TOML tables with source positions: rejects unknown keys and wrong types with the position of each error.

use super::{
    error::{ConfigError, ConfigText, suggestion},
    renamed,
};
use std::ops::RangeInclusive;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// TOML table with only known keys.
pub(super) struct ConfigSection<'a> {
    pub(super) doc: ConfigText<'a>,
    /// Name in error messages, for example `[server.files]`; empty at the top level.
    name: String,
    /// Byte offset of the start of the table.
    pub(super) at: usize,
    table: &'a DeTable<'a>,
}

/// Value of one key in a TOML table.
pub(super) struct ConfigField<'a> {
    doc: ConfigText<'a>,
    /// Name in error messages, for example `"cwd" in [server.files]`.
    name: String,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> ConfigSection<'a> {
    /// Creates a section and rejects keys that are not `known`.
    pub(super) fn new(
        doc: ConfigText<'a>,
        name: impl Into<String>,
        at: usize,
        table: &'a DeTable<'a>,
        known: &[&str],
    ) -> Result<ConfigSection<'a>, ConfigError> {
        let section = ConfigSection {
            doc,
            name: name.into(),
            at,
            table,
        };
        let unknown = |key: &&Spanned<_>| !known.contains(&section.key(key));
        match table
            .keys()
            .filter(unknown)
            .min_by_key(|key| key.span().start)
        {
            Some(key) => Err(section.unknown_key(key.span().start, section.key(key), known)),
            None => section.check_renamed_values().map(|()| section),
        }
    }

    /// Rejects a former value of a setting.
    fn check_renamed_values(&self) -> Result<(), ConfigError> {
        let settings = renamed::settings_of(&self.name);
        for setting in settings.filter(|setting| !setting.values.is_empty()) {
            let Some(field) = self.get(setting.key) else {
                continue;
            };
            if let Some(now) = field
                .value()
                .as_str()
                .and_then(|old| setting.new_value(old))
            {
                return Err(field.key_error(format!(
                    "is {:?}, which is called {now:?} now; rename it",
                    field.value().as_str().unwrap_or_default()
                )));
            }
        }
        Ok(())
    }

    fn key<'k>(&self, key: &'k Spanned<std::borrow::Cow<'a, str>>) -> &'k str {
        key.get_ref()
    }

    fn unknown_key(&self, at: usize, key: &str, known: &[&str]) -> ConfigError {
        if let Some(setting) = renamed::settings_of(&self.name).find(|s| s.old_key == key) {
            let old = self.get(key).and_then(|field| field.value().as_str());
            let fix = match old.and_then(|old| setting.new_value(old)) {
                Some(value) => format!("write {} = {value:?}", setting.key),
                None => "rename it".to_owned(),
            };
            let text = format!("{} is called {:?} now; {fix}", self.label(key), setting.key);
            return self.doc.error(at, text);
        }
        let hint = match super::top_level::TOP_LEVEL_KEYS.contains(&key) && !self.name.is_empty() {
            true => "; it belongs at the top of the file, before the first [section]".to_owned(),
            false => suggestion(key, known.iter().copied()),
        };
        self.doc
            .error(at, format!("unknown key {}{hint}", self.label(key)))
    }

    fn label(&self, key: &str) -> String {
        match self.name.is_empty() {
            true => format!("{key:?}"),
            false => format!("{key:?} in {}", self.name),
        }
    }

    /// Returns the value of a key.
    pub(super) fn get(&self, key: &str) -> Option<ConfigField<'a>> {
        let (_, value) = self.table.iter().find(|(k, _)| k.get_ref() == key)?;
        Some(ConfigField {
            doc: self.doc,
            name: self.label(key),
            value,
        })
    }

    /// Returns the value of a required key; `example` is the suggested text of the error.
    pub(super) fn require(&self, key: &str, example: &str) -> Result<ConfigField<'a>, ConfigError> {
        let missing = || {
            self.doc.error(
                self.at,
                format!("{} has no {key:?}; write {key} = {example}", self.name),
            )
        };
        self.get(key).ok_or_else(missing)
    }

    /// Returns keys with their offsets and values, in the order of the file.
    pub(super) fn entries(&self) -> Vec<(&'a str, usize, ConfigField<'a>)> {
        let entry = |(key, value): (&'a Spanned<std::borrow::Cow<'a, str>>, _)| {
            let name: &'a str = key.get_ref();
            (
                name,
                key.span().start,
                ConfigField {
                    doc: self.doc,
                    name: self.label(name),
                    value,
                },
            )
        };
        let mut entries: Vec<_> = self.table.iter().map(entry).collect();
        entries.sort_by_key(|(_, at, _)| *at);
        entries
    }
}

impl<'a> ConfigField<'a> {
    /// Creates an error at the position of the value.
    pub(super) fn error(&self, text: impl std::fmt::Display) -> ConfigError {
        self.doc.error(self.offset(), text)
    }

    /// Creates an error at the position of the value; the message starts with the key.
    pub(super) fn key_error(&self, text: impl std::fmt::Display) -> ConfigError {
        self.error(format!("{} {text}", self.name))
    }

    /// Returns the byte offset of the value.
    pub(super) fn offset(&self) -> usize {
        self.value.span().start
    }

    /// Returns the position of the value as `file:line:column`.
    pub(super) fn position(&self) -> String {
        self.doc.position(self.offset())
    }

    fn type_error(&self, write: &str) -> ConfigError {
        let kind = match self.value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date-time",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        self.key_error(format!("is {kind}; write {write}"))
    }

    /// Returns the value as text and rejects NUL characters.
    pub(super) fn text(&self) -> Result<&'a str, ConfigError> {
        self.text_or("a string in quotes")
    }

    /// Like [`ConfigField::text`], with the given suggestion in the type error.
    pub(super) fn text_or(&self, write: &str) -> Result<&'a str, ConfigError> {
        match self.value.get_ref() {
            DeValue::String(text) if text.contains('\0') => {
                Err(self.key_error("contains a NUL character; remove it"))
            }
            DeValue::String(text) => Ok(text),
            _ => Err(self.type_error(write)),
        }
    }

    /// Returns the value as a boolean.
    pub(super) fn boolean(&self) -> Result<bool, ConfigError> {
        self.value
            .get_ref()
            .as_bool()
            .ok_or_else(|| self.type_error("true or false"))
    }

    /// Returns the value as an integer and checks the range.
    pub(super) fn number(&self, range: RangeInclusive<u64>) -> Result<u64, ConfigError> {
        let write = format!("an integer from {} to {}", range.start(), range.end());
        let DeValue::Integer(digits) = self.value.get_ref() else {
            return Err(self.type_error(&write));
        };
        match u64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => Err(self.key_error(format!("is {digits}; write {write}"))),
        }
    }

    /// Returns the variant that the text value names.
    pub(super) fn one_of<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, ConfigError> {
        let all: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        let write = all.join(" or ");
        let DeValue::String(given) = self.value.get_ref() else {
            return Err(self.type_error(&write));
        };
        let found = words.iter().find(|(word, _)| word == given);
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| self.key_error(format!("is {given:?}; write {write}")))
    }

    /// Returns the TOML value.
    pub(super) fn value(&self) -> &'a DeValue<'a> {
        self.value.get_ref()
    }

    /// Returns true if the value is a table.
    pub(super) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    /// Returns true if the value is a list.
    pub(super) fn is_list(&self) -> bool {
        self.value.get_ref().is_array()
    }

    /// Returns the elements of a list as fields of the same name.
    pub(super) fn list(&self, write: &str) -> Result<Vec<ConfigField<'a>>, ConfigError> {
        let list = self
            .value
            .get_ref()
            .as_array()
            .ok_or_else(|| self.type_error(write))?;
        Ok(list
            .iter()
            .map(|value| ConfigField {
                doc: self.doc,
                name: self.name.clone(),
                value,
            })
            .collect())
    }

    /// Returns a table and rejects keys that are not `known`.
    pub(super) fn section(
        &self,
        name: impl Into<String>,
        write: &str,
        known: &[&str],
    ) -> Result<ConfigSection<'a>, ConfigError> {
        ConfigSection::new(self.doc, name, self.offset(), self.table(write)?, known)
    }

    /// Returns a table and accepts any key.
    pub(super) fn any_section(
        &self,
        name: impl Into<String>,
        write: &str,
    ) -> Result<ConfigSection<'a>, ConfigError> {
        Ok(ConfigSection {
            doc: self.doc,
            name: name.into(),
            at: self.offset(),
            table: self.table(write)?,
        })
    }

    fn table(&self, write: &str) -> Result<&'a DeTable<'a>, ConfigError> {
        self.value
            .get_ref()
            .as_table()
            .ok_or_else(|| self.type_error(write))
    }
}
